package engine_test

import (
	"fmt"
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/price"
	"sluice/internal/route"
)

// TestRevise lets ten requests come at once, of which a limit of concurrency lets two
// start, and changes the limit: what waits starts by the new one, without another arrival.
func TestRevise(t *testing.T) {
	concurrency := func(n int64) []sluice.Limit {
		if n == 0 {
			return nil
		}
		return []sluice.Limit{{Dimension: sluice.Concurrency, Amount: n}}
	}
	of := func(mode sluice.LimitMode, scope sluice.Scope, n int64) *sluice.Policy {
		p := &sluice.Policy{Mode: mode}
		p.Limits[scope] = concurrency(n)
		return p
	}
	table := func(fleet, model int64) *route.Table {
		return &route.Table{
			Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"a"}, Limits: concurrency(model)}},
			Pools: map[sluice.PoolID]*route.Pool{"a": {ID: "a", Backends: []*route.Backend{
				{ID: "b", Dialect: "openai", Weight: 1, Price: &price.Row{}, Capacity: route.Capacity{Concurrency: 100}},
			}}},
			Fleet: concurrency(fleet),
		}
	}
	free := of(sluice.Enforce, sluice.ScopeTenant, 0)
	for _, test := range []struct {
		name          string
		first, second *sluice.Policy // nil: it is not known any more
		fleet, model  [2]int64
		start         int // more
	}{
		{name: "raised", first: of(sluice.Enforce, sluice.ScopeTenant, 2), second: of(sluice.Enforce, sluice.ScopeTenant, 7), start: 5},
		{name: "of the key", first: of(sluice.Enforce, sluice.ScopeKey, 2), second: of(sluice.Enforce, sluice.ScopeKey, 7), start: 5},
		{name: "of the user", first: of(sluice.Enforce, sluice.ScopeUser, 2), second: of(sluice.Enforce, sluice.ScopeUser, 7), start: 5},
		{name: "lowered", first: of(sluice.Enforce, sluice.ScopeTenant, 2), second: of(sluice.Enforce, sluice.ScopeTenant, 1)},
		{name: "removed", first: of(sluice.Enforce, sluice.ScopeTenant, 2), second: free, start: 8},
		{name: "off", first: of(sluice.Enforce, sluice.ScopeTenant, 2), second: of(sluice.Off, sluice.ScopeTenant, 2), start: 8},
		{name: "shadow", first: of(sluice.Enforce, sluice.ScopeTenant, 2), second: of(sluice.Shadow, sluice.ScopeTenant, 2), start: 8},
		{name: "unknown", first: of(sluice.Enforce, sluice.ScopeTenant, 2)},
		{name: "of the model, off", first: free, second: of(sluice.Off, sluice.ScopeTenant, 2), model: [2]int64{2, 2}},
		{name: "of the model", first: free, second: free, model: [2]int64{2, 7}, start: 5},
		{name: "of the model, removed", first: free, second: free, model: [2]int64{2, 0}, start: 8},
		{name: "of the fleet", first: free, second: free, fleet: [2]int64{2, 7}, start: 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, now := engine.New(engine.Config{Table: table(test.fleet[0], test.model[0])}), start
			var runs []sluice.RequestID
			advance := func() (n int) {
				for _, g := range e.Advance(now) {
					if g.Err != nil {
						t.Fatal(g.Err)
					}
					runs, n = append(runs, g.ID), n+1
				}
				return n
			}
			for i := range 10 {
				v := e.Arrive(now, engine.Call{
					ID: sluice.RequestID(fmt.Sprint(i)), Model: "m", Dialect: "openai", MaxWait: time.Hour, Work: sluice.Work{Input: 100, OutputHold: 100, OutputBound: 100, Output: 100},
					Principal: sluice.Principal{Tenant: "t", Project: sluice.DefaultProject, Key: "k", User: "u", Policy: test.first},
				})
				if v.Err != nil {
					t.Fatal(v.Err)
				}
			}
			if n := advance(); n != 2 {
				t.Fatalf("%d have started, want 2", n)
			}
			now = now.Add(time.Second)
			plan, err := e.Prepare(table(test.fleet[1], test.model[1]))
			if err != nil {
				t.Fatal(err)
			}
			e.Swap(now, plan)
			n := advance()
			e.Revise(now, func(sluice.Principal) *sluice.Policy { return test.second })
			if n += advance(); n != test.start {
				t.Errorf("%d more have started, want %d", n, test.start)
			}
			for len(runs) > 0 { // and all end
				id := runs[0]
				runs = runs[1:]
				if err := e.Settle(now, id, engine.Actual{}); err != nil {
					t.Fatal(err)
				}
				advance()
			}
			if e.Open() != 0 {
				t.Errorf("%d are open", e.Open())
			}
		})
	}
}
