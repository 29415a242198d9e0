package tabletop

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/fleet"
	"sluice/internal/tabletop/control"
)

// TestFairnessAgainstModel holds what is judged as it goes against every interval of
// the whole history, one by one.
func TestFairnessAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sources := []Source{tenant("a", 1, 0, 0), tenant("b", 1, 0, 0), tenant("c", 1, 0, 0)}
		s := world(1, fleet.Profile{}, sources...)
		v := &s.Policies[0]
		weights := make([]int64, len(sources))
		for i := range sources {
			weights[i] = rapid.Int64Range(1, 3).Draw(t, "weight")
			v.Principals[i].Policy.Weight = weights[i]
		}
		v.Principals[2].Policy.Limits[sluice.ScopeTenant] = []sluice.Limit{{Dimension: sluice.Concurrency, Amount: 2}}
		h := &history{f: newFairness(s, v), weights: weights}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			h.step(t)
		}
		got := h.f.read()
		gap, bound := h.worst()
		if gap == 0 {
			if len(got) > 0 && got[0].Gap > 0 {
				t.Fatalf("got %+v, want none", got)
			}
			return
		}
		if len(got) != 1 {
			t.Fatalf("got %+v, want a gap of %v of %v", got, gap, bound)
		}
		if share, want := float64(got[0].Gap)/float64(got[0].Bound), gap/bound; share < want-1e-3 || share > want+2/float64(got[0].Bound)+1e-3 {
			t.Fatalf("got %+v, want a gap of %.3f of %.3f", got, gap, bound)
		}
	})
}

// history is a run of a pool, with its state after every change.
type history struct {
	f       *fairness
	weights []int64
	waiting []*request
	running []*request
	s       [3]int64 // charged
	flight  int64
	most    int64
	states  []state
}

type state struct {
	s        [3]int64
	flight   int64
	most     int64
	eligible [3]bool
}

// note keeps the state. Between two notes nothing changes but what is told.
func (h *history) note() {
	st := state{s: h.s, flight: h.flight, most: h.most}
	var running [3]int
	for _, q := range h.running {
		running[q.source]++
	}
	for _, q := range h.waiting {
		st.eligible[q.source] = q.source != 2 || running[2] < 2
	}
	h.states = append(h.states, st)
}

func (h *history) charge(q *request, d int64) {
	h.s[q.source] += d
	h.note()
}

func (h *history) step(t *rapid.T) {
	switch rapid.IntRange(0, 3).Draw(t, "what") {
	case 0:
		w := sluice.Work{Input: sluice.Tokens(rapid.IntRange(1, 500).Draw(t, "in")), Output: sluice.Tokens(rapid.IntRange(1, 500).Draw(t, "out"))}
		q := &request{source: rapid.IntRange(0, 2).Draw(t, "source"), call: &control.Call{Work: w, Place: engine.Grant{Pool: "main"}}}
		q.truth.input = w.Input
		h.f.enqueue(q, "main")
		h.most = max(h.most, int64(w.Input+2*w.Output))
		h.waiting = append(h.waiting, q)
		h.note()
	case 1:
		for i, q := range h.waiting {
			running := 0
			for _, r := range h.running {
				if r.source == q.source {
					running++
				}
			}
			if q.source == 2 && running == 2 || rapid.Bool().Draw(t, "pass") {
				continue
			}
			h.dispatch(i)
			return
		}
	case 2, 3:
		if len(h.running) > 0 {
			h.grow(t, rapid.IntRange(0, len(h.running)-1).Draw(t, "which"))
		}
	}
}

func (h *history) dispatch(i int) {
	q := h.waiting[i]
	cost := int64(q.call.Work.Input + 2*q.call.Work.Output)
	h.flight += cost
	h.charge(q, cost)
	h.waiting = append(h.waiting[:i:i], h.waiting[i+1:]...)
	h.running = append(h.running, q)
	h.note()
	h.f.dispatch(q)
	q.run.on = &machine{}
}

// grow lets an answer become longer, or end.
func (h *history) grow(t *rapid.T, i int) {
	q := h.running[i]
	q.run.seen += sluice.Tokens(rapid.IntRange(0, 400).Draw(t, "more"))
	was, cost := q.charged, int64(q.truth.input+2*q.run.seen)
	if rapid.Bool().Draw(t, "goes on") {
		if cost > was {
			h.most = max(h.most, cost)
			h.flight += cost - was
			h.charge(q, cost-was)
		}
		h.f.correct(q)
		return
	}
	if q.run.seen == 0 {
		cost = 0
	}
	h.most = max(h.most, cost)
	h.charge(q, cost-was)
	h.flight -= was
	h.running = append(h.running[:i:i], h.running[i+1:]...)
	h.note()
	h.f.end(q)
}

// worst is the largest part of its bound that a difference over any interval has
// been. What is in flight counts from the span's beginning.
func (h *history) worst() (gap, bound float64) {
	for a := range 3 {
		for b := range a {
			both := func(i int) bool { return h.states[i].eligible[a] && h.states[i].eligible[b] }
			for from := range h.states {
				begin := from
				for begin > 0 && both(begin-1) {
					begin--
				}
				for to := from; to < len(h.states) && both(to); to++ {
					flight := int64(0)
					for _, st := range h.states[begin : to+1] {
						flight = max(flight, st.flight)
					}
					x, y := &h.states[from], &h.states[to]
					d := float64(y.s[a]-x.s[a])/float64(h.weights[a]) - float64(y.s[b]-x.s[b])/float64(h.weights[b])
					most := float64(3*y.most+2*flight) / float64(min(h.weights[a], h.weights[b]))
					if d = max(d, -d); bound == 0 || d/most > gap/bound {
						gap, bound = d, most
					}
				}
			}
		}
	}
	return gap, bound
}

// TestFairnessOfTheEngine: what is judged as a run goes on agrees with what the
// engine promises, whatever the sizes and weights.
func TestFairnessOfTheEngine(t *testing.T) {
	large(t)
	judged := 0
	rapid.Check(t, func(t *rapid.T) {
		var sources []Source
		for i := range rapid.IntRange(2, 5).Draw(t, "sources") {
			x := tenant(string(rune('a'+i)), float64(rapid.IntRange(2, 20).Draw(t, "rate")), 0, 0)
			x.Input = Lengths{Shape: Uniform, Min: 1, Max: sluice.Tokens(rapid.IntRange(10, 6000).Draw(t, "input"))}
			x.Output = Lengths{Shape: Uniform, Min: 1, Max: sluice.Tokens(rapid.IntRange(10, 600).Draw(t, "output"))}
			x.Client.Bound = 1000
			sources = append(sources, x)
		}
		s := world(rapid.IntRange(1, 3).Draw(t, "replicas"), fleet.Llama8BOnH100(), sources...)
		s.Length, s.Seed = 10*time.Second, rapid.Uint64Range(1, 1000).Draw(t, "seed")
		for _, b := range s.Policies[0].Table.Pools["main"].Backends {
			b.Capacity.Concurrency = rapid.Int64Range(2, 16).Draw(t, "slots")
		}
		for i := range sources {
			p := s.Policies[0].Principals[i].Policy
			p.Weight = rapid.Int64Range(1, 4).Draw(t, "weight")
			if n := rapid.Int64Range(0, 8).Draw(t, "limit"); n > 4 {
				p.Limits[sluice.ScopeTenant] = []sluice.Limit{{Dimension: sluice.Concurrency, Amount: n}}
			}
		}
		r, err := s.Run(testContext(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range r.Phases[0].Fairness {
			judged++
			if g.Gap > g.Bound {
				t.Fatalf("%+v", g)
			}
		}
	})
	if judged < 20 {
		t.Errorf("%d pools and classes were judged", judged)
	}
}
