package tabletop

import (
	"time"

	"sluice"
)

// How a recovery is told.
const (
	recoveryWindow   = 10 // seconds whose requests are judged together
	recoverySeconds  = 3600
	recoveryPermille = 10 // below the level before that still counts as back
)

// recovery is how long after the last event requests fare as they did before the
// first.
//
// Let T be the moment of the last event and L the part of requests that were good in
// the first phase. Recovery is the least whole number of seconds r such that of the
// requests first submitted from T+r to T+r+10 s at least L − 1 % were good. Requests
// that left by their own will are left out; a window without any does not count.
type recovery struct {
	from  time.Duration
	any   bool                           // there was an event
	total [sluice.NumClasses + 1][]int32 // by second; the last is of all classes
	good  [sluice.NumClasses + 1][]int32
}

func newRecovery(events []Event) *recovery {
	r := &recovery{}
	for i := range events {
		r.any, r.from = true, max(r.from, events[i].At)
	}
	return r
}

func (r *recovery) ended(p *play, q *request, good bool) {
	second := int((q.from - r.from) / time.Second)
	if !r.any || q.from < r.from || second >= recoverySeconds+recoveryWindow {
		return
	}
	for _, c := range [...]int{int(p.sources[q.source].Class), sluice.NumClasses} {
		for len(r.total[c]) <= second {
			r.total[c], r.good[c] = append(r.total[c], 0), append(r.good[c], 0)
		}
		r.total[c][second]++
		if good {
			r.good[c][second]++
		}
	}
}

// of is the recovery of a class, or of all, to a level in thousandths; false if it
// did not recover.
func (r *recovery) of(class int, level int64) (time.Duration, bool) {
	if !r.any {
		return 0, true
	}
	total, good := r.total[class], r.good[class]
	for s := range total {
		var n, ok int64
		for i := s; i < min(s+recoveryWindow, len(total)); i++ {
			n, ok = n+int64(total[i]), ok+int64(good[i])
		}
		if n > 0 && ok*1000 >= (level-recoveryPermille)*n {
			return time.Duration(s) * time.Second, true
		}
	}
	return 0, false
}
