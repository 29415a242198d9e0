package tabletop

import (
	"errors"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/fleet"
	"sluice/internal/route"
	"sluice/internal/tabletop/control"
)

// granted takes one answer of the engine. It reports whether the gateway is to
// decide once more.
func (p *play) granted(g *engine.Grant) (again bool) {
	c := p.gateway.Call(g.ID)
	if c == nil {
		return false
	}
	q := p.roster.slots[c.Tag]
	if g.Err != nil {
		return p.turnedBack(q, c, g)
	}
	m := p.byID[g.Backend.ID]
	p.tellGrant(q, g)
	p.gateway.Begin(p.time(), c, *g, m.spec.Replica != nil)
	q.attempt++
	q.queued += g.Queued
	q.placed = true
	q.run = run{on: m, began: p.now}
	m.use.attempts++
	p.m.dispatched(q)
	if g.Away && !q.away {
		q.away = true
		p.m.away(q)
	}
	if g.HedgeAfter > 0 {
		p.timers.set(p.now+g.HedgeAfter, timerHedge, q.slot, q.attempt)
	}
	return p.dial(q, m)
}

// turnedBack is a wait that ended without a place, or a hold that has expired.
func (p *play) turnedBack(q *request, c *control.Call, g *engine.Grant) (again bool) {
	why := g.Err.Reason
	p.tellRefused(q, g.Err)
	if g.Attempt == 0 {
		p.m.waited(q)
		p.m.refused(q, why)
		p.settled(q, p.gateway.Refused(c, why))
		p.turnedAway(q, endOf{sluice.Rejected, why}, g.Err.RetryAfter)
		return false
	}
	if why == sluice.HoldExpired && q.of != nil {
		p.lose(q, why)
		return true
	}
	if why == sluice.HoldExpired {
		if q.hedge != nil {
			p.lose(q.hedge, why)
		}
		p.abandon(q)
	} else {
		p.m.waited(q)
		p.denied(q, g.Denied)
		why = c.Failure // what its client is told
	}
	p.settled(q, p.gateway.End(p.time(), c, q.truth.input, q.run.cached, sluice.Failed, why, false))
	p.turnedAway(q, endOf{sluice.Failed, why}, g.Err.RetryAfter)
	return true
}

// dial sends an attempt to its machine. It reports whether it failed at once.
func (p *play) dial(q *request, m *machine) (failed bool) {
	if f := &m.fail; f.Permille > 0 {
		x := p.sources[q.source]
		n := uint64(q.submissions)<<8 | uint64(q.call.Attempts)<<24
		if p.dice.of(x.name, q.index, drawFail+n).Int64N(1000) < f.Permille {
			fail := *f
			q.run.fail = &fail
			p.timers.set(p.now+f.After, timerFail, q.slot, q.attempt)
			if !midway(f.Reason) {
				return false // it never begins
			}
		}
	}
	job := fleet.Job{Input: q.truth.input, Output: min(q.truth.output, q.call.Most()), Blocks: p.blocks(q, m)}
	id, err := m.sim.Submit(p.time(), job)
	if err != nil {
		m.touched(p.now)
		f := failureOf(err)
		f.Rates = m.hints(p.time())
		return p.fails(q, f)
	}
	q.run.job, q.run.hints = id, m.hints(p.time())
	m.jobs[id] = q
	m.touched(p.now)
	return false
}

// midway reports whether a failure comes of an answer that had begun.
func midway(why sluice.Reason) bool {
	return why == sluice.UpstreamTruncated || why == sluice.UpstreamStalled || why == sluice.UpstreamMalformed
}

// statusUnavailable is a 503, which is also what an engine answers whose queue is
// full.
const statusUnavailable = 503

// failureOf is how a simulator's refusal looks to a gateway.
func failureOf(err error) control.Failure {
	if l, ok := errors.AsType[*fleet.LimitError](err); ok {
		return control.Failure{Reason: sluice.UpstreamLimited, Refused: true, Limited: true, RetryAfter: l.RetryAfter}
	}
	if s, ok := errors.AsType[*fleet.StatusError](err); ok {
		f := control.Failure{Reason: sluice.UpstreamError, Refused: true, Overload: true, RetryAfter: s.RetryAfter}
		if s.Status != statusUnavailable {
			f.Reason = sluice.UpstreamLimited // 529
		}
		return f
	}
	switch {
	case errors.Is(err, fleet.ErrTooLarge):
		return control.Failure{Reason: sluice.UpstreamRefused, Refused: true, Final: true}
	case errors.Is(err, fleet.ErrDown):
		return control.Failure{Reason: sluice.UpstreamConnect, Unsent: true}
	}
	return control.Failure{Reason: sluice.UpstreamError, Refused: true, Overload: true} // 503
}

// failed is an attempt whose drawn failure shows.
func (p *play) failed(q *request) {
	f := q.run.fail
	if midway(f.Reason) {
		m := q.run.on
		if m.sync(p.time()); q.run.seen == 0 {
			if n, _ := m.sim.Tokens(q.run.job); n > 0 {
				q = p.decide(q) // it broke after its first token
			}
		}
		p.catchUp(q)
		p.abandonJob(q)
	}
	fail := control.Failure{Reason: f.Reason}
	switch f.Reason {
	case sluice.UpstreamConnect, sluice.UpstreamTLS:
		fail.Unsent = true
	case sluice.UpstreamLimited:
		fail.Refused, fail.Limited = true, true
	case sluice.UpstreamError, sluice.UpstreamRefused:
		fail.Refused = true
	}
	fail.Final = !route.Retryable(f.Reason)
	if p.fails(q, fail) {
		p.grant()
	}
}

// fails ends an attempt that its backend failed.
func (p *play) fails(q *request, f control.Failure) bool {
	if f.Final && q.hedge != nil {
		p.lose(q.hedge, sluice.LostRace) // whatever it would say, this is the answer
	}
	c, m := q.call, q.run.on
	m.use.failed++
	next := p.gateway.Failed(p.time(), c, q.truth.input, q.run.cached, f)
	p.tell(q, "%s fails: %v after %d tokens", m.spec.Backend, f.Reason, q.run.seen)
	p.m.attemptEnded(q)
	cached := q.run.cached
	q.attempt++
	q.run.on, q.run.job, q.run.timed, q.run.fail = nil, 0, false, nil
	if q.of != nil {
		q, c = q.of, q.of.call
		p.roster.apart(q.hedge)
	}
	if next.Step == engine.Race {
		p.tell(q, "the other attempt goes on")
		return true
	}
	if next.Step == engine.Queue {
		p.m.waits(p, q)
		p.tell(q, "it waits for another attempt")
		return true
	}
	p.denied(q, next.Denied)
	p.settled(q, p.gateway.End(p.time(), c, q.truth.input, cached, sluice.Failed, f.Reason, f.Unsent || f.Refused))
	p.turnedAway(q, endOf{sluice.Failed, f.Reason}, f.RetryAfter)
	return true
}

// denied notes why no further attempt follows one that failed.
func (p *play) denied(q *request, why route.Denied) {
	if why == route.Allowed {
		return
	}
	p.tell(q, "there is no further attempt: %s", why)
	if why.Budgeted() {
		p.m.unretried(q)
	}
}

// advance takes what a machine has to say.
func (p *play) advance(m *machine) {
	progress := m.sim.Advance(p.time())
	for i := range progress {
		g := &progress[i]
		q, ok := m.jobs[g.ID]
		if g.Done {
			delete(m.jobs, g.ID)
		}
		if !ok || q == nil {
			continue
		}
		p.progress(q, g)
	}
	m.touched(p.now)
}

// broken is how the end of an answer before its time looks to a gateway.
func broken(f fleet.Fault, seen sluice.Tokens) control.Failure {
	switch {
	case seen > 0:
		return control.Failure{Reason: sluice.UpstreamTruncated}
	case f == fleet.Lost:
		return control.Failure{Reason: sluice.UpstreamConnect} // after it was sent
	}
	return control.Failure{Reason: sluice.UpstreamError, Refused: true}
}

// progress takes what a machine reports of a request's answer.
func (p *play) progress(q *request, g *fleet.Progress) {
	if g.Tokens > 0 && q.run.first == 0 {
		q = p.decide(q)
		q.run.first = max(p.now, 1)
		p.tell(q, "its first token comes, %v after it was submitted", (p.now - q.from).Round(time.Microsecond))
		p.m.firstToken(q)
		if q.run.hints != nil {
			p.gateway.Observe(p.time(), engine.Signal{Backend: q.run.on.spec.Backend, Rates: q.run.hints})
			q.run.hints = nil
			p.grant()
		}
	}
	q.run.cached = g.Cached
	switch {
	case g.Fault != fleet.NoFault:
		p.seen(q, g.Tokens)
		p.fails(q, broken(g.Fault, g.Tokens))
		p.grant()
	case g.Done:
		p.m.seen(p, q, g.Tokens)
		p.complete(q, g.Tokens)
	default:
		p.told(q, g.Tokens)
	}
}

// seen lets the gateway see what has come of an answer that ends now.
func (p *play) seen(q *request, n sluice.Tokens) {
	if n > q.run.seen {
		p.m.seen(p, q, n)
		p.gateway.Tokens(p.time(), q.call, q.truth.input, q.run.cached, n)
	}
}

// told tells the gateway how far an answer is, and asks for the next report.
func (p *play) told(q *request, n sluice.Tokens) {
	c, m := q.call, q.run.on
	p.m.seen(p, q, n)
	d, short := p.gateway.Tokens(p.time(), c, q.truth.input, q.run.cached, n)
	switch {
	case short:
		p.abandonJob(q)
		p.tell(q, "its budget has no room for more: it ends after %d tokens", n)
		p.done(q, p.gateway.Shorten(p.time(), c, q.truth.input, q.run.cached))
		return
	case d.Stop:
		return // the engine says so itself
	case d.Advance:
		p.grant()
	}
	next, at := c.NextReport()
	m.sim.Expect(p.time(), q.run.job, next)
	if !q.run.timed {
		q.run.timed = true
		p.timers.set(at.Sub(epoch), timerReport, q.slot, q.attempt)
	}
}

// report asks for the next token of a stream of which nothing was told for a while.
func (p *play) report(q *request) {
	q.run.timed = false
	m := q.run.on
	if m == nil || q.run.seen == 0 {
		return
	}
	_, at := q.call.NextReport()
	if due := at.Sub(epoch); due > p.now {
		q.run.timed = true
		p.timers.set(due, timerReport, q.slot, q.attempt)
		return
	}
	m.sync(p.time())
	n, _ := m.sim.Tokens(q.run.job)
	m.sim.Expect(p.time(), q.run.job, n+1)
	m.touched(p.now)
}

// catchUp lets the gateway see what has come by now.
func (p *play) catchUp(q *request) {
	m := q.run.on
	m.sync(p.time())
	n, _ := m.sim.Tokens(q.run.job)
	p.seen(q, n)
}

// complete is an answer that has come whole.
func (p *play) complete(q *request, n sluice.Tokens) {
	p.done(q, p.gateway.Complete(p.time(), q.call, q.truth.input, q.run.cached, n))
}

func (p *play) done(q *request, e control.Ended) {
	p.m.attemptEnded(q)
	p.settled(q, e)
	q.attempt++
	p.grant()
	q.last = endOf{e.Outcome, e.Reason}
	p.over(q, sluice.Completed)
}

// abandon takes a running attempt whose client has gone off its machine, after the
// gateway has seen what had come.
func (p *play) abandon(q *request) {
	if m := q.run.on; m.jobs[q.run.job] == q {
		p.catchUp(q)
		p.abandonJob(q)
	}
	p.m.attemptEnded(q)
	q.attempt++
}

// abandonJob ends an answer at its machine, or leaves it alone where the backend goes on
// without its reader.
func (p *play) abandonJob(q *request) {
	m := q.run.on
	if q.call.Place.Backend.StopsOnCancel {
		delete(m.jobs, q.run.job)
		m.sim.Cancel(p.time(), q.run.job)
	} else {
		m.jobs[q.run.job] = nil
	}
	m.touched(p.now)
}

// settled notes what the gateway charged for a submission.
func (p *play) settled(q *request, e control.Ended) {
	p.m.settled(q, &e)
	p.tellSettled(q, &e)
	q.call = nil
	q.run.on = nil
}
