package sched

import (
	"hash/maphash"
	"math/bits"
	"time"

	"sluice"
)

// Flow is whose a request is. What shares its own limits, a key's requests for
// one model, keeps its order; projects of a tenant and tenants share by work.
type Flow struct {
	Tenant  sluice.TenantID
	Project sluice.ProjectID
	Key     sluice.KeyID
	Model   sluice.ModelID
}

// Item is one request in a queue, waiting or on a backend. The driver owns its
// memory and may use it again once the item has left. Exported fields do not
// change from Push until it has left.
//
// Its fields are in the order in which they are asked for, by cache lines: see
// TestLayout.
type Item struct {
	// At its end.

	Class    sluice.Class
	state    itemState
	post     int32     // in the queue's roster, while it waits
	charged  int64     // cost so far
	project  *project  // from Push to the end
	contract *contract // inside of which it runs, or is to
	Cost     int64     // expected work
	Need     Amounts   // of one backend

	// When its turn comes.

	line         *line   // while it waits
	tenant       *tenant // from Push to the end
	Upfront      int64   // the part of Cost that its tenant is charged at dispatch
	passed       int64   // cost of what has passed it while it did not fit
	since        int64   // nanoseconds from the queue's base to Since
	order        uint64  // of Push, breaks ties
	ahead, after *Item   // in its line

	// When it leaves.

	deadline int64 // as since
	patience *patience
	Backends Set
	Bytes    int64         // of its body
	Work     sluice.Tokens // input and output, what bounds count
	Value    any           // the driver's own

	// When it comes.

	Flow     Flow
	Weight   int64     // of its tenant; less than 1 counts as 1
	Seen     *Seen     // of its flow; nil if nobody keeps one
	Arrived  time.Time // of the request
	Since    time.Time // what it is ordered by within its flow
	Deadline time.Time // it leaves by then
}

type itemState uint8

const (
	away itemState = iota
	waits
	runs
)

// Waiting reports whether the item waits in a queue.
func (it *Item) Waiting() bool { return it.state == waits }

// Parked reports whether the item waits in a flow that is parked.
func (it *Item) Parked() bool { return it.line != nil && it.line.on != nil }

// Inside reports whether the item runs inside of a contract's reserve, or was
// picked to.
func (it *Item) Inside() bool { return it.contract != nil }

// Charged is the work that its tenant has been charged for its attempt so far.
func (it *Item) Charged() int64 { return it.charged }

// less is the order within a flow: by Since, then by Push.
func (it *Item) less(other *Item) bool {
	return it.since < other.since || it.since == other.since && it.order < other.order
}

// size is the item's size class: within one, memory differs by less than four
// times.
func (it *Item) size() int { return bits.Len64(uint64(max(it.Need[KV], 0))) / 2 }

// line is the items of one flow, size class and lane, in order.
type line struct {
	inNode     Spot[line]
	head, tail *Item
	node       *node
	on         any    // what it is parked on; nil: ready
	hash       uint64 // of id

	id     lineID
	newest int64 // since of the tail

	inLot     int
	byKV      Spot[line]
	byPrefill Spot[line]
	_         [24]byte // the next line begins a cache line
}

// lineID identifies a line.
type lineID struct {
	project *project
	lane    *lane
	key     sluice.KeyID
	model   sluice.ModelID
	size    int
}

// lineNames is how a queue finds lines. A project has few lanes.
type lineNames struct{}

func (lineNames) Name(l *line) lineID { return l.id }

func (lineNames) Hash(seed maphash.Seed, id lineID) uint64 {
	const odd = 0x9e3779b97f4a7c15
	h := maphash.String(seed, string(id.key)) + id.project.order*odd
	return h ^ (maphash.String(seed, string(id.model))+uint64(id.size))*odd
}

// insert puts an item in its place; most often that is the end, which needs no look at
// what is there.
func (l *line) insert(it *Item) {
	at := l.tail
	if at != nil && it.since > l.newest {
		it.ahead, it.after, at.after = at, nil, it
		l.tail, l.newest = it, it.since
		return
	}
	for at != nil && it.less(at) {
		at = at.ahead
	}
	it.ahead = at
	if at == nil {
		it.after, l.head = l.head, it
	} else {
		it.after, at.after = at.after, it
	}
	if it.after == nil {
		l.tail, l.newest = it, it.since
	} else {
		it.after.ahead = it
	}
}

func (l *line) remove(it *Item) {
	if it.ahead == nil {
		l.head = it.after
	} else {
		it.ahead.after = it.after
	}
	switch {
	case it.after != nil:
		it.after.ahead = it.ahead
	case it.ahead != nil:
		l.tail, l.newest = it.ahead, it.ahead.since
	default:
		l.tail = nil
	}
	it.ahead, it.after = nil, nil
}
