package replay

// turns is how the prompts of a recording repeat each other: a request that continues
// an earlier one begins with the blocks of its prompt.
type turns struct {
	block int64   // tokens of a block; 0 for prompts that have nothing in common
	first bool    // all prompts have their first block in common
	share float64 // of requests that continue an earlier one, if there is a shorter one
	live  int     // prompts that may be continued at a time
	looks int     // of these, how many are looked at for the longest that is shorter
	ends  float64 // share of continued prompts that are not continued any more
	rest  int64   // requests that come before a prompt is continued: its reader thinks
	grow  float64 // share of continued prompts of which all that was added may be continued, too
}

// conversations makes block ids.
type conversations struct {
	turns
	d    dice
	open []opening // prompts that may be continued
	next int64     // the next block
	now  int64     // requests so far
}

// opening is a prompt that may be continued from a request on.
type opening struct {
	blocks []int64
	from   int64
}

// prompt is the block ids of a prompt of so many tokens; the last block may be a part
// of one.
func (c *conversations) prompt(input int64) []int64 {
	n := int((input + c.block - 1) / c.block)
	c.now++
	at := c.find(n)
	var out []int64
	if at >= 0 {
		out = append(out, c.open[at].blocks...)
	} else if c.first {
		out = append(out, 0)
	}
	for len(out) < n {
		c.next++
		out = append(out, c.next)
	}
	switch {
	case at < 0 && len(c.open) < c.live:
		c.open = append(c.open, opening{out, c.now + c.rest})
	case at < 0:
		c.open[c.d.IntN(len(c.open))] = opening{out, c.now + c.rest}
	default:
		c.open[at].from = c.now + c.rest
		if c.d.Float64() < c.grow {
			c.open[at].blocks = out
		}
		if c.d.Float64() < c.ends {
			c.open[at] = c.open[len(c.open)-1]
			c.open = c.open[:len(c.open)-1]
		}
	}
	return out
}

// find is the prompt that one of n blocks continues, -1 if it is new.
func (c *conversations) find(n int) (at int) {
	at = -1
	if len(c.open) == 0 || c.d.Float64() >= c.share {
		return at
	}
	for range c.looks {
		i := c.d.IntN(len(c.open))
		x := &c.open[i]
		if x.from <= c.now && len(x.blocks) < n && (at < 0 || len(x.blocks) > len(c.open[at].blocks)) {
			at = i
		}
	}
	return at
}
