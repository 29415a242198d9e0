package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sluice"
)

// Probe is one measurement of a live backend: in each of Repeat rounds,
// Concurrency requests of Input tokens are sent at one moment, and each is made to
// generate exactly Output tokens. A round begins when the one before has ended.
//
// Whoever sends them sees to three things, or [Fit] is told of another engine: no
// prompt begins like another, or the prefix cache answers; the output does not end
// early (ignore_eos, min_tokens); and nobody else uses the backend.
type Probe struct {
	Input, Output sluice.Tokens
	Concurrency   int
	Repeat        int
}

// Tokens is what the probe takes in all.
func (p Probe) Tokens() sluice.Tokens {
	return (p.Input + p.Output) * sluice.Tokens(p.Concurrency*p.Repeat)
}

// PlanOptions bound a plan.
type PlanOptions struct {
	Budget         sluice.Tokens // most tokens in and out, all probes together; 0 means 2,000,000
	MaxContext     sluice.Tokens // longest context of the model; 0 means 8,192
	MaxConcurrency int           // most requests at once; 0 means 320
	Readings       bool          // the engine's own figures can be read: its memory need not be filled
}

const (
	leastTop  = 512 // tokens of the longest prompt, below which prefill is not told from the rest
	largest   = 16_384
	answer    = 64 // tokens of output of a prompt that is measured
	crowd     = 32 // requests of a probe that fills the memory
	firstFill = 32_768
)

// Plan says which probes to send, in this order; Fit takes what they give.
//
// Prompts of five sizes, alone, tell the prefill rate and its quadratic part, and
// the step by its context; many short requests at once tell the step by its batch;
// a few long ones tell the two apart. More requests than most engines take at once
// tell the slots. Last, where there are no readings, come probes of doubling size
// that fill the memory: stop at the first in which [Sample.AtOnce] is below its
// Concurrency.
//
// It fails when the budget is too small for the least plan.
func Plan(o PlanOptions) ([]Probe, error) {
	o.Budget = cmp.Or(o.Budget, 2_000_000)
	o.MaxContext = cmp.Or(o.MaxContext, 8192)
	o.MaxConcurrency = cmp.Or(o.MaxConcurrency, 320)
	top := min(o.MaxContext-2*answer, largest)
	if top < leastTop {
		return nil, fmt.Errorf("the longest context is %d tokens: probes need at least %d", o.MaxContext, leastTop+2*answer)
	}
	if o.MaxConcurrency < 8 {
		return nil, fmt.Errorf("at most %d requests at once: probes need at least 8", o.MaxConcurrency)
	}
	plan := needed(top, o.MaxConcurrency)
	for total(plan) > o.Budget {
		top /= 2
		if top < leastTop {
			return nil, fmt.Errorf("a budget of %d tokens is below the %d of the smallest plan", o.Budget, total(needed(leastTop, o.MaxConcurrency)))
		}
		plan = needed(top, o.MaxConcurrency)
	}
	for _, p := range wished(o) {
		if total(plan)+p.Tokens() <= o.Budget {
			plan = append(plan, p)
		}
	}
	return plan, nil
}

// needed are the probes without which nothing can be fitted.
func needed(top sluice.Tokens, most int) []Probe {
	var plan []Probe
	for d := sluice.Tokens(16); d >= 1; d /= 2 {
		plan = append(plan, Probe{Input: top / d, Output: answer, Concurrency: 1, Repeat: 3})
	}
	for _, n := range []int{2, 8, min(32, most)} {
		plan = append(plan, Probe{Input: 32, Output: 2 * answer, Concurrency: n, Repeat: 3})
	}
	return append(plan, Probe{Input: top / 4, Output: 4 * answer, Concurrency: 8, Repeat: 2})
}

// wished are the probes that follow while the budget lasts.
func wished(o PlanOptions) []Probe {
	plan := []Probe{
		{Input: 32, Output: 2 * answer, Concurrency: min(128, o.MaxConcurrency), Repeat: 2},
		{Input: 16, Output: answer, Concurrency: o.MaxConcurrency, Repeat: 1},
	}
	n := min(crowd, o.MaxConcurrency)
	for fill := sluice.Tokens(firstFill); fill <= o.Budget; fill *= 2 {
		// The first must not have ended when the last has had its prefill, in chunks
		// of 512 or more.
		out := answer + fill/512
		for fill/sluice.Tokens(n) > o.MaxContext && n < o.MaxConcurrency {
			n = min(2*n, o.MaxConcurrency)
		}
		in := fill/sluice.Tokens(n) - out
		if in < out || in+out > o.MaxContext {
			break
		}
		plan = append(plan, Probe{Input: in, Output: out, Concurrency: n, Repeat: 1})
		if o.Readings {
			break
		}
	}
	return plan
}

func total(plan []Probe) (sum sluice.Tokens) {
	for _, p := range plan {
		sum += p.Tokens()
	}
	return sum
}

// Run is what was seen of one request of a round.
type Run struct {
	Input    sluice.Tokens // as the backend counted it; 0 means as the probe asked
	Sent     time.Time
	Arrivals []Arrival // in order of time; empty for one that was refused or broke
}

// Arrival is that so many tokens in all had come by a moment.
type Arrival struct {
	At     time.Time
	Tokens sluice.Tokens
}

// Reading is what an engine said of itself at one moment of a round.
type Reading struct {
	At               time.Time
	Running, Waiting int
	KVMillionths     int64 // share of the memory in use; 0 was not read
}

// Sample is one request of a probe, measured.
type Sample struct {
	Probe    Probe
	Input    sluice.Tokens // as the backend counted it
	TTFT     time.Duration // from the moment that it was sent to its first token
	PerToken time.Duration // between its tokens while all requests of its round were decoding; 0 where there was no such time
	Context  sluice.Tokens // of this request in the middle of that time, or at its end
	Total    time.Duration // from the moment that it was sent to its last token
	AtOnce   int           // requests of its round that had their first token before any had its last

	Reading Reading       // of its round: in the time that all were decoding, if there is one, else one with requests waiting
	InUse   sluice.Tokens // Σ context of the round's requests at Reading.At; 0 where not all were decoding then
}

// Measure turns one round of a probe into samples, with what the engine said of
// itself meanwhile, in order of time and as often as it was asked, which may be
// never. Requests without a token give no sample.
func Measure(p Probe, runs []Run, readings []Reading) []Sample {
	runs = slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return len(r.Arrivals) == 0 })
	for i := range runs {
		runs[i].Input = cmp.Or(runs[i].Input, p.Input)
	}
	if len(runs) == 0 {
		return nil
	}
	var from, to time.Time // when all were decoding
	for _, r := range runs {
		if first := r.Arrivals[0].At; first.After(from) {
			from = first
		}
		if end := r.Arrivals[len(r.Arrivals)-1].At; to.IsZero() || end.Before(to) {
			to = end
		}
	}
	atOnce := 0
	for _, r := range runs {
		if len(runs) == 1 || r.Arrivals[0].At.Before(to) {
			atOnce++
		}
	}
	whole := len(runs) == p.Concurrency
	reading, inUse := telling(runs, readings, from, to)
	if !whole {
		inUse = 0
	}
	var out []Sample
	for _, r := range runs {
		end := r.Arrivals[len(r.Arrivals)-1]
		s := Sample{
			Probe: p, Input: r.Input, AtOnce: atOnce, Reading: reading, InUse: inUse,
			TTFT: r.Arrivals[0].At.Sub(r.Sent), Total: end.At.Sub(r.Sent),
		}
		s.Context = s.Input + end.Tokens
		if whole {
			s.PerToken, s.Context = r.pace(from, to, s)
		}
		out = append(out, s)
	}
	return out
}

// telling is the reading nearest to the middle of the time when all were decoding,
// with the context that they had; without one, the reading with the most running
// while some waited.
func telling(runs []Run, readings []Reading, from, to time.Time) (best Reading, inUse sluice.Tokens) {
	inside := false
	middle := from.Add(to.Sub(from) / 2)
	for _, r := range readings {
		switch {
		case !r.At.Before(from) && !r.At.After(to):
			if !inside || r.At.Sub(middle).Abs() < best.At.Sub(middle).Abs() {
				best, inside = r, true
			}
		case !inside && r.Waiting > 0 && r.Running > best.Running:
			best = r
		}
	}
	if !inside {
		return best, 0
	}
	for _, r := range runs {
		inUse += r.Input
		for _, a := range slices.Backward(r.Arrivals) {
			if !a.At.After(best.At) {
				inUse += a.Tokens
				break
			}
		}
	}
	return best, inUse
}

// leastTokens is how many tokens make a pace.
const leastTokens = 8

// pace is the time per token between two moments, and the context in the middle.
func (r Run) pace(from, to time.Time, s Sample) (time.Duration, sluice.Tokens) {
	var a, b Arrival
	for _, x := range r.Arrivals {
		if x.At.Before(from) || x.At.After(to) {
			continue
		}
		if a.At.IsZero() {
			a = x
		}
		b = x
	}
	n := b.Tokens - a.Tokens
	if n < leastTokens {
		return 0, s.Context
	}
	return b.At.Sub(a.At) / time.Duration(n), s.Input + (a.Tokens+b.Tokens)/2
}
