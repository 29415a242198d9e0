package sched

import "sluice"

// Copies are what runs on places that nobody else wants. They never wait, so they are
// in no line; they are in nobody's virtual time, and what they hold counts to no class,
// so that who comes later finds its class and its tenant as if there were none. The
// driver takes them away as soon as something waits for a backend on which one runs.

// Spare reports whether the pool has a part left for a copy that runs as a class does:
// beyond headroom and the reserves of contracts, whether or not these would be lent,
// and within the class's ceiling.
func (q *Queue) Spare(class sluice.Class, need Amounts, room Room) bool {
	if q.policy.FIFO {
		return true
	}
	all, free := room.Capacity()
	c := &q.classes[class]
	for d, n := range need {
		if all[d] == 0 || n == 0 {
			continue
		}
		if top := c.policy.Ceiling; top > 0 && c.used[d]+q.copies[d]+n > part(all[d], top) {
			return false
		}
		left := free[d]
		for i := range q.classes {
			if h := &q.classes[i]; h != c && h.policy.Headroom > 0 {
				left -= max(0, part(all[d], h.policy.Headroom)-h.used[d])
			}
		}
		for _, k := range q.contracts {
			left -= max(0, k.reserve(d)-k.used[d])
		}
		if n > left {
			return false
		}
	}
	return true
}

// Copy notes what a copy that begins holds of the pool, and with a sign of -1 that it
// has ended.
func (q *Queue) Copy(need Amounts, sign int64) {
	for d, n := range need {
		q.copies[d] += sign * n
	}
}

// Copies is what they hold.
func (q *Queue) Copies() Amounts { return q.copies }

// Wanted is the backends that could serve something which waits and whose turn its
// caller's own limits do not hold up.
func (q *Queue) Wanted() (s Set) {
	for c := range q.classes {
		for _, l := range q.classes[c].lanes {
			if l.seats.Len() > 0 {
				s.Include(&l.set)
			}
		}
	}
	return s
}
