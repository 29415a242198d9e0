package price

import (
	"math/bits"

	"sluice"
)

// SoftHold is what a request is expected to cost at most: the whole expected
// input at the uncached input price, since a cache may have gone cold, and the
// held output at the dearer of output and reasoning, in the default service
// tier. Rounded up.
func (r *Row) SoftHold(w sluice.Work) sluice.Nano {
	rates := &r.Rates
	if len(r.Tiers) > 0 {
		tier := r.RatesFor("", w.Input)
		rates = &tier
	}
	var c sluice.Cost
	c.Add(int64(w.Input), rates.Input)
	c.Add(int64(w.OutputHold), max(rates.Output, or(rates.Reasoning, rates.Output)))
	c.Add(w.Units, r.Unit)
	c.Add(1, r.Request)
	return c.Up()
}

// HardHold is never less than the cost of any usage within the bounds of w:
// InputBound at the dearest input class, OutputBound at the dearest output class,
// of every service tier and every context tier that the input can reach, and
// Searches and UnitsBound. Rounded up.
func (r *Row) HardHold(w sluice.Work) sluice.Nano {
	in, out := r.dearest(w.InputBound)
	var c sluice.Cost
	c.Add(int64(w.InputBound), in)
	c.Add(int64(w.OutputBound), out)
	c.Add(w.Searches, r.WebSearch)
	c.Add(w.UnitsBound, r.Unit)
	c.Add(1, r.Request)
	return c.Up()
}

// OutputWithin is the largest output bound, at most w.OutputBound, whose
// HardHold fits in budget. Zero means that nothing fits.
func (r *Row) OutputWithin(w sluice.Work, budget sluice.Nano) sluice.Tokens {
	if budget < 0 || w.OutputBound <= 0 {
		return 0
	}
	in, out := r.dearest(w.InputBound)
	haveHi, haveLo := bits.Mul64(uint64(budget), 1_000_000)
	needHi, needLo := bits.Mul64(uint64(max(w.InputBound, 0)), uint64(max(in, 0)))
	needLo, carry := bits.Add64(needLo, uint64(max(r.Request, 0)), 0)
	needHi += carry
	for _, fee := range [...][2]int64{{w.Searches, int64(r.WebSearch)}, {w.UnitsBound, int64(r.Unit)}} {
		feeHi, feeLo := bits.Mul64(uint64(max(fee[0], 0)), uint64(max(fee[1], 0)))
		needLo, carry = bits.Add64(needLo, feeLo, 0)
		needHi += feeHi + carry
	}
	lo, borrow := bits.Sub64(haveLo, needLo, 0)
	hi, borrow := bits.Sub64(haveHi, needHi, borrow)
	if borrow != 0 {
		return 0 // the input alone is more than the budget
	}
	if out <= 0 || hi >= uint64(out) {
		return w.OutputBound
	}
	n, _ := bits.Div64(hi, lo, uint64(out))
	return sluice.Tokens(min(n, uint64(w.OutputBound)))
}

// dearest is the highest price of an input class and of an output class. A price that is
// missing counts nothing: what it inherits counts already, unless that is of another row.
func (r *Rates) dearest() (in, out sluice.Price) {
	return max(Free, r.Input, r.CacheRead, r.CacheWrite, r.CacheWrite1h, r.AudioInput), max(Free, r.Output, r.Reasoning, r.AudioOutput)
}

// dearest is the highest price of any input class and of any output class that
// a request of at most that input can be billed at.
func (r *Row) dearest(input sluice.Tokens) (in, out sluice.Price) {
	if len(r.Tiers) == 0 && len(r.Variants) == 0 { // most often
		return r.Rates.dearest()
	}
	in, out = Free, Free
	take := func(x Rates) {
		i, o := x.dearest()
		in, out = max(in, i), max(out, o)
	}
	reach := func(base Rates, tiers []Tier) {
		take(base.resolved(base))
		for i := range tiers {
			if input > tiers[i].AboveInput {
				take(tiers[i].Rates.resolved(base))
			}
		}
	}
	reach(r.Rates, r.Tiers)
	for _, v := range r.Variants {
		if len(v) > 0 {
			reach(v[0].Rates.resolved(r.Rates), v[1:])
		}
	}
	return in, out
}
