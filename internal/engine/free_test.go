package engine_test

import (
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/price"
	"sluice/internal/route"
)

// A free model with a paid fallback is no way round a budget: whichever way a
// request gets to the fallback, its hold is topped up first, or it does not get there.
func TestFreeModelIsNoWayRoundABudget(t *testing.T) {
	free := &price.Row{Rates: price.Rates{Input: -1, Output: -1}}
	paid := &price.Row{Rates: price.Rates{Input: 1e9, Output: 1e9}} // $0.000001 a token
	for _, hard := range []bool{false, true} {
		for _, budget := range []int64{400_000, 40_000_000} { // the fallback takes $0.0005 at least
			policy := &sluice.Policy{HardSpend: hard}
			policy.Limits[sluice.ScopeTenant] = []sluice.Limit{{Dimension: sluice.Spend, Window: sluice.PerMonth, Amount: budget}}
			fresh := func() *engine.Engine {
				return engine.New(engine.Config{Table: &route.Table{
					Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"own"}, Fallback: []sluice.PoolID{"paid"}}},
					Pools: map[sluice.PoolID]*route.Pool{
						"own":  {ID: "own", Backends: []*route.Backend{{ID: "o", Dialect: "openai", Weight: 1, Price: free, Capacity: route.Capacity{Concurrency: 1}}}},
						"paid": {ID: "paid", Backends: []*route.Backend{{ID: "x", Dialect: "openai", Weight: 1, Price: paid, Capacity: route.Capacity{Concurrency: 9}}}},
					},
				}})
			}
			call := func(id sluice.RequestID) engine.Call {
				return engine.Call{
					ID: id, Model: "m", Dialect: "openai", MaxWait: time.Hour,
					Principal: sluice.Principal{Tenant: "acme", Project: "p", Key: "k", Policy: policy},
					Work:      sluice.Work{Input: 450, InputBound: 450, Output: 50, OutputHold: 50, OutputBound: 50},
				}
			}
			fits := budget > 500_000
			held := func(e *engine.Engine, g engine.Grant) {
				t.Helper()
				if !fits {
					t.Fatalf("hard %v, budget %d: granted %s", hard, budget, g.Backend.ID)
				}
				if g.Backend.ID != "x" || g.HeldSpend != 500_000 {
					t.Errorf("hard %v: %v is held for %s, want $0.0005 for x", hard, g.HeldSpend, g.Backend.ID)
				}
			}
			fail := engine.Result{Reason: sluice.UpstreamConnect}

			// It failed on the free backend.
			e := fresh()
			if v := e.Arrive(start, call("a")); v.Err != nil {
				t.Fatalf("the free model itself: %v", v.Err)
			}
			e.Advance(start)
			next := e.AttemptEnded(start, "a", fail)
			if g := e.Advance(start); fits {
				held(e, g[0])
			} else if next.Step != engine.Fail || next.Err == nil || next.Err.Kind != sluice.KindBudgetExhausted && next.Err.Reason != sluice.NeverFits {
				t.Errorf("hard %v: the next step is %v, %v", hard, next.Step, next.Err)
			}

			// It arrives when the free backend is down, or waits for it when it goes down.
			e = fresh()
			e.Arrive(start, call("a"))
			e.Advance(start)
			e.Arrive(start, call("waits"))
			if g := e.Advance(start); len(g) != 0 {
				t.Fatalf("granted %v beside the one that runs", g)
			}
			e.AttemptEnded(start, "a", fail)
			e.Settle(start, "a", engine.Actual{})
			e.Observe(start, engine.Signal{Backend: "o", Pause: time.Hour})
			for _, g := range e.Advance(start) {
				if g.Err == nil && g.ID == "waits" {
					held(e, g)
				}
			}
			v := e.Arrive(start, call("late"))
			g := e.Advance(start)
			switch {
			case fits && (v.Err != nil || len(g) != 1):
				t.Errorf("hard %v: arrives when it is down: %v, %v", hard, v.Err, g)
			case fits:
				held(e, g[0])
			case v.Err == nil:
				t.Errorf("hard %v, budget %d: it was let in", hard, budget)
			}
		}
	}
}
