package fleet

import (
	"container/heap"
	"time"
)

type wake struct {
	at time.Time
	id JobID
}

// wakes is a heap by time, then job; entries whose job has ended or moved on
// are dropped when they come to the top.
type wakes []wake

func (w wakes) Len() int { return len(w) }
func (w wakes) Less(i, k int) bool {
	if !w[i].at.Equal(w[k].at) {
		return w[i].at.Before(w[k].at)
	}
	return w[i].id < w[k].id
}
func (w wakes) Swap(i, k int) { w[i], w[k] = w[k], w[i] }
func (w *wakes) Push(x any)   { *w = append(*w, x.(wake)) }
func (w *wakes) Pop() any {
	old := *w
	x := old[len(old)-1]
	*w = old[:len(old)-1]
	return x
}

func (w *wakes) trim(jobs map[JobID]*call) {
	for len(*w) > 0 {
		top := (*w)[0]
		if c, ok := jobs[top.id]; ok && c.wake.Equal(top.at) {
			return
		}
		heap.Pop(w)
	}
}
