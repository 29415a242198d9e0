package tabletop

import (
	"time"

	"sluice"
	"sluice/internal/fleet"
	"sluice/internal/route"
	"sluice/internal/tabletop/control"
)

// request is what a person waits for: one request with all its resubmissions.
type request struct {
	slot   int
	gen    uint64 // of the slot: timers of requests before it do not concern this one
	number int64  // of all requests, from 1, by the time at which they came up
	index  int64  // within its source, from 0
	source int

	truth   truth
	counted sluice.Tokens // what the gateway's counter makes of the input
	bound   sluice.Tokens
	from    time.Duration // first submitted
	phase   int           // of judgement, by from
	bucket  int           // of the series, by from
	leaves  bool          // by its own will, at some moment

	submissions int
	refusals    int           // of these
	since       time.Duration // that it waits in a queue
	queued      time.Duration
	placed      bool // it had a place at least once
	away        bool // in another region than its home

	shared  shared  // what the shares count of it
	rivals  *rivals // of fairness, while it waits or runs
	flow    *flow   // likewise; nil where it is not followed
	charged int64   // of its attempt, in fairness
	gauges  []*gauge

	of    *request // of a hedge, the request that it is beside
	hedge *request // the other attempt, while two race; in no list

	call    *control.Call // nil while the client waits to submit again
	prev    *request      // of those that are open, in order of submission
	next    *request
	run     run
	attempt uint64 // gen of timers of an attempt

	last endOf // how its last submission ended
}

// truth is what is true of a request and only its machine and client know.
type truth struct {
	input  sluice.Tokens
	output sluice.Tokens // as long as the answer would be without a bound
	blocks []uint64      // of a recording
	group  int64         // of the prompts that its source has in common
}

// run is the attempt under way.
type run struct {
	on     *machine // nil while there is none
	job    fleet.JobID
	began  time.Duration
	cached sluice.Tokens // of the input, found in the machine's cache
	first  time.Duration // when the first token came; 0 until then
	seen   sluice.Tokens
	last   time.Duration // when seen grew
	timed  bool          // a report's timer is set
	fail   *Fail         // that is on its way
	hints  []route.Hint  // in the headers of its answer
}

type endOf struct {
	outcome sluice.Outcome
	reason  sluice.Reason
}

// roster is the requests that are open: slots that are used again, and a list in
// order of submission.
type roster struct {
	slots      []*request
	free       []int
	head, tail *request
	open       int
}

// slot is one that is free.
func (t *roster) slot() *request {
	if n := len(t.free); n > 0 {
		q := t.slots[t.free[n-1]]
		t.free = t.free[:n-1]
		return q
	}
	q := &request{slot: len(t.slots)}
	t.slots = append(t.slots, q)
	return q
}

func (t *roster) add() *request {
	q := t.slot()
	*q = request{slot: q.slot, gen: q.gen + 1, attempt: q.attempt + 1, prev: t.tail}
	if t.tail != nil {
		t.tail.next = q
	} else {
		t.head = q
	}
	t.tail = q
	t.open++
	return q
}

func (t *roster) remove(q *request) {
	if q.prev != nil {
		q.prev.next = q.next
	} else {
		t.head = q.next
	}
	if q.next != nil {
		q.next.prev = q.prev
	} else {
		t.tail = q.prev
	}
	q.prev, q.next = nil, nil
	q.gen++
	q.attempt++
	t.free = append(t.free, q.slot)
	t.open--
}

// beside is a second attempt at a request, in a slot of its own.
func (t *roster) beside(q *request) *request {
	h := t.slot()
	slot, gen, attempt := h.slot, h.gen+1, h.attempt+1
	*h = *q
	h.slot, h.gen, h.attempt, h.of = slot, gen, attempt, q
	h.prev, h.next, h.run, h.rivals, h.flow, h.charged, h.gauges = nil, nil, run{}, nil, nil, 0, nil
	q.hedge = h
	return h
}

// apart ends a race: the hedge is forgotten.
func (t *roster) apart(h *request) {
	h.of.hedge, h.of, h.call = nil, nil, nil
	h.gen++
	h.attempt++
	t.free = append(t.free, h.slot)
}

// at is the request in a slot, if it is still the one that a timer was set for.
func (t *roster) at(slot int32, gen uint64) *request {
	if q := t.slots[slot]; q.gen == gen {
		return q
	}
	return nil
}
