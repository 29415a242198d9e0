package ledger

import (
	"cmp"
	"slices"
	"time"

	"sluice"
)

// PairQuery asks for shadows beside the requests that they are copies of.
type PairQuery struct {
	Owner Owner
	Model sluice.ModelID // empty is all
	Since time.Time      // of the shadow's start; zero is the beginning
	Until time.Time      // exclusive; zero is the end
}

// Side is one of the two that are compared: a request, or its shadow.
type Side struct {
	Outcome    sluice.Outcome
	Reason     sluice.Reason
	Finish     string        // as in Entry
	Retried    bool          // there was more than one attempt
	FirstToken time.Duration // without the time in queues; 0 if none came
	Took       time.Duration // likewise, until the end
	Output     sluice.Tokens // all that is billed, of the last attempt
	Cost       sluice.Nano   // over all attempts
}

// Pair is a request and its shadow, both ended.
type Pair struct {
	Model   sluice.ModelID
	Pool    sluice.PoolID // the shadow's
	Request Side
	Shadow  Side
}

// Percentiles of a figure, by nearest rank: each is a value that occurred.
type Percentiles[T any] struct{ P50, P95, P99 T }

// Part is one side of a Comparison. Counts are over all pairs; the other figures over
// those of which both sides completed, so that they are of the same requests.
type Part struct {
	Outcomes map[string]int64 // by outcome, and reason where there is one: "failed: upstream_error"
	Finishes map[string]int64 // of what completed, by the provider's word

	FirstToken Percentiles[time.Duration] // over what streamed on both sides
	Took       Percentiles[time.Duration]
	Output     Percentiles[sluice.Tokens]
	OutputSum  sluice.Tokens
	Cost       sluice.Nano // sum
}

// Comparison is one pool's shadows of one model beside the requests.
type Comparison struct {
	Model     sluice.ModelID
	Pool      sluice.PoolID
	Pairs     int64
	Completed int64 // pairs of which both sides completed
	Request   Part
	Shadow    Part
}

// Compare sums up pairs, by model and pool.
func Compare(pairs []Pair) []Comparison {
	type key struct {
		model sluice.ModelID
		pool  sluice.PoolID
	}
	groups := make(map[key][]Pair)
	for _, p := range pairs {
		k := key{p.Model, p.Pool}
		groups[k] = append(groups[k], p)
	}
	out := make([]Comparison, 0, len(groups))
	for k, g := range groups {
		both := slices.DeleteFunc(slices.Clone(g), func(p Pair) bool {
			return p.Request.Outcome != sluice.Completed || p.Shadow.Outcome != sluice.Completed
		})
		out = append(out, Comparison{
			Model: k.model, Pool: k.pool, Pairs: int64(len(g)), Completed: int64(len(both)),
			Request: partOf(g, both, func(p *Pair) *Side { return &p.Request }),
			Shadow:  partOf(g, both, func(p *Pair) *Side { return &p.Shadow }),
		})
	}
	slices.SortFunc(out, func(a, b Comparison) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Pool, b.Pool))
	})
	return out
}

// partOf sums up one side: its outcomes of all pairs, the rest of those that both
// completed.
func partOf(all, both []Pair, side func(*Pair) *Side) Part {
	part := Part{Outcomes: make(map[string]int64), Finishes: make(map[string]int64)}
	for i := range all {
		s := side(&all[i])
		word := s.Outcome.String()
		if s.Reason != sluice.ReasonNone {
			word += ": " + s.Reason.String()
		}
		part.Outcomes[word]++
	}
	var first, took []time.Duration
	var output []sluice.Tokens
	for i := range both {
		s := side(&both[i])
		part.Finishes[cmp.Or(s.Finish, "none")]++
		part.OutputSum += s.Output
		part.Cost += s.Cost
		took, output = append(took, s.Took), append(output, s.Output)
		if both[i].Request.FirstToken > 0 && both[i].Shadow.FirstToken > 0 {
			first = append(first, s.FirstToken)
		}
	}
	part.FirstToken, part.Took, part.Output = percentiles(first), percentiles(took), percentiles(output)
	return part
}

func percentiles[T cmp.Ordered](v []T) (p Percentiles[T]) {
	if len(v) == 0 {
		return p
	}
	slices.Sort(v)
	rank := func(percent int) T { return v[max(0, (len(v)*percent+99)/100-1)] }
	return Percentiles[T]{P50: rank(50), P95: rank(95), P99: rank(99)}
}
