package control

import (
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/route"
)

// The pace at which a stream tells how far it is.
const (
	ProgressTokens sluice.Tokens = 64
	ProgressEvery                = time.Second
)

// lead is how much a backend that stops with the connection may have generated
// beyond what was seen of it.
const lead sluice.Tokens = 256

// Begin takes the place of an attempt. reported says that its backend tells its
// usage as it goes.
func (g *Gateway) Begin(now time.Time, c *Call, at engine.Grant, reported bool) {
	at.Candidates, at.Limits = nil, engine.Limits{} // the engine's memory
	c.Place, c.Attempts, c.running = at, at.Attempt, true
	c.Queued += at.Queued
	c.price = at.Backend.Row()
	c.heldTo = at.HeldTo
	c.seen, c.told, c.began, c.toldAt = 0, -ProgressTokens, now, now
	c.reported = reported
}

// Most is the largest output that the backend is asked for.
func (c *Call) Most() sluice.Tokens {
	if b := c.Place.OutputBound; b > 0 {
		return min(b, c.Work.OutputBound)
	}
	return c.Work.OutputBound
}

// Seen is how much of the answer has been seen.
func (c *Call) Seen() sluice.Tokens { return c.seen }

// Running reports whether an attempt of the call is under way.
func (c *Call) Running() bool { return c.running }

// NextReport says what the gateway waits for in a stream: the count of tokens at
// which it tells the engine, or the moment from which on it does with any token.
func (c *Call) NextReport() (sluice.Tokens, time.Time) {
	n := c.told + ProgressTokens
	if c.heldTo > 0 && c.heldTo < c.Most() {
		n = min(n, max(c.heldTo-engine.StepLead, c.seen)+1)
	}
	return max(n, 1), c.toldAt.Add(ProgressEvery)
}

// Tokens says how much of the answer has been seen by now. Stop ends the stream:
// because the hold is gone, or, with Short, because a hard budget has no room for
// more.
func (g *Gateway) Tokens(now time.Time, c *Call, input, cached, seen sluice.Tokens) (d engine.Directive, short bool) {
	c.seen = seen
	if seen-c.told >= ProgressTokens || now.Sub(c.toldAt) >= ProgressEvery {
		c.told, c.toldAt = seen, now
		d = g.eng.Progress(now, c.ID, c.usage(input, cached))
	}
	if d.Stop || c.heldTo == 0 || c.heldTo >= c.Most() || c.heldTo-seen >= engine.StepLead {
		return d, false
	}
	to, goOn := g.eng.Step(now, c.ID, seen, engine.StepLead)
	c.heldTo = max(c.heldTo, to)
	return d, !goOn
}

// usage is what is known of a stream so far: what its backend reports as it goes,
// else the estimate of its input and a count of its output.
func (c *Call) usage(input, cached sluice.Tokens) sluice.Usage {
	if c.reported && c.seen > 0 {
		return sluice.Usage{Input: input - cached, CacheRead: cached, Output: c.seen, Source: sluice.UsageCounted}
	}
	return sluice.Usage{Input: c.Work.Input, Output: c.seen, Source: sluice.UsageEstimated}
}

// Failure is how an attempt failed.
type Failure struct {
	Reason     sluice.Reason
	Unsent     bool // the backend cannot have begun
	Refused    bool // it answered an error and did not begin
	Overload   bool // it said that it has no room (529, 503)
	Limited    bool // it said that a rate is used up (429)
	Final      bool // another backend would refuse it too
	RetryAfter time.Duration
	Rates      []route.Hint // what its headers say is left
}

// Failed ends an attempt that its backend failed. Where the Step is Fail, End is to
// follow, of the call that a hedge was beside, since the hedge's has ended in any case.
func (g *Gateway) Failed(now time.Time, c *Call, input, cached sluice.Tokens, f Failure) engine.Next {
	c.Failure = f.Reason
	if c.beside != nil {
		c.beside.Failure = f.Reason
	}
	if f.Overload || f.Limited || len(f.Rates) > 0 {
		s := engine.Signal{Backend: c.Place.Backend.ID, Overloaded: f.Overload, Rates: f.Rates}
		if f.Limited {
			s.Limited, s.Pause = true, f.RetryAfter
		}
		g.eng.Observe(now, s)
	}
	u := g.took(c, input, cached, f.Unsent || f.Refused)
	cost, high := c.bill(u)
	if c.seen > 0 || f.Final && c.beside == nil {
		return engine.Next{Step: engine.Fail, Denied: route.DeniedCause}
	}
	n := g.eng.AttemptEnded(now, c.ID, engine.Result{Reason: f.Reason, RetryAfter: f.RetryAfter, Overload: f.Overload, Usage: u, Cost: high})
	c.add(u, cost, high) // it has been posted: the settlement adds nothing to it
	c.running = false
	if c.beside != nil { // its own reservation has ended
		g.leave(c, c.beside)
	}
	return n
}

// took is what an attempt that did not complete is charged for.
func (g *Gateway) took(c *Call, input, cached sluice.Tokens, idle bool) sluice.Usage {
	if idle {
		return sluice.Usage{Source: sluice.UsageNone}
	}
	u := c.usage(input, cached)
	if !c.Place.Backend.StopsOnCancel {
		u.Output = max(u.Output, g.learned.Remaining(g.key(c, c.Place.Backend), c.seen, c.Most()))
	}
	return u
}

// bill is what usage costs, and what a hard budget is charged for it.
func (c *Call) bill(u sluice.Usage) (cost, high sluice.Nano) {
	if c.price == nil {
		return 0, 0
	}
	cost = c.price.Cost(u)
	if !hard(c.Principal.Policy) || u.Source == sluice.UsageReported || u.Source == sluice.UsageNone {
		return cost, cost
	}
	w := c.Work
	w.OutputBound = c.Most()
	if c.heldTo > 0 {
		w.OutputBound = min(w.OutputBound, c.heldTo)
	}
	if c.Place.Backend.StopsOnCancel {
		w.OutputBound = min(w.OutputBound, u.OutputTotal()+lead)
	}
	return cost, max(cost, c.price.HardHold(w))
}

func (c *Call) add(u sluice.Usage, cost, high sluice.Nano) {
	c.Usage.Add(u)
	c.Cost += cost
	c.high += high
}
