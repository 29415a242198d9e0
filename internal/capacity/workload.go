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

	// The sums that memory is made of (see the package comment): a request of
	// input p, of which h is cached, and output o adds
	PrefillSquare Amount // (1−h)·p²
	PrefillWhole  Amount // (1−h)·p·(p+o)
	DecodeContext Amount // o·(p + o/2)
	DecodeWhole   Amount // o·(p+o)

	Longest Amount // input of one request
}

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
	half := Ratio(1, 2)
	cold := Int(1).Minus(w.Hit.Amount)
	both := in.mean.Times(out.mean)
	d := Demand{
		Requests: w.Rate.Amount, Attempts: w.Rate.Times(Int(1).Plus(w.Retries.Amount)),
		Longest: in.longest,
	}
	d.Input = d.Attempts.Times(in.mean)
	d.Prefill = d.Input.Times(cold)
	d.Output = d.Attempts.Times(out.mean)
	d.PrefillSquare = d.Attempts.Times(cold).Times(in.square)
	d.PrefillWhole = d.Attempts.Times(cold).Times(in.square.Plus(both))
	d.DecodeContext = d.Attempts.Times(both.Plus(out.square.Times(half)))
	d.DecodeWhole = d.Attempts.Times(both.Plus(out.square))
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
	return Demand{
		Requests: d.Requests.Plus(e.Requests), Attempts: d.Attempts.Plus(e.Attempts),
		Input: d.Input.Plus(e.Input), Prefill: d.Prefill.Plus(e.Prefill), Output: d.Output.Plus(e.Output),
		PrefillSquare: d.PrefillSquare.Plus(e.PrefillSquare), PrefillWhole: d.PrefillWhole.Plus(e.PrefillWhole),
		DecodeContext: d.DecodeContext.Plus(e.DecodeContext), DecodeWhole: d.DecodeWhole.Plus(e.DecodeWhole),
		Longest: Max(d.Longest, e.Longest),
	}
}

// Times is the same requests k times as often.
func (d Demand) Times(k Amount) Demand {
	return Demand{
		Requests: d.Requests.Times(k), Attempts: d.Attempts.Times(k),
		Input: d.Input.Times(k), Prefill: d.Prefill.Times(k), Output: d.Output.Times(k),
		PrefillSquare: d.PrefillSquare.Times(k), PrefillWhole: d.PrefillWhole.Times(k),
		DecodeContext: d.DecodeContext.Times(k), DecodeWhole: d.DecodeWhole.Times(k),
		Longest: d.Longest,
	}
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

// colder is the demand when a part of what was cached is so no more: of each
// prefill that the cache saved, that part is to be done.
func (w Workload) colder(part Amount) Workload {
	w.Hit.Amount = w.Hit.Times(Int(1).Minus(part))
	return w
}
