package capacity

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/fleet"
)

func llama8b() Replica {
	return Replica{Name: "llama-3.1-8b-h100", Profile: fleet.Llama8BOnH100(), GPUs: 1}
}

func rate(t testing.TB, s string) Rate {
	t.Helper()
	var r Rate
	if err := r.UnmarshalText([]byte(s)); err != nil {
		t.Fatal(err)
	}
	return r
}

func part(t testing.TB, s string) Share {
	t.Helper()
	var x Share
	if err := x.UnmarshalText([]byte(s)); err != nil {
		t.Fatal(err)
	}
	return x
}

func lengths(t testing.TB, s string) Lengths {
	t.Helper()
	var l Lengths
	if err := l.UnmarshalText([]byte(s)); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestBriefNumbers has the figures that the planner must give, exactly.
func TestBriefNumbers(t *testing.T) {
	for _, tc := range []struct {
		name, rate, input, output string
		in, out                   Amount
	}{
		{"summaries", "30", "2000", "300", Int(60_000), Int(9_000)},
		{"even tenants", "100", "1k", "100", Int(100_000), Int(10_000)},
		{"one tenant raises half of them", "100", "1k,50%:20k", "100", Int(1_050_000), Int(10_000)},
		{"harbor", "20/min", "1500", "200", Int(500), Ratio(200, 3)},
		{"harbor, half of the inputs grow", "20/min", "1500,50%:15k", "200", Int(2750), Ratio(200, 3)},
		{"the lab", "120", "800", "300", Int(96_000), Int(36_000)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := Solve(Question{Workloads: []Workload{{Rate: rate(t, tc.rate), Input: lengths(t, tc.input), Output: lengths(t, tc.output)}}, Replica: llama8b()})
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Demand.Input; !got.Equal(tc.in) {
				t.Errorf("input: got %s tokens/s, want %s", got, tc.in)
			}
			if got := p.Demand.Output; !got.Equal(tc.out) {
				t.Errorf("output: got %s tokens/s, want %s", got, tc.out)
			}
		})
	}
}

// TestLab answers the lab's question in full, by hand: 120 requests/s of 800 in
// and 300 out on 8 GPUs of 30,000 input tokens/s, 443,000 tokens of memory.
func TestLab(t *testing.T) {
	p, err := Solve(Question{
		Workloads: []Workload{{Rate: rate(t, "120"), Input: Alike(800), Output: Alike(300)}},
		Replica:   llama8b(), GPUs: 8, Lose: part(t, "25%"),
	})
	if err != nil {
		t.Fatal(err)
	}
	// A step of 256 requests with 950 tokens of context each.
	step := Ratio(7_860_000+256*4_400, nanoseconds).Plus(Ratio(256*950*76_300, picoseconds))
	for _, c := range []struct {
		name      string
		got, want Amount
	}{
		{"prefill", p.Utilisation.Prefill, Ratio(96_000, 240_000)},
		{"decode", p.Utilisation.Decode, Ratio(36_000, 8).Times(step).Over(Int(256))},
		{"kv", p.Utilisation.KV, Ratio(15*800*1100, 30_000).Plus(Int(15 * 300 * 1100).Times(step)).Over(Int(443_000))},
		{"memory in use", p.KVUsed, Ratio(120*800*800, 30_000).Plus(Int(120 * 300 * 950).Times(step))},
		{"lost prefill", p.Lost.Utilisation.Prefill, Ratio(96_000, 180_000)},
	} {
		if !c.got.Equal(c.want) {
			t.Errorf("%s: got %s, want %s", c.name, c.got, c.want)
		}
	}
	if p.Over || !p.Lost.Over {
		t.Errorf("over capacity: got %v and %v without a quarter, want above water at first, then under it", p.Over, p.Lost.Over)
	}
	if p.Binding != Decode || p.GPUs != 8 || p.Lost.GPUs != 6 || p.GPUsNeeded != 8 || p.Lost.GPUsNeeded != 11 {
		t.Errorf("got %s binds, %d and %d GPUs, %d and %d needed", p.Binding, p.GPUs, p.Lost.GPUs, p.GPUsNeeded, p.Lost.GPUsNeeded)
	}
}

// TestLengthsMatter is why the planner asks for more than a mean: with the same
// tokens per second, a few very long requests need more memory, and more GPUs.
func TestLengthsMatter(t *testing.T) {
	solve := func(input, output string) Plan {
		p, err := Solve(Question{Workloads: []Workload{{Rate: rate(t, "20"), Input: lengths(t, input), Output: lengths(t, output)}}, Replica: llama8b()})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, tc := range []struct{ name, input, longer, output, longOutput string }{
		{"inputs", "2980", "1k,2%:100k", "200", "200"},
		{"outputs", "1500", "1500", "490", "200,5%:6000"},
		{"a spread by quantiles", "2980", "2980,p50=1000,p90=5000,p99=30000", "200", "200"},
	} {
		alike, long := solve(tc.input, tc.output), solve(tc.longer, tc.longOutput)
		if !alike.Demand.Input.Equal(long.Demand.Input) || !alike.Demand.Output.Equal(long.Demand.Output) {
			t.Fatalf("%s: got %s and %s tokens/s, want the same", tc.name, alike.Demand.Input, long.Demand.Input)
		}
		if alike.KVUsed.Cmp(long.KVUsed) >= 0 || alike.GPUsNeeded > long.GPUsNeeded {
			t.Errorf("%s: got %s tokens of memory and %d GPUs for equal lengths, %s and %d with long ones",
				tc.name, alike.KVUsed, alike.GPUsNeeded, long.KVUsed, long.GPUsNeeded)
		}
		t.Logf("%s: %s tokens and %d GPUs, with long ones %s and %d", tc.name, alike.KVUsed.Text(0), alike.GPUsNeeded, long.KVUsed.Text(0), long.GPUsNeeded)
	}
}

// TestColdStart shows that a loss takes the cached prefixes of what is lost.
func TestColdStart(t *testing.T) {
	p, err := Solve(Question{
		Workloads: []Workload{{Rate: rate(t, "10"), Input: Alike(4000), Output: Alike(100), Hit: part(t, "80%")}},
		Replica:   llama8b(), GPUs: 8, Lose: part(t, "25%"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.Demand.Prefill, Int(8_000); !got.Equal(want) {
		t.Errorf("prefill: got %s, want %s", got, want)
	}
	if got, want := p.Lost.Demand.Prefill, Int(16_000); !got.Equal(want) { // a hit rate of 60 %
		t.Errorf("prefill after the loss: got %s, want %s", got, want)
	}
}

func TestMistakes(t *testing.T) {
	ok := Workload{Rate: Rate{Int(1)}, Input: Alike(10), Output: Alike(10)}
	for _, tc := range []struct {
		q          Question
		param, say string
	}{
		{Question{Workloads: []Workload{ok}, Replica: Replica{GPUs: 4, Name: "x"}, GPUs: 3}, "gpus", "less than one replica"},
		{Question{Workloads: []Workload{ok}, Replica: llama8b(), Lose: Share{Int(1)}}, "lose", "whole fleet"},
		{Question{Workloads: []Workload{ok, {Rate: Rate{Int(1)}}}, Replica: llama8b()}, "[1].input", "missing"},
		{Question{Workloads: []Workload{{Rate: Rate{Int(1)}, Input: Alike(500_000), Output: Alike(1)}}, Replica: llama8b()}, "input", "do not fit"},
		{Question{Workloads: []Workload{{Rate: Rate{Int(1)}, Input: lengths(t, "p50=100,p90=50"), Output: Alike(1)}}, Replica: llama8b()}, "[0].input", "below"},
		{Question{Workloads: []Workload{{Rate: Rate{Int(1)}, Input: lengths(t, "5000,p50=100,p90=500"), Output: Alike(1)}}, Replica: llama8b()}, "[0].input", "do not allow"},
		{Question{Workloads: []Workload{{Rate: Rate{Int(1)}, Input: lengths(t, "10,60%:20,60%:30"), Output: Alike(1)}}, Replica: llama8b()}, "[0].input", "120%"},
		{Question{Workloads: []Workload{{Rate: Rate{Int(1_000_000_000)}, Input: Alike(50_000), Output: Alike(1)}}, Replica: llama8b()}, "rps", "more than"},
	} {
		_, err := Solve(tc.q)
		e := sluice.AsError(err)
		if err == nil || e.Param != tc.param || !strings.Contains(e.Msg, tc.say) || e.Kind != sluice.KindInvalid {
			t.Errorf("got %q of %q, want one of %q that says %q", err, e.Param, tc.param, tc.say)
		}
	}
}

// TestPlanLaws holds the planner to what must be so whatever the workload is.
func TestPlanLaws(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := Replica{Name: "r", GPUs: rapid.Int64Range(1, 8).Draw(rt, "tp"), Profile: fleet.Profile{
			PrefillRate: rapid.Int64Range(100, 100_000).Draw(rt, "prefill"), KVCapacity: sluice.Tokens(rapid.Int64Range(50_000, 2_000_000).Draw(rt, "kv")),
			Slots: rapid.IntRange(1, 512).Draw(rt, "slots"), StepBase: 5_000_000, StepPerJob: 4_000, StepPerToken: rapid.Int64Range(0, 100_000).Draw(rt, "token"),
		}}
		w := Workload{
			Rate: Rate{Ratio(rapid.Int64Range(1, 100_000).Draw(rt, "rate"), 60)}, Input: Alike(rapid.Int64Range(1, 20_000).Draw(rt, "input")),
			Output: Alike(rapid.Int64Range(0, 4_000).Draw(rt, "output")), Hit: Share{Ratio(rapid.Int64Range(0, 100).Draw(rt, "hit"), 100)},
			Retries: Part{Ratio(rapid.Int64Range(0, 200).Draw(rt, "retries"), 100)},
		}
		q := Question{Workloads: []Workload{w}, Replica: r, Lose: Share{Ratio(rapid.Int64Range(0, 90).Draw(rt, "lose"), 100)}}
		p, err := Solve(q)
		if err != nil {
			rt.Skip(err)
		}
		if p.Over || p.GPUs != p.GPUsNeeded || p.GPUs%r.GPUs != 0 {
			rt.Fatalf("%d GPUs, needed %d, over %v", p.GPUs, p.GPUsNeeded, p.Over)
		}
		at := func(gpus, k int64) Plan {
			q.GPUs = gpus
			q.Workloads = []Workload{w}
			q.Workloads[0].Rate.Amount = w.Rate.Times(Int(k))
			p, err := Solve(q)
			if err != nil {
				rt.Skip(err) // more GPUs than a plan may have
			}
			return p
		}
		if less := p.GPUsNeeded - r.GPUs; less > 0 && !at(less, 1).Over {
			rt.Fatalf("%d GPUs are needed, but %d are enough", p.GPUsNeeded, less)
		}
		if p.Lost != nil && p.Lost.GPUsNeeded <= MaxGPUs {
			big := at(p.Lost.GPUsNeeded, 1)
			if big.Lost.Over {
				rt.Fatalf("with %d GPUs and %s lost it is over", p.Lost.GPUsNeeded, p.Lose)
			}
			if less := p.Lost.GPUsNeeded - r.GPUs; less > 0 && !at(less, 1).Lost.Over {
				rt.Fatalf("with a loss %d GPUs are needed, but %d are enough", p.Lost.GPUsNeeded, less)
			}
		}
		if p.GPUs < MaxGPUs/8 {
			if twice := at(p.GPUs, 2); !twice.Utilisation.Engine.Equal(p.Utilisation.Engine.Times(Int(2))) {
				rt.Fatalf("twice the rate: got %s of the engine, want twice %s", twice.Utilisation.Engine, p.Utilisation.Engine)
			}
		}
		if p.Expected.KVUsed.Cmp(p.SupplyKV) > 0 {
			rt.Fatalf("expected %s tokens in a memory of %s", p.Expected.KVUsed, p.SupplyKV)
		}
	})
}

// TestDemandAddsUp splits a workload over tenants at random.
func TestDemandAddsUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.Int64Range(1, 1000).Draw(rt, "whole")
		k := rapid.Int64Range(0, n).Draw(rt, "part")
		w := Workload{Input: Alike(700), Output: Alike(90), Hit: Share{Ratio(1, 3)}}
		of := func(x int64) Workload { v := w; v.Rate = Rate{Ratio(x, 60)}; return v }
		whole, err := Total([]Workload{of(n)})
		if err != nil {
			rt.Fatal(err)
		}
		split, err := Total([]Workload{of(k), of(n - k)})
		if err != nil {
			rt.Fatal(err)
		}
		for i := range whole.sums {
			if !whole.sums[i].Equal(split.sums[i]) {
				rt.Fatalf("sum %d: got %s, want %s", i, split.sums[i], whole.sums[i])
			}
		}
	})
}
