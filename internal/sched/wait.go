package sched

import (
	"math/bits"
	"time"

	"sluice"
)

// pace is how fast a pool serves, learned from the attempts that have ended.
type pace struct {
	held time.Duration // mean time that an attempt holds its place; 0: unknown
	cost int64         // mean work of an attempt
}

// paceWeight is the weight of the newest attempt in the means: 1/8.
const paceWeight = 8

func (p *pace) ended(held time.Duration, cost int64) {
	held, cost = max(held, 1), max(cost, 1)
	if p.held == 0 {
		p.held, p.cost = held, cost
		return
	}
	p.held = max(1, p.held+(held-p.held)/paceWeight)
	p.cost = max(1, p.cost+(cost-p.cost)/paceWeight)
}

// lasts is how long work is predicted to hold its place; 0 if nothing is known.
func (p *pace) lasts(cost int64) time.Duration {
	if p.held == 0 {
		return 0
	}
	return time.Duration(scale(int64(p.held), max(cost, 1), p.cost))
}

// turn is after how long a place becomes free in a pool that runs so many; 0 if nothing
// is known.
func (p *pace) turn(running int64) time.Duration { return p.held / time.Duration(max(running, 1)) }

// after is how long a pool that runs so many takes to serve work, by Little's
// law: n attempts at a time of mean work C and mean time S serve n·C ÷ S.
func (p *pace) after(cost, running int64) time.Duration {
	if p.held == 0 {
		return 0
	}
	return time.Duration(scale(int64(p.turn(running)), max(cost, 0), p.cost))
}

// scale is a·b ÷ c, at most what fits, for a, b ≥ 0 and c > 0.
func scale(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return unbounded
	}
	quo, _ := bits.Div64(hi, lo, uint64(c))
	return int64(min(quo, uint64(unbounded)))
}

// Service is how long an attempt holds its place on average; 0 if nothing is known.
func (q *Queue) Service() time.Duration { return q.pace.held }

// Wait predicts how long a request of a tenant waits that arrives now, while so
// many attempts run in the pool; 0 if nothing is known.
//
// The tenants of a class that compete share its rate by weight, so a virtual time
// that is ahead of theirs by v is reached after v × Σ weights of work; never more
// than all that waits in the class. The class gets its share of the pool, which
// serves by [pace.after]; and when every place is taken one becomes free after
// the n-th part of a mean attempt.
func (q *Queue) Wait(class sluice.Class, id sluice.TenantID, weight, running int64) time.Duration {
	turn := q.pace.turn(running)
	if q.policy.FIFO {
		return turn + q.pace.after(q.classes[0].queued, running)
	}
	c := &q.classes[class]
	if k := q.contractOf(id); k != nil && k.paid() && (k.Slots == 0 || k.used[Slots] < k.Slots) && (k.KV == 0 || k.used[KV] < int64(k.KV)) {
		return turn
	}
	weight = max(weight, 1)
	floor, weights := c.floor(), c.weights
	lead := int64(0)
	if t := q.tenants.find(tenantID{class, id}); t != nil {
		at := max(t.vt, floor)
		if t.ready == 0 {
			weights += weight
		}
		lead = (at - floor).unstretch(1) + t.queued/weight
	} else {
		weights += weight
	}
	return turn + q.behind(c, lead, weights, running)
}

// behind is how long a class takes to bring all that compete up to a virtual time
// that is ahead of theirs by lead.
func (q *Queue) behind(c *class, lead, weights, running int64) time.Duration {
	ahead := c.queued
	if hi, lo := bits.Mul64(uint64(lead), uint64(weights)); hi == 0 {
		ahead = int64(min(lo, uint64(ahead)))
	}
	shares := c.share()
	for i := range q.classes {
		if o := &q.classes[i]; o != c && o.ready > 0 {
			shares += o.share()
		}
	}
	if shares != c.share() {
		ahead = scale(ahead, shares, c.share())
	}
	return q.pace.after(ahead, running)
}

// Drain predicts how long the pool takes to serve all that waits, without may
// be nil, and one more; 0 if nothing is known.
func (q *Queue) Drain(running int64, without *Item) time.Duration {
	cost := q.pace.cost
	for i := range q.classes {
		cost += q.classes[i].queued
	}
	if without != nil && without.state == waits {
		cost -= without.Cost
	}
	return q.pace.after(cost, running)
}

// Competes reports whether something of a class waits that its limits do not keep
// back.
func (q *Queue) Competes(c sluice.Class) bool { return q.classes[c].ready > 0 }

// Position is about how many requests are served before one of a tenant whose
// predicted wait is known: never fewer than wait of its own, nor more than all.
func (q *Queue) Position(class sluice.Class, id sluice.TenantID, wait time.Duration, running int64) int {
	if q.pace.held == 0 && wait > 0 {
		return q.waiting
	}
	ahead := q.turns(wait, running)
	if t := q.tenants.find(tenantID{class, id}); t != nil {
		ahead = max(ahead, int(t.waiting))
	}
	return min(ahead, q.waiting)
}

// turns is how many requests of mean work a pool serves before one that waits so
// long.
func (q *Queue) turns(wait time.Duration, running int64) int {
	one := q.pace.turn(running)
	if one == 0 {
		return 0
	}
	return max(0, int(wait/one)-1)
}

// Oldest is how long the item that arrived first has waited, since it arrived.
func (q *Queue) Oldest(now time.Time) (longest time.Duration) {
	for i := range q.classes {
		longest = max(longest, q.waited(&q.classes[i], now))
	}
	return longest
}

func (q *Queue) waited(c *class, now time.Time) time.Duration {
	first := q.roster.first(&c.waits)
	if first == nil {
		return 0
	}
	return max(0, now.Sub(first.Arrived))
}

// age lists an item in its class by arrival, where it is most often the newest, and at
// the end of its tenant's.
func (q *Queue) age(it *Item) {
	c, t, r := it.tenant.class, it.tenant, &q.roster
	at := r.last(&c.waits)
	for at != nil && it.Arrived.Before(at.Arrived) {
		at = r.before(byArrival, at)
	}
	r.insert(&c.waits, byArrival, it, at)
	r.push(&t.waits, byPush, it)
}

func (q *Queue) unage(it *Item) {
	q.roster.remove(&it.tenant.class.waits, byArrival, it)
	q.roster.remove(&it.tenant.waits, byPush, it)
}

// items goes through what waits in a class, oldest first.
func (q *Queue) items(c *class) func(yield func(int, *Item) bool) {
	return func(yield func(int, *Item) bool) {
		i := 0
		for it := q.roster.first(&c.waits); it != nil; i++ {
			next := q.roster.after(byArrival, it)
			if !yield(i, it) {
				return
			}
			it = next
		}
	}
}
