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

// aheadSteps is how many requests of its own an item's position is counted over.
const aheadSteps = 1024

// ahead is how many requests of its tenant and class came before an item that
// waits, and their work: counted for the nearest, in proportion for more.
func (q *Queue) ahead(it *Item) (n int, work int64) {
	for older := q.roster.before(byPush, it); older != nil; older = q.roster.before(byPush, older) {
		if n == aheadSteps {
			t := it.tenant
			first, last := q.roster.first(&t.waits).order, q.roster.last(&t.waits).order
			part := func(of int64) int64 {
				return scale(of, int64(it.order-first), int64(max(last-first, 1)))
			}
			return max(n, int(part(int64(t.waiting)-1))), max(work, part(t.queued-it.Cost))
		}
		n++
		work += older.Cost
	}
	return n, work
}

// Place is about how many requests are served before an item that waits, and for
// how much longer it waits, while so many attempts run; 0 if nothing is known.
func (q *Queue) Place(it *Item, running int64) (position int, wait time.Duration) {
	n, work := q.ahead(it)
	return q.place(it, n, work, running)
}

func (q *Queue) place(it *Item, n int, work, running int64) (position int, wait time.Duration) {
	t := it.tenant
	c := t.class
	turn := q.pace.turn(running)
	switch {
	case q.policy.FIFO:
		wait = turn + q.pace.after(work, running)
	case it == q.gathers, t.contract != nil && t.contract.paid() && t.contract.admits(it):
		wait = turn
	default:
		weights := c.weights
		if t.ready == 0 {
			weights += t.weight
		}
		floor := c.floor()
		wait = turn + q.behind(c, (max(t.vt, floor)-floor).unstretch(1)+work/t.weight, weights, running)
	}
	return min(max(n, q.turns(wait, running)), q.waiting-1), wait
}

// PlaceView is a request that waits and its place in the queue.
type PlaceView struct {
	Item     *Item
	Position int
	Wait     time.Duration
}

// Places is at most limit of the requests of a class that wait, the oldest first;
// of one tenant, unless that is empty.
func (q *Queue) Places(class sluice.Class, id sluice.TenantID, limit int, running int64) (out []PlaceView) {
	type before struct {
		n    int
		work int64
	}
	came := make(map[*tenant]before)
	add := func(it *Item) bool {
		if len(out) == limit {
			return false
		}
		b := came[it.tenant]
		v := PlaceView{Item: it}
		v.Position, v.Wait = q.place(it, b.n, b.work, running)
		came[it.tenant] = before{b.n + 1, b.work + it.Cost}
		out = append(out, v)
		return true
	}
	if id == "" {
		for _, it := range q.items(&q.classes[class]) {
			if !add(it) {
				break
			}
		}
		return out
	}
	if t := q.tenants.find(tenantID{class, id}); t != nil {
		for it := q.roster.first(&t.waits); it != nil && add(it); it = q.roster.after(byPush, it) {
		}
	}
	return out
}
