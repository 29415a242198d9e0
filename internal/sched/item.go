package sched

import (
	"time"

	"sluice"
)

// Flow is what shares its own limits: when one of its requests is kept back by a
// limit of the caller, so are those behind it.
type Flow struct {
	Tenant  sluice.TenantID
	Project sluice.ProjectID
	Key     sluice.KeyID
	Model   sluice.ModelID
}

// Item is one waiting request. The driver owns its memory and may use it again
// once the item has left the queue. Exported fields do not change while it waits.
type Item[V any] struct {
	Value    V
	Flow     Flow
	Class    sluice.Class
	Arrived  time.Time // of the request
	Since    time.Time // what it is ordered by
	Deadline time.Time // it leaves by then
	Bytes    int64
	Work     sluice.Tokens // input and output

	order        uint64 // of Push, breaks ties
	passed       sluice.Tokens
	line         *line[V] // nil when it does not wait
	ahead, after *Item[V] // in its flow
	older, newer *Item[V] // in its queue, by Arrived
	due          int      // index in the heap of deadlines
}

// Waiting reports whether the item is in a queue.
func (it *Item[V]) Waiting() bool { return it.line != nil }

// Gathers reports whether as much work has passed the item, while no backend
// fitted it, as it has itself: nothing more may pass.
func (it *Item[V]) Gathers() bool { return it.passed > 0 && it.passed >= it.Work }

func (it *Item[V]) before(other *Item[V]) bool {
	if !it.Since.Equal(other.Since) {
		return it.Since.Before(other.Since)
	}
	return it.order < other.order
}

// line is one flow's items, in order.
type line[V any] struct {
	flow       Flow
	head, tail *Item[V]
	state      lineState
	index      int // in the heap of lines, or in its lot
	on         any // what it is parked on
}

type lineState uint8

const (
	ready   lineState = iota // in the heap
	skipped                  // until Rewind
	parked                   // until Unpark
)

// insert puts an item in its place; most often that is the end.
func (l *line[V]) insert(it *Item[V]) {
	at := l.tail
	for at != nil && it.before(at) {
		at = at.ahead
	}
	it.ahead = at
	if at == nil {
		it.after, l.head = l.head, it
	} else {
		it.after, at.after = at.after, it
	}
	if it.after == nil {
		l.tail = it
	} else {
		it.after.ahead = it
	}
}

func (l *line[V]) remove(it *Item[V]) {
	if it.ahead == nil {
		l.head = it.after
	} else {
		it.ahead.after = it.after
	}
	if it.after == nil {
		l.tail = it.ahead
	} else {
		it.after.ahead = it.ahead
	}
	it.ahead, it.after = nil, nil
}
