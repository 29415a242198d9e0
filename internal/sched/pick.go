package sched

import (
	"time"

	"sluice"
)

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
	q.held, q.leads, q.overtaken = nil, 0, [sluice.NumClasses]*Item{}
	q.regather(room)
	gathered := q.gathers
	it := q.next(now, room)
	switch {
	case it != nil:
		return it
	case q.gathers != gathered: // that began just now: what stands equal to it may start
		q.leads = 0
	case q.gathers != nil || q.held == nil:
		return nil
	default: // what could pass it is ahead of it already
		q.gather(q.held, room)
		q.leads = -1
	}
	q.blocked = q.blocked[:0]
	return q.next(now, room)
}

func (q *Queue) next(now time.Time, room Room) *Item {
	for _, k := range q.contracts {
		k.refill(now)
		if it := q.inside(k, room); it != nil {
			return it
		}
	}
	if g := q.gathers; g != nil && g.tenant.class.index < q.below && q.passable(g) && room.Fits(g, true) {
		return q.outside(g)
	}
	var done [len(q.classes)]bool
	for range q.classes {
		var c *class
		for i := range q.classes {
			if next := &q.classes[i]; !done[i] && next.index < q.below && next.ready > 0 && (c == nil || next.before(c)) {
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
		s := l.seats.Top()
		it := s.head()
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
	switch s, t := a.tenant, b.tenant; {
	case s.vt != t.vt:
		return s.vt < t.vt
	case s != t:
		return s.order < t.order
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
