package sched

import "time"

// StartSpare starts an item at once, on what nobody else is to have, and reports
// whether it did; if not, nothing has changed. Nothing that waits is overtaken by it:
// where something waits that its class lets in and that only lacks room on one of the
// item's backends, or something is gathered there, there is nothing to spare. Neither
// is what is kept for another class or for a contract, lent or not: the item runs
// outside of any. It is charged like one that has waited. REQUIRES: the item neither
// waits nor runs, and Next has nothing more to start.
func (q *Queue) StartSpare(now time.Time, it *Item, room Room) bool {
	if q.policy.FIFO {
		if q.waiting > 0 || !room.Fits(it, false) {
			return false
		}
	} else if !q.spares(it, room) {
		return false
	}
	q.blocked = q.blocked[:0] // of the last Next: the item passes nobody
	q.Push(it)
	q.Dispatch(now, it)
	return true
}

func (q *Queue) spares(it *Item, room Room) bool {
	if g := q.gathers; g != nil && (q.closed || g.Backends.meets(&it.Backends)) {
		return false
	}
	q.capacity, q.free = room.Capacity()
	for i := range q.classes {
		for _, l := range q.classes[i].lanes {
			if l.seats.Len() > 0 && l.set.meets(&it.Backends) && q.open(l, room) {
				return false
			}
		}
	}
	c := &q.classes[it.Class]
	for d, n := range it.Need {
		if all := q.capacity[d]; all > 0 && n > 0 && n > q.unkept(c, d) {
			return false
		}
	}
	return room.Fits(it, false)
}

// unkept is what a class may take in a dimension that is kept neither for another nor
// for a contract, within its ceiling.
func (q *Queue) unkept(c *class, d int) int64 {
	all, free := q.capacity[d], q.free[d]
	for i := range q.classes {
		if h := &q.classes[i]; h != c && h.policy.Headroom > 0 {
			free -= max(0, part(all, h.policy.Headroom)-h.used[d])
		}
	}
	for _, k := range q.contracts {
		free -= max(0, k.reserve(d)-k.used[d])
	}
	if top := c.policy.Ceiling; top > 0 {
		free = min(free, part(all, top)-c.used[d])
	}
	return free
}
