package capacity

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/fleet"
)

// brute tries every choice of replicas and returns the highest value, and the
// largest least ratio among the choices that have it.
func brute(gpus int64, items []item) (value int64, least Amount) {
	value = -1
	chosen := make([]int64, len(items))
	var try func(i int, left int64)
	try = func(i int, left int64) {
		if i < len(items) {
			for n := items[i].min; n*items[i].claim.Replica.GPUs <= left; n++ {
				chosen[i] = n
				try(i+1, left-n*items[i].claim.Replica.GPUs)
			}
			return
		}
		var v int64
		low, any := Amount{}, false
		for k := range items {
			v += items[k].value(chosen[k])
			if r := items[k].ratio(chosen[k]); items[k].load.Sign() > 0 && (!any || r.Cmp(low) < 0) {
				low, any = r, true
			}
		}
		if v > value || v == value && low.Cmp(least) > 0 {
			value, least = v, low
		}
	}
	try(0, gpus)
	return value, least
}

// TestAllocateIsOptimal compares it with every possible choice.
func TestAllocateIsOptimal(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var claims []Claim
		for i := range rapid.IntRange(1, 4).Draw(rt, "models") {
			claims = append(claims, Claim{
				Name:    fmt.Sprint(i),
				Replica: Replica{Name: "r", GPUs: rapid.Int64Range(1, 4).Draw(rt, "tp"), Profile: fleet.Llama8BOnH100()},
				Workloads: []Workload{{
					Rate:  Rate{Ratio(rapid.Int64Range(0, 600).Draw(rt, "rate"), 10)},
					Input: Alike(rapid.Int64Range(100, 6000).Draw(rt, "input")), Output: Alike(rapid.Int64Range(1, 600).Draw(rt, "output")),
				}},
				Weight: rapid.Int64Range(0, 5).Draw(rt, "weight"), Min: rapid.Int64Range(0, 1).Draw(rt, "min"),
				Headroom: Share{Ratio(rapid.Int64Range(0, 50).Draw(rt, "headroom"), 100)},
			})
		}
		gpus := rapid.Int64Range(1, 14).Draw(rt, "gpus")
		items, err := itemsOf(gpus, claims)
		if err != nil {
			rt.Fatal(err)
		}
		value, least := brute(gpus, items)
		got, err := Allocate(gpus, claims)
		if value < 0 {
			if err == nil {
				rt.Fatal("the minimums do not fit, but an allocation was found")
			}
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		var v, used int64
		low, any := Amount{}, false
		for i, m := range got.Models {
			v += items[i].value(m.Replicas)
			used += m.GPUs
			if items[i].load.Sign() > 0 && (!any || m.Headroom.Cmp(low) < 0) {
				low, any = m.Headroom, true
			}
			if m.Replicas < claims[i].Min {
				rt.Fatalf("model %d: got %d replicas, its minimum is %d", i, m.Replicas, claims[i].Min)
			}
		}
		if v != value || !low.Equal(least) {
			rt.Fatalf("got a value of %d with a least ratio of %s, the best is %d with %s", v, low, value, least)
		}
		if used+got.Spare != gpus || got.Spare < 0 {
			rt.Fatalf("got %d GPUs used and %d spare of %d", used, got.Spare, gpus)
		}
	})
}

// TestAllocateWhereGreedyFails has replicas of 3 and of 2 GPUs on 4: whoever gives
// the first replica to the highest value per GPU cannot use the last GPU.
func TestAllocateWhereGreedyFails(t *testing.T) {
	claim := func(name string, gpus, weight int64) Claim {
		return Claim{
			Name: name, Weight: weight, Replica: Replica{Name: name, GPUs: gpus, Profile: fleet.Llama8BOnH100()},
			Workloads: []Workload{{Rate: Rate{Int(15)}, Input: Alike(800), Output: Alike(300)}},
		}
	}
	a, err := Allocate(4, []Claim{claim("large", 3, 32), claim("small", 2, 20), claim("other", 2, 20)})
	if err != nil {
		t.Fatal(err)
	}
	if a.Models[0].Replicas != 0 || a.Models[1].Replicas != 1 || a.Models[2].Replicas != 1 || a.Spare != 0 {
		t.Errorf("got %d, %d and %d replicas, %d GPUs spare; want the two of 2 GPUs", a.Models[0].Replicas, a.Models[1].Replicas, a.Models[2].Replicas, a.Spare)
	}
}

func TestAllocateMistakes(t *testing.T) {
	ok := Claim{Replica: llama8b(), Workloads: []Workload{{Rate: Rate{Int(1)}, Input: Alike(10), Output: Alike(10)}}}
	with := func(f func(*Claim)) []Claim { c := ok; f(&c); return []Claim{ok, c} }
	for _, tc := range []struct {
		gpus   int64
		claims []Claim
		param  string
	}{
		{0, []Claim{ok}, "gpus"},
		{8, nil, "models"},
		{8, with(func(c *Claim) { c.Weight = -1 }), "models[1].weight"},
		{8, with(func(c *Claim) { c.Headroom = Share{Int(1)} }), "models[1].headroom"},
		{8, with(func(c *Claim) { c.Workloads = []Workload{{}} }), "models[1].demand[0].input"},
		{8, with(func(c *Claim) { c.Min = 9 }), "gpus"},
	} {
		_, err := Allocate(tc.gpus, tc.claims)
		if e := sluice.AsError(err); err == nil || e.Param != tc.param {
			t.Errorf("got %v of %q, want one of %q", err, e.Param, tc.param)
		}
	}
}

func BenchmarkAllocate(b *testing.B) {
	var claims []Claim
	for i := range MaxModels {
		claims = append(claims, Claim{
			Name: fmt.Sprint(i), Replica: Replica{Name: "r", GPUs: 1 + int64(i%3), Profile: fleet.Llama8BOnH100()},
			Workloads: []Workload{{Rate: Rate{Int(700 + i*37)}, Input: Alike(800 + 11*i), Output: Alike(300)}},
		})
	}
	for b.Loop() {
		if _, err := Allocate(MaxAllocated, claims); err != nil {
			b.Fatal(err)
		}
	}
}
