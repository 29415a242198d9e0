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

// prefixed is an engine with a pool of two backends that keeps to prefixes.
func prefixed(t *testing.T) *engine.Engine {
	t.Helper()
	pool := &route.Pool{ID: "a", Choice: route.ByAffinity}
	for i := range 2 {
		pool.Backends = append(pool.Backends, &route.Backend{
			ID: sluice.BackendID(fmt.Sprint("b", i)), Dialect: "openai", Weight: 1, Price: &price.Row{},
			Capacity: route.Capacity{Concurrency: 100, PrefillTokens: 100_000, PrefillRate: 10_000},
		})
	}
	return engine.New(engine.Config{Table: &route.Table{
		Version: "v1", Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"a"}}},
		Pools: map[sluice.PoolID]*route.Pool{"a": pool},
	}})
}

// A request is charged for what its backend has to compute, in prefill and in its
// tenant's work, and in the end for what it did compute.
func TestCachedInputIsNotCharged(t *testing.T) {
	e := prefixed(t)
	now, prompt := start, make([]uint64, 20)
	for i := range prompt {
		prompt[i] = uint64(i + 1)
	}
	place := func(id string, blocks int) engine.Grant {
		c := engine.Call{
			ID: sluice.RequestID(id), Model: "m", Dialect: "openai",
			Principal: sluice.Principal{Tenant: "acme", Project: sluice.DefaultProject, Key: "k"},
			Work:      sluice.Work{Input: sluice.Tokens(500 * blocks), InputBound: 10_000, Output: 10, OutputHold: 10, OutputBound: 10},
			Prefix:    route.Prefix{Blocks: prompt[:blocks], Tokens: 500},
		}
		if v := e.Arrive(now, c); v.Err != nil {
			t.Fatal(v.Err)
		}
		grants := e.Advance(now)
		if len(grants) != 1 || grants[0].Err != nil {
			t.Fatalf("granted %+v", grants)
		}
		return grants[0]
	}
	// state is the prefill that a backend has left, and the work that the tenant was
	// charged so far, to what the rate over ten seconds is rounded by.
	state := func(b sluice.BackendID) (prefill sluice.Tokens, work int64) {
		v := e.Dump(now, engine.Zoom{Pool: "a"}, 10).Pools[0]
		for _, x := range v.Backends {
			if x.ID == b {
				prefill = x.Prefill
			}
		}
		for _, f := range v.Flows {
			work += f.Rate * int64((10*time.Second+now.Sub(start))/time.Second)
		}
		return prefill, work
	}
	near := func(got, want int64) bool { return got >= want-30 && got <= want+30 }
	first := place("r1", 16) // 8,000 tokens
	if prefill, work := state(first.Backend.ID); prefill != 8000 || !near(work, 8010) {
		t.Errorf("the first prompt takes %d of prefill and %d of work, want 8000 and 8010", prefill, work)
	}
	e.Progress(now, "r1", sluice.Usage{Output: 1, Source: sluice.UsageEstimated})
	e.Settle(now, "r1", engine.Actual{Usage: sluice.Usage{Input: 8000, Output: 10, Source: sluice.UsageReported}})
	_, before := state(first.Backend.ID)

	now = now.Add(time.Second)
	second := place("r2", 20) // 10,000, of which the backend has 8,000
	if second.Backend.ID != first.Backend.ID {
		t.Fatalf("the prompt that continues the first went to %s, want %s", second.Backend.ID, first.Backend.ID)
	}
	for _, c := range second.Candidates {
		if c.Left == "" && c.Cached != 8000 {
			t.Errorf("%d tokens are believed cached there, want 8000", c.Cached)
		}
	}
	if prefill, work := state(first.Backend.ID); prefill != 2000 || !near(work-before, 2010) {
		t.Errorf("the second prompt takes %d of prefill and %d of work, want 2000 and 2010", prefill, work-before)
	}
	e.Settle(now, "r2", engine.Actual{Usage: sluice.Usage{Input: 4000, CacheRead: 6000, Output: 10, Source: sluice.UsageReported}})
	if _, work := state(first.Backend.ID); !near(work-before, 4020) {
		t.Errorf("its backend had less than was believed: %d of work, want 4020", work-before)
	}
	if v := e.Dump(now, engine.Zoom{}, 10).Pools[0].Affinity; v == nil || v.Warm != 1 || v.Cold != 1 || v.Expected != 8000 || v.Read != 6000 || v.Told != 18_000 {
		t.Errorf("counts %+v", v)
	}
}
