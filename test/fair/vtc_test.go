package fair

import (
	"math/rand/v2"
	"testing"
	"time"

	"sluice"
	"sluice/internal/fleet"
	"sluice/internal/route"
)

// a10g is a published workload on our model of what it was measured on. The
// clients send their true length as a bound, as the published ones did, or one
// that says nothing.
func a10g(a *Anchor, p Policy, length time.Duration, seed uint64, bound sluice.Tokens) *World {
	w := &World{
		Pools: pool(backend("gpu", route.Capacity{Concurrency: 256, KVTokens: a.KV})), Predict: NewLearned(),
		Machine: func(sluice.BackendID) Machine {
			profile := fleet.Llama7BOnA10G()
			profile.KVCapacity = a.KV
			return fleet.NewReplica(profile)
		},
		Clients: a.Clients(rand.New(rand.NewPCG(seed, 0)), length), Policy: p, Seed: seed, Length: time.Hour, Drain: true,
	}
	for i := range w.Clients {
		w.Clients[i].Bound = bound
	}
	if p != Fair {
		w.Predict = Exact{} // the published servers were told the length
	}
	return w
}

// Served first come first served, the model has the published throughput within
// 5 %. The memory is fitted for this: one figure for requests of one shape, others
// where shapes are mixed, of which the published server admitted more.
func TestPublishedThroughput(t *testing.T) {
	for _, a := range Anchors() {
		l := Run(a10g(&a, FIFO, a.FCFSLength, 1, 0))
		off := 100 * (l.Throughput()/a.FCFSThroughput - 1)
		t.Logf("%-21s memory %5d: %.3f per second, published %.3f (%+.1f %%); difference %6.0f, published %6d", a.Name, a.KV, l.Throughput(), a.FCFSThroughput, off, l.AccumulatedDifference(0), a.FCFS)
		if off > 5 || off < -5 {
			t.Errorf("%s: %.1f %% off the published throughput", a.Name, off)
		}
	}
}

// With its own prediction, the largest difference between the service that two
// clients have had is at most the published one of the virtual token counter.
func TestPublishedDifference(t *testing.T) {
	needsFairQueue(t)
	seeds := uint64(2)
	if full {
		seeds = 10
	}
	for _, a := range Anchors() {
		for _, bound := range []sluice.Tokens{0, 1024} {
			worst, ticks, least := 0.0, 0.0, 1e9
			for seed := range seeds {
				l := Run(a10g(&a, Fair, a.VTCLength, seed+1, bound))
				worst = max(worst, l.AccumulatedDifference(time.Second/2))
				ticks = max(ticks, l.AccumulatedDifference(0))
				least = min(least, l.Throughput())
			}
			t.Logf("%-21s bound %4d: difference %6.0f (%6.0f at 19 ticks), published %6d (%d with prediction); %.3f per second, published %.3f", a.Name, bound, worst, ticks, a.VTC, a.VTCPredicted, least, a.VTCThroughput)
			if worst > float64(a.VTC) {
				t.Errorf("%s: difference %.0f, published %d", a.Name, worst, a.VTC)
			}
			if least < 0.95*a.VTCThroughput {
				t.Errorf("%s: %.3f per second, published %.3f", a.Name, least, a.VTCThroughput)
			}
		}
	}
}

// The control is further off than the published counter by far.
func TestPublishedDifferenceControl(t *testing.T) {
	for _, a := range Anchors() {
		l := Run(a10g(&a, FIFO, a.VTCLength, 1, 0))
		if d := l.AccumulatedDifference(0); d < 3*float64(a.VTC) {
			t.Errorf("%s: first come, first served has a difference of %.0f, the published counter %d", a.Name, d, a.VTC)
		}
	}
}
