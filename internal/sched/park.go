package sched

import (
	"cmp"
	"slices"
)

// Park sets the flow and size class of an item aside until Unpark of the same
// thing: a limit of its caller is full. It banks nothing meanwhile. REQUIRES: the
// item is what Next answered; on is comparable.
func (q *Queue) Park(it *Item, on any) {
	if q.gathers == it {
		q.gathers, q.closed = nil, false
	}
	it.contract = nil
	l := it.line
	q.leave(l)
	q.shelve(l, on)
}

// Parked reports whether any flow is parked.
func (q *Queue) Parked() bool { return len(q.lots) > 0 }

// Unpark lets the flows compete again that are parked on a thing.
func (q *Queue) Unpark(on any) {
	lot, ok := q.lots[on]
	if !ok {
		return
	}
	delete(q.lots, on)
	q.resume(lot)
}

// UnparkAll lets every parked flow compete again: limits have changed.
func (q *Queue) UnparkAll() {
	var all []*line
	for _, lot := range q.lots {
		all = append(all, lot...)
	}
	clear(q.lots)
	q.resume(all)
}

// Aside is what waits in parked flows, those whose heads came first in front.
func (q *Queue) Aside() (out []*Item) {
	var all []*line
	for _, lot := range q.lots {
		all = append(all, lot...)
	}
	slices.SortFunc(all, byHead)
	for _, l := range all {
		for it := l.head; it != nil; it = it.after {
			out = append(out, it)
		}
	}
	return out
}

func byHead(a, b *line) int { return cmp.Compare(a.head.order, b.head.order) }

// resume lets lines compete, in the order of their heads: each starts where those
// that compete are.
func (q *Queue) resume(lot []*line) {
	slices.SortFunc(lot, byHead)
	for _, l := range lot {
		l.on, l.inLot = nil, -1
		if q.suspends(l) {
			q.shelve(l, suspension(l.node.project.tenant.class.index))
			continue
		}
		q.enter(l)
	}
}

func (q *Queue) leaveLot(l *line) {
	lot := q.lots[l.on]
	last := len(lot) - 1
	lot[l.inLot] = lot[last]
	lot[l.inLot].inLot = l.inLot
	lot[last] = nil
	if last == 0 {
		delete(q.lots, l.on)
	} else {
		q.lots[l.on] = lot[:last]
	}
}
