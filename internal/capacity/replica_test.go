package capacity

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"sluice"
	"sluice/internal/fleet"
)

// run drives one replica of the fleet with Poisson arrivals for a span of
// virtual time and returns what waits at its end and the mean of the memory in
// use and of the batch, over its second half.
func run(p fleet.Profile, rate float64, draw func(*rand.Rand) fleet.Job, span time.Duration) (waiting int, kv, batch float64) {
	rng := rand.New(rand.NewPCG(1, 2))
	r := fleet.NewReplica(p)
	start := time.Unix(0, 0)
	next, looks := start, 0.0
	for at := start; at.Sub(start) < span; at = at.Add(50 * time.Millisecond) {
		for next.Before(at) {
			if _, err := r.Submit(next, draw(rng)); err != nil {
				panic(err)
			}
			next = next.Add(time.Duration(rng.ExpFloat64() / rate * 1e9))
		}
		r.Advance(at)
		if at.Sub(start) > span/2 {
			l := r.Load()
			kv, batch, looks = kv+float64(l.KVUsed), batch+float64(l.Running), looks+1
		}
	}
	return r.Load().Waiting, kv / looks, batch / looks
}

// TestReplicaAgrees holds the planner to the machine that it plans for: at 90 %
// of what it says a replica keeps up and has what is expected in memory, at
// 110 % its queue grows.
func TestReplicaAgrees(t *testing.T) {
	if racing {
		t.Skip("hours of virtual time, in which a core has nothing for the race detector to find")
	}
	square := fleet.Llama8BOnH100()
	square.PrefillPerPair = 4000 // doubles the prefill of a prompt of 17k tokens
	small := fleet.Llama8BOnH100()
	small.KVCapacity = 60_000
	for _, tc := range []struct {
		name          string
		p             fleet.Profile
		input, output string
		binds         Binding
	}{
		{"decode", fleet.Llama8BOnH100(), "800", "300", Decode},
		{"prefill", fleet.Llama8BOnH100(), "6000", "60", Prefill},
		{"memory", small, "1000", "400", KV},
		{"memory, a few long answers", fleet.Llama8BOnH100(), "1500", "200,5%:6000", KV},
		{"long prompts that cost their square", square, "1k,10%:20k", "100", Prefill},
		{"two at a time", fleet.Llama8BOnH100(), "200k", "300", KV},
		{"long prompts", fleet.Llama70BOn4H100(), "500,3%:20k", "250", Prefill},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := Workload{Input: lengths(t, tc.input), Output: lengths(t, tc.output), Rate: Rate{Int(1)}}
			r := Replica{Name: "r", Profile: tc.p, GPUs: 1}
			p, err := Solve(Question{Workloads: []Workload{w}, Replica: r, GPUs: 1})
			if err != nil {
				t.Fatal(err)
			}
			most := p.Factor.Float()
			// Lengths come in even proportions, so that a short run has the mean of a
			// long one; only arrivals are random.
			var n float64
			draw := func(*rand.Rand) fleet.Job {
				n++
				return fleet.Job{Input: w.Input.at(n * 0.6180339887), Output: w.Output.at(n * 0.7548776662)}
			}
			const span = 20 * time.Minute
			for _, load := range []float64{0.5, 0.9} {
				waiting, kv, batch := run(tc.p, most*load, draw, span)
				w.Rate.Amount = Ratio(int64(most*load*1e6), 1_000_000)
				p, err = Solve(Question{Workloads: []Workload{w}, Replica: r, GPUs: 1})
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%.0f %%, %.2f requests/s: %d wait; %.0f tokens in memory, expected %.0f; batch %.1f, expected %.1f", load*100, most*load, waiting, kv, p.Expected.KVUsed.Float(), batch, p.Expected.Batch.Float())
				if bound := max(5, int(most*10)); waiting > bound {
					t.Errorf("at %.0f %% of its capacity: %d requests wait", load*100, waiting)
				}
				// The plan has a prompt in memory from its admission, the replica as it
				// is computed: where long prompts are most of it that is up to half.
				if want := p.Expected.KVUsed.Float(); load < 0.6 && (kv < want*0.75 || kv > want*1.1) {
					t.Errorf("at %.0f %%: got %.0f tokens in memory, expected %.0f", load*100, kv, want)
				}
				if want := p.Expected.Batch.Float(); load < 0.6 && math.Abs(batch-want) > max(1, want*0.05) {
					t.Errorf("at %.0f %%: got a batch of %.1f, expected %.1f", load*100, batch, want)
				}
			}
			if p.Binding != tc.binds {
				t.Errorf("got %s binds, want %s", p.Binding, tc.binds)
			}
			waiting, _, _ := run(tc.p, most*1.1, draw, span)
			if least := int(most * 0.04 * span.Seconds()); waiting < least {
				t.Errorf("at 110 %% of its capacity %d requests wait after %s, want %d at least", waiting, span, least)
			}
		})
	}
}

// at takes the length at the fraction of x of the distribution.
func (l Lengths) at(x float64) sluice.Tokens {
	points, err := l.points()
	if err != nil {
		panic(err)
	}
	_, x = math.Modf(x)
	for _, p := range points {
		if x -= p.share.Float(); x < 0 {
			return sluice.Tokens(p.tokens.Floor())
		}
	}
	return sluice.Tokens(points[len(points)-1].tokens.Floor())
}
