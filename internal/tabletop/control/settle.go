package control

import (
	"time"

	"sluice"
	"sluice/internal/engine"
)

// Ended is how a call has ended.
type Ended struct {
	Outcome sluice.Outcome
	Reason  sluice.Reason
	Usage   sluice.Usage // over all attempts
	Cost    sluice.Nano
	Twice   bool // the engine had ended it already
	Late    bool // its hold had expired
}

// Complete settles a call whose answer has come whole, with what its backend
// reports, and learns from it.
func (g *Gateway) Complete(now time.Time, c *Call, input, cached, output sluice.Tokens) Ended {
	u := sluice.Usage{Input: input - cached, CacheRead: cached, Output: output, Source: sluice.UsageReported}
	k, degraded, most := g.key(c, c.Place.Backend), c.Place.Degraded, c.Most()
	e := g.settle(now, c, u, sluice.Completed, sluice.ReasonNone)
	if c.Counted > 0 && input > 0 {
		g.learned.ObserveInput(k, c.Counted, input)
	}
	if !degraded || output < most { // what a ladder has cut tells nothing of how long answers are
		g.learned.ObserveOutput(k, output)
	}
	g.drop(c)
	return e
}

// Shorten settles a call that was ended for want of budget: to its client it is
// complete.
func (g *Gateway) Shorten(now time.Time, c *Call, input, cached sluice.Tokens) Ended {
	e := g.settle(now, c, g.took(c, input, cached, false), sluice.Completed, sluice.BudgetStop)
	g.drop(c)
	return e
}

// End settles a call that did not complete: its attempt failed for good, its wait
// ended, or its client has left. idle says that the attempt which runs cannot have
// begun.
func (g *Gateway) End(now time.Time, c *Call, input, cached sluice.Tokens, o sluice.Outcome, why sluice.Reason, idle bool) Ended {
	var u sluice.Usage
	if c.running {
		u = g.took(c, input, cached, idle)
	}
	k := g.learnsCut(c, o)
	e := g.settle(now, c, u, o, why)
	if k {
		g.learned.ObserveCut(g.key(c, c.Place.Backend), c.seen, c.Most())
	}
	g.drop(c)
	return e
}

// learnsCut reports whether an answer that its client did not wait for teaches how
// long answers are: its backend goes on to the end of it.
func (g *Gateway) learnsCut(c *Call, o sluice.Outcome) bool {
	return o == sluice.Cancelled && c.running && c.seen > 0 && !c.Place.Backend.StopsOnCancel
}

func (g *Gateway) settle(now time.Time, c *Call, u sluice.Usage, o sluice.Outcome, why sluice.Reason) Ended {
	cost, high := sluice.Nano(0), sluice.Nano(0)
	if c.running {
		cost, high = c.bill(u)
	}
	c.add(u, cost, high)
	c.running = false
	err := g.eng.Settle(now, c.ID, engine.Actual{Usage: c.Usage, Cost: c.high, Outcome: o, Reason: why})
	all := c.apart
	all.add(c.Usage, c.Cost)
	return Ended{Outcome: o, Reason: why, Usage: all.usage, Cost: all.cost, Twice: err == engine.ErrSettled, Late: err == engine.ErrLate}
}

// Leave ends a call whose client has gone while it waited. One that had no attempt
// used nothing.
func (g *Gateway) Leave(now time.Time, c *Call, why sluice.Reason) Ended {
	if c.Attempts > 0 {
		return g.End(now, c, 0, 0, sluice.Cancelled, why, true)
	}
	open := g.eng.Cancel(now, c.ID, why)
	g.drop(c)
	return Ended{Outcome: sluice.Cancelled, Reason: why, Twice: !open}
}

// Refused forgets a call whose wait the engine ended before any attempt: it holds
// nothing any more.
func (g *Gateway) Refused(c *Call, why sluice.Reason) Ended {
	e := Ended{Outcome: sluice.Rejected, Reason: why}
	g.drop(c)
	return e
}
