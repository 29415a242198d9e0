package tabletop

import (
	"time"

	"sluice"
	"sluice/internal/route"
)

// late is an attempt that has shown nothing for as long as its model lets it: a second
// one begins beside it, if the gateway has it so.
func (p *play) late(q *request) {
	if q.run.on == nil || q.run.first > 0 || q.call == nil {
		return
	}
	c, answer := p.gateway.Hedge(p.time(), q.call)
	if c == nil {
		p.m.unhedged(q, answer.Denied)
		switch {
		case answer.Err != nil:
			p.tell(q, "it is late and gets no hedge: %v", answer.Err.Reason)
		case answer.Denied != route.DeniedOver:
			p.tell(q, "it is late and gets no hedge: %s", answer.Denied)
		}
		return
	}
	h := p.roster.beside(q)
	h.call, c.Tag = c, h.slot
	m := p.byID[answer.Grant.Backend.ID]
	p.tell(q, "it is late: attempt %d begins beside it on %s", answer.Grant.Attempt, m.spec.Backend)
	p.gateway.Begin(p.time(), c, answer.Grant, m.spec.Replica != nil)
	h.attempt++
	h.run = run{on: m, began: p.now}
	m.use.attempts++
	p.m.hedged(h)
	if p.dial(h, m) {
		p.grant()
	}
}

// decide ends a race by the first token of one of its two. It returns the request, to
// which that token is.
func (p *play) decide(q *request) *request {
	switch {
	case q.hedge != nil:
		p.lose(q.hedge, sluice.LostRace)
	case q.of != nil:
		return p.adopt(q)
	}
	return q
}

// lose ends the attempt of a hedge that the other was before, or whose request is over.
func (p *play) lose(h *request, why sluice.Reason) {
	q := h.of
	p.leaves(h)
	e := p.gateway.Lose(p.time(), h.call, q.call, h.truth.input, 0, why)
	p.m.lost(h, &e)
	p.tell(q, "the attempt on %s ends: %v", h.run.on.spec.Backend, why)
	p.roster.apart(h)
}

// adopt lets a request go on with its hedge, which has the first token; its own attempt
// has lost, if it has not failed before.
func (p *play) adopt(h *request) *request {
	q := h.of
	if q.run.on != nil {
		p.leaves(q)
	}
	e := p.gateway.Lose(p.time(), q.call, h.call, q.truth.input, 0, sluice.LostRace)
	p.m.lost(q, &e)
	p.m.won(q)
	p.tell(q, "the hedge on %s has the first token", h.run.on.spec.Backend)
	q.call, q.run = h.call, h.run
	q.call.Tag = q.slot
	q.rivals, q.flow, q.charged, q.gauges = h.rivals, h.flow, h.charged, h.gauges
	if jobs := q.run.on.jobs; jobs[q.run.job] == h { // else that token was its last
		jobs[q.run.job] = q
	}
	q.attempt++
	if f := q.run.fail; f != nil {
		p.timers.set(max(q.run.began+time.Duration(f.After), p.now), timerFail, q.slot, q.attempt)
	}
	p.roster.apart(h)
	return q
}

// leaves takes an attempt without a token off its machine.
func (p *play) leaves(q *request) {
	if m := q.run.on; m.jobs[q.run.job] == q {
		p.abandonJob(q)
	}
	q.attempt++
}
