package engine_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/price"
	"sluice/internal/route"
)

// steps is an engine with one hard budget, whose outputs are held in steps.
func steps(budget int64, stops bool) (*engine.Engine, func(id string, bound sluice.Tokens) engine.Call, *price.Row) {
	row := &price.Row{Rates: price.Rates{Input: 1e9, Output: 1e9}} // $0.000001 a token
	table := &route.Table{
		Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"p"}}},
		Pools: map[sluice.PoolID]*route.Pool{"p": {ID: "p", Backends: []*route.Backend{
			{ID: "b", Dialect: "openai", Weight: 1, Price: row, StopsOnCancel: stops, Capacity: route.Capacity{Concurrency: 64}},
		}}},
	}
	policy := &sluice.Policy{HardSpend: true}
	policy.Limits[sluice.ScopeTenant] = []sluice.Limit{{Dimension: sluice.Spend, Window: sluice.PerMonth, Amount: budget}}
	call := func(id string, bound sluice.Tokens) engine.Call {
		return engine.Call{
			ID: sluice.RequestID(id), Model: "m", Dialect: "openai", MaxWait: -1, Streaming: true, Counted: true,
			Principal: sluice.Principal{Tenant: "acme", Project: "p", Key: "k", Policy: policy},
			Work:      sluice.Work{Input: 10, InputBound: 10, Output: 100, OutputHold: 200, OutputBound: bound},
		}
	}
	return engine.New(engine.Config{Table: table}), call, row
}

// TestStepsKeepTheBudget: whatever streams do, posted and held are within a hard
// budget, as long as none writes more than a lead beyond what it was let go on with.
func TestStepsKeepTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budget := rapid.Int64Range(100_000, 20_000_000).Draw(t, "budget") // 100 to 20,000 tokens
		e, call, row := steps(budget, true)
		type stream struct {
			heldTo, bound, used sluice.Tokens
		}
		live := map[sluice.RequestID]*stream{}
		var ids []sluice.RequestID
		now := start
		check := func() {
			for _, a := range e.Dump(now, engine.Zoom{}, 10).Top {
				for _, c := range a.Counters {
					if c.Used+c.Held > budget {
						t.Fatalf("%d posted and %d held of %d", c.Used, c.Held, budget)
					}
				}
			}
		}
		for n := range rapid.IntRange(1, 60).Draw(t, "events") {
			now = now.Add(time.Second)
			if len(ids) == 0 || rapid.IntRange(0, 3).Draw(t, "op") == 0 {
				c := call(fmt.Sprint("r", n), sluice.Tokens(rapid.IntRange(1, 8000).Draw(t, "bound")))
				if v := e.Arrive(now, c); v.Err != nil {
					continue
				}
				for _, g := range e.Advance(now) {
					live[g.ID] = &stream{heldTo: g.HeldTo, bound: g.OutputBound}
					ids = append(ids, g.ID)
					if g.HeldTo > 0 && row.HardHold(sluice.Work{InputBound: 10, OutputBound: g.HeldTo}) != g.HeldSpend {
						t.Fatalf("%v is held for %d tokens", g.HeldSpend, g.HeldTo)
					}
				}
				check()
				continue
			}
			i := rapid.IntRange(0, len(ids)-1).Draw(t, "which")
			id, s := ids[i], live[ids[i]]
			e.Progress(now, id, sluice.Usage{})
			lead := sluice.Tokens(rapid.IntRange(0, 600).Draw(t, "lead"))
			most := s.bound
			if s.heldTo > 0 {
				most = min(most, s.heldTo)
			}
			s.used = sluice.Tokens(rapid.Int64Range(int64(s.used), int64(most)).Draw(t, "used"))
			ends := rapid.IntRange(0, 4).Draw(t, "ends") == 0
			if s.heldTo > 0 && s.heldTo < s.bound && !ends {
				to, goOn := e.Step(now, id, s.used, lead)
				if to < s.heldTo {
					t.Fatalf("the hold went from %d to %d", s.heldTo, to)
				}
				s.heldTo = to
				if goOn && to < s.bound && to-s.used < max(lead, engine.StepLead) {
					t.Fatalf("it may go on with %d held, %d used and a lead of %d", to, s.used, lead)
				}
				ends = !goOn
			}
			check()
			if ends {
				u := sluice.Usage{Input: 10, Output: s.used, Source: sluice.UsageReported}
				if err := e.Settle(now, id, engine.Actual{Usage: u, Cost: row.Cost(u)}); err != nil {
					t.Fatal(err)
				}
				delete(live, id)
				ids = append(ids[:i], ids[i+1:]...)
				check()
			}
		}
	})
}

// TestStepsNeed: what must be so for an output to be held in steps.
func TestStepsNeed(t *testing.T) {
	grant := func(budget int64, stops bool, change func(*engine.Call)) engine.Grant {
		e, call, _ := steps(budget, stops)
		c := call("r", 8000)
		change(&c)
		if v := e.Arrive(start, c); v.Err != nil {
			t.Fatal(v.Err)
		}
		return e.Advance(start)[0]
	}
	none := func(*engine.Call) {}
	for _, tt := range []struct {
		name   string
		budget int64
		stops  bool
		change func(*engine.Call)
		heldTo sluice.Tokens
		bound  sluice.Tokens
	}{
		{"all is so", 5_000_000, true, none, engine.StepTokens, 8000},
		{"it goes on when nobody listens", 5_000_000, false, none, 0, 4990},
		{"not all that is billed shows", 5_000_000, true, func(c *engine.Call) { c.Counted = false }, 0, 4990},
		{"not a stream", 5_000_000, true, func(c *engine.Call) { c.Streaming = false }, 0, 4990},
		{"less than a step fits", 900_000, true, none, 0, 890},
		{"less than a step is asked for", 5_000_000, true, func(c *engine.Call) { c.Work.OutputBound = 900 }, 0, 900},
		{"soft", 5_000_000, true, func(c *engine.Call) { p := *c.Principal.Policy; p.HardSpend = false; c.Principal.Policy = &p }, 0, 8000},
	} {
		if g := grant(tt.budget, tt.stops, tt.change); g.HeldTo != tt.heldTo || g.OutputBound != tt.bound {
			t.Errorf("%s: held to %d of %d, want %d of %d", tt.name, g.HeldTo, g.OutputBound, tt.heldTo, tt.bound)
		}
	}
}
