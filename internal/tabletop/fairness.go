package tabletop

import (
	"slices"
	"sort"

	"sluice"
	"sluice/internal/route"
)

// mostFlows bounds the tenants of a pool and class that are held against each other:
// those that come first.
const mostFlows = 64

// fairness judges while the run goes on, for every two tenants of a pool and class
// and every interval of a phase in which both are eligible throughout,
//
//	|ΔS_f/w_f − ΔS_g/w_g| ≤ (2·(C + B) + C) / min(w_f, w_g)
//
// S is the work that they were charged: the estimate at dispatch, corrected as more
// is seen and at the end. C is the largest cost of a request of the pool so far, and
// once more what may pass a large one; B the largest sum of costs in flight in the
// pool since the interval began. With D = S_f/w_f − S_g/w_g the largest difference
// over all intervals of a span is max D − min D, so one pass does it.
//
// A tenant is eligible while a request of it waits whose own limits on what is in
// flight have room. Tenants with a contract in the pool, and those whose requests
// there name several models, are not held against others: what they are due is not
// their weight's share alone.
type fairness struct {
	sources []Source
	weights []int64
	routes  *routes
	groups  []*rivals // in the order in which they came up
	pools   map[sluice.PoolID]*inFlight
	gauges  []*gauge
	of      [][]*gauge // by source
}

// rivals is the tenants of a pool and class.
type rivals struct {
	pool   sluice.PoolID
	class  sluice.Class
	flight *inFlight
	flows  []*flow
	cost   route.Cost
	worst  FairnessGap
	share  float64 // of its bound
	judged bool
}

// flow is one tenant in them.
type flow struct {
	in       *rivals
	tenant   sluice.TenantID
	model    sluice.ModelID
	apart    bool // not held against others
	weight   int64
	index    int
	s        int64
	waiting  []waits
	eligible bool
	pairs    []pair // by index of the other, of those that came before
}

// waits is how many requests of a source wait.
type waits struct{ source, requests int }

// pair is the span in which two flows have both been eligible, with D·w_f·w_g.
type pair struct {
	open   bool
	lo, hi int64
	since  uint64 // of the pool's flight
}

// inFlight is the sum of costs in flight in a pool, with its maximum since any
// moment.
type inFlight struct {
	now   int64
	n     uint64
	most  int64  // largest cost of a request
	peaks []peak // values fall
}

type peak struct {
	n     uint64
	value int64
}

func (p *inFlight) add(d int64) {
	p.now += d
	p.n++
	for len(p.peaks) > 0 && p.peaks[len(p.peaks)-1].value <= p.now {
		p.peaks = p.peaks[:len(p.peaks)-1]
	}
	p.peaks = append(p.peaks, peak{p.n, p.now})
}

// since is the largest sum since the n-th change, that one included.
func (p *inFlight) since(n uint64) int64 {
	i := sort.Search(len(p.peaks), func(i int) bool { return p.peaks[i].n >= n })
	if i == len(p.peaks) {
		return p.now
	}
	return p.peaks[i].value
}

// gauge is one limit on what a scope has in flight.
type gauge struct {
	scope   sluice.Scope
	owner   string
	slots   int64 // limit; 0 none
	kv      int64
	running int64
	tokens  int64
	need    int64   // of tokens, the most that one request has needed
	flows   []*flow // that it keeps back
}

func (g *gauge) room() bool {
	return (g.slots == 0 || g.running < g.slots) && (g.kv == 0 || g.tokens+g.need <= g.kv)
}

func newFairness(s *Scenario, v *Variant) *fairness {
	f := &fairness{sources: s.Sources, routes: newRoutes(v.Table), pools: map[sluice.PoolID]*inFlight{}}
	f.limits(v)
	return f
}

// applied takes what another variant says of weights and limits. Spans end.
func (f *fairness) applied(v *Variant) {
	f.routes.set(v.Table)
	f.limits(v)
	for _, g := range f.groups {
		g.cost = f.routes.costs[g.pool].WithDefaults()
		for _, fl := range g.flows {
			for i := range f.sources {
				if f.sources[i].Tenant == fl.tenant {
					fl.weight = f.weights[i]
				}
			}
			fl.apart = fl.apart || f.contracted(g.pool, fl.tenant)
			for i := range fl.pairs {
				fl.pairs[i].open = false
			}
			fl.eligible = false
			for _, w := range fl.waiting {
				f.link(fl, w.source)
			}
		}
		for _, fl := range g.flows {
			f.judge(fl)
		}
	}
}

// limits finds the gauges of each source.
func (f *fairness) limits(v *Variant) {
	before := f.gauges
	f.gauges, f.of, f.weights = nil, make([][]*gauge, len(f.sources)), make([]int64, len(f.sources))
	for i := range f.sources {
		x, who := &f.sources[i], &v.Principals[i]
		f.weights[i] = 1
		if who.Policy != nil {
			f.weights[i] = max(who.Policy.Weight, 1)
		}
		add := func(scope sluice.Scope, owner string, limits []sluice.Limit) {
			if g := f.gauge(before, scope, owner, limits); g != nil {
				f.of[i] = append(f.of[i], g)
			}
		}
		if p := who.Policy; p != nil && p.Mode == sluice.Enforce {
			tenant := string(who.Tenant)
			add(sluice.ScopeKey, tenant+"/"+string(who.Key), p.Limits[sluice.ScopeKey])
			add(sluice.ScopeProject, tenant+"/"+string(who.Project), p.Limits[sluice.ScopeProject])
			add(sluice.ScopeTenant, tenant, p.Limits[sluice.ScopeTenant])
			byModel, ok := p.ByModel[x.Model]
			if !ok {
				byModel = p.Limits[sluice.ScopeTenantModel]
			}
			add(sluice.ScopeTenantModel, tenant+"/"+string(x.Model), byModel)
		}
		if m := v.Table.Models[x.Model]; m != nil {
			add(sluice.ScopeModel, string(x.Model), m.Limits)
		}
		add(sluice.ScopeFleet, "", v.Table.Fleet)
	}
}

// gauge finds or makes the gauge of a scope, nil if its limits have none.
func (f *fairness) gauge(before []*gauge, scope sluice.Scope, owner string, limits []sluice.Limit) *gauge {
	var slots, kv int64
	for _, l := range limits {
		switch l.Dimension {
		case sluice.Concurrency:
			slots = l.Amount
		case sluice.KVTokens:
			kv = l.Amount
		}
	}
	if slots == 0 && kv == 0 {
		return nil
	}
	is := func(g *gauge) bool { return g.scope == scope && g.owner == owner }
	if i := slices.IndexFunc(f.gauges, is); i >= 0 {
		return f.gauges[i]
	}
	g := &gauge{scope: scope, owner: owner}
	if i := slices.IndexFunc(before, is); i >= 0 {
		g = before[i]
		g.flows = nil
	}
	g.slots, g.kv = slots, kv
	f.gauges = append(f.gauges, g)
	return g
}

func (f *fairness) contracted(pool sluice.PoolID, t sluice.TenantID) bool {
	p := f.routes.table.Pools[pool]
	if p == nil {
		return false
	}
	for i := range p.Sharing.Contracts {
		if p.Sharing.Contracts[i].Tenant == t {
			return true
		}
	}
	return false
}

// rivals finds or makes those of a pool and class.
func (f *fairness) rivals(pool sluice.PoolID, class sluice.Class) *rivals {
	i := slices.IndexFunc(f.groups, func(g *rivals) bool { return g.pool == pool && g.class == class })
	if i >= 0 {
		return f.groups[i]
	}
	if f.pools[pool] == nil {
		f.pools[pool] = &inFlight{}
	}
	g := &rivals{pool: pool, class: class, flight: f.pools[pool], cost: f.routes.costs[pool].WithDefaults()}
	f.groups = append(f.groups, g)
	return g
}

// flow finds or makes the flow of a source in a pool; nil where there are too many.
func (f *fairness) flow(source int, g *rivals) *flow {
	x := &f.sources[source]
	if k := slices.IndexFunc(g.flows, func(o *flow) bool { return o.tenant == x.Tenant }); k >= 0 {
		return g.flows[k]
	}
	if len(g.flows) == mostFlows {
		return nil
	}
	fl := &flow{
		in: g, tenant: x.Tenant, model: x.Model, weight: f.weights[source], index: len(g.flows),
		apart: f.contracted(g.pool, x.Tenant), pairs: make([]pair, len(g.flows)),
	}
	g.flows = append(g.flows, fl)
	return fl
}

// link lets a flow know when a gauge of one of its sources has room or none.
func (f *fairness) link(fl *flow, source int) {
	for _, g := range f.of[source] {
		if !slices.Contains(g.flows, fl) {
			g.flows = append(g.flows, fl)
		}
	}
}
