package sched

import (
	"time"

	"sluice"
	"sluice/internal/byname"
)

// Bounds bounds a queue, or one tenant's part of it. A request fits if it does
// not take any of them beyond the bound; a zero bound is none.
type Bounds struct {
	Requests int64
	Bytes    int64
	Work     sluice.Tokens
}

// Counts are totals since the queue was made. Enqueued = Dispatched + Cancelled +
// Rejected + Moved + what waits.
type Counts struct {
	Enqueued   int64
	Dispatched int64
	Cancelled  int64
	Rejected   int64
	Moved      int64
}

// Exit is how an item leaves a queue without a place.
type Exit uint8

// The exits.
const (
	Cancelled Exit = iota // its caller left
	Rejected              // it waited too long, was shed, or can no longer be served
	Moved                 // to another queue
)

// Plus is the totals of two queues.
func (c Counts) Plus(o Counts) Counts {
	return Counts{c.Enqueued + o.Enqueued, c.Dispatched + o.Dispatched, c.Cancelled + o.Cancelled, c.Rejected + o.Rejected, c.Moved + o.Moved}
}

func (c *Counts) leave(how Exit) {
	switch how {
	case Cancelled:
		c.Cancelled++
	case Rejected:
		c.Rejected++
	case Moved:
		c.Moved++
	}
}

// Queue is one pool's queue. It is not safe for concurrent use.
type Queue struct {
	policy    Policy
	bounds    Bounds
	perTenant Bounds
	classes   [sluice.NumClasses]class
	reserved  []*class // those with headroom
	contracts []*contract
	last      vtime // of classes: where the one that was served last stood
	counts    Counts
	waiting   int
	bytes     int64
	work      sluice.Tokens
	copies    Amounts // what they hold
	pushed    uint64
	base      time.Time // of the first item: moments count from it, whatever the clock is set to
	made      uint64    // tenants so far

	tenants directory
	lines   byname.Index[lineID, line, lineNames]
	lots    map[any][]*line // parked lines, by what they wait for
	due     deadlines
	roster  roster

	capacity  Amounts                  // of the backends that can be used; 0 is unbounded
	free      Amounts                  // of them
	blocked   []*Item                  // what the last Next passed over, in order
	gathers   *Item                    // what becomes free is kept for it
	closed    bool                     // it waits for the pool's part, not for one backend
	held      *Item                    // of blocked: what could pass it is ahead of it
	leads     int                      // how many such were looked at; -1: no more
	overtaken [sluice.NumClasses]*Item // while another gathers: a head of the class that those ahead of it may not pass

	below sluice.Class // only what is more important than it is served: see NextAbove

	suspended [sluice.NumClasses]bool // what waits of these is set aside: see Suspend

	pace  pace
	spare spare

	spans spans // of meters

	refusals refusals         // for the view alone, as is what follows
	past     *[pastSlots]past // of flows that are away; nil until one is
}

// spare is memory to be used again.
type spare struct {
	tenants  []*tenant
	projects []*project
	lanes    []*lane
	seats    []*seat
	nodes    []*node
	lines    []*line
}

// NewQueue makes an empty queue.
func NewQueue(p Policy, total, perTenant Bounds) *Queue {
	q := &Queue{lots: make(map[any][]*line), below: allClasses, roster: newRoster()}
	for i := range q.classes {
		q.classes[i].index = sluice.Class(i)
	}
	q.Configure(p, total, perTenant)
	return q
}

// Configure changes policy and bounds. What waits and runs stays as it is; a
// contract that is gone ends with what runs inside of it. REQUIRES: p.FIFO does
// not change.
func (q *Queue) Configure(p Policy, total, perTenant Bounds) {
	defaults := DefaultClasses()
	q.reserved = q.reserved[:0]
	for i := range p.Classes {
		if p.Classes[i] == (Class{}) {
			p.Classes[i] = defaults[i]
		}
		c := &q.classes[i]
		if c.policy = p.Classes[i]; c.policy.Headroom > 0 {
			q.reserved = append(q.reserved, c)
		}
	}
	if total != q.bounds {
		for i := range q.classes {
			q.classes[i].loads.noteAll()
		}
	}
	q.policy, q.bounds, q.perTenant = p, total, perTenant
	q.contract(p.Contracts)
}

// Len is how many items wait.
func (q *Queue) Len() int { return q.waiting }

// Bytes is the bodies of what waits.
func (q *Queue) Bytes() int64 { return q.bytes }

// Work is the work of what waits.
func (q *Queue) Work() sluice.Tokens { return q.work }

// Counts are the totals.
func (q *Queue) Counts() Counts { return q.counts }

// Waiting is how many items wait, by class.
func (q *Queue) Waiting() (n [sluice.NumClasses]int) {
	for i := range q.classes {
		n[i] = q.classes[i].waiting
	}
	return n
}

// Push adds an item, whether it fits or not: see Full. REQUIRES: the item is
// neither waiting nor running.
func (q *Queue) Push(it *Item) {
	if it.state != away {
		panic("sched: item is in a queue")
	}
	q.pushed++
	it.order, it.passed, it.charged, it.contract = q.pushed, 0, 0, nil
	if q.base.IsZero() {
		q.base = it.Since
	}
	it.state, it.since, it.deadline = waits, int64(it.Since.Sub(q.base)), int64(it.Deadline.Sub(q.base))
	p := q.tenantOf(it)
	it.project, it.tenant = p, p.tenant
	if t := p.tenant; t.waiting+t.running == 0 && t.byIdle.in() { // whether or not the item will compete
		t.class.idle.Remove(&t.byIdle)
	}
	q.count(it, +1)
	q.counts.Enqueued++
	it.tenant.class.counts.Enqueued++
	q.roster.enter(it)
	q.due.push(&q.roster, it)
	q.age(it)
	q.join(it)
	if it.Seen != nil {
		it.Seen.note(q, it)
	}
}

// join puts an item into its line.
func (q *Queue) join(it *Item) {
	l := q.lineOf(it)
	it.line = l
	l.insert(it)
	switch {
	case l.head == l.tail && q.suspends(l):
		q.shelve(l, suspension(it.tenant.class.index))
	case l.head == l.tail:
		q.enter(l)
	case l.head == it && l.on == nil:
		l.reorder()
	}
}

// Remove takes an item out that waits.
func (q *Queue) Remove(it *Item, how Exit) {
	q.counts.leave(how)
	it.tenant.class.counts.leave(how)
	it.tenant.exits[how]++
	p := it.project
	q.takeOut(it)
	it.state, it.tenant, it.project, it.contract = away, nil, nil, nil
	q.rest(p)
}

// takeOut ends an item's wait.
func (q *Queue) takeOut(it *Item) {
	if q.gathers == it {
		q.gathers, q.closed = nil, false
	}
	if b := &q.overtaken[it.tenant.class.index]; *b == it {
		*b = nil
	}
	q.due.remove(&q.roster, it)
	q.unage(it)
	q.roster.leave(it)
	q.count(it, -1)
	q.quit(it)
}

// quit takes an item out of its line.
func (q *Queue) quit(it *Item) {
	l := it.line
	wasHead := l.head == it
	it.line = nil
	if l.head == l.tail { // the last one: it still orders the heaps while the line leaves
		if l.on == nil {
			q.leave(l)
		} else {
			q.leaveLot(l)
		}
		l.remove(it)
		q.dropLine(l)
		return
	}
	l.remove(it)
	if wasHead && l.on == nil {
		l.reorder()
	}
}

// count adds an item to what waits, or takes it away.
func (q *Queue) count(it *Item, sign int64) {
	t, n := it.tenant, int(sign)
	c := t.class
	q.waiting += n
	q.bytes += sign * it.Bytes
	q.work += sluice.Tokens(sign) * it.Work
	c.waiting += n
	c.bytes += sign * it.Bytes
	c.work += sluice.Tokens(sign) * it.Work
	c.queued += sign * it.Cost
	t.waiting += int32(sign)
	t.bytes += sign * it.Bytes
	t.work += sluice.Tokens(sign) * it.Work
	t.queued += sign * it.Cost
	it.project.waiting += int32(sign)
	c.loads.note(t)
}

// Dispatch starts an item that Next has picked: its tenant is charged. It runs
// until End.
func (q *Queue) Dispatch(now time.Time, it *Item) {
	t, p := it.tenant, it.project
	c := t.class
	q.pass(it)
	q.takeOut(it)
	it.state = runs
	q.counts.Dispatched++
	c.counts.Dispatched++
	t.dispatched++
	p.running++
	t.running++
	c.running++
	it.charged = it.Upfront
	span := q.spans.at(now)
	c.served.add(span, it.Upfront)
	t.served.add(span, it.Upfront)
	if k := it.contract; k != nil {
		k.take(it)
		return
	}
	for d := range it.Need {
		c.used[d] += it.Need[d]
	}
	q.last = max(q.last, c.vt)
	c.last = max(c.last, t.vt)
	t.last = max(t.last, p.vt)
	q.charge(p, it.Upfront)
	q.settleDebts(c)
}

// Correct puts what a running item has been charged right: cost is all its work
// so far, or in the end.
func (q *Queue) Correct(now time.Time, it *Item, cost int64) {
	more := cost - it.charged
	if more == 0 || it.state != runs {
		return
	}
	it.charged = cost
	t, span := it.project.tenant, q.spans.at(now)
	t.class.served.add(span, more)
	t.served.add(span, more)
	if it.contract != nil {
		it.contract.level -= more
		return
	}
	q.charge(it.project, more)
}

// Answered frees the prefill of a running item: its first token has come.
func (q *Queue) Answered(it *Item) { q.Prefills(it, 0) }

// Prefills lowers the prefill of a running item to what is left of it.
func (q *Queue) Prefills(it *Item, left int64) {
	n := it.Need[Prefill] - left
	if it.state != runs || n <= 0 {
		return
	}
	it.Need[Prefill] = left
	if it.contract != nil {
		it.contract.used[Prefill] -= n
		return
	}
	it.tenant.class.used[Prefill] -= n
}

// End takes a running item away, which has held its place for so long.
func (q *Queue) End(it *Item, held time.Duration) {
	if it.state != runs {
		panic("sched: item does not run")
	}
	p := it.project
	t := p.tenant
	c := t.class
	if k := it.contract; k != nil {
		for d := range it.Need {
			k.used[d] -= it.Need[d]
		}
		k.running--
	} else {
		for d := range it.Need {
			c.used[d] -= it.Need[d]
		}
	}
	p.running--
	t.running--
	c.running--
	q.pace.ended(held, it.Cost)
	it.state, it.tenant, it.project, it.contract = away, nil, nil, nil
	q.rest(p)
}
