package sched

import "slices"

// may reports whether an item can start now without doing harm to what was
// passed over. Passing a head takes of its allowance, which is its own cost;
// then what becomes free is gathered for it.
func (q *Queue) may(it *Item, room Room) bool { return q.fits(it, room) && q.mayPass(it, room) }

// fits reports whether the pool has a part for the item, and a backend room.
func (q *Queue) fits(it *Item, room Room) bool {
	first := q.First(it)
	return (first || !q.closed) && q.passable(it) && room.Fits(it, first)
}

// mayPass reports whether an item that fits may pass those that do not. What runs in
// its class's headroom passes those of other classes.
func (q *Queue) mayPass(it *Item, room Room) bool {
	if q.ownTurn(it) {
		return true
	}
	if q.gathers != nil {
		return !q.keptBack(it, room)
	}
	if b := q.ownHead(it, room); b != nil && q.hold(b, it) {
		return false
	}
	inside := len(q.blocked) > 0 && q.privileged(it)
	for _, b := range q.blocked {
		if b == it || !b.Backends.meets(&it.Backends) || inside && b.tenant.class != it.tenant.class {
			continue
		}
		if q.hold(b, it) {
			return false // another may pass
		}
		if b.passed+it.Cost <= b.Cost && (q.leads < maxLeads || !it.leads(b)) {
			continue
		}
		q.gather(b, room)
		if q.closed || !room.Fits(it, false) {
			return false
		}
		break // one at a time: the others wait for their turn to gather
	}
	return true
}

// keptBack reports whether an item is ahead of a head of its class that does not fit,
// by more than that one lets pass, while something is gathered. The head waits, for
// what is gathered or for its turn, and those ahead of it with it, whatever other
// backends could serve: nothing else would bound by how much they get away.
func (q *Queue) keptBack(it *Item, room Room) bool {
	if q.leads >= maxLeads {
		return false
	}
	c := it.tenant.class
	overtaken := func(b *Item) bool {
		if b == it || b.tenant.class != c || !b.Backends.meets(&it.Backends) || !it.leads(b) {
			return false
		}
		q.leads++
		q.overtaken[c.index] = b
		return true
	}
	if overtaken(q.gathers) {
		return true
	}
	if slices.ContainsFunc(q.blocked, overtaken) {
		return true
	}
	own := q.ownHead(it, room)
	return own != nil && overtaken(own)
}

// hold keeps an item back that is ahead of a head, until nothing else may start.
func (q *Queue) hold(b, it *Item) bool {
	if q.leads < 0 || q.leads >= maxLeads || !it.leads(b) {
		return false
	}
	q.leads++
	if q.held == nil {
		q.held = b
	}
	return true
}

// ownHead is the head of another project of the item's tenant that is due first, does
// not fit and that the item is ahead of; nil if there is none. Those of a tenant that
// is not due itself are not looked at otherwise.
func (q *Queue) ownHead(it *Item, room Room) *Item {
	b := it.line.node.seat.head()
	if b.project == it.project || !it.leads(b) || q.fits(b, room) {
		return nil
	}
	return b
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
func (q *Queue) First(it *Item) bool { return q.ownTurn(it) || q.privileged(it) }

// ownTurn reports whether an item passes everything: it gathers, is inside of a
// contract, or is due as early as what gathers.
func (q *Queue) ownTurn(it *Item) bool {
	return q.gathers == it || it.contract != nil || q.entitled(it)
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
	it := l.kv.elems[i].spot.of.head
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
