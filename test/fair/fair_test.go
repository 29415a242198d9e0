package fair

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/route"
)

// mixes are what tenants of weights 1, 2 and 4 ask for, each several times its
// share.
var mixes = []struct {
	name    string
	machine func(sluice.BackendID) Machine
	of      route.Capacity
	sizes   [3]Sizes
	rates   [3]float64
}{
	{"alike", hosted, route.Capacity{Concurrency: 16}, [3]Sizes{middling, middling, middling}, [3]float64{15, 15, 15}},
	{"the heaviest asks for little at a time", hosted, route.Capacity{Concurrency: 16}, [3]Sizes{Fixed(6000, 600), middling, Fixed(100, 50)}, [3]float64{1, 6, 60}},
	{"the lightest asks for little at a time", hosted, route.Capacity{Concurrency: 16}, [3]Sizes{Fixed(100, 50), middling, Fixed(6000, 600)}, [3]float64{20, 6, 3}},
	{"a batch, bound by memory", replica, route.Capacity{Concurrency: 256, KVTokens: 40_000}, [3]Sizes{Mix(900, Fixed(300, 100), Fixed(8000, 300)), middling, Fixed(1000, 200)}, [3]float64{8, 10, 20}},
}

var middling = Between(100, 2000, 10, 400)

func weighted(i int, seed uint64, p Policy, length time.Duration, predict Predictor) *World {
	m := mixes[i]
	w := &World{Pools: pool(backend("b", m.of)), Machine: m.machine, Length: length, Policy: p, Seed: seed, Predict: predict}
	for k, weight := range []int64{1, 2, 4} {
		w.Clients = append(w.Clients, Client{Tenant: sluice.TenantID(fmt.Sprint("w", weight)), Weight: weight, Bound: 1024, Arrivals: Backlog(50, m.rates[k]), Sizes: m.sizes[k]})
	}
	return w
}

// Tenants of weights 1, 2 and 4 that all want more than they can have get work as
// 1 to 2 to 4, whatever its sizes, within 2 %.
func TestWeights(t *testing.T) {
	slow(t)
	for i, m := range mixes {
		if m.of.KVTokens > 0 && !bounded {
			continue
		}
		for _, predict := range []struct {
			name string
			Predictor
		}{{"exact", Exact{}}, {"learned", NewLearned()}, {"up to twice or half", Wrong{2, rand.New(rand.NewPCG(1, 1))}}} {
			t.Run(m.name+"/"+predict.name, func(t *testing.T) {
				l := Run(weighted(i, 1, Fair, sized(10*time.Minute, time.Hour), predict))
				judge(t, l)
				shares, err := MaxMin(l, 30*time.Second, l.Length, 0.02)
				if err != nil {
					t.Error(err)
				}
				t.Log(Shares(shares))
			})
		}
	}
}

// The control: who serves in order of arrival gives by what is asked.
func TestWeightsControl(t *testing.T) {
	slow(t)
	for i, m := range mixes {
		l := Run(weighted(i, 1, FIFO, 10*time.Minute, nil))
		if err := Conservation(l); err != nil {
			t.Error(err)
		}
		if _, err := MaxMin(l, 30*time.Second, l.Length, 0.02); err == nil {
			t.Errorf("%s: first come, first served passes for fair shares", m.name)
		}
		if s, err := Fairness(l, Tenants, 0); err == nil {
			t.Errorf("%s: first come, first served passes for fair: %v", m.name, s)
		}
	}
}

func projects(p Policy, length time.Duration) *World {
	return &World{
		Pools: pool(backend("b", route.Capacity{Concurrency: 16})), Machine: hosted, Length: length, Policy: p,
		Clients: []Client{
			{Tenant: "one", Project: "loud", Arrivals: Poisson(30), Sizes: Between(100, 2000, 10, 400)},
			{Tenant: "one", Project: "quiet", Arrivals: Poisson(6), Sizes: Between(100, 2000, 10, 400)},
			{Tenant: "two", Arrivals: Poisson(30), Sizes: Between(100, 2000, 10, 400)},
		},
	}
}

// Two projects of a tenant share its part alike, and have no more of it than a
// tenant with one.
func TestProjects(t *testing.T) {
	l := Run(projects(Fair, sized(10*time.Minute, time.Hour)))
	judge(t, l)
	got := l.Served(0, l.Length)
	if off := float64(got[0])/float64(got[1]) - 1; off > 0.02 || off < -0.02 {
		t.Errorf("projects of one tenant: %d and %d, want the same within 2 %%", got[0], got[1])
	}
	if _, err := MaxMin(l, 30*time.Second, l.Length, 0.02); err != nil {
		t.Error(err)
	}
}

func TestProjectsControl(t *testing.T) {
	slow(t)
	if s, err := Fairness(Run(projects(FIFO, 10*time.Minute)), Projects, 0); err == nil {
		t.Errorf("first come, first served passes for fair: %v", s)
	}
}

// Some of eight tenants want less than their part: they get all they want, and
// what they leave is divided among the others.
func TestMaxMin(t *testing.T) {
	l := Run(unequal(Fair, sized(10*time.Minute, time.Hour)))
	judge(t, l)
	shares, err := MaxMin(l, time.Minute, l.Length, 0.03)
	if err != nil {
		t.Error(err)
	}
	t.Log(Shares(shares))
}

func TestMaxMinControl(t *testing.T) {
	slow(t)
	l := Run(unequal(FIFO, 10*time.Minute))
	if _, err := MaxMin(l, time.Minute, l.Length, 0.03); err == nil {
		t.Error("first come, first served passes for max-min fair")
	}
}

func unequal(p Policy, length time.Duration) *World {
	w := &World{Pools: pool(backend("b1", route.Capacity{Concurrency: 16}), backend("b2", route.Capacity{Concurrency: 16})), Machine: hosted, Length: length, Policy: p}
	for i, rate := range []float64{0.3, 0.6, 1.2, 2.5, 5, 10, 20, 20} {
		w.Clients = append(w.Clients, Client{Tenant: sluice.TenantID(fmt.Sprint("t", i)), Weight: int64(1 + i%2), Arrivals: Poisson(rate), Sizes: Between(100, 2000, 10, 400)})
	}
	return w
}

// The oracle by itself, on divisions that can be done by hand.
func TestWaterFill(t *testing.T) {
	for _, tt := range []struct {
		demand, weight []float64
		capacity       float64
		want           []float64
	}{
		{[]float64{10, 10}, []float64{1, 1}, 10, []float64{5, 5}},
		{[]float64{2, 10}, []float64{1, 1}, 10, []float64{2, 8}},
		{[]float64{2, 10, 10}, []float64{1, 1, 3}, 10, []float64{2, 2, 6}},
		{[]float64{1, 2, 9, 9}, []float64{1, 1, 1, 1}, 13, []float64{1, 2, 5, 5}},
		{[]float64{1, 2}, []float64{1, 1}, 10, []float64{1, 2}},
		{[]float64{9, 1, 0}, []float64{4, 2, 1}, 7, []float64{6, 1, 0}},
	} {
		if diff := cmp.Diff(tt.want, WaterFill(tt.demand, tt.weight, tt.capacity)); diff != "" {
			t.Errorf("%v by %v of %v: %s", tt.demand, tt.weight, tt.capacity, diff)
		}
	}
}

// The same world gives the same log.
func TestDeterminism(t *testing.T) {
	run := func() []Event {
		w := weighted(3, 7, Fair, time.Minute, NewLearned())
		w.Gauges = true
		return Run(w).Events
	}
	if diff := cmp.Diff(run(), run()); diff != "" {
		t.Error(diff)
	}
}
