package sched

import (
	"slices"
	"time"

	"sluice"
)

// Obstacle is a kind of thing in the way of what waits.
type Obstacle uint8

// The obstacles.
const (
	Parked   Obstacle = iota // a limit of its caller is full
	Behind                   // requests of its own flow that come first: N
	Turn                     // other flows that are due first
	Size                     // none of its backends has as much free in a dimension
	Split                    // some have enough in one dimension, others in another
	Full                     // the pool has not as much free in a dimension
	Ceiling                  // of its class, in a dimension
	Headroom                 // that is kept free for Class, in a dimension
	Reserve                  // that is kept for the contract of Tenant, in a dimension
	Gathered                 // what is free is kept for Item
)

// Lack is one thing in the way of an item.
type Lack struct {
	What      Obstacle
	Dimension int   // Slots, KV or Prefill
	Need      int64 // in it
	Free      int64 // of it, for this item
	Kept      int64 // for others: Headroom and Reserve
	N         int
	Class     sluice.Class
	Tenant    sluice.TenantID
	Item      *Item
}

// Lacks is what is in the way of an item that waits, as if its own flow's turn had
// come; Behind and Turn tell that it has not. Nothing changes.
func (q *Queue) Lacks(now time.Time, it *Item, room Room) (out []Lack) {
	if it.state != waits {
		return nil
	}
	all, unused := q.capacity, q.free
	defer func() { q.capacity, q.free = all, unused }()
	q.capacity, q.free = room.Capacity()
	if it.line.on != nil {
		out = append(out, Lack{What: Parked})
	}
	n, _ := q.ahead(it)
	if n > 0 {
		out = append(out, Lack{What: Behind, N: n})
	}
	cramped := q.noRoom(it, room)
	out = append(out, cramped...)
	inside := false
	if k := it.tenant.contract; k != nil && !q.policy.FIFO {
		k := *k
		k.refill(now)
		inside = k.admits(it)
	}
	if !inside && !q.policy.FIFO {
		parts := q.parts(now, it)
		out = slices.DeleteFunc(out, func(l Lack) bool { // what the pool lacks, its backends do
			return l.What == Size && slices.ContainsFunc(parts, func(p Lack) bool { return p.What == Full && p.Dimension == l.Dimension })
		})
		out = append(out, parts...)
	}
	if g := q.gathers; g != nil && g != it && !inside && !q.privileged(it) && (q.closed || len(cramped) == 0 && !room.Fits(it, false)) {
		out = append(out, Lack{What: Gathered, Item: g})
	}
	if len(out) == 0 {
		out = append(out, Lack{What: Turn})
	}
	return out
}

// noRoom is why no backend of an item's can start it.
func (q *Queue) noRoom(it *Item, room Room) (out []Lack) {
	if room.Fits(it, true) {
		return nil
	}
	most := room.Most(&it.Backends, true)
	if most[Slots] <= 0 {
		return []Lack{{What: Size, Dimension: Slots, Need: 1}}
	}
	for d, n := range it.Need {
		if n > most[d] {
			out = append(out, Lack{What: Size, Dimension: d, Need: n, Free: most[d]})
		}
	}
	if out == nil {
		out = append(out, Lack{What: Split})
	}
	return out
}

// parts is why the pool has no part left for an item outside of a contract, in
// each dimension: see allows.
func (q *Queue) parts(now time.Time, it *Item) (out []Lack) {
	c, short := it.tenant.class, it.line.id.lane.short
	for d, n := range it.Need {
		all, free := q.capacity[d], q.free[d]
		if all == 0 || n == 0 {
			continue
		}
		if top := c.policy.Ceiling; top > 0 && c.used[d] > 0 && c.used[d]+n > part(all, top) {
			out = append(out, Lack{What: Ceiling, Dimension: d, Need: n, Free: max(0, part(all, top)-c.used[d]), Class: c.index})
		}
		if free >= all {
			continue
		}
		if n > free {
			out = append(out, Lack{What: Full, Dimension: d, Need: n, Free: free})
			continue
		}
		kept := q.keptFrom(now, c, short, d)
		for _, l := range kept {
			free -= l.Kept
		}
		if n <= free {
			continue
		}
		for _, l := range kept {
			l.Need, l.Free = n, max(0, free)
			out = append(out, l)
		}
	}
	return out
}

// keptFrom is what is kept from a class in a dimension.
func (q *Queue) keptFrom(now time.Time, c *class, short bool, d int) (out []Lack) {
	for i := range q.classes {
		if h := &q.classes[i]; h != c && h.policy.Headroom > 0 {
			if kept := part(q.capacity[d], h.policy.Headroom) - h.used[d]; kept > 0 {
				out = append(out, Lack{What: Headroom, Dimension: d, Kept: kept, Class: h.index})
			}
		}
	}
	for _, k := range q.contracts {
		k := *k
		k.refill(now)
		if kept := k.keeps(d, short); kept > 0 {
			out = append(out, Lack{What: Reserve, Dimension: d, Kept: kept, Tenant: k.Tenant})
		}
	}
	return out
}
