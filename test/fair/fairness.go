package fair

import (
	"fmt"
	"sort"
	"time"

	"sluice"
)

// Level is between whom service is shared.
type Level uint8

// The levels.
const (
	Tenants  Level = iota // of one pool and class
	Projects              // of one tenant in one pool and class
)

// Spread is what Fairness found.
type Spread struct {
	Worst  float64 // largest |ΔS_f/w_f − ΔS_g/w_g| ÷ its bound
	Of     float64 // that difference
	Bound  float64
	At     time.Duration
	Pair   string
	Judged int // pairs of flows and spans in which both were eligible
}

func (s Spread) String() string {
	return fmt.Sprintf("%.0f of %.0f (%.1f %%) between %s, %d spans", s.Of, s.Bound, 100*s.Worst, s.Pair, s.Judged)
}

// Fairness judges, for every two flows of a pool and class and every interval in
// which both are eligible throughout,
//
//	|ΔS_f/w_f − ΔS_g/w_g| ≤ (2·(C + B) + A) / min(w_f, w_g)
//
// S is the work that the log says they were charged: the estimate at dispatch,
// corrected as more is seen and at the end. C is the largest cost of a request of
// the pool, B the largest sum of costs in flight in the pool over the interval, A
// the stated allowance for backfill. A flow is eligible while it has something
// waiting and its tenant has room for it in its own limit on concurrency. What has
// failed somewhere does not count: the backends that are left to it may be down.
//
// With D = S_f/w_f − S_g/w_g the largest difference over all intervals of a span
// is max D − min D, so one pass does it. B over the interval is taken over the
// span up to now.
func Fairness(l *Log, level Level, allowance int64) (Spread, error) {
	f := &fairness{log: l, level: level, allowance: allowance, flows: map[flowKey]*flow{}, groups: map[groupKey][]*flow{}, pools: map[sluice.PoolID]*inFlight{}, charged: make([]int64, len(l.Requests)), failed: make([]bool, len(l.Requests)), byTenant: map[sluice.TenantID][]*flow{}, running: map[sluice.TenantID]*counter{}, limits: map[sluice.TenantID]int64{}}
	for i := range l.Clients {
		if n := l.Clients[i].Running; n > 0 {
			f.limits[l.Clients[i].Tenant] = n
		}
	}
	f.largest()
	for i := range l.Events {
		f.event(&l.Events[i])
	}
	if f.out.Worst > 1 {
		return f.out, violation("fairness", f.out.At, "%s", f.out)
	}
	return f.out, nil
}

type fairness struct {
	log       *Log
	level     Level
	allowance int64
	flows     map[flowKey]*flow
	groups    map[groupKey][]*flow
	pools     map[sluice.PoolID]*inFlight
	cmax      map[sluice.PoolID]int64
	charged   []int64
	failed    []bool
	byTenant  map[sluice.TenantID][]*flow
	running   map[sluice.TenantID]*counter
	limits    map[sluice.TenantID]int64
	out       Spread
}

type groupKey struct {
	pool   sluice.PoolID
	class  sluice.Class
	tenant sluice.TenantID // of Projects
}

type flowKey struct {
	groupKey
	name string
}

type counter struct{ running int64 }

type flow struct {
	key      flowKey
	tenant   sluice.TenantID
	weight   int64
	index    int // in its group
	s        int64
	waiting  int
	eligible bool
	pairs    []pair // by index of the other
}

// pair is the span in which two flows have both been eligible, with D·w_f·w_g.
type pair struct {
	open   bool
	lo, hi int64
	since  int // index in the pool's inFlight
}

// inFlight is the sum of costs in flight, with its maximum since any moment.
type inFlight struct {
	now   int64
	n     int
	stack []peak // values fall
}

type peak struct {
	n     int
	value int64
}

func (p *inFlight) add(d int64) {
	p.now += d
	p.n++
	for len(p.stack) > 0 && p.stack[len(p.stack)-1].value <= p.now {
		p.stack = p.stack[:len(p.stack)-1]
	}
	p.stack = append(p.stack, peak{p.n, p.now})
}

// since is the largest sum since the n-th change, that one included.
func (p *inFlight) since(n int) int64 {
	i := sort.Search(len(p.stack), func(i int) bool { return p.stack[i].n >= n })
	if i == len(p.stack) {
		return p.now
	}
	return p.stack[i].value
}

// largest finds the largest cost of each pool, estimated or true.
func (f *fairness) largest() {
	f.cmax = map[sluice.PoolID]int64{}
	for i := range f.log.Requests {
		q := &f.log.Requests[i]
		f.cmax[q.Pool] = max(f.cmax[q.Pool], f.log.Cost.Estimate(q.Work), f.log.Cost.Of(q.True.In-q.True.Cached, q.True.Out))
	}
}

func (f *fairness) flowOf(q *Request) *flow {
	k := flowKey{groupKey: groupKey{pool: q.Pool, class: q.Class}, name: string(q.Tenant)}
	weight := max(f.log.Clients[q.Client].Weight, 1)
	if f.level == Projects {
		k.tenant, k.name, weight = q.Tenant, string(q.Project), 1
	}
	fl := f.flows[k]
	if fl == nil {
		g := f.groups[k.groupKey]
		fl = &flow{key: k, tenant: q.Tenant, weight: weight, index: len(g)}
		for _, other := range g {
			other.pairs = append(other.pairs, pair{})
			fl.pairs = append(fl.pairs, pair{})
		}
		fl.pairs = append(fl.pairs, pair{})
		f.flows[k] = fl
		f.byTenant[q.Tenant] = append(f.byTenant[q.Tenant], fl)
		f.groups[k.groupKey] = append(g, fl)
	}
	return fl
}

func (f *fairness) pool(id sluice.PoolID) *inFlight {
	p := f.pools[id]
	if p == nil {
		p = &inFlight{}
		f.pools[id] = p
	}
	return p
}

func (f *fairness) event(e *Event) {
	if e.Kind >= Capacity || e.Kind == Arrive || e.Kind == Refuse || e.Kind == First {
		return
	}
	q := &f.log.Requests[e.Req]
	fl, p := f.flowOf(q), f.pool(q.Pool)
	t := f.running[q.Tenant]
	if t == nil {
		t = &counter{}
		f.running[q.Tenant] = t
	}
	anywhere := 1 // it may be served by any backend
	if f.failed[e.Req] {
		anywhere = 0
	}
	switch e.Kind {
	case Enqueue:
		fl.waiting += anywhere
	case Shed, Leave:
		fl.waiting -= anywhere
	case Dispatch:
		p.add(e.Cost)
		f.charged[e.Req] = e.Cost
		f.charge(e, fl, e.Cost)
		fl.waiting -= anywhere
		t.running++
	case Correct:
		p.add(e.Cost)
		f.charged[e.Req] += e.Cost
		f.charge(e, fl, e.Cost)
	case End, Fail:
		f.charge(e, fl, e.Cost)
		p.add(-f.charged[e.Req])
		f.charged[e.Req] = 0
		f.failed[e.Req] = e.Kind == Fail
		t.running--
	}
	f.settle(t, q)
}

// charge adds to a flow's service and judges its pairs.
func (f *fairness) charge(e *Event, fl *flow, cost int64) {
	fl.s += cost
	if !fl.eligible {
		return
	}
	p := f.pools[fl.key.pool]
	for _, other := range f.groups[fl.key.groupKey] {
		a, b := fl, other
		if a.index > b.index {
			a, b = b, a
		}
		pr := &a.pairs[b.index]
		if !pr.open || a == b {
			continue
		}
		d := a.s*b.weight - b.s*a.weight
		pr.lo, pr.hi = min(pr.lo, d), max(pr.hi, d)
		bound := (2*(f.cmax[fl.key.pool]+p.since(pr.since)) + f.allowance) * max(a.weight, b.weight)
		if worst := float64(pr.hi-pr.lo) / float64(bound); worst > f.out.Worst {
			unit := float64(a.weight * b.weight)
			f.out.Worst, f.out.Of, f.out.Bound, f.out.At = worst, float64(pr.hi-pr.lo)/unit, float64(bound)/unit, e.At
			f.out.Pair = fmt.Sprintf("%s and %s", a.key.name, b.key.name)
		}
	}
}

// settle opens and closes spans where a flow has become eligible or is no more.
func (f *fairness) settle(t *counter, q *Request) {
	limit := f.limits[q.Tenant]
	room := limit == 0 || t.running < limit
	// The limit is the tenant's: all its flows become eligible together.
	for _, other := range f.byTenant[q.Tenant] {
		f.set(other, other.waiting > 0 && room)
	}
}

func (f *fairness) set(fl *flow, eligible bool) {
	if fl.eligible == eligible {
		return
	}
	fl.eligible = eligible
	p := f.pool(fl.key.pool)
	for _, other := range f.groups[fl.key.groupKey] {
		a, b := fl, other
		if a.index > b.index {
			a, b = b, a
		}
		if a == b {
			continue
		}
		pr := &a.pairs[b.index]
		pr.open = a.eligible && b.eligible
		if pr.open {
			d := a.s*b.weight - b.s*a.weight
			*pr = pair{open: true, lo: d, hi: d, since: p.n}
			f.out.Judged++
		}
	}
}
