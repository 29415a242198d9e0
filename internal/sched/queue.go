package sched

import (
	"time"

	"sluice"
)

// Bounds bounds a queue. A request fits if it does not take any of them beyond
// the bound; a zero bound is none.
type Bounds struct {
	Requests int64
	Bytes    int64
	Work     sluice.Tokens
}

// Counts are totals since the queue was made.
type Counts struct {
	Enqueued   int64
	Dispatched int64
	Cancelled  int64
	Rejected   int64
	Moved      int64
}

// Exit is how an item leaves.
type Exit uint8

// The exits.
const (
	Dispatched Exit = iota // it got a place
	Cancelled              // its caller left
	Rejected               // it waited too long, or can no longer be served
	Moved                  // to another queue
)

// Queue is one pool's queue. It is not safe for concurrent use.
type Queue[V any] struct {
	bounds  Bounds
	counts  Counts
	waiting [sluice.NumClasses]int
	bytes   int64
	work    sluice.Tokens
	pushed  uint64

	lines   map[Flow]*line[V]
	ready   *Heap[*line[V]] // by head
	skipped []*line[V]
	lots    map[any][]*line[V] // parked, by what they wait for
	spare   []*line[V]         // empty lines, to be used again

	due            *Heap[*Item[V]] // by Deadline
	oldest, newest *Item[V]

	service time.Duration // mean time that an attempt holds its place; 0: unknown
}

// spareLines bounds the memory kept for flows that come and go.
const spareLines = 256

// NewQueue makes an empty queue.
func NewQueue[V any](b Bounds) *Queue[V] {
	return &Queue[V]{
		bounds: b,
		lines:  make(map[Flow]*line[V]),
		lots:   make(map[any][]*line[V]),
		ready: NewHeap(
			func(a, b *line[V]) bool { return a.head.before(b.head) },
			func(l *line[V], i int) { l.index = i },
		),
		due: NewHeap(
			func(a, b *Item[V]) bool { return a.Deadline.Before(b.Deadline) },
			func(it *Item[V], i int) { it.due = i },
		),
	}
}

// SetBounds changes the bounds. What waits stays.
func (q *Queue[V]) SetBounds(b Bounds) { q.bounds = b }

// Len is how many items wait.
func (q *Queue[V]) Len() int { return q.due.Len() }

// Waiting is how many items wait, by class.
func (q *Queue[V]) Waiting() [sluice.NumClasses]int { return q.waiting }

// Bytes is the bodies of all items.
func (q *Queue[V]) Bytes() int64 { return q.bytes }

// Work is the work of all items.
func (q *Queue[V]) Work() sluice.Tokens { return q.work }

// Counts are the totals.
func (q *Queue[V]) Counts() Counts { return q.counts }

// Full names the bound that an item would exceed: "requests", "bytes", "work",
// or "" when it fits. An empty queue takes any one item.
func (q *Queue[V]) Full(bytes int64, work sluice.Tokens) string {
	switch b := q.bounds; {
	case q.Len() == 0:
		return ""
	case b.Requests > 0 && int64(q.Len()) >= b.Requests:
		return "requests"
	case b.Bytes > 0 && q.bytes+bytes > b.Bytes:
		return "bytes"
	case b.Work > 0 && q.work+work > b.Work:
		return "work"
	}
	return ""
}

// Push adds an item, whether it fits or not: see Full. REQUIRES: the item is in
// no queue.
func (q *Queue[V]) Push(it *Item[V]) {
	if it.Waiting() {
		panic("sched: item is in a queue")
	}
	q.pushed++
	it.order, it.passed = q.pushed, 0
	q.counts.Enqueued++
	q.waiting[it.Class]++
	q.bytes += it.Bytes
	q.work += it.Work
	q.due.Push(it)
	q.age(it)
	l := q.lines[it.Flow]
	if l == nil {
		l = q.newLine(it.Flow)
	}
	it.line = l
	l.insert(it)
	switch {
	case l.head == it && it.after == nil: // the line was empty
		l.state = ready
		q.ready.Push(l)
	case l.head == it && l.state == ready:
		q.ready.Fix(l.index)
	}
}

// Remove takes an item out, wherever it is.
func (q *Queue[V]) Remove(it *Item[V], how Exit) {
	l := it.line
	if how == Dispatched {
		q.counts.Dispatched++
		for _, s := range q.skipped {
			if s != l && s.head != nil {
				s.head.passed += it.Work
			}
		}
	}
	switch how {
	case Cancelled:
		q.counts.Cancelled++
	case Rejected:
		q.counts.Rejected++
	case Moved:
		q.counts.Moved++
	}
	q.waiting[it.Class]--
	q.bytes -= it.Bytes
	q.work -= it.Work
	q.due.Remove(it.due)
	q.unage(it)
	wasHead := l.head == it
	l.remove(it)
	it.line = nil
	switch {
	case l.head == nil:
		q.dropLine(l)
	case wasHead && l.state == ready:
		q.ready.Fix(l.index)
	}
}

// Head is the item to be served next, nil if none is ready.
func (q *Queue[V]) Head() *Item[V] {
	if q.ready.Len() == 0 {
		return nil
	}
	return q.ready.Top().head
}

// Skip sets the flow of an item aside until Rewind. REQUIRES: the item is Head().
func (q *Queue[V]) Skip(it *Item[V]) {
	l := it.line
	q.ready.Remove(l.index)
	l.state = skipped
	q.skipped = append(q.skipped, l)
}

// Rewind makes the skipped flows ready again.
func (q *Queue[V]) Rewind() {
	for i, l := range q.skipped {
		q.skipped[i] = nil
		if l.head == nil {
			q.recycle(l)
			continue
		}
		l.state = ready
		q.ready.Push(l)
	}
	q.skipped = q.skipped[:0]
}

// Park sets the flow of an item aside until Unpark of the same thing. REQUIRES:
// the item is Head(); on is comparable.
func (q *Queue[V]) Park(it *Item[V], on any) {
	l := it.line
	q.ready.Remove(l.index)
	l.state, l.on = parked, on
	l.index = len(q.lots[on])
	q.lots[on] = append(q.lots[on], l)
}

// Parked reports whether any flow is parked.
func (q *Queue[V]) Parked() bool { return len(q.lots) > 0 }

// Unpark makes the flows that are parked on a thing ready again.
func (q *Queue[V]) Unpark(on any) {
	lot, ok := q.lots[on]
	if !ok {
		return
	}
	delete(q.lots, on)
	for _, l := range lot {
		l.state, l.on = ready, nil
		q.ready.Push(l)
	}
}

// UnparkAll makes every parked flow ready again: limits have changed.
func (q *Queue[V]) UnparkAll() {
	for _, l := range q.lines {
		if l.state == parked {
			l.state, l.on = ready, nil
			q.ready.Push(l)
		}
	}
	clear(q.lots)
}

func (q *Queue[V]) newLine(f Flow) *line[V] {
	var l *line[V]
	if n := len(q.spare); n > 0 {
		l, q.spare = q.spare[n-1], q.spare[:n-1]
	} else {
		l = &line[V]{}
	}
	l.flow = f
	q.lines[f] = l
	return l
}

// dropLine forgets an empty flow. A skipped one stays in the list until Rewind.
func (q *Queue[V]) dropLine(l *line[V]) {
	delete(q.lines, l.flow)
	switch l.state {
	case ready:
		q.ready.Remove(l.index)
	case parked:
		q.leaveLot(l)
	case skipped:
		return
	}
	q.recycle(l)
}

func (q *Queue[V]) leaveLot(l *line[V]) {
	lot := q.lots[l.on]
	last := len(lot) - 1
	lot[l.index] = lot[last]
	lot[l.index].index = l.index
	lot[last] = nil
	if last == 0 {
		delete(q.lots, l.on)
	} else {
		q.lots[l.on] = lot[:last]
	}
}

func (q *Queue[V]) recycle(l *line[V]) {
	*l = line[V]{}
	if len(q.spare) < spareLines {
		q.spare = append(q.spare, l)
	}
}
