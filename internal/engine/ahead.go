package engine

import (
	"sluice/internal/prefetch"
	"sluice/internal/sched"
)

// ahead is what is likely to get the place that a request gives back. Where very many wait
// it is in no cache, nor are its tenant and its accounts, and one tells of the next. So
// while the other is settled, it is looked up a step at a time, each of which asks the
// processor for what the next one reads. Nothing that is decided depends on it.
type ahead struct {
	preview sched.Preview
	item    *sched.Item // once it is known
	known   uint8       // steps since then
}

// begin looks for it in a queue.
func (a *ahead) begin(q *sched.Queue) { *a = ahead{preview: q.Preview()} }

// step makes the next step, if there is one.
func (a *ahead) step() {
	a.item = a.preview.Step()
	if a.item == nil {
		return
	}
	switch a.known++; a.known {
	case 1: // it is not there yet, but where the request lies around it follows from where it is
		prefetch.Around(a.item, turnBefore, turnBytes)
	case 2:
		if r, ok := a.item.Value.(*request); ok { // else it has left
			r.res.Prefetch()
		}
	}
}

// What a request's turn asks for, around its item, and what its end does, from hash on, in
// bytes: see TestLayout.
const (
	turnBefore = 448
	turnBytes  = 488
	endBytes   = 1792
)
