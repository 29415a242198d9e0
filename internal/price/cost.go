package price

import (
	"sluice"
)

// Cost is what the provider charges for u: every class at the rate of the
// service tier and context tier that u was served in, plus web searches, units and,
// if anything was billed, the price of a request, rounded once, half to even. Negative counts are taken as zero.
func (r *Row) Cost(u sluice.Usage) sluice.Nano {
	rates := r.RatesFor(u.ServiceTier, u.InputTotal())
	var c sluice.Cost
	c.Add(int64(u.Input), rates.Input)
	c.Add(int64(u.CacheRead), rates.CacheRead)
	c.Add(int64(u.CacheWrite), rates.CacheWrite)
	c.Add(int64(u.CacheWrite1h), rates.CacheWrite1h)
	c.Add(int64(u.AudioInput), rates.AudioInput)
	c.Add(int64(u.Output), rates.Output)
	c.Add(int64(u.Reasoning), rates.Reasoning)
	c.Add(int64(u.AudioOutput), rates.AudioOutput)
	c.Add(u.WebSearches, r.WebSearch)
	c.Add(u.Units, r.Unit)
	if u.Total() > 0 || u.Units > 0 {
		c.Add(1, r.Request)
	}
	return c.Even()
}
