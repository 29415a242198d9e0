package engine

import (
	"cmp"
	"slices"
	"time"

	"sluice"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// RegionView is one region, over all pools that have backends in it and serve a model
// with a locality.
type RegionView struct {
	Name  string
	State string // a word of route.Site.State: of the pool there that is furthest from healthy
	Share int64  // of the requests at home there that it may have, in thousandths: less than 1000 while it comes back

	Backends, Of int // those that take requests, of all

	Home, Away             int64 // attempts that began there: of requests at home there, and of others
	RecentHome, RecentAway int64 // of them, within the last half to whole minute

	Headroom int64 // part of its capacity that requests at home elsewhere may occupy, in thousandths
	Used     int64 // of that, in thousandths: of the pool and dimension in which it is most
	Running  int64 // requests at home elsewhere that run there
	Waiting  int   // those that wait for room there
}

// regions adds a row for each region.
func (e *Engine) regions(now time.Time, v *View, limit int) {
	for _, p := range e.pools {
		for _, s := range p.sites {
			if s.Region == "" {
				continue
			}
			i := slices.IndexFunc(v.Regions, func(r RegionView) bool { return r.Name == s.Region })
			if i < 0 {
				i = len(v.Regions)
				v.Regions = append(v.Regions, RegionView{Name: s.Region, State: route.SiteHealthy, Share: 1000, Headroom: e.table.Headroom[s.Region]})
			}
			v.Regions[i].add(now, s, p.returns)
		}
	}
	slices.SortFunc(v.Regions, func(a, b RegionView) int { return cmp.Compare(a.Name, b.Name) })
	v.Regions = v.Regions[:min(limit, len(v.Regions))]
}

func (v *RegionView) add(now time.Time, s *site, returns time.Duration) {
	if share := s.Share(now, returns); share < v.Share {
		v.Share, v.State = share, s.State(now, returns)
	}
	for _, pl := range s.Places {
		v.Of++
		if pl.Serves(now) {
			v.Backends++
		}
	}
	home, away := s.traffic.Recent(now)
	v.Home, v.Away = v.Home+s.traffic.Home, v.Away+s.traffic.Away
	v.RecentHome, v.RecentAway = v.RecentHome+home, v.RecentAway+away
	if s.guests == nil {
		return
	}
	used := s.guests.queue.Used()
	m := room{p: s.guests, now: now}
	all, _ := m.headroom()
	for d := range used {
		if all[d] > 0 {
			v.Used = max(v.Used, used[d]*1000/all[d])
		}
	}
	v.Running += used[sched.Slots]
	v.Waiting += s.guests.queue.Len()
}

// both is the pool and the guests of its regions, as far as there are any.
func (p *pool) both() []*pool {
	out := []*pool{p}
	for _, s := range p.sites {
		if s.guests != nil {
			out = append(out, s.guests)
		}
	}
	return out
}

// flows is what the pool's busiest tenants have there, those that are guests included.
func (p *pool) flows(now time.Time, limit int) []sched.FlowView {
	var v PoolView
	for _, q := range p.both() {
		for _, f := range q.queue.Flows(now, limit) {
			v.addFlow(f)
		}
	}
	return v.Flows
}

// addFlow adds a flow, to that of the same tenant and class if there is one.
func (v *PoolView) addFlow(f sched.FlowView) {
	i := slices.IndexFunc(v.Flows, func(o sched.FlowView) bool { return o.Class == f.Class && o.Tenant == f.Tenant })
	if i < 0 {
		v.Flows = append(v.Flows, f)
		return
	}
	o := &v.Flows[i]
	o.Waiting, o.Running, o.Queued, o.Rate = o.Waiting+f.Waiting, o.Running+f.Running, o.Queued+f.Queued, o.Rate+f.Rate
	o.Oldest, o.Weight = max(o.Oldest, f.Oldest), max(o.Weight, f.Weight)
	o.Counts = o.Counts.Plus(f.Counts)
}

// addGuests adds what waits in a pool away from home to what waits there anyhow.
func (v *PoolView) addGuests(now time.Time, q *sched.Queue) {
	v.Waiting, v.Bytes, v.Work = v.Waiting+q.Len(), v.Bytes+q.Bytes(), v.Work+q.Work()
	v.Oldest, v.Counts = max(v.Oldest, q.Oldest(now)), v.Counts.Plus(q.Counts())
	classes := q.Classes(now)
	for c, n := range q.Waiting() {
		v.ByClass[c] += n
		o, g := &v.Classes[c], &classes[c]
		o.Waiting, o.Running, o.Queued, o.Rate = o.Waiting+g.Waiting, o.Running+g.Running, o.Queued+g.Queued, o.Rate+g.Rate
		o.Oldest, o.Competing, o.Counts = max(o.Oldest, g.Oldest), o.Competing || g.Competing, o.Counts.Plus(g.Counts)
		for d := range o.Used {
			o.Used[d] += g.Used[d]
		}
	}
	if all := v.rate(); all > 0 {
		for c := range v.Classes {
			v.Classes[c].Share = v.Classes[c].Rate * 1000 / all
		}
	}
}

// rate is the work per second of all classes.
func (v *PoolView) rate() (all int64) {
	for c := range sluice.NumClasses {
		all += v.Classes[c].Rate
	}
	return all
}
