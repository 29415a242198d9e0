package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/price"
	"sluice/internal/route"
)

// What serves a request does not depend on those that came before it, though an engine
// remembers what served the last.
func TestUsualIsWhatEachWouldBeServedBy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		needs := rapid.SampledFrom([]route.Needs{0, route.NeedImage, route.NeedTools})
		regions := rapid.SampledFrom([]string{"eu", "us"})
		pool := &route.Pool{ID: "p"}
		for i := range rapid.IntRange(1, 4).Draw(t, "backends") {
			b := &route.Backend{
				ID: sluice.BackendID(fmt.Sprint("b", i)), Weight: 1, Capacity: route.Capacity{Concurrency: 99},
				Provider: rapid.SampledFrom([]sluice.ProviderID{"x", "y"}).Draw(t, "provider"),
				Dialect:  rapid.SampledFrom([]string{"openai", "anthropic"}).Draw(t, "dialect"),
				Region:   regions.Draw(t, "region"), Lacks: needs.Draw(t, "lacks"),
				Context: rapid.SampledFrom([]sluice.Tokens{0, 100, 1000}).Draw(t, "context"),
				MaxRisk: sluice.Risk(rapid.IntRange(0, 2).Draw(t, "takes")),
			}
			if rapid.Bool().Draw(t, "priced") {
				b.Price = &price.Row{Rates: price.Rates{Input: -1, Output: -1}}
			}
			pool.Backends = append(pool.Backends, b)
		}
		table := &route.Table{
			Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"p"}}},
			Pools:  map[sluice.PoolID]*route.Pool{"p": pool},
		}
		policies := []*sluice.Policy{nil, {}, {Regions: []string{"eu"}}, {Providers: []sluice.ProviderID{"y"}}}
		long := engine.New(engine.Config{Table: table})
		for i := range rapid.IntRange(1, 12).Draw(t, "requests") {
			c := engine.Call{
				ID: sluice.RequestID(fmt.Sprint("r", i)), Model: "m", Dialect: rapid.SampledFrom([]string{"openai", "anthropic"}).Draw(t, "client"),
				Needs: needs.Draw(t, "needs"), Free: rapid.Bool().Draw(t, "free"), Risk: sluice.Risk(rapid.IntRange(0, 2).Draw(t, "risk")),
				Work:      sluice.Work{Input: rapid.SampledFrom([]sluice.Tokens{0, 100, 101, 2000}).Draw(t, "input")},
				Principal: sluice.Principal{Tenant: "t", Key: "k", Policy: rapid.SampledFrom(policies).Draw(t, "policy")},
			}
			got, want := serving(long, c), serving(engine.New(engine.Config{Table: table}), c)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("request %d is not served as it would be alone (-alone +got):\n%s", i, diff)
			}
		}
	})
}

// serving is why each backend was left out for a request, or that it was not.
func serving(e *engine.Engine, c engine.Call) map[sluice.BackendID]string {
	now := start.Add(time.Second)
	left := e.Arrive(now, c).Candidates
	for _, g := range e.Advance(now) {
		left = g.Candidates
	}
	_ = e.Settle(now, c.ID, engine.Actual{}) // or it was refused
	out := map[sluice.BackendID]string{}
	for _, c := range left {
		out[c.Backend] = c.Left
		if c.Left == string(route.LeftOther) {
			out[c.Backend] = ""
		}
	}
	return out
}
