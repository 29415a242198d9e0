package engine

import (
	"time"

	"sluice"
	"sluice/internal/price"
	"sluice/internal/route"
)

// How a hard budget holds the output of a stream in steps.
const (
	// StepTokens is one step of the hold, and the first.
	StepTokens sluice.Tokens = 1024
	// StepLead is the least that a hold is ahead of what has been seen: what the
	// backend may write until it notices that nobody listens.
	StepLead sluice.Tokens = 256
)

// steps reports whether every backend that may serve the request lets its output be
// held in steps: it stops with the connection, and all that it bills shows in the
// stream as it comes.
func (e *Engine) steps(r *request) bool {
	m := e.modelOf(r)
	if !r.call.Counted || !r.call.Streaming || m == nil {
		return false
	}
	all := true
	r.visit(m, "", func(id sluice.PoolID, _ bool) bool {
		p := e.poolOf(id)
		if p == nil {
			return false
		}
		ask := r.ask(p)
		for _, pl := range p.places {
			if route.Eligible(pl.Backend, &ask) == route.Chosen && !pl.Backend.StopsOnCancel {
				all = false
			}
		}
		return !all
	})
	return all
}

// firstStep sets how much of the output bound is held at first: all of it, or a
// step where the rest may follow as the stream goes. It reports whether the first
// step is all that has to fit.
func (e *Engine) firstStep(now time.Time, r *request, rows []*price.Row, bound sluice.Tokens) bool {
	r.heldTo = 0
	if bound <= StepTokens || !e.steps(r) {
		return false
	}
	r.heldTo = StepTokens
	room, limited := e.book.Room(now, &r.res)
	if limited && r.dearest(rows, bound) > room {
		r.heldTo = 0 // less than a step: the bound is clamped
		return false
	}
	return true
}

// spendBound is the output that spend is held for.
func (r *request) spendBound(bound sluice.Tokens) sluice.Tokens {
	if r.heldTo > 0 {
		return min(bound, r.heldTo)
	}
	return bound
}

// Step raises the hold of a running request whose output a hard budget holds in
// steps (Grant.HeldTo): used is the most output that can be billed by now, lead how
// far the hold has to be ahead of it. It answers to what the output is held now, and
// whether that is a lead ahead: if not, the budget has no room for more, and the
// stream is to end. A request whose output is held whole may go on.
func (e *Engine) Step(now time.Time, id sluice.RequestID, used, lead sluice.Tokens) (heldTo sluice.Tokens, goOn bool) {
	now = e.tick(now)
	r := e.requests.Find(id)
	if r == nil || r.phase != running || r.heldTo == 0 || r.heldTo >= r.bound {
		return 0, true
	}
	lead = max(lead, StepLead)
	if r.heldTo-used >= lead {
		return r.heldTo, true
	}
	row := r.place.Backend.Row()
	if row == nil {
		return r.heldTo, true
	}
	want := min(r.bound, used+lead+StepTokens)
	if !e.stepTo(now, r, row, want) {
		room, _ := e.book.Room(now, &r.res)
		if fits := row.OutputWithin(r.work(r.bound), room); fits > r.heldTo {
			e.stepTo(now, r, row, fits)
		}
	}
	return r.heldTo, r.heldTo >= r.bound || r.heldTo-used >= lead
}

// stepTo holds spend for an output, if there is room.
func (e *Engine) stepTo(now time.Time, r *request, row *price.Row, output sluice.Tokens) bool {
	spend := max(r.spend, row.HardHold(r.work(output)))
	if !e.book.Raise(now, &r.res, sluice.Spend, int64(spend)) {
		return false
	}
	r.spend, r.heldTo = spend, output
	return true
}
