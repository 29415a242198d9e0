package engine

import (
	"fmt"
	"slices"
	"time"

	"sluice"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// site is the part of a pool that is in one region.
type site struct {
	route.Site
	set    sched.Set // its places, in the pool
	guests *pool     // the queue of requests that are at home elsewhere; nil where no region is named

	traffic route.Traffic
}

// site is the pool's part in a region; nil if it has none, or tells none apart.
func (p *pool) site(region string) *site {
	for _, s := range p.sites {
		if s.Region == region {
			return s
		}
	}
	return nil
}

// base is the pool of which this is the queue, or that of its guests.
func (p *pool) base() *pool {
	if p.host != nil {
		return p.host
	}
	return p
}

// at is the queue of the pool that the request would join in the region where it is:
// nil if it may not, as a guest, or the pool has nothing there.
func (p *pool) at(r *request) *pool {
	switch {
	case p == nil || !r.away:
		return p
	case p.site(r.region) == nil:
		return nil
	}
	return p.site(r.region).guests
}

// locate finds the pool's sites, with what was known of those that it had.
func (e *Engine) locate(now time.Time, p *pool) {
	before := p.sites
	p.sites, p.returns = nil, e.table.Returns(p.spec)
	if p.returns == 0 {
		return
	}
	for _, region := range p.spec.Regions() {
		s := &site{Site: route.Site{Region: region}}
		for i, pl := range p.places {
			if pl.Backend.Region == region {
				s.Places = append(s.Places, pl)
				s.set.Add(i)
			}
		}
		if i := slices.IndexFunc(before, func(o *site) bool { return o.Region == region }); i >= 0 {
			o := before[i]
			s.Continue(&o.Site)
			s.guests, s.traffic = o.guests, o.traffic
		} else {
			s.Begin(now)
		}
		if region != "" {
			s.guests = e.entertain(p, s)
		}
		p.sites = append(p.sites, s)
	}
}

// entertain brings the queue of a site's guests in line with its pool, or makes it. It
// has the pool's bounds, as far as the headroom goes: what waits for room away from
// home does not fill the queue of those who live there.
func (e *Engine) entertain(p *pool, s *site) *pool {
	g := s.guests
	if g == nil {
		g = &pool{id: p.id, host: p, region: s.Region, retries: p.retries, queue: sched.NewQueue(sched.Policy{}, sched.Bounds{}, sched.Bounds{})}
	}
	g.spec, g.weights, g.places, g.blanks, g.chooser, g.version = p.spec, p.weights, p.places, p.blanks, p.chooser, p.version
	g.recall()
	g.share, g.within = e.table.Headroom[s.Region], s.set
	q := p.spec.Queue.WithDefaults()
	of := func(n int64) int64 { return max(1, part(n, g.share)) }
	total := sched.Bounds{Requests: of(q.Requests), Bytes: of(q.Bytes), Work: sluice.Tokens(of(int64(q.Work)))}
	policy := sched.Policy{Classes: p.spec.Sharing.Classes}
	for i := range policy.Classes {
		policy.Classes[i].Ceiling, policy.Classes[i].Headroom = 0, 0
	}
	g.queue.Configure(policy, total, sched.Bounds{
		Requests: part(total.Requests, q.PerTenant), Bytes: part(total.Bytes, q.PerTenant), Work: sluice.Tokens(part(int64(total.Work), q.PerTenant)),
	})
	return g
}

// headroom is what guests may occupy in all, and what of it is free: of the part that
// the region keeps for them, what runs of them does not take, and no more than the pool
// has free and keeps for nobody else.
func (m *room) headroom() (all, free sched.Amounts) {
	p := m.p
	most, unused := m.sum(&p.within)
	host := room{p: p.host, now: m.now}
	pool, _ := host.sum(nil)
	kept, used, copies := p.host.queue.Kept(m.now, pool), p.queue.Used(), p.host.queue.Copies() // these give way
	for d := range all {
		if most[d] == 0 && d != sched.Slots { // no bound; without slots there is no backend
			continue
		}
		n := p.part(most[d])
		all[d], free[d] = max(1, n), max(0, min(n-used[d], unused[d]+copies[d]-kept[d])) // 0 of all would be no bound
	}
	return all, free
}

// part is the headroom of a capacity, rounded down.
func (p *pool) part(n int64) int64 { return n/1000*p.share + n%1000*p.share/1000 }

// holds reports whether the headroom is large enough for a request, full or not: what
// is larger can never be a guest.
func (p *pool) holds(now time.Time, r *request) bool {
	m := room{p: p, now: now}
	most, _ := m.sum(&p.within)
	need := r.needOfPlace()
	for d, n := range (sched.Amounts{1, int64(need.KV), int64(need.Prefill)}) {
		if (most[d] > 0 || d == sched.Slots) && n > p.part(most[d]) {
			return false
		}
	}
	return true
}

// state is that of the region whose guests' queue this is, for the models that it takes
// longest to come back to; "" if it is no such queue.
func (p *pool) state(now time.Time) string {
	if p.host == nil {
		return ""
	}
	return p.host.site(p.region).State(now, p.host.returns)
}

// next is the item to be served next in a pool: one of its own, or a guest of a class
// that is more important than all of its own that wait for the same backends.
func (p *pool) next(now time.Time) *sched.Item {
	own := p.queue.Next(now, &p.room)
	if own != nil && (own.Inside() || p.queue.Gathering() == own) {
		return own
	}
	gathers := p.queue.Gathering()
	for _, s := range p.sites {
		if s.guests == nil || s.guests.queue.Len() == 0 {
			continue
		}
		if it := s.guest(now, p); it != nil {
			return it
		}
	}
	if p.queue.Gathering() != gathers { // a place is kept now from a guest, and so from what was picked before
		return p.queue.Next(now, &p.room)
	}
	return own
}

// guest is the next guest of a site that may start: the most important class first.
func (s *site) guest(now time.Time, p *pool) *sched.Item {
	g, below := s.guests, sluice.Class(sluice.NumClasses)
	if c, waits := p.queue.Foremost(&s.set); waits {
		below = c
	}
	for c := sluice.Class(1); c <= below; c++ {
		g.room = room{p: g, now: now}
		it := g.queue.NextAbove(now, &g.room, c)
		if it == nil {
			continue
		}
		if p.queue.GatherFirst(&p.room); !g.room.Fits(it, g.queue.First(it)) {
			continue // that is the one that is kept now
		}
		return it
	}
	return nil
}

// waits reports whether anything waits for the pool's places.
func (p *pool) waits() bool {
	return p.queue.Len() > 0 || p.entertains()
}

// title is what the pool is called where a request is refused.
func (p *pool) title() string {
	if p.host == nil {
		return "pool " + string(p.id)
	}
	return fmt.Sprintf("the part of pool %s that requests from other regions than %s may use", p.id, p.region)
}
