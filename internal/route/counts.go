package route

import "sluice"

// ChoiceCounts is what choices came to, by prefix.
type ChoiceCounts struct {
	Warm      int64 // where the prefix is
	Saturated int64 // elsewhere, since that was so much later there
	Quantum   int64 // elsewhere, since the tenant's quantum there was used up
	Cold      int64 // the prefix was nowhere

	Expected sluice.Tokens // input that was believed to be cached where it went
	Read     sluice.Tokens // input that was reported to have been read from caches
	Told     sluice.Tokens // of all input that was reported
	Blocks   int64         // remembered
	Holds    int64         // remembered, by place
	Memory   int64         // bytes that they take, about
}

// Add adds those of another pool.
func (c *ChoiceCounts) Add(o *ChoiceCounts) {
	c.Warm += o.Warm
	c.Saturated += o.Saturated
	c.Quantum += o.Quantum
	c.Cold += o.Cold
	c.Expected += o.Expected
	c.Read += o.Read
	c.Told += o.Told
	c.Blocks += o.Blocks
	c.Holds += o.Holds
	c.Memory += o.Memory
}

// Counts is what choices came to so far.
func (c *Chooser) Counts() ChoiceCounts {
	out := c.counts
	blocks, holds := c.index.held()
	out.Blocks, out.Holds = int64(blocks), int64(holds)
	out.Memory = blockBytes*out.Blocks + nodeBytes*out.Holds + int64(len(c.tenants.of))*(tenureBytes+8*int64(len(c.index.slots)))
	return out
}
