package tabletop

import "time"

type what uint8

const (
	timerEvent   what = iota // index: of the events
	timerArrive              // index: of the source; gen: its arrivals'
	timerStream              // index: of the source; one of its streams is free
	timerPatient             // index: of the request's slot; gen: its
	timerLeave
	timerSubmit
	timerReport // gen: the attempt's
	timerFail
	timerHedge  // gen: the attempt's
	timerScrape // index: of the machine
	timerSample
)

// timer is something that happens at a moment. One whose gen is not that of what it
// is about any more is left out.
type timer struct {
	at    time.Duration
	seq   uint64
	gen   uint64
	index int32
	what  what
}

func (t *timer) before(o *timer) bool {
	return t.at < o.at || t.at == o.at && t.seq < o.seq
}

// timers is a heap by time, then by when they were set.
type timers struct {
	heap []timer
	seq  uint64
}

func (t *timers) set(at time.Duration, w what, index int, gen uint64) {
	t.seq++
	h := append(t.heap, timer{at, t.seq, gen, int32(index), w})
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !h[i].before(&h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
	t.heap = h
}

// next is when the first timer is due.
func (t *timers) next() (time.Duration, bool) {
	if len(t.heap) == 0 {
		return 0, false
	}
	return t.heap[0].at, true
}

func (t *timers) pop() timer {
	h := t.heap
	top, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	for i := 0; ; {
		least := i
		for c := 4*i + 1; c <= 4*i+4 && c < last; c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if least == i {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	t.heap = h
	return top
}
