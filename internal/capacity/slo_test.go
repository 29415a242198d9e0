package capacity

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A tighter promise never lets a replica take more, and what it may take keeps it.
func TestBearable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := Profiles()[rapid.IntRange(0, len(Profiles())-1).Draw(t, "profile")].Replica
		w := Workload{Rate: Rate{Int(rapid.Int64Range(1, 50).Draw(t, "rate"))}, Input: Alike(rapid.Int64Range(10, 3000).Draw(t, "input")), Output: Alike(rapid.Int64Range(2, 600).Draw(t, "output"))}
		d, err := w.Demand()
		if err != nil {
			t.Fatal(err)
		}
		e := r.engineFor(d)
		if e.batch < 1 {
			return
		}
		u, _, _ := e.demandOn(d)
		loose := SLO{Span{Ratio(rapid.Int64Range(100, 20_000).Draw(t, "ttft"), 1000)}, Span{Ratio(rapid.Int64Range(5, 400).Draw(t, "tpot"), 1000)}}
		tight := SLO{Span{loose.TTFT.Over(Int(2))}, loose.TPOT}
		more, err := r.bearable(d, loose, Ratio(1, 10))
		less, tighter := r.bearable(d, tight, Ratio(1, 10))
		if err != nil {
			if tighter == nil {
				t.Fatal("half of the time is kept, and all of it is not")
			}
			return
		}
		if more.Cmp(Ratio(9, 10)) > 0 || tighter == nil && less.Cmp(more) > 0 {
			t.Fatalf("%s of the time, and %s within half of the promise", more, less)
		}
		if l, ok := e.latency(e.at(d, u.Engine, more)); !ok || !loose.keeps(l) {
			t.Fatalf("at %s of the time the first token takes %s s, the next %s s", more, l.TTFT, l.TPOT)
		}
	})
}

// A promise that only more GPUs together keep takes the larger group.
func TestSizeForThePromise(t *testing.T) {
	t.Parallel()
	four, err := ReplicaNamed("llama-3.3-70b-4xh100")
	if err != nil {
		t.Fatal(err)
	}
	eight, err := ReplicaNamed("llama-3.3-70b-8xh100")
	if err != nil {
		t.Fatal(err)
	}
	c := Claim{Name: "m", Replica: four, Or: []Replica{eight}, Workloads: []Workload{{Rate: Rate{Int(2)}, Input: Alike(1500), Output: Alike(400)}}}
	for _, test := range []struct {
		tpot int64 // ms
		gpus int64
		want string
	}{{100, 16, four.Name}, {15, 16, eight.Name}, {100, 4, four.Name}} {
		c.SLO.TPOT.Amount = Ratio(test.tpot, 1000)
		a, err := Allocate(test.gpus, []Claim{c})
		if err != nil {
			t.Fatal(err)
		}
		if m := a.Models[0]; m.Profile != test.want || m.Satisfied.Cmp(Int(1)) != 0 || m.Latency == nil || m.Latency.TPOT.Cmp(c.SLO.TPOT.Amount) > 0 {
			t.Errorf("for %d ms a token on %d GPUs: %s, %s satisfied, %v; want %s", test.tpot, test.gpus, m.Profile, m.Satisfied, m.Latency, test.want)
		}
	}
	c.SLO.TPOT.Amount = Ratio(1, 1000)
	if _, err := Allocate(16, []Claim{c}); err == nil || !strings.Contains(err.Error(), "an idle replica takes") {
		t.Errorf("a token a millisecond: %v", err)
	}
}
