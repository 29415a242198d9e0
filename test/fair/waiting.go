package fair

import (
	"fmt"
	"sort"
	"time"

	"sluice"
	"sluice/internal/route"
)

// Turn is how long, at most, a client's requests at the head of their flow had to
// wait for running work of their own size to end: the least time after the request
// was the first of its flow such that what ended within it on one backend, with
// what was free there, was as large as its need. It is what nobody can be spared
// who does not have others stopped for it.
func Turn(l *Log, client int, from time.Duration) time.Duration {
	t := turns{lines: map[sluice.BackendID]*line{}}
	var order []int
	begun := map[int]time.Duration{}
	caps := map[sluice.BackendID]route.Capacity{}
	for _, e := range l.Events {
		switch e.Kind {
		case Capacity:
			caps = capacities(l.Tables[e.Tables])
		case Dispatch:
			t.change(&e, need(&l.Requests[e.Req], caps[e.Backend]), 1)
			if _, ok := begun[e.Req]; !ok && l.Requests[e.Req].Client == client {
				begun[e.Req] = e.At
				order = append(order, e.Req)
			}
		case End, Fail:
			t.change(&e, need(&l.Requests[e.Req], caps[e.Backend]), -1)
		}
	}
	worst, last := time.Duration(0), time.Duration(0)
	for _, i := range order {
		q := &l.Requests[i]
		at, until := max(q.At, last), begun[i]
		last = until
		if q.At >= from && until > at {
			worst = max(worst, t.of(q, at, caps))
		}
	}
	return worst
}

// turns is what was in use of each backend and what ended there, over time.
type turns struct{ lines map[sluice.BackendID]*line }

type line struct {
	at    []time.Duration
	used  []route.Capacity // after that change
	ended []route.Capacity // in all by then
}

func (t *turns) change(e *Event, n route.Capacity, sign int64) {
	l := t.lines[e.Backend]
	if l == nil {
		l = &line{at: []time.Duration{-1}, used: make([]route.Capacity, 1), ended: make([]route.Capacity, 1)}
		t.lines[e.Backend] = l
	}
	k := len(l.at) - 1
	u, ended := l.used[k], l.ended[k]
	u.Concurrency += sign
	u.KVTokens += sluice.Tokens(sign) * n.KVTokens
	if sign < 0 {
		ended.Concurrency++
		ended.KVTokens += n.KVTokens
	}
	l.at, l.used, l.ended = append(l.at, e.At), append(l.used, u), append(l.ended, ended)
}

// of is the turn of a request that is the first of its flow at a moment: on the
// backend where it is shortest. It is 0 where none ended any more.
func (t *turns) of(q *Request, at time.Duration, caps map[sluice.BackendID]route.Capacity) (turn time.Duration) {
	found := false
	for b, l := range t.lines {
		k := sort.Search(len(l.at), func(i int) bool { return l.at[i] > at }) - 1
		used, before, n := l.used[k], l.ended[k], need(q, caps[b])
		for ; k < len(l.at); k++ {
			left := route.Capacity{
				Concurrency: used.Concurrency - (l.ended[k].Concurrency - before.Concurrency) + 1,
				KVTokens:    used.KVTokens - (l.ended[k].KVTokens - before.KVTokens) + n.KVTokens,
			}
			if fits(caps[b], left) {
				if d := max(0, l.at[k]-at); !found || d < turn {
					turn, found = d, true
				}
				break
			}
		}
	}
	return turn
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
// served. At the rate at which a class is served this is a time. Tenants with a
// limit on concurrency of their own are not judged.
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
		if e.Kind == Dispatch && t.waiting > 0 && l.Clients[q.Client].Running == 0 {
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
