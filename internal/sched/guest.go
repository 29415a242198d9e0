package sched

import (
	"time"

	"sluice"
)

// Two queues may share places: that of a pool, and one of guests, whose requests are
// there only as far as those of the pool leave room. The driver asks both, and this
// is what it needs to know of each beside Next.

// NextAbove is Next among the classes that are more important than below alone.
func (q *Queue) NextAbove(now time.Time, room Room, below sluice.Class) *Item {
	q.below = below
	it := q.Next(now, room)
	q.below = allClasses
	return it
}

// allClasses is below when every class is served.
const allClasses sluice.Class = sluice.NumClasses

// Foremost is the most important class of which something waits for a backend of the
// set, and is not kept back by a limit of its caller; false if none does.
func (q *Queue) Foremost(set *Set) (sluice.Class, bool) {
	for i := range q.classes {
		for _, l := range q.classes[i].lanes {
			if l.seats.Len() > 0 && l.set.meets(set) {
				return q.classes[i].index, true
			}
		}
	}
	return 0, false
}

// GatherFirst begins to gather for the first head that the last Next passed over for
// want of room on a backend, unless something gathers: what others take meanwhile
// must not get away from it.
func (q *Queue) GatherFirst(room Room) {
	if q.gathers == nil && len(q.blocked) > 0 && q.passable(q.blocked[0]) {
		q.gather(q.blocked[0], room)
	}
}

// Used is what all that runs occupies.
func (q *Queue) Used() (used Amounts) {
	for d := range used {
		for i := range q.classes {
			used[d] += q.classes[i].used[d]
		}
		for _, k := range q.contracts {
			used[d] += k.used[d]
		}
	}
	return used
}

// UsedBy is what of a class runs, contracts aside.
func (q *Queue) UsedBy(c sluice.Class) Amounts { return q.classes[c].used }

// Kept is what of a pool that holds so much is free for nobody but those that it is
// kept for: reserves of contracts and headrooms of classes that are not in use.
func (q *Queue) Kept(now time.Time, all Amounts) (kept Amounts) {
	for d := range kept {
		if all[d] == 0 {
			continue
		}
		for i := range q.classes {
			c := &q.classes[i]
			kept[d] += max(0, part(all[d], c.policy.Headroom)-c.used[d])
		}
		for _, k := range q.contracts {
			k := *k
			k.refill(now)
			kept[d] += k.keeps(d, false)
		}
	}
	return kept
}

// LearnFrom takes over how fast another queue is served while nothing is known of this
// one.
func (q *Queue) LearnFrom(o *Queue) {
	if q.pace.held == 0 {
		q.pace = o.pace
	}
}
