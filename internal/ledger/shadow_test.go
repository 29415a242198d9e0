package ledger

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
)

// A shadow that died with the process is settled as one: it must not turn up on its
// tenant's bill.
func TestLostShadowStaysOne(t *testing.T) {
	dir, sink := t.TempDir(), &memory{}
	j := open(t, dir, JournalOptions{})
	r := reserve("copy")
	r.ShadowOf, r.Principal.Run = "first", ""
	must(t, j.Begin(r, dispatch("copy", 1)), j.Begin(reserve("own"), dispatch("own", 1)))
	crash(t, j)

	j = open(t, dir, JournalOptions{Sink: sink})
	if n, err := j.SettleLost(t0.Add(time.Minute)); n != 2 || err != nil {
		t.Fatalf("settled %d, %v", n, err)
	}
	must(t, j.Flush(t.Context()))
	got := map[string]sluice.RequestID{}
	for key, e := range sink.entries {
		got[key] = e.ShadowOf
		if e.Outcome != sluice.Expired || e.Reason != sluice.Lost || e.Cost == 0 {
			t.Errorf("%s: %v %v at %v", key, e.Outcome, e.Reason, e.Cost)
		}
	}
	if d := cmp.Diff(map[string]sluice.RequestID{"copy/1": "first", "own/1": ""}, got); d != "" {
		t.Errorf("shadow of (-want +got):\n%s", d)
	}
	must(t, j.Close(t.Context()))
}

func TestCompare(t *testing.T) {
	side := func(ms int, out sluice.Tokens, cost sluice.Nano) Side {
		d := time.Duration(ms) * time.Millisecond
		return Side{Outcome: sluice.Completed, Finish: "stop", FirstToken: d, Took: 10 * d, Output: out, Cost: cost}
	}
	var pairs []Pair
	for i := 1; i <= 100; i++ {
		pairs = append(pairs, Pair{Model: "fast", Pool: "next", Request: side(i, sluice.Tokens(i), 10), Shadow: side(2*i, sluice.Tokens(3*i), 20)})
	}
	cut := Pair{Model: "fast", Pool: "next", Request: side(5000, 9999, 10), Shadow: Side{Outcome: sluice.Cancelled, Reason: sluice.ShuttingDown, Cost: 7}}
	whole := Pair{Model: "big", Pool: "next", Request: side(9, 4, 10), Shadow: side(0, 4, 10)} // not streamed by one
	whole.Shadow.Finish = ""
	got := Compare(append(pairs, cut, whole))
	at := func(ms ...time.Duration) Percentiles[time.Duration] {
		return Percentiles[time.Duration]{ms[0] * time.Millisecond, ms[1] * time.Millisecond, ms[2] * time.Millisecond}
	}
	want := []Comparison{{
		Model: "big", Pool: "next", Pairs: 1, Completed: 1,
		Request: Part{
			Outcomes: map[string]int64{"completed": 1}, Finishes: map[string]int64{"stop": 1},
			Took: at(90, 90, 90), Output: Percentiles[sluice.Tokens]{4, 4, 4}, OutputSum: 4, Cost: 10,
		},
		Shadow: Part{
			Outcomes: map[string]int64{"completed": 1}, Finishes: map[string]int64{"none": 1},
			Output: Percentiles[sluice.Tokens]{4, 4, 4}, OutputSum: 4, Cost: 10,
		},
	}, {
		Model: "fast", Pool: "next", Pairs: 101, Completed: 100,
		Request: Part{
			Outcomes: map[string]int64{"completed": 101}, Finishes: map[string]int64{"stop": 100},
			FirstToken: at(50, 95, 99), Took: at(500, 950, 990), Output: Percentiles[sluice.Tokens]{50, 95, 99}, OutputSum: 5050, Cost: 1000,
		},
		Shadow: Part{
			Outcomes: map[string]int64{"completed": 100, "cancelled: shutting_down": 1}, Finishes: map[string]int64{"stop": 100},
			FirstToken: at(100, 190, 198), Took: at(1000, 1900, 1980), Output: Percentiles[sluice.Tokens]{150, 285, 297}, OutputSum: 15150, Cost: 2000,
		},
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
