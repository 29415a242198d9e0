package control

import (
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/route"
)

// Hedge begins a second attempt beside the one of a call that is late, nil and why
// where there is to be none. What is told of it is told of the Call that it answers,
// which is open until Lose, or Failed, or until it is all that is left of the first.
func (g *Gateway) Hedge(now time.Time, c *Call) (*Call, engine.Hedged) {
	answer := g.eng.Hedge(now, c.ID)
	if answer.Denied != route.Allowed || answer.Err != nil {
		return nil, answer
	}
	h := g.newCall()
	h.Ask, h.Number, h.Work, h.Verdict, h.Queued = c.Ask, c.Number, c.Work, c.Verdict, c.Queued
	h.ID, h.beside = answer.Grant.ID, c
	g.calls[h.ID] = h
	return h, answer
}

// Lose ends the attempt of a call that the other was before, and settles its call: the
// other is the request from then on.
func (g *Gateway) Lose(now time.Time, c, other *Call, input, cached sluice.Tokens, why sluice.Reason) Ended {
	var u sluice.Usage
	if c.running {
		u = g.took(c, input, cached, false)
	}
	e := g.settle(now, c, u, sluice.Cancelled, why)
	g.leave(c, other)
	return e
}

// leave lets what one call took count with the other, which goes on.
func (g *Gateway) leave(c, other *Call) {
	other.apart.add(c.Usage, c.Cost)
	other.apart.add(c.apart.usage, c.apart.cost)
	other.beside = nil
	g.drop(c)
}

// apart is what was settled beside a call and is of the same request.
type apart struct {
	usage sluice.Usage
	cost  sluice.Nano
}

func (a *apart) add(u sluice.Usage, cost sluice.Nano) {
	a.usage.Add(u)
	a.cost += cost
}
