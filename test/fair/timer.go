package fair

import (
	"container/heap"
	"time"
)

type what uint8

const (
	timerArrive what = iota
	timerLeave
	timerDown
	timerUp
	timerSwap
)

type timer struct {
	at    time.Duration
	seq   int
	what  what
	index int
}

func (r *run) at(at time.Duration, w what, index int) {
	r.seq++
	heap.Push(&r.timers, timer{at, r.seq, w, index})
}

// timers is a heap by time, then by when they were set.
type timers []timer

func (t *timers) pop() timer { return heap.Pop(t).(timer) }

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, k int) bool {
	if t[i].at != t[k].at {
		return t[i].at < t[k].at
	}
	return t[i].seq < t[k].seq
}
func (t timers) Swap(i, k int) { t[i], t[k] = t[k], t[i] }
func (t *timers) Push(x any)   { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	old := *t
	x := old[len(old)-1]
	*t = old[:len(old)-1]
	return x
}
