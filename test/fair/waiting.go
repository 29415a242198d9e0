package fair

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sluice"
	"sluice/internal/route"
)

// Turn is how long, at most, a client's requests at the head of their flow had to
// wait for running work of their own size to end: from the moment at which the
// request was the first of its flow until as many slots, and as much memory, as it
// needs had been left by requests that ran. It is what nobody can be spared who
// does not have others stopped for it.
func Turn(l *Log, client int, from time.Duration) time.Duration {
	type left struct {
		at time.Duration
		kv sluice.Tokens // Σ since the start
	}
	ends := map[sluice.PoolID][]left{}
	sum := map[sluice.PoolID]sluice.Tokens{}
	type head struct{ at, until time.Duration }
	var order []int
	begun := map[int]time.Duration{}
	for _, e := range l.Events {
		switch e.Kind {
		case End, Fail:
			q := &l.Requests[e.Req]
			sum[q.Pool] += q.Work.KV()
			ends[q.Pool] = append(ends[q.Pool], left{e.At, sum[q.Pool]})
		case Dispatch:
			if q := &l.Requests[e.Req]; q.Client == client && begun[e.Req] == 0 {
				begun[e.Req] = e.At
				order = append(order, e.Req)
			}
		}
	}
	worst, last := time.Duration(0), time.Duration(0)
	for _, i := range order {
		q := &l.Requests[i]
		h := head{max(q.At, last), begun[i]}
		last = begun[i]
		if q.At < from || h.until == h.at {
			continue
		}
		es := ends[q.Pool]
		k, _ := slices.BinarySearchFunc(es, h.at, func(x left, at time.Duration) int { return cmp.Compare(x.at, at) })
		before := sluice.Tokens(0)
		if k > 0 {
			before = es[k-1].kv
		}
		for ; k < len(es); k++ {
			if es[k].kv-before >= q.Work.KV() || !bounded(l, q.Pool) {
				worst = max(worst, es[k].at-h.at)
				break
			}
		}
	}
	return worst
}

// bounded reports whether a pool's memory is.
func bounded(l *Log, pool sluice.PoolID) bool {
	for _, b := range l.Tables[0].Pools[pool].Backends {
		if b.Capacity.KVTokens > 0 {
			return true
		}
	}
	return false
}

// HeadWait is what BoundedWait found.
type HeadWait struct {
	Longest time.Duration // that the first of a flow waited while it was eligible
	Passed  int64         // most work that others of its class were given meanwhile
	Bound   int64         // for that
	Worst   float64       // largest Passed ÷ Bound
}

func (h HeadWait) String() string {
	return fmt.Sprintf("longest %v; %d of %d passed (%.1f %%)", h.Longest, h.Passed, h.Bound, 100*h.Worst)
}

// BoundedWait judges that while the first request of a tenant waits and is
// eligible, the others of its class are given no more than
//
//	Σ_g w_g × ((2·(C + B) + A) / min w)
//
// by weight, which follows from the bound of Fairness with ΔS_f = 0 until it is
// served. At the rate at which a class is served this is a time.
func BoundedWait(l *Log, allowance int64) (HeadWait, error) {
	type tenant struct {
		weight  int64
		waiting int
		at      time.Duration
		s       int64 // of its class when its head became one
	}
	type class struct {
		s       int64
		tenants map[sluice.TenantID]*tenant
		weights int64
		least   int64
	}
	classes := map[groupKey]*class{}
	inflight, most := map[sluice.PoolID]int64{}, map[sluice.PoolID]int64{}
	cmax := map[sluice.PoolID]int64{}
	charged := make([]int64, len(l.Requests))
	of := func(q *Request) (*class, *tenant) {
		k := groupKey{pool: q.Pool, class: q.Class}
		c := classes[k]
		if c == nil {
			c = &class{tenants: map[sluice.TenantID]*tenant{}, least: 1 << 40}
			classes[k] = c
		}
		t := c.tenants[q.Tenant]
		if t == nil {
			t = &tenant{weight: max(l.Clients[q.Client].Weight, 1)}
			c.tenants[q.Tenant] = t
			c.weights += t.weight
			c.least = min(c.least, t.weight)
		}
		return c, t
	}
	for i := range l.Requests {
		q := &l.Requests[i]
		of(q)
		cmax[q.Pool] = max(cmax[q.Pool], l.Cost.Estimate(q.Work), l.Cost.Of(q.True.In-q.True.Cached, q.True.Out))
	}
	for _, e := range l.Events {
		if e.Kind == Dispatch || e.Kind == Correct || e.Kind == End || e.Kind == Fail {
			q := &l.Requests[e.Req]
			charged[e.Req] += e.Cost
			inflight[q.Pool] += e.Cost
			most[q.Pool] = max(most[q.Pool], inflight[q.Pool])
			if e.Kind == End || e.Kind == Fail {
				inflight[q.Pool] -= charged[e.Req]
				charged[e.Req] = 0
			}
		}
	}
	var out HeadWait
	for _, e := range l.Events {
		if e.Kind >= Capacity || e.Kind == Arrive || e.Kind == Refuse {
			continue
		}
		q := &l.Requests[e.Req]
		c, t := of(q)
		if e.Kind == Dispatch && t.waiting > 0 {
			passed := c.s - t.s
			bound := c.weights * (2*(cmax[q.Pool]+most[q.Pool]) + allowance) / c.least
			if w := float64(passed) / float64(bound); w > out.Worst {
				out.Worst, out.Passed, out.Bound = w, passed, bound
			}
			out.Longest = max(out.Longest, e.At-t.at)
		}
		c.s += e.Cost
		switch e.Kind {
		case Enqueue:
			if t.waiting++; t.waiting == 1 {
				t.at, t.s = e.At, c.s
			}
		case Dispatch, Shed, Leave:
			t.waiting--
			t.at, t.s = e.At, c.s
		}
	}
	if out.Worst > 1 {
		return out, violation("bounded wait", 0, "%s", out)
	}
	return out, nil
}

// WorkConserving judges that after every moment no request waits, whose tenant has
// room, while a backend of its pool fits it in every dimension. It holds for pools
// that keep nothing back: no headroom, no reserve, no head that gathers.
func WorkConserving(l *Log) error {
	w := &conserving{log: l, used: map[sluice.BackendID]route.Capacity{}, taken: make([]held, len(l.Requests)), down: map[sluice.BackendID]bool{}, waiting: map[sluice.PoolID]map[int]bool{}, running: map[sluice.TenantID]int64{}, limits: map[sluice.TenantID]int64{}}
	for i := range l.Clients {
		if n := l.Clients[i].Running; n > 0 {
			w.limits[l.Clients[i].Tenant] = n
		}
	}
	for i := range l.Events {
		e := &l.Events[i]
		w.event(e)
		if i+1 == len(l.Events) || l.Events[i+1].At > e.At {
			if err := w.check(e.At); err != nil {
				return err
			}
		}
	}
	return nil
}

type conserving struct {
	log     *Log
	table   *route.Table
	used    map[sluice.BackendID]route.Capacity
	taken   []held
	down    map[sluice.BackendID]bool
	waiting map[sluice.PoolID]map[int]bool
	running map[sluice.TenantID]int64
	limits  map[sluice.TenantID]int64
}

func (w *conserving) event(e *Event) {
	switch e.Kind {
	case Capacity:
		w.table = w.log.Tables[e.Tables]
		return
	case Down, Up:
		w.down[e.Backend] = e.Kind == Down
		return
	case Arrive, Refuse, Correct, Gauge:
		return
	}
	q := &w.log.Requests[e.Req]
	if w.waiting[q.Pool] == nil {
		w.waiting[q.Pool] = map[int]bool{}
	}
	switch e.Kind {
	case Enqueue:
		w.waiting[q.Pool][e.Req] = true
	case Dispatch:
		delete(w.waiting[q.Pool], e.Req)
		w.running[q.Tenant]++
		n := need(q, capacities(w.table)[e.Backend])
		w.taken[e.Req] = held{e.Backend, n}
		w.add(e.Backend, n, 1)
	case First:
		h := &w.taken[e.Req]
		w.add(h.on, route.Capacity{PrefillTokens: h.of.PrefillTokens}, -1)
		h.of.PrefillTokens = 0
	case End, Fail:
		w.running[q.Tenant]--
		w.add(e.Backend, w.taken[e.Req].of, -1)
	case Shed, Leave:
		delete(w.waiting[q.Pool], e.Req)
	}
}

func (w *conserving) add(b sluice.BackendID, n route.Capacity, sign int64) {
	u := w.used[b]
	u.Concurrency += sign * n.Concurrency
	u.KVTokens += sluice.Tokens(sign) * n.KVTokens
	u.PrefillTokens += sluice.Tokens(sign) * n.PrefillTokens
	w.used[b] = u
}

func (w *conserving) check(at time.Duration) error {
	for id, p := range w.table.Pools {
		if len(w.waiting[id]) == 0 {
			continue
		}
		for _, b := range p.Backends {
			c, u := b.Capacity, w.used[b.ID]
			if w.down[b.ID] || b.Weight <= 0 || u.Concurrency >= c.Concurrency {
				continue
			}
			for req := range w.waiting[id] {
				q := &w.log.Requests[req]
				if limit := w.limits[q.Tenant]; limit > 0 && w.running[q.Tenant] >= limit {
					continue
				}
				n := need(q, c)
				sum := route.Capacity{Concurrency: u.Concurrency + 1, KVTokens: u.KVTokens + n.KVTokens, PrefillTokens: u.PrefillTokens + n.PrefillTokens}
				if fits(c, sum) {
					return violation("work conservation", at, "request %d of %s (%+v) waits and %s has %+v of %+v in use", req, q.Tenant, n, b.ID, u, c)
				}
			}
		}
	}
	return nil
}
