package sched

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

// Gathering is the item for which what becomes free is kept, nil if there is none.
func (q *Queue) Gathering() *Item { return q.gathers }

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
	if g == nil || g.tenant.class != l.class || i >= l.seats.Len() || l.seats.elems[i].spot.of.tenant.vt > g.tenant.vt {
		return nil
	}
	if it := l.seats.elems[i].spot.of.head(); q.entitled(it) && q.may(it, room) {
		return it
	}
	for child := arity*i + 1; child <= arity*i+arity; child++ {
		if it := q.equals(l, child, room); it != nil {
			return it
		}
	}
	return nil
}
