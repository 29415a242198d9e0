package capacity

import (
	"sluice"
)

// Workload is a stream of requests of one kind.
type Workload struct {
	Name    string
	Rate    Rate    // requests that arrive
	Input   Lengths // tokens of the prompt, cached ones too
	Output  Lengths // tokens of the answer; independent of the input's
	Hit     Share   // of the input that the prefix cache has
	Retries Part    // attempts beyond the first, per request
}

// Demand is what workloads ask of a fleet per second. Demands add up, whatever
// they are of, since every figure is a sum over requests.
type Demand struct {
	Requests Amount // that arrive
	Attempts Amount // at an engine: with retries
	Input    Amount // tokens, cached ones too
	Prefill  Amount // tokens of input that must be computed
	Output   Amount // tokens
	Longest  Amount // input of one request

	sums [numSums]Amount
}

// The sums over requests that times and memory are made of, per second. A request
// has input p, of which h is cached, and output o. It is prefilled in u/R + v·q
// seconds: u = (1−h)·p tokens to compute, v = ((1−h²)·p² + (1−h)·p)/2 pairs of one
// of them with one at or before it.
const (
	sumPairs      = iota // v
	sumTokensIn          // u·p
	sumPairsIn           // v·p
	sumTokensAll         // u·(p+o)
	sumPairsAll          // v·(p+o)
	sumTokens2           // u²
	sumTokenPairs        // u·v
	sumPairs2            // v²
	sumContext           // o·(p + o/2)
	sumWhole             // o·(p+o)
	numSums
)

// Demand is what the workload asks for. The error names a field.
func (w Workload) Demand() (Demand, error) {
	in, err := w.Input.moments()
	if err != nil {
		return Demand{}, ofField("input", err)
	}
	out, err := w.Output.moments()
	if err != nil {
		return Demand{}, ofField("output", err)
	}
	half, h := Ratio(1, 2), w.Hit.Amount
	cold := Int(1).Minus(h)
	p, o := in.power, out.power
	square := half.Times(Int(1).Minus(h.Times(h))) // v = square·p² + line·p
	line := half.Times(cold)
	pairs := square.Times(p[2]).Plus(line.Times(p[1]))
	pairsIn := square.Times(p[3]).Plus(line.Times(p[2]))
	both := p[1].Times(o[1])

	d := Demand{Requests: w.Rate.Amount, Attempts: w.Rate.Times(Int(1).Plus(w.Retries.Amount)), Longest: in.longest}
	d.Input = d.Attempts.Times(p[1])
	d.Prefill = d.Input.Times(cold)
	d.Output = d.Attempts.Times(o[1])
	d.sums = [numSums]Amount{
		sumPairs:      pairs,
		sumTokensIn:   cold.Times(p[2]),
		sumPairsIn:    pairsIn,
		sumTokensAll:  cold.Times(p[2].Plus(both)),
		sumPairsAll:   pairsIn.Plus(pairs.Times(o[1])),
		sumTokens2:    cold.Times(cold).Times(p[2]),
		sumTokenPairs: cold.Times(pairsIn),
		sumPairs2:     square.Times(square).Times(p[4]).Plus(Int(2).Times(square).Times(line).Times(p[3])).Plus(line.Times(line).Times(p[2])),
		sumContext:    both.Plus(half.Times(o[2])),
		sumWhole:      both.Plus(o[2]),
	}
	for i := range d.sums {
		d.sums[i] = d.sums[i].Times(d.Attempts)
	}
	return d, nil
}

// ofField gives an error of a value the name of its field.
func ofField(field string, err error) error {
	e := *sluice.AsError(err)
	e.Param = field
	return &e
}

// Plus is both demands together.
func (d Demand) Plus(e Demand) Demand {
	out := Demand{
		Requests: d.Requests.Plus(e.Requests), Attempts: d.Attempts.Plus(e.Attempts),
		Input: d.Input.Plus(e.Input), Prefill: d.Prefill.Plus(e.Prefill), Output: d.Output.Plus(e.Output),
		Longest: Max(d.Longest, e.Longest),
	}
	for i := range d.sums {
		out.sums[i] = d.sums[i].Plus(e.sums[i])
	}
	return out
}

// Times is the same requests k times as often.
func (d Demand) Times(k Amount) Demand {
	out := Demand{
		Requests: d.Requests.Times(k), Attempts: d.Attempts.Times(k),
		Input: d.Input.Times(k), Prefill: d.Prefill.Times(k), Output: d.Output.Times(k),
		Longest: d.Longest,
	}
	for i := range d.sums {
		out.sums[i] = d.sums[i].Times(k)
	}
	return out
}

// Total is the demand of several workloads. The error names the field, such as
// [2].input.
func Total(workloads []Workload) (Demand, error) {
	var sum Demand
	for i, w := range workloads {
		d, err := w.Demand()
		if err != nil {
			return Demand{}, atIndex(i, err)
		}
		sum = sum.Plus(d)
	}
	return sum, nil
}

// colder is the workload when a part of what was cached is so no more.
func (w Workload) colder(part Amount) Workload {
	w.Hit.Amount = w.Hit.Times(Int(1).Minus(part))
	return w
}
