package rehearsal

import (
	"math"
	"slices"
	"testing"

	"sluice/internal/capacity"
	"sluice/internal/config"
	"sluice/internal/tabletop"
)

const allocation = "../../examples/capacity/shared-fleet"

// shared is the fleet file that ships, and its allocation.
func shared(t *testing.T) (capacity.AllocationFile, []capacity.Claim, capacity.Allocation) {
	t.Helper()
	var f capacity.AllocationFile
	if err := config.LoadSheet(allocation+".yaml", &f, nil); err != nil {
		t.Fatal(err)
	}
	claims, err := f.Claims(capacity.ReplicaNamed)
	if err != nil {
		t.Fatal(err)
	}
	a, err := capacity.Allocate(f.GPUs, claims)
	if err != nil {
		t.Fatal(err)
	}
	return f, claims, a
}

// byRequests is the GPUs of a fleet in proportion to the requests per second of its
// models, in whole replicas: the rest goes to those who have most of one missing, and
// nobody has less than its minimum.
func byRequests(f *capacity.AllocationFile, claims []capacity.Claim) []int64 {
	total, left := capacity.Amount{}, f.GPUs
	for i := range claims {
		total = total.Plus(claims[i].Workloads[0].Rate.Amount)
	}
	due, out := make([]float64, len(claims)), make([]int64, len(claims))
	for i, c := range claims {
		due[i] = c.Workloads[0].Rate.Times(capacity.Int(f.GPUs)).Over(total).Float() / float64(c.Replica.GPUs)
		out[i] = max(c.Min, int64(due[i]))
		left -= out[i] * c.Replica.GPUs
	}
	for left != 0 {
		best := -1
		for i, c := range claims {
			gap := due[i] - float64(out[i])
			switch {
			case left > 0 && c.Replica.GPUs > left, left < 0 && out[i] <= c.Min:
			case best < 0, left > 0 && gap > due[best]-float64(out[best]), left < 0 && gap < due[best]-float64(out[best]):
				best = i
			}
		}
		if best < 0 {
			return out
		}
		step := int64(1)
		if left < 0 {
			step = -1
		}
		out[best] += step
		left -= step * claims[best].Replica.GPUs
	}
	return out
}

// replicasIn is how many backends of each model's pool take requests.
func replicasIn(s *tabletop.Scenario, policy string, claims []capacity.Claim) (out []int64) {
	i := slices.IndexFunc(s.Policies, func(v tabletop.Variant) bool { return v.Name == policy })
	for _, c := range claims {
		n := int64(0)
		for id, p := range s.Policies[i].Table.Pools {
			for _, b := range p.Backends {
				if string(id) == c.Name && b.Weight > 0 {
					n++
				}
			}
		}
		out = append(out, n)
	}
	return out
}

// goodput is the part of what is asked for that is served within the targets, by the
// weights of the models.
func goodput(t *testing.T, r *tabletop.Result, claims []capacity.Claim) float64 {
	t.Helper()
	sum, weights := 0.0, 0.0
	for _, c := range claims {
		w := float64(max(c.Weight, 1))
		sum += w * float64(figuresOf(t, phaseOf(t, r, tabletop.PhaseWhole), "tenant "+c.Workloads[0].Name).SLO) / 1000
		weights += w
	}
	return sum / weights
}

// GPUs that are shared by what is asked for serve more of it within the targets than in
// proportion to requests, on the scheduler and the engines that serve: the same requests,
// the same 16 GPUs. What the planner says of latencies is what they are.
func TestAllocationBeatsRequests(t *testing.T) {
	long(t)
	t.Parallel()
	f, claims, a := shared(t)
	s, err := config.LoadScenario(allocation+"-scenario.yaml", config.ScenarioOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.Name = "examples/shared-fleet"
	var want []int64
	for _, m := range a.Models {
		want = append(want, m.Replicas)
	}
	for policy, want := range map[string][]int64{config.PolicySluice: want, "by-requests": byRequests(&f, claims)} {
		if got := replicasIn(s, policy, claims); !slices.Equal(got, want) {
			t.Errorf("%s has %v replicas, want %v", policy, got, want)
		}
	}
	for seed := 1; seed <= min(seeds(t), 2); seed++ {
		tokens, requests := run(t, s, config.PolicySluice, seed), run(t, s, "by-requests", seed)
		judged(t, tokens)
		good, other := goodput(t, tokens, claims), goodput(t, requests, claims)
		t.Logf("seed %d: %v replicas serve %.1f %% of the demand in time, by weight, and %v by requests %.1f %%: %.2f times as much", seed, want, 100*good, byRequests(&f, claims), 100*other, good/other)
		if good < 1.5*other {
			t.Errorf("seed %d: %.3f of the demand is served in time, by requests %.3f: want half as much again", seed, good, other)
		}
		for i, c := range claims {
			l, got := a.Models[i].Latency, figuresOf(t, phaseOf(t, tokens, tabletop.PhaseWhole), "tenant "+c.Workloads[0].Name)
			if tpot := got.TPOT.P50.Seconds(); math.Abs(tpot/l.TPOT.Float()-1) > 0.15 {
				t.Errorf("seed %d, %s: a token takes %.1f ms, the planner says %.1f", seed, c.Name, 1000*tpot, 1000*l.TPOT.Float())
			}
			if ttft := got.TTFT.P90.Seconds(); ttft > 1.25*l.TTFT.Float() {
				t.Errorf("seed %d, %s: the first token takes %.0f ms, the planner says %.0f", seed, c.Name, 1000*ttft, 1000*l.TTFT.Float())
			}
		}
	}
}
