package sched

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
	for _, h := range q.reserved {
		if h != c {
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
	l := it.line.node.seat.lane
	for d, n := range it.Need {
		if n > 0 && !q.allows(l.class, l.short, d, n) {
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
