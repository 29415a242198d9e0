package tabletop

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/fleet"
	"sluice/internal/price"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// world is a scenario for tests: n replicas of a profile behind one pool and model,
// under the engine as it is and in order of arrival.
func world(n int, engine fleet.Profile, sources ...Source) *Scenario {
	s := &Scenario{Name: "test", Seed: 1, Warmup: 0, Length: time.Minute, Drain: 10 * time.Minute, Sources: sources}
	row := &price.Row{Provider: "sim", Model: "m", Version: "v1", Rates: price.Rates{Input: sluice.Price(sluice.Dollar), Output: 2 * sluice.Price(sluice.Dollar)}}
	pool := &route.Pool{ID: "main", Queue: route.QueueBounds{MaxWait: 30 * time.Second}}
	for i := range n {
		id := sluice.BackendID(fmt.Sprintf("b%d", i))
		pool.Backends = append(pool.Backends, &route.Backend{
			ID: id, Provider: "sim", Model: "m", Dialect: "openai", Weight: 1, Price: row, Context: 131_072, MaxOutput: 8192, StopsOnCancel: true,
			Capacity: route.Capacity{Concurrency: 64, KVTokens: engine.KVCapacity, PrefillTokens: 20_000},
		})
		s.Machines = append(s.Machines, Machine{Backend: id, Replica: &engine})
	}
	s.Policies = []Variant{variant("sluice", pool, sources), naive(pool, sources)}
	return s
}

func variant(name string, pool *route.Pool, sources []Source) Variant {
	v := Variant{Name: name, Table: &route.Table{
		Version: name, Pools: map[sluice.PoolID]*route.Pool{pool.ID: pool},
		Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{pool.ID}}},
	}}
	for i := range sources {
		x := &sources[i]
		v.Principals = append(v.Principals, sluice.Principal{
			Tenant: x.Tenant, Project: sluice.DefaultProject, Key: sluice.KeyID(x.Name), Policy: &sluice.Policy{Class: x.Class, Weight: 1},
		})
	}
	return v
}

// naive serves in order of arrival.
func naive(pool *route.Pool, sources []Source) Variant {
	p := *pool
	p.Sharing = sched.Policy{FIFO: true}
	return variant("naive", &p, sources)
}

// tenant is a Poisson stream of one tenant.
func tenant(name string, rate float64, in, out sluice.Tokens) Source {
	return Source{
		Name: name, Tenant: sluice.TenantID(name), Model: "m", Dialect: "openai",
		Arrivals: Arrivals{Rate: rate}, Input: Lengths{Mean: in}, Output: Lengths{Mean: out},
		Client: Client{Bound: 2 * out, Patience: 30 * time.Second},
		Target: Target{TTFT: 2 * time.Second},
	}
}

func mustRun(t testing.TB, s *Scenario, o Options) *Result {
	t.Helper()
	r, err := s.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func asJSON(t rapid.TB, r *Result) string {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func testContext() context.Context { return context.Background() }

// large leaves a test out under the race detector: a run is one goroutine, and what
// is large of it shows no more than what is small.
func large(t *testing.T) {
	t.Helper()
	if racing {
		t.Skip("large, and of one goroutine")
	}
}
