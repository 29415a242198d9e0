package engine_test

import (
	"fmt"
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/route"
)

// A provider that takes 60 requests a minute serves one in a second once its burst
// is used, however many slots it has: that is the wait that arrivals are told.
func TestWaitForAProvidersRate(t *testing.T) {
	b := &route.Backend{ID: "b", Dialect: "openai", Weight: 1, Price: outputAt(0), Capacity: route.Capacity{Concurrency: 50, Rates: route.Rates{route.RateRequests: 60}}}
	eng := engine.New(engine.Config{Table: &route.Table{
		Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"a"}}},
		Pools:  map[sluice.PoolID]*route.Pool{"a": {ID: "a", Backends: []*route.Backend{b}}},
	}})
	now, n := start, 0
	arrive := func() (sluice.RequestID, engine.Verdict) {
		n++
		id := sluice.RequestID(fmt.Sprint("r", n))
		return id, eng.Arrive(now, engine.Call{
			ID: id, Model: "m", Dialect: "openai", MaxWait: time.Minute, Work: sluice.Work{Input: 10, Output: 10, OutputHold: 10, OutputBound: 10},
			Principal: sluice.Principal{Tenant: "t", Key: "k"},
		})
	}
	for range 60 { // the burst, one after the other
		id, v := arrive()
		if v.Err != nil || v.Wait != 0 {
			t.Fatalf("%s: %+v", id, v)
		}
		eng.Advance(now)
		if err := eng.Settle(now, id, engine.Actual{Usage: sluice.Usage{Input: 10, Output: 10}}); err != nil {
			t.Fatal(err)
		}
	}
	for want := time.Second; want <= 20*time.Second; want += time.Second {
		id, v := arrive()
		if v.Err != nil || v.Wait < want-time.Second/10 || v.Wait > want+time.Second/10 {
			t.Fatalf("%s is told %v, %v; want %v", id, v.Wait, v.Err, want)
		}
		if g := eng.Advance(now); len(g) != 0 {
			t.Fatalf("%s: %v", id, g)
		}
	}
	for range 20 {
		now = now.Add(time.Second)
		if g := eng.Advance(now); len(g) != 1 || g[0].Err != nil {
			t.Fatalf("after %v: %d grants", now.Sub(start), len(g))
		}
	}
}
