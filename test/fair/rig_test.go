package fair

import (
	"os"
	"testing"
	"time"

	"sluice"
	"sluice/internal/fleet"
	"sluice/internal/price"
	"sluice/internal/route"
)

// bounded says whether what passes heads that do not fit is bounded over an interval
// and not per head alone, and whether a head that has got the pool's part gathers
// one backend and no longer all. Until then flows of small requests gain on those of
// large ones in a pool that is short of memory.
const bounded = true

// full is the size of `make proof`.
var full = os.Getenv("SLUICE_FAIR") == "full"

// slow leaves a test out under the race detector, which finds nothing in one
// goroutine: the others go through the same code.
func slow(t *testing.T) {
	t.Helper()
	if race {
		t.Skip("long runs of one goroutine")
	}
}

// sized is one duration in ordinary runs, another in full ones.
func sized(ci, proof time.Duration) time.Duration {
	if full {
		return proof
	}
	return ci
}

var free = &price.Row{Provider: "p", Model: "m", Rates: price.Rates{Input: price.Free, Output: price.Free}}

// endless bounds no queue.
var endless = route.QueueBounds{Requests: 1 << 20, Work: 1 << 40, Bytes: 1 << 40}

func pool(backends ...*route.Backend) []*route.Pool {
	return []*route.Pool{{ID: "p", Backends: backends, Queue: endless}}
}

func backend(id sluice.BackendID, c route.Capacity) *route.Backend {
	return &route.Backend{ID: id, Dialect: "openai", Weight: 1, Price: free, Capacity: c}
}

// hosted is a provider whose answers do not slow each other down.
func hosted(sluice.BackendID) Machine {
	return fleet.NewHosted(fleet.Service{Latency: 100 * time.Millisecond, PrefillRate: 20_000, TokenTime: 10 * time.Millisecond})
}

// replica is an engine whose answers do.
func replica(sluice.BackendID) Machine { return fleet.NewReplica(fleet.Llama8BOnH100()) }

// saturated is what a pool serves of such requests when there are always more:
// work and requests per second.
func saturated(pools []*route.Pool, m func(sluice.BackendID) Machine, s Sizes) (work, requests float64) {
	l := Run(&World{
		Pools: pools, Machine: m, Policy: FIFO, Length: 2 * time.Minute,
		Clients: []Client{{Tenant: "t", Arrivals: Backlog(20_000, 0.001), Sizes: s}},
	})
	const warm = 30 * time.Second
	n := 0
	for _, e := range l.Events {
		if e.Kind == End && e.At >= warm {
			n++
		}
	}
	span := (l.Ended - warm).Seconds()
	return float64(l.Served(warm, l.Ended+1)[0]) / span, float64(n) / span
}

// judge runs the oracles that hold for every history.
func judge(t *testing.T, l *Log) {
	t.Helper()
	if err := Conservation(l); err != nil {
		t.Error(err)
	}
	for _, level := range []Level{Tenants, Projects} {
		s, err := Fairness(l, level, 0)
		if err != nil {
			t.Error(err)
		}
		t.Logf("spread between %s: %v", [...]string{"tenants", "projects"}[level], s)
	}
	h, err := BoundedWait(l, 0)
	if err != nil {
		t.Error(err)
	}
	t.Logf("heads: %v", h)
}
