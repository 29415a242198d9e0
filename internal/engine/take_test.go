package engine_test

import (
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/price"
	"sluice/internal/route"
)

// What is answered without a backend counts as one request and costs what it costs;
// tokens, gauges and places are not touched, and nothing stays open.
func TestTakeChargesARequestAndItsPriceAlone(t *testing.T) {
	policy := &sluice.Policy{HardSpend: true}
	policy.Limits[sluice.ScopeTenant] = []sluice.Limit{
		{Dimension: sluice.Requests, Window: sluice.PerMinute, Amount: 3},
		{Dimension: sluice.InputTokens, Window: sluice.PerMinute, Amount: 10},
		{Dimension: sluice.Concurrency, Amount: 1},
		{Dimension: sluice.Spend, Window: sluice.PerMonth, Amount: 1000},
	}
	e := engine.New(engine.Config{Table: &route.Table{
		Version: "v1",
		Models:  map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"p"}}},
		Pools: map[sluice.PoolID]*route.Pool{
			"p": {ID: "p", Backends: []*route.Backend{{ID: "b", Dialect: "openai", Weight: 1, Price: &price.Row{}, Capacity: route.Capacity{Concurrency: 1}}}},
		},
	}})
	call := func(id sluice.RequestID) engine.Call {
		return engine.Call{
			ID: id, Model: "m", Dialect: "openai", Principal: sluice.Principal{Tenant: "acme", Project: "p", Key: "k", Policy: policy},
			Work: sluice.Work{Input: 900, InputBound: 900, OutputBound: 900},
		}
	}
	now := start
	if v := e.Take(now, call("a"), 600); v.Err != nil || v.Policy != "v1" || v.Limits.Len() == 0 {
		t.Fatalf("the first: %+v", v)
	}
	if n := e.Open(); n != 0 {
		t.Errorf("%d are open", n)
	}
	v := e.Take(now, call("a"), 600) // the id is free again
	if v.Err == nil || v.Err.Reason != sluice.BudgetSpent {
		t.Errorf("beyond the budget: %v", v.Err)
	}
	for _, l := range v.Limits.States(nil) {
		if l.Limit.Dimension == sluice.Requests && l.Remaining != 2 {
			t.Errorf("%d requests are left after a refusal, want 2", l.Remaining)
		}
	}
	for _, id := range []sluice.RequestID{"b", "c"} {
		if v := e.Take(now, call(id), 0); v.Err != nil {
			t.Fatalf("%s, which is free: %v", id, v.Err)
		}
	}
	v = e.Take(now, call("d"), 0)
	if v.Err == nil || v.Err.Reason != sluice.RateLimited || v.Err.RetryAfter <= 0 {
		t.Errorf("a fourth request of three: %v", v.Err)
	}
	if v := e.Take(now.Add(20*time.Second), call("e"), 400); v.Err != nil {
		t.Errorf("when there is room again: %v", v.Err)
	}
	if v := e.Take(now, engine.Call{ID: "f", Model: "none"}, 0); v.Err == nil || v.Err.Reason != sluice.ModelNotFound {
		t.Errorf("of a model that there is not: %v", v.Err)
	}
}
