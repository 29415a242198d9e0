package engine_test

import (
	"fmt"
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/ladder"
	"sluice/internal/price"
	"sluice/internal/route"
)

// busyEngine has six limits at each of six scopes, four backends, and a ladder that is on.
func busyEngine(keys int) (*engine.Engine, []engine.Call) {
	return busyEngineWith(keys, ladder.Default(ladder.Act))
}

func busyEngineWith(keys int, how ladder.Policy) (*engine.Engine, []engine.Call) {
	six := func() []sluice.Limit {
		return []sluice.Limit{
			{Dimension: sluice.Requests, Window: sluice.PerMinute, Amount: 1e9},
			{Dimension: sluice.InputTokens, Window: sluice.PerMinute, Amount: 1e12},
			{Dimension: sluice.OutputTokens, Window: sluice.PerMinute, Amount: 1e12},
			{Dimension: sluice.Concurrency, Amount: 1e6},
			{Dimension: sluice.KVTokens, Amount: 1e12},
			{Dimension: sluice.Spend, Window: sluice.PerMonth, Amount: 1e15},
		}
	}
	row := &price.Row{Rates: price.Rates{Input: 1e9, Output: 1e10}}
	pool := &route.Pool{ID: "p", Queue: route.QueueBounds{Requests: 1e6, Bytes: 1e12, Work: 1e12}, Ladder: how}
	for i := range 4 {
		pool.Backends = append(pool.Backends, &route.Backend{ID: sluice.BackendID(fmt.Sprint("b", i)), Dialect: "openai", Weight: 1, Price: row, Capacity: route.Capacity{Concurrency: 64, KVTokens: 4e6}})
	}
	table := &route.Table{
		Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"p"}, Limits: six()}},
		Pools:  map[sluice.PoolID]*route.Pool{"p": pool}, Fleet: six(),
	}
	p := &sluice.Policy{}
	for s := sluice.ScopeKey; s <= sluice.ScopeTenantModel; s++ {
		p.Limits[s] = six()
	}
	calls := make([]engine.Call, keys)
	for i := range calls {
		tenant := sluice.TenantID(fmt.Sprint("t", i%10_000))
		calls[i] = engine.Call{
			ID: sluice.RequestID(fmt.Sprint("r", i)), Model: "m", Dialect: "openai", MaxWait: -1, Bytes: 4000,
			Principal: sluice.Principal{Tenant: tenant, Project: sluice.DefaultProject, Key: sluice.KeyID(fmt.Sprint("k", i)), Policy: p},
			Work:      sluice.Work{Input: 1000, InputBound: 4000, OutputHold: 300, OutputBound: 4096},
		}
	}
	return engine.New(engine.Config{Table: table}), calls
}

func life(e *engine.Engine, now time.Time, c *engine.Call) bool {
	if v := e.Arrive(now, *c); v.Err != nil {
		return false
	}
	if g := e.Advance(now); len(g) != 1 || g[0].Err != nil {
		return false
	}
	return e.Settle(now, c.ID, engine.Actual{Usage: sluice.Usage{Input: 900, Output: 100}, Cost: 1_900_000}) == nil
}

// A request's life allocates nothing, whatever its pool's ladder may do and wherever it
// stands.
func TestAllocations(t *testing.T) {
	for _, mode := range []ladder.Mode{ladder.Off, ladder.Watch, ladder.Act} {
		for tier := range ladder.Smaller + 1 {
			if mode == ladder.Off && tier > 0 {
				continue
			}
			e, calls := busyEngineWith(1, ladder.Default(mode))
			now := start
			if tier > 0 {
				pin := &ladder.Pin{Tier: tier, Author: "ann", Reason: "drill", Expires: now.Add(time.Hour)}
				if _, err := e.Operate(now, engine.Order{Pool: "p", Pin: pin}); err != nil {
					t.Fatal(err)
				}
			}
			life(e, now, &calls[0])
			if n := testing.AllocsPerRun(400, func() {
				now = now.Add(10 * time.Millisecond)
				if !life(e, now, &calls[0]) {
					t.Fatal("refused")
				}
			}); n > 0 {
				t.Errorf("ladder %v on tier %v: %v allocations per request, want none", mode, tier, n)
			}
		}
	}
}

func BenchmarkLife(b *testing.B) {
	e, calls := busyEngine(100_000)
	now := start
	for i := range calls {
		life(e, now, &calls[i])
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		now = now.Add(time.Microsecond)
		i = (i + 7919) % len(calls)
		if !life(e, now, &calls[i]) {
			b.Fatal("refused")
		}
	}
}

// BenchmarkBacklog is a life beside a queue of 1800 requests in 200 flows that their
// own gauge keeps back.
func BenchmarkBacklog(b *testing.B) {
	e, calls := busyEngine(1)
	now := start
	narrow := &sluice.Policy{}
	narrow.Limits[sluice.ScopeKey] = []sluice.Limit{{Dimension: sluice.Concurrency, Amount: 1}}
	for i := range 2000 {
		c := calls[0]
		c.ID, c.MaxWait, c.Work = sluice.RequestID(fmt.Sprint("n", i)), 24*time.Hour, sluice.Work{Input: 1}
		c.Principal.Key, c.Principal.Policy = sluice.KeyID(fmt.Sprint("narrow", i%200)), narrow
		e.Arrive(now, c)
	}
	e.Advance(now)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Microsecond)
		if !life(e, now, &calls[0]) {
			b.Fatal("refused")
		}
	}
}
