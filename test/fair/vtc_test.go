package fair

import (
	"testing"
	"time"

	"sluice"
	"sluice/internal/fleet"
	"sluice/internal/route"
)

// published is the seed of the published arrivals.
const published = 42

// The draws are the published ones: so many requests has each client there.
func TestPublishedArrivals(t *testing.T) {
	r := newMersenne(5489)
	for range 9999 {
		r.uint32()
	}
	if got, want := r.uint32(), uint32(4123659995); got != want { // of the generator's definition
		t.Errorf("got %d, want %d", got, want)
	}
	for i, want := range [][]int{{540, 1080}, {144, 144, 144, 216, 216, 216, 216, 216}, {600, 1800}, {4826, 874}, {4826, 874}} {
		a := Anchors()[i]
		for c, client := range a.Clients(published, a.VTCLength) {
			if got := len(client.Rows); got != want[c] {
				t.Errorf("%s: client %d has %d requests, want %d", a.Name, c, got, want[c])
			}
		}
	}
}

// a10g is a published workload on our model of what it was measured on. The
// clients send their true length as a bound, as the published ones did, or one
// that says nothing.
func a10g(a *Anchor, p Policy, length time.Duration, seed uint32, bound sluice.Tokens) *World {
	w := &World{
		Pools: pool(backend("gpu", route.Capacity{Concurrency: 256, KVTokens: a.KV})), Predict: NewLearned(),
		Machine: func(sluice.BackendID) Machine {
			profile := fleet.Llama7BOnA10G()
			profile.KVCapacity = a.KV
			return fleet.NewReplica(profile)
		},
		Clients: a.Clients(seed, length), Policy: p, Length: time.Hour, Drain: true,
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
		l := Run(a10g(&a, FIFO, a.FCFSLength, published, 0))
		off := 100 * (l.Throughput()/a.FCFSThroughput - 1)
		t.Logf("%-21s memory %5d: %.3f per second, published %.3f (%+.1f %%); difference %6.0f, published %6d", a.Name, a.KV, l.Throughput(), a.FCFSThroughput, off, l.AccumulatedDifference(0), a.FCFS)
		if off > 5 || off < -5 {
			t.Errorf("%s: %.1f %% off the published throughput", a.Name, off)
		}
	}
}

// With its own prediction, the largest difference between the service that two
// clients have had is at most the published one of the virtual token counter: from
// the start where both want more than their share from the start, and over any
// interval in which both have something waiting. The counter is played on the same
// model beside it.
func TestPublishedDifference(t *testing.T) {
	for _, a := range Anchors() {
		counter := RunCounter(a10g(&a, FIFO, a.VTCLength, published, 0))
		t.Logf("%-21s counter on our model: difference %6.0f, backlogged %6.0f; %.3f per second", a.Name, counter.AccumulatedDifference(time.Second/2), counter.BackloggedDifference(time.Second/2), counter.Throughput())
		for _, bound := range []sluice.Tokens{0, 1024} {
			seeds := []uint32{published}
			if full {
				seeds = []uint32{published, 1, 2, 3, 4, 5}
			}
			for _, seed := range seeds {
				l := Run(a10g(&a, Fair, a.VTCLength, seed, bound))
				whole, backlogged, rate := l.AccumulatedDifference(time.Second/2), l.BackloggedDifference(time.Second/2), l.Throughput()
				t.Logf("%-21s seed %2d, bound %4d: difference %6.0f (%6.0f at 19 ticks), backlogged %6.0f; published %6d, %d with prediction; %.3f per second, published %.3f", a.Name, seed, bound, whole, l.AccumulatedDifference(0), backlogged, a.VTC, a.VTCPredicted, rate, a.VTCThroughput)
				if backlogged > float64(a.VTC) || a.Whole && whole > float64(a.VTC) {
					t.Errorf("%s: difference %.0f, backlogged %.0f, published %d", a.Name, whole, backlogged, a.VTC)
				}
				if bound == 0 && rate < 0.95*a.VTCThroughput {
					t.Errorf("%s: %.3f per second, published %.3f", a.Name, rate, a.VTCThroughput)
				}
			}
		}
	}
}

// The control is further off than the published counter by far.
func TestPublishedDifferenceControl(t *testing.T) {
	for _, a := range Anchors() {
		l := Run(a10g(&a, FIFO, a.VTCLength, published, 0))
		if d := l.AccumulatedDifference(0); d < 3*float64(a.VTC) {
			t.Errorf("%s: first come, first served has a difference of %.0f, the published counter %d", a.Name, d, a.VTC)
		}
	}
}
