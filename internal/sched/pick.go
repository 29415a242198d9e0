package sched

import "time"

// Room is what a queue asks about the backends of its pool, now.
type Room interface {
	// Capacity is what the backends that can be used hold in all, and what of it
	// is free. 0 is unbounded; then free is not looked at.
	Capacity() (all, free Amounts)
	// Most is the most that any one backend of the set, with a free slot, has
	// free; one with nothing in a dimension takes anything. No slots: none can
	// start anything. The one that is kept counts only for what goes first.
	Most(set *Set, first bool) Amounts
	// Fits reports whether one backend of the item's can start it. The one that is
	// kept for another item cannot, unless the item is first.
	Fits(it *Item, first bool) bool
	// Gather keeps one backend of the item's for it as long as Gathering names it,
	// the same one while that can be used. It reports whether there is one.
	Gather(it *Item) bool
}

// Next is the item to be served next, nil if nothing may start. The caller
// dispatches, parks or removes it, and asks again.
func (q *Queue) Next(now time.Time, room Room) *Item {
	q.blocked = q.blocked[:0]
	if q.waiting == 0 {
		return nil
	}
	if q.policy.FIFO {
		return q.oldest(room)
	}
	q.capacity, q.free = room.Capacity()
	q.held, q.leads = nil, 0
	q.regather(room)
	it := q.next(now, room)
	if it != nil || q.held == nil || q.gathers != nil {
		return it
	}
	q.gather(q.held, room) // what could pass it is ahead of it already
	q.leads = -1
	q.blocked = q.blocked[:0]
	return q.next(now, room)
}

// regather sees that what is gathered is what the item lacks now: once it has got
// its part of the pool, one backend.
func (q *Queue) regather(room Room) {
	g := q.gathers
	if g == nil || q.closed && !q.passable(g) {
		return
	}
	q.closed = false
	if !room.Gather(g) {
		q.gathers = nil
	}
}

func (q *Queue) next(now time.Time, room Room) *Item {
	for _, k := range q.contracts {
		k.refill(now)
		if it := q.inside(k, room); it != nil {
			return it
		}
	}
	if g := q.gathers; g != nil && q.passable(g) && room.Fits(g, true) {
		return q.outside(g)
	}
	var done [len(q.classes)]bool
	for range q.classes {
		var c *class
		for i := range q.classes {
			if next := &q.classes[i]; !done[i] && next.ready > 0 && (c == nil || next.before(c)) {
				c = next
			}
		}
		if c == nil {
			return nil
		}
		done[c.index] = true
		if it := q.ofClass(c, room); it != nil {
			return q.outside(it)
		}
	}
	return nil
}

func (q *Queue) outside(it *Item) *Item {
	it.contract = nil
	return it
}

// oldest is strict order of arrival: what does not fit keeps back what needs the
// same backends.
func (q *Queue) oldest(room Room) *Item {
	var first *Item
	for _, l := range q.classes[0].lanes {
		if l.seats.Len() == 0 {
			continue
		}
		if it := l.seats.Top().head(); (first == nil || it.less(first)) && room.Fits(it, false) {
			first = it
		}
	}
	return first
}

// ofClass is the next item of a class: the heads of its lanes in the order of
// virtual time, then what may pass a head that does not fit.
func (q *Queue) ofClass(c *class, room Room) *Item {
	var tried uint64 // of the first 64 lanes
	for {
		at := -1
		for i, l := range c.lanes {
			if i < 64 && tried&(1<<i) == 0 && l.seats.Len() > 0 &&
				(at < 0 || l.before(c.lanes[at])) {
				at = i
			}
		}
		if at < 0 {
			break
		}
		tried |= 1 << at
		l := c.lanes[at]
		it := l.seats.Top().head()
		if !q.open(l, room) {
			if !l.short && q.opens(l, true, room) { // what a reserve is lent to passes it
				q.blocked = append(q.blocked, it)
			}
			continue
		}
		if !q.fits(it, room) {
			q.blocked = append(q.blocked, it)
		} else if q.mayPass(it, room) {
			return it
		}
	}
	for _, l := range c.lanes {
		if l.seats.Len() == 0 || !q.open(l, room) {
			continue
		}
		if it := q.equals(l, 0, room); it != nil {
			return it
		}
		if it := q.backfill(l, room); it != nil {
			return it
		}
	}
	return nil
}

// before orders lanes by what is served next in each. The same tenant stands first
// in two of them where its requests differ in the backends that can serve them: then
// its projects' order counts, and within one the order of arrival.
func (l *lane) before(o *lane) bool {
	a, b := l.seats.Top(), o.seats.Top()
	if a.tenant != b.tenant {
		return l.seats.elems[0].less(&o.seats.elems[0])
	}
	p, q := a.nodes.Top().project, b.nodes.Top().project
	switch {
	case p.vt != q.vt:
		return p.vt < q.vt
	case p != q:
		return p.id < q.id
	}
	return a.head().less(b.head())
}

// open reports whether something of the lane could start, whatever its size.
func (q *Queue) open(l *lane, room Room) bool { return q.opens(l, l.short, room) }

func (q *Queue) opens(l *lane, short bool, room Room) bool {
	return room.Most(&l.set, true)[Slots] > 0 && q.allows(l.class, short, Slots, 1)
}

// allows reports whether the pool has a part left in a dimension that a class may
// take n of: what is free, less what is kept for others, within its ceiling. What
// is larger than all that runs alone: in an idle pool, or an idle class.
func (q *Queue) allows(c *class, short bool, d int, n int64) bool {
	all := q.capacity[d]
	if all == 0 || n == 0 {
		return true
	}
	if top := c.policy.Ceiling; top > 0 && c.used[d] > 0 && c.used[d]+n > part(all, top) {
		return false
	}
	free := q.free[d]
	if free >= all {
		return true
	}
	for i := range q.classes {
		if h := &q.classes[i]; h != c && h.policy.Headroom > 0 {
			free -= max(0, part(all, h.policy.Headroom)-h.used[d])
		}
	}
	for _, k := range q.contracts {
		free -= k.keeps(d, short)
	}
	return n <= free
}

// passable reports whether the pool has a part left for the item in every
// dimension.
func (q *Queue) passable(it *Item) bool {
	for d, n := range it.Need {
		if !q.allows(it.tenant.class, it.line.id.lane.short, d, n) {
			return false
		}
	}
	return true
}

// privileged reports whether an item would run in its class's headroom, which is
// gathered for nobody.
func (q *Queue) privileged(it *Item) bool {
	c := it.tenant.class
	if c.policy.Headroom == 0 {
		return false
	}
	for d, n := range it.Need {
		if all := q.capacity[d]; all > 0 && c.used[d]+n > part(all, c.policy.Headroom) {
			return false
		}
	}
	return true
}

// may reports whether an item can start now without doing harm to what was
// passed over. Passing a head takes of its allowance, which is its own cost;
// then what becomes free is gathered for it.
func (q *Queue) may(it *Item, room Room) bool { return q.fits(it, room) && q.mayPass(it, room) }

// fits reports whether the pool has a part for the item, and a backend room.
func (q *Queue) fits(it *Item, room Room) bool {
	first := q.First(it)
	return (first || !q.closed) && q.passable(it) && room.Fits(it, first)
}

// mayPass reports whether an item that fits may pass those that do not.
func (q *Queue) mayPass(it *Item, room Room) bool {
	if q.First(it) {
		return true
	}
	for _, b := range q.blocked {
		if q.gathers != nil {
			break // one at a time: the others wait for their turn to gather
		}
		if b == it || !b.Backends.meets(&it.Backends) {
			continue
		}
		if q.leads >= 0 && q.leads < maxLeads && it.leads(b) {
			q.leads++
			if q.held == nil {
				q.held = b
			}
			return false // another may pass
		}
		if b.passed+it.Cost <= b.Cost && (q.leads < maxLeads || !it.leads(b)) {
			continue
		}
		q.gather(b, room)
		if q.closed || !room.Fits(it, false) {
			return false
		}
	}
	return true
}

// entitled reports whether an item is due no later than the head for which something is
// gathered: it stands equal to it, or before. Such a one need not wait until that
// has what it needs; together they may pass it once more by its cost, so that it
// is not kept waiting by ever new ones.
func (q *Queue) entitled(it *Item) bool {
	g := q.gathers
	if g == nil || g == it || g.passed+it.Cost > 2*g.Cost || it.line.node.seat.head() != it {
		return false
	}
	s, t := it.tenant, g.tenant
	switch {
	case s.class != t.class:
		return s.class.vt <= t.class.vt
	case s != t:
		return s.vt <= t.vt
	}
	return it.project != g.project && it.project.vt <= g.project.vt
}

// equals is a head of the lane that is due no later than the one that gathers, and
// may start.
func (q *Queue) equals(l *lane, i int, room Room) *Item {
	g := q.gathers
	if g == nil || g.tenant.class != l.class || i >= l.seats.Len() || l.seats.elems[i].e.tenant.vt > g.tenant.vt {
		return nil
	}
	if it := l.seats.elems[i].e.head(); q.entitled(it) && q.may(it, room) {
		return it
	}
	for child := arity*i + 1; child <= arity*i+arity; child++ {
		if it := q.equals(l, child, room); it != nil {
			return it
		}
	}
	return nil
}

// maxLeads bounds how many are looked at that are ahead of a head already, for one
// that is not.
const maxLeads = 64

// leads reports whether an item's flow is ahead of a head that it would pass by as
// much as that lets pass: the bound holds over any interval then, and not for each
// head alone.
func (it *Item) leads(b *Item) bool {
	s, t := it.tenant, b.tenant
	switch {
	case s.class != t.class:
		return s.class.vt-t.class.vt > stretch(b.Cost, s.class.share())
	case s != t:
		return s.vt-t.vt > stretch(b.Cost, s.weight)
	}
	return it.project.vt-b.project.vt > stretch(b.Cost, 1)
}

// First reports whether what Next has picked may have the backend that is kept
// for another item.
func (q *Queue) First(it *Item) bool {
	return q.gathers == it || it.contract != nil || q.privileged(it) || q.entitled(it)
}

// gather keeps for an item what becomes free: one backend, where that is what it
// lacks, or the pool's part.
func (q *Queue) gather(it *Item, room Room) {
	if !q.passable(it) {
		q.gathers, q.closed = it, true
		return
	}
	if room.Gather(it) {
		q.gathers = it
	}
}

// pass counts what a dispatch takes of the allowance of those that it passes.
func (q *Queue) pass(it *Item) {
	g := q.gathers
	for _, b := range q.blocked {
		if b != it && it.contract == nil && b.Backends.meets(&it.Backends) {
			b.passed += it.Cost
		}
		if b == g {
			g = nil
		}
	}
	if g != nil && g != it && it.contract == nil && g.Backends.meets(&it.Backends) {
		g.passed += it.Cost
	}
	q.blocked = q.blocked[:0]
}

// Gathering is the item for which what becomes free is kept, nil if there is none.
func (q *Queue) Gathering() *Item { return q.gathers }

// backfill is a head of the lane that fits, though those before it do not: of
// those that need little memory, in the order of the heap. While something is
// gathered, what runs in the class's headroom still may.
func (q *Queue) backfill(l *lane, room Room) *Item {
	l.size()
	if !q.closed {
		if it := q.search(l, 0, room.Most(&l.set, false), room); it != nil {
			return it
		}
	}
	c := l.class
	if q.gathers == nil {
		return nil
	}
	limit := room.Most(&l.set, true)
	if g := q.gathers.tenant.class; g != c && c.vt <= g.vt {
		return q.search(l, 0, limit, room)
	}
	if c.policy.Headroom == 0 {
		return nil
	}
	for d := range limit {
		if all := q.capacity[d]; all > 0 {
			limit[d] = min(limit[d], part(all, c.policy.Headroom)-c.used[d])
		}
	}
	return q.search(l, 0, limit, room)
}

// search is a head from entry i of the lane's heap on that needs no more than the
// limit and may start.
func (q *Queue) search(l *lane, i int, limit Amounts, room Room) *Item {
	if i >= l.kv.Len() || limit[Slots] <= 0 || l.fill.Top().head.Need[Prefill] > limit[Prefill] {
		return nil
	}
	it := l.kv.elems[i].e.head
	if it.Need[KV] > limit[KV] {
		return nil
	}
	gathers := q.gathers
	if it.Need[Prefill] <= limit[Prefill] && q.may(it, room) {
		return it
	}
	if q.gathers != gathers { // that began just now: less is left for others
		return q.search(l, 0, room.Most(&l.set, false), room)
	}
	for child := arity*i + 1; child <= arity*i+arity; child++ {
		if found := q.search(l, child, limit, room); found != nil {
			return found
		}
		if q.gathers != gathers {
			return nil
		}
	}
	return nil
}
