package sched

import "time"

// Due is an item whose deadline is not after now, the earliest first; nil if
// there is none.
func (q *Queue[V]) Due(now time.Time) *Item[V] {
	if q.due.Len() == 0 || q.due.Top().Deadline.After(now) {
		return nil
	}
	return q.due.Top()
}

// NextDeadline is the earliest deadline, false if nothing waits.
func (q *Queue[V]) NextDeadline() (time.Time, bool) {
	if q.due.Len() == 0 {
		return time.Time{}, false
	}
	return q.due.Top().Deadline, true
}

// Oldest is how long the item that arrived first has waited, since it arrived.
func (q *Queue[V]) Oldest(now time.Time) time.Duration {
	if q.oldest == nil {
		return 0
	}
	return max(0, now.Sub(q.oldest.Arrived))
}

// serviceWeight is the weight of the newest attempt in the mean: 1/8.
const serviceWeight = 8

// Ended learns how long an attempt held its place.
func (q *Queue[V]) Ended(held time.Duration) {
	held = max(held, 1)
	if q.service == 0 {
		q.service = held
		return
	}
	q.service = max(1, q.service+(held-q.service)/serviceWeight)
}

// Service is how long an attempt holds its place on average; 0 if nothing is known.
func (q *Queue[V]) Service() time.Duration { return q.service }

// Wait predicts the wait of a request behind ahead others while running attempts
// hold all places; 0 if nothing is known.
func (q *Queue[V]) Wait(ahead int, running int64) time.Duration {
	n := time.Duration(max(running, 1))
	whole, rest := q.service/n, q.service%n // the order keeps it from overflowing
	return whole*time.Duration(ahead+1) + rest*time.Duration(ahead+1)/n
}

// age puts an item in the list by arrival; most often it is the newest.
func (q *Queue[V]) age(it *Item[V]) {
	at := q.newest
	for at != nil && it.Arrived.Before(at.Arrived) {
		at = at.older
	}
	it.older = at
	if at == nil {
		it.newer, q.oldest = q.oldest, it
	} else {
		it.newer, at.newer = at.newer, it
	}
	if it.newer == nil {
		q.newest = it
	} else {
		it.newer.older = it
	}
}

func (q *Queue[V]) unage(it *Item[V]) {
	if it.older == nil {
		q.oldest = it.newer
	} else {
		it.older.newer = it.newer
	}
	if it.newer == nil {
		q.newest = it.older
	} else {
		it.newer.older = it.older
	}
	it.older, it.newer = nil, nil
}
