package engine_test

import (
	"fmt"
	"testing"
	"time"

	"sluice"
	"sluice/internal/demand"
	"sluice/internal/engine"
	"sluice/internal/ladder"
	"sluice/internal/route"
)

// asking is an engine whose backends' rates are known.
type asking struct {
	t   *testing.T
	eng *engine.Engine
	now time.Time
	n   int

	prefix route.Prefix // of all requests
}

func newAsking(t *testing.T, table string) *asking {
	t.Helper()
	tb := parseTable(nil, table)
	for _, p := range tb.Pools {
		for _, b := range p.Backends {
			b.Capacity.PrefillRate, b.Capacity.DecodeRate, b.Replica = 1000, 100, true
		}
	}
	return &asking{t: t, eng: engine.New(engine.Config{Table: tb}), now: start}
}

// ask is a request of 1,000 tokens in and 50 out.
func (a *asking) ask(principal sluice.Principal, wait time.Duration) sluice.RequestID {
	a.n++
	id := sluice.RequestID(fmt.Sprint("r", a.n))
	a.eng.Arrive(a.now, engine.Call{
		ID: id, Principal: principal, Model: "m", Dialect: "openai", Class: sluice.Standard, MaxWait: wait, Streaming: true, Prefix: a.prefix,
		Work: sluice.Work{Input: 1000, InputBound: 1000, Output: 50, OutputHold: 100, OutputBound: 200},
	})
	a.eng.Advance(a.now)
	return id
}

func (a *asking) ratio(pool sluice.PoolID, d demand.Dimension) float64 {
	for _, p := range a.eng.Dump(a.now, engine.Zoom{}, 10).Pools {
		if p.ID == pool {
			return float64(p.Demand.Ratios[d]) / 1e6
		}
	}
	a.t.Fatalf("no pool %s", pool)
	return 0
}

func caller(tenant string, p *sluice.Policy) sluice.Principal {
	return sluice.Principal{Tenant: sluice.TenantID(tenant), Project: sluice.DefaultProject, Key: sluice.KeyID(tenant), Policy: p}
}

// What is refused for want of room is demand; what is refused for a limit of its caller
// is none.
func TestRefusedIsDemand(t *testing.T) {
	a := newAsking(t, "pool p queue=1\nbackend b pool=p conc=1 price=1/1\nmodel m pools=p")
	for range 10 {
		a.ask(caller("t", nil), time.Minute)
	}
	if got := a.ratio("p", demand.Prefill); got != 1 {
		t.Errorf("10 requests of 1,000 tokens, 8 of them refused, within ten seconds: %v of 1,000 tokens a second, want 1", got)
	}
	if got := a.ratio("p", demand.Engine); got != 1.5 {
		t.Errorf("prefill and decode together: %v, want 1.5", got)
	}
	limited := &sluice.Policy{}
	limited.Limits[sluice.ScopeTenant] = []sluice.Limit{{Dimension: sluice.Requests, Window: sluice.PerMinute, Amount: 1}}
	b := newAsking(t, "pool p\nbackend b pool=p conc=1 price=1/1\nmodel m pools=p")
	for range 10 {
		b.ask(caller("u", limited), time.Minute)
	}
	if got := b.ratio("p", demand.Prefill); got != 0.1 {
		t.Errorf("one, and 9 refused for their caller's rate: %v, want 0.1", got)
	}
}

// What waits for its caller's own limit is demand when that lets it start, and not
// before.
func TestOwnLimitIsNoDemand(t *testing.T) {
	a := newAsking(t, "pool p\nbackend b pool=p conc=64 price=1/1\nmodel m pools=p")
	one := &sluice.Policy{}
	one.Limits[sluice.ScopeTenant] = []sluice.Limit{{Dimension: sluice.Concurrency, Amount: 1}}
	first := a.ask(caller("t", one), time.Hour)
	for range 50 {
		a.ask(caller("t", one), time.Hour)
	}
	if got := a.ratio("p", demand.Prefill); got != 0.1 {
		t.Errorf("one runs and 50 wait for their tenant's limit: %v, want 0.1", got)
	}
	if err := a.eng.Settle(a.now, first, engine.Actual{Usage: sluice.Usage{Input: 1000, Output: 50}}); err != nil {
		t.Fatal(err)
	}
	a.eng.Advance(a.now)
	if got := a.ratio("p", demand.Prefill); got != 0.2 {
		t.Errorf("when the next has started: %v, want 0.2", got)
	}
}

// A backlog stays demand of the pool in which it waits.
func TestBacklogMovesWithItsRequests(t *testing.T) {
	const both = "pool p\nbackend b pool=p conc=1 price=1/1\npool q\nbackend c pool=q conc=1 price=1/1\n"
	a := newAsking(t, both+"model m pools=p,q")
	for range 20 {
		a.ask(caller("t", nil), time.Hour)
	}
	p, q := a.ratio("p", demand.Prefill), a.ratio("q", demand.Prefill)
	if p+q != 2 {
		t.Fatalf("20 requests are %v and %v in two pools", p, q)
	}
	a.now = a.now.Add(time.Minute)
	table := parseTable(nil, "pool q\nbackend c pool=q conc=1 price=1/1\nmodel m pools=q")
	table.Pools["q"].Backends[0].Capacity.PrefillRate, table.Pools["q"].Backends[0].Capacity.DecodeRate = 1000, 100
	plan, err := a.eng.Prepare(table)
	if err != nil {
		t.Fatal(err)
	}
	a.eng.Swap(a.now, plan)
	a.eng.Advance(a.now)
	if got := a.ratio("q", demand.Prefill); got < 1.8 || got > 1.9 {
		t.Errorf("18 of 20 wait since a minute in the one pool that is left: %v, want 1.8", got)
	}
	a.now = a.now.Add(time.Minute)
	if got := a.ratio("q", demand.Prefill); got < 1.7 || got > 1.8 {
		t.Errorf("a minute later they ask for %v", got)
	}
}

// What the prefix cache of its place is believed to hold is not asked for.
func TestCachedIsNoDemand(t *testing.T) {
	a := newAsking(t, "pool p\nbackend b pool=p conc=64 price=1/1\nmodel m pools=p")
	table := parseTable(nil, "pool p\nbackend b pool=p conc=64 price=1/1\nmodel m pools=p")
	table.Pools["p"].Choice, table.Pools["p"].Backends[0].Capacity.PrefillRate = route.ByAffinity, 1000
	plan, err := a.eng.Prepare(table)
	if err != nil {
		t.Fatal(err)
	}
	a.eng.Swap(a.now, plan)
	a.prefix = route.Prefix{Blocks: []uint64{1, 2, 3, 4}, Tokens: 200}
	id := a.ask(caller("t", nil), time.Hour)
	if err := a.eng.Settle(a.now, id, engine.Actual{Usage: sluice.Usage{Input: 1000, Output: 50, Source: sluice.UsageReported}}); err != nil {
		t.Fatal(err)
	}
	a.ask(caller("t", nil), time.Hour)
	if got := a.ratio("p", demand.Prefill); got != 0.12 {
		t.Errorf("1,000 tokens, and 1,000 of which 800 are cached: %v of 1,000 a second, want 0.12", got)
	}
}

// A pool of replicas desires as many as its demand takes; a hosted one says nothing.
func TestDesiredReplicas(t *testing.T) {
	a := newAsking(t, "pool p\nbackend b pool=p conc=64 price=1/1\nbackend c pool=p conc=64 price=1/1\nbackend d pool=p conc=64 price=1/1\nbackend e pool=p conc=64 price=1/1\nmodel m pools=p")
	look := func() engine.DemandView { return a.eng.Dump(a.now, engine.Zoom{}, 10).Pools[0].Demand }
	for range 30 * 2 { // 2,000 + 100 tokens a second for half a minute
		a.ask(caller("t", nil), time.Hour)
		a.now = a.now.Add(500 * time.Millisecond)
	}
	if v := look(); !v.Scaled || v.Replicas != (demand.Replicas{Listed: 4, Serving: 4}) || v.Desired != 4 {
		t.Errorf("before the window has passed: %+v", v)
	}
	a.now = a.now.Add(20 * time.Minute)
	if v := look(); v.Desired != 2 {
		t.Errorf("60 requests on slots for 128 at the target need %d replicas, want 2", v.Desired)
	}
	if _, err := a.eng.Operate(a.now, engine.Order{Backend: "b", Drain: true}); err != nil {
		t.Fatal(err)
	}
	if v := look(); v.Replicas != (demand.Replicas{Listed: 4, Serving: 3, Ahead: 1}) || v.Desired != 3 {
		t.Errorf("with the first drained: %+v, want one more in its place", v)
	}
}

// What a pool's ladder refuses, or moves to a smaller model, is still asked of the pool.
func TestLadderHidesNoDemand(t *testing.T) {
	long := func(c *engine.Call) { c.Work.Input, c.Work.InputBound = 50_000, 50_000 }
	for name, c := range map[string]struct {
		tier   ladder.Tier
		class  sluice.Class
		change func(*engine.Call)
	}{
		"too long an input": {ladder.Context, sluice.Interactive, long},
		"a smaller model":   {ladder.Smaller, sluice.Interactive, func(c *engine.Call) { c.Principal.Policy = &sluice.Policy{Weight: 1, Degrade: "mini"} }},
		"offered a wait":    {ladder.Smaller, sluice.Standard, nil},
		"batch is shed":     {ladder.Shed, sluice.Batch, nil},
	} {
		s := newShort(t, 1, func(t *route.Table) { t.Pools["big"].Backends[0].Capacity.PrefillRate = 1_000_000 })
		ratio := func() int64 { return s.eng.Dump(s.now, engine.Zoom{}, 9).Pools[0].Demand.Ratios[demand.Prefill] }
		s.arrive(s.call(sluice.Interactive, nil))
		s.now = s.now.Add(5 * time.Second)
		s.settle("r1")
		s.arrive(s.call(sluice.Interactive, nil))
		s.arrive(s.call(sluice.Interactive, nil)) // would let others wait
		s.pin(c.tier)
		before, call := ratio(), s.call(c.class, c.change)
		v, _ := s.arrive(call)
		if v.Smaller == "" && (v.Err == nil || v.Err.Reason != sluice.Degraded) {
			t.Errorf("%s: %+v", name, v)
		}
		if got, want := ratio()-before, int64(call.Work.Input)/10; got != want {
			t.Errorf("%s: it adds %d millionths to the demand, want %d", name, got, want)
		}
	}
}
