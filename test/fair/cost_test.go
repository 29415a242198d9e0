package fair

import (
	"slices"
	"testing"
	"time"

	"sluice"
	"sluice/internal/fleet"
	"sluice/internal/route"
)

// Where no request is more than 5 % of the pool, sharing costs at most 2 % of the
// throughput.
func TestThroughput(t *testing.T) {
	slow(t)
	for _, p := range []struct {
		name    string
		machine func(sluice.BackendID) Machine
		of      route.Capacity
		sizes   [2]Sizes
	}{
		{"slots", hosted, route.Capacity{Concurrency: 32}, [2]Sizes{Between(100, 1000, 10, 200), Between(500, 2000, 100, 500)}},
		{"memory", replica, route.Capacity{Concurrency: 256, KVTokens: 60_000}, [2]Sizes{Between(100, 1000, 10, 200), Between(500, 2000, 100, 500)}},
	} {
		run := func(policy Policy) float64 {
			w := &World{Pools: pool(backend("b", p.of)), Machine: p.machine, Length: sized(5*time.Minute, 30*time.Minute), Policy: policy, Predict: NewLearned()}
			for i, s := range p.sizes {
				w.Clients = append(w.Clients, Client{Tenant: sluice.TenantID(rune('a' + i)), Bound: 1024, Arrivals: Backlog(100, 60), Sizes: s})
			}
			l := Run(w)
			var sum int64
			for _, n := range l.Served(0, l.Length) {
				sum += n
			}
			return float64(sum) / l.Length.Seconds()
		}
		fair, fifo := run(Fair), run(FIFO)
		t.Logf("%s: %.0f work per second, first come first served %.0f: %+.2f %%", p.name, fair, fifo, 100*(fair/fifo-1))
		if fair < 0.98*fifo {
			t.Errorf("%s: sharing costs %.2f %%", p.name, 100*(1-fair/fifo))
		}
	}
}

// The wait that an arrival is told is near the one that it has.
func TestPredictedWait(t *testing.T) {
	slow(t)
	for _, p := range []struct {
		name    string
		machine func(sluice.BackendID) Machine
		of      route.Capacity
		rates   []float64
	}{
		{"one tenant", hosted, route.Capacity{Concurrency: 16}, []float64{12}},
		{"three tenants", hosted, route.Capacity{Concurrency: 16}, []float64{3, 6, 9}},
		{"a batch", replica, route.Capacity{Concurrency: 256, KVTokens: 40_000}, []float64{15, 30}},
	} {
		w := &World{Pools: pool(backend("b", p.of)), Machine: p.machine, Length: 10 * time.Minute, Predict: NewLearned()}
		for i, rate := range p.rates {
			w.Clients = append(w.Clients, Client{Tenant: sluice.TenantID(rune('a' + i)), Weight: int64(i + 1), Bound: 1024, Arrivals: Poisson(rate), Sizes: Between(100, 2000, 10, 400)})
		}
		l := Run(w)
		off, n := l.PredictionError(30*time.Second, time.Second)
		t.Logf("%s: median error %.1f %% of %d waits", p.name, 100*off, n)
		if off > 0.30 {
			t.Errorf("%s: the median of the error is %.1f %%, want at most 30 %%", p.name, 100*off)
		}
	}
}

// PredictionError is the median of |predicted − real| ÷ real over requests that
// arrived from a moment on and waited at least so long.
func (l *Log) PredictionError(from, least time.Duration) (median float64, n int) {
	told := make([]time.Duration, len(l.Requests))
	var off []float64
	for _, e := range l.Events {
		switch e.Kind {
		case Enqueue:
			told[e.Req] = e.Wait
		case Dispatch:
			if real := e.At - l.Requests[e.Req].At; real >= least && l.Requests[e.Req].At >= from {
				off = append(off, (told[e.Req]-real).Abs().Seconds()/real.Seconds())
			}
		}
	}
	if len(off) == 0 {
		return 0, 0
	}
	slices.Sort(off)
	return off[len(off)/2], len(off)
}

// The speed of the driver: an hour of eight tenants in an overload.
func BenchmarkRun(b *testing.B) {
	for b.Loop() {
		l := Run(unequal(Fair, time.Hour))
		b.ReportMetric(float64(len(l.Events)), "events/op")
	}
}

var (
	_ Machine = (*fleet.Hosted)(nil)
	_ Machine = (*fleet.Replica)(nil)
)
