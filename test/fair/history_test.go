package fair

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/route"
)

// soak lengthens the histories: SLUICE_FAIR_SOAK=20 makes each twenty times as
// long.
var soak = func() time.Duration {
	if n, err := strconv.Atoi(os.Getenv("SLUICE_FAIR_SOAK")); err == nil && n > 0 {
		return time.Duration(n)
	}
	if full {
		return 10
	}
	return 1
}()

// history draws a world in which everything happens: cancels, estimates that are
// wrong both ways, waits that expire, other tables, backends that die and return.
func history(t *rapid.T, calm bool) *World {
	seed := rapid.Uint64().Draw(t, "seed")
	r := rand.New(rand.NewPCG(seed, 1))
	w := &World{Machine: hosted, Length: soak * time.Duration(rapid.IntRange(20, 90).Draw(t, "seconds")) * time.Second, Drain: true, Seed: seed, Gauges: true}
	backends := rapid.IntRange(1, 3).Draw(t, "backends")
	memory := (bounded || !calm) && rapid.Bool().Draw(t, "memory")
	capacity := func() route.Capacity {
		c := route.Capacity{Concurrency: int64(2 + r.IntN(10))}
		if memory {
			c.KVTokens = sluice.Tokens(3000 + r.IntN(20_000))
			c.PrefillTokens = sluice.Tokens(2000 + r.IntN(10_000))
		}
		return c
	}
	pools := func() []*route.Pool {
		var bs []*route.Backend
		for i := range backends {
			bs = append(bs, backend(sluice.BackendID(fmt.Sprint("b", i)), capacity()))
		}
		return pool(bs...)
	}
	w.Pools = pools()
	w.Predict = rapid.SampledFrom([]Predictor{Exact{}, Wrong{1.5, r}, Wrong{4, r}, NewLearned()}).Draw(t, "predict")
	for i := range rapid.IntRange(2, 6).Draw(t, "tenants") {
		c := Client{
			Tenant: sluice.TenantID(fmt.Sprint("t", i)), Weight: int64(1 + r.IntN(8)), Class: sluice.Class(r.IntN(sluice.NumClasses)), Bound: 2048,
			Arrivals: Poisson(0.5 + 6*r.Float64()), Sizes: Mix(int64(r.IntN(1001)), Between(10, 400, 1, 60), Between(500, 3000, 50, 400)),
		}
		if r.IntN(2) == 0 {
			c.Arrivals = OnOff(c.Arrivals, time.Duration(2+r.IntN(20))*time.Second)
		}
		if r.IntN(3) == 0 {
			c.Patience, c.LeaveAt = 20*time.Second, int64(1+r.IntN(500))
		}
		if r.IntN(3) == 0 {
			c.MaxWait = time.Duration(1+r.IntN(20)) * time.Second
		}
		if r.IntN(3) == 0 {
			c.Running = int64(1 + r.IntN(4))
		}
		w.Clients = append(w.Clients, c)
		if r.IntN(2) == 0 {
			c.Project, c.Arrivals = "second", Poisson(0.5+6*r.Float64())
			w.Clients = append(w.Clients, c)
		}
	}
	if race {
		w.Length /= 4
	}
	if calm {
		w.Length /= 3 * max(1, soak/2) // what waits is looked at after every event
		return w
	}
	if memory && !bounded {
		w.Clients = slices.DeleteFunc(w.Clients, func(c Client) bool { return c.Tenant != w.Clients[0].Tenant || c.Project != "" })
	}
	for range rapid.IntRange(0, 2).Draw(t, "swaps") {
		w.Swaps = append(w.Swaps, Swap{time.Duration(r.Int64N(int64(w.Length))), pools()})
	}
	for range rapid.IntRange(0, 2).Draw(t, "faults") {
		from := time.Duration(r.Int64N(int64(w.Length)))
		w.Faults = append(w.Faults, Fault{sluice.BackendID(fmt.Sprint("b", r.IntN(backends))), from, from + time.Duration(1+r.IntN(20))*time.Second})
	}
	return w
}

// After every event of long random histories: every request is somewhere, once,
// and what backends and queues hold is what the log says.
func TestHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Run(history(t, false))
		if err := Conservation(l); err != nil {
			t.Fatal(err)
		}
		for _, level := range []Level{Tenants, Projects} {
			if _, err := Fairness(l, level, 0); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := BoundedWait(l, 0); err != nil {
			t.Fatal(err)
		}
	})
}

// Where nothing is kept back, no request waits that could run.
func TestCalmHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Run(history(t, true))
		if err := WorkConserving(l); err != nil {
			t.Fatal(err)
		}
	})
}

// The control fails in most of such histories.
func TestHistoriesControl(t *testing.T) {
	failed, n := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := history(t, false)
		w.Policy = FIFO
		for i := range w.Clients {
			w.Clients[i].Arrivals = Backlog(200, 5+30*rand.New(rand.NewPCG(w.Seed, uint64(i))).Float64())
			w.Clients[i].MaxWait, w.Clients[i].Running, w.Clients[i].Class = 0, 0, sluice.Interactive
		}
		w.Gauges, w.Drain, w.Length = false, false, 30*time.Second
		n++
		if _, err := Fairness(Run(w), Tenants, 0); err != nil {
			failed++
		}
	})
	if failed < n/10 {
		t.Errorf("first come, first served fails %d of %d", failed, n)
	}
	t.Logf("first come, first served fails %d of %d", failed, n)
}
