package engine_test

import (
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/price"
	"sluice/internal/route"
)

func capacityTable(c route.Capacity) *route.Table {
	return &route.Table{
		Version: "v", Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"p"}}},
		Pools: map[sluice.PoolID]*route.Pool{"p": {ID: "p", Backends: []*route.Backend{{ID: "b", Dialect: "openai", Weight: 1, Price: &price.Row{}, Capacity: c}}}},
	}
}

// TestRatesWakeTheEngine: what waits for a provider's rate alone is granted when it
// has room, and NextWake tells when that is.
func TestRatesWakeTheEngine(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	e := engine.New(engine.Config{Table: capacityTable(route.Capacity{Concurrency: 8, Rates: route.Rates{route.RateTokens: 600}})})
	arrive := func(id sluice.RequestID, in sluice.Tokens) {
		if v := e.Arrive(now, engine.Call{ID: id, Model: "m", Dialect: "openai", MaxWait: time.Minute, Work: sluice.Work{Input: in, InputBound: in, Output: 10, OutputHold: 100, OutputBound: 100}}); v.Err != nil {
			t.Fatal(v.Err)
		}
	}
	arrive("a", 500)
	if g := e.Advance(now); len(g) != 1 || g[0].Err != nil {
		t.Fatalf("first: %+v", g)
	}
	arrive("b", 200)
	if g := e.Advance(now); len(g) != 0 {
		t.Fatalf("granted beyond the rate: %+v", g)
	}
	if v := e.Dump(now, engine.Zoom{}, 10); v.Pools[0].Backends[0].Rates[0].Left != 0 {
		t.Errorf("view: %+v", v.Pools[0].Backends[0].Rates)
	}
	lacks := e.Dump(now, engine.Zoom{Request: "b"}, 1).Requests[0].Lacks
	if len(lacks) != 1 || lacks[0].What != engine.LackRate || lacks[0].Wait != 30*time.Second {
		t.Errorf("lacks %+v, want the rate alone, for 30s: there are slots", lacks)
	}
	for range 3 { // the first wake is for the least that there can be
		at, ok := e.NextWake()
		if !ok {
			t.Fatal("no wake")
		}
		now = at
		if g := e.Advance(now); len(g) == 1 && g[0].Err == nil {
			if waited := g[0].Queued; waited != 30*time.Second {
				t.Errorf("waited %v, want 30s", waited)
			}
			return
		}
	}
	t.Fatalf("not granted by %v", now)
}

// TestSettleReturnsRates: what an attempt held of a rate and did not use is there for
// the next at once.
func TestSettleReturnsRates(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	e := engine.New(engine.Config{Table: capacityTable(route.Capacity{Concurrency: 8, Rates: route.Rates{route.RateOutput: 600}})})
	e.Arrive(now, engine.Call{ID: "a", Model: "m", Dialect: "openai", Work: sluice.Work{Input: 5, InputBound: 5, Output: 10, OutputHold: 600, OutputBound: 600}})
	if g := e.Advance(now); len(g) != 1 || g[0].Err != nil {
		t.Fatalf("%+v", g)
	}
	if err := e.Settle(now, "a", engine.Actual{Usage: sluice.Usage{Input: 5, Output: 50, Source: sluice.UsageReported}}); err != nil {
		t.Fatal(err)
	}
	if got := e.Dump(now, engine.Zoom{}, 1).Pools[0].Backends[0].Rates[0]; got.Left != 550 || got.All != 600 {
		t.Errorf("left %+v, want 550 of 600", got)
	}
}

// TestSignals: hints reach their backend, and lower.
func TestSignals(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	e := engine.New(engine.Config{Table: capacityTable(route.Capacity{})})
	for _, s := range []engine.Signal{
		{Backend: "b", Overloaded: true},
		{Backend: "b", Rates: []route.Hint{{Rate: route.RateRequests, Limit: 100, Remaining: 3, At: now}}},
		{Backend: "b", Load: &route.Load{At: now, Every: time.Second, KVPermille: 420, KVCapacity: 1000}},
		{Backend: "gone", Overloaded: true},
	} {
		e.Observe(now, s)
	}
	got := e.Dump(now, engine.Zoom{}, 1).Pools[0].Backends[0]
	if !got.Adaptive || got.Concurrency != 8 || got.KVPermille != 420 || got.KVCapacity != 1000 || len(got.Rates) != 1 || got.Rates[0].Left != 3 {
		t.Errorf("%+v", got)
	}
}
