package tabletop

import (
	"time"

	"sluice"
	"sluice/internal/tabletop/control"
)

// bytesPerToken is the size of a body for a token of its input.
const bytesPerToken = 4

// longestPace is the longest wait that a gateway asks a client for: the header
// paces, the body tells the rest.
const longestPace = time.Minute

// arrive is a source's next request that comes up. Where as many of its client's
// are open as it has streams, it waits there.
func (p *play) arrive(x *source) {
	row := x.stream.arrived(p.now)
	x.arrived++
	if x.client.Streams > 0 && x.open >= x.client.Streams {
		if row != nil {
			x.rows = append(x.rows, row)
		}
		return
	}
	p.start(x, row)
}

// start draws a request and submits it for the first time.
func (p *play) start(x *source, row *Row) {
	p.numbers++
	q := p.roster.add()
	q.number, q.index, q.from = p.numbers, x.submitted, p.now
	q.source = x.position
	x.submitted++
	x.open++
	p.draw(q, x, row)
	p.m.began(p, q)
	if c := &x.client; c.Patience > 0 {
		p.timers.set(p.now+c.Patience, timerPatient, q.slot, q.gen)
	}
	p.tellArrival(q, x)
	p.submit(q)
}

// draw gives a request what is true of it.
func (p *play) draw(q *request, x *source, row *Row) {
	n, c := q.index, &x.client
	if x.input != nil {
		q.truth.input = x.input.draw(p.dice.of(x.name, n, drawInput))
	} else {
		q.truth.input = max(row.Input, 1)
	}
	if x.output != nil {
		q.truth.output = x.output.draw(p.dice.of(x.name, n, drawOutput))
	} else {
		q.truth.output = max(row.Output, 1)
	}
	if f := &x.Prefix; f.Tokens > 0 {
		q.truth.input = max(q.truth.input, f.Tokens)
		if f.Groups > 1 {
			q.truth.group = p.dice.of(x.name, n, drawPrefix).Int64N(int64(f.Groups))
		}
	}
	if row != nil {
		q.truth.blocks = row.Blocks
	}
	q.bound = c.Bound
	q.counted = q.truth.input
	if e := p.s.InputError; e > 0 {
		d := p.dice.of(x.name, n, drawCounted).Int64N(2*e+1) - e
		q.counted = max(1, q.truth.input+q.truth.input*sluice.Tokens(d)/1000)
	}
	if l := c.Leave; l.Permille > 0 {
		r := p.dice.of(x.name, n, drawLeave)
		if r.Int64N(1000) < l.Permille {
			p.timers.set(p.now+time.Duration(r.Int64N(max(int64(l.After), 1))), timerLeave, q.slot, q.gen)
		}
	}
}

// ask is what the gateway sees of a request: nothing of what is only true of it.
func (p *play) ask(q *request, x *source) control.Ask {
	c := &x.client
	a := control.Ask{
		Principal: x.principal, Model: x.Model, Dialect: x.Dialect, Class: x.Class, Task: x.Task,
		Prefix: p.prefix(q), Counted: q.counted, Bytes: bytesPerToken * int64(q.truth.input), Bound: q.bound, MaxWait: c.MaxWait,
	}
	switch {
	case c.MaxWait == 0:
		a.MaxWait = -1 // it leaves it to plan and pool
	case c.MaxWait < 0:
		a.MaxWait = 0
	}
	return a
}

// submit brings a request to the gateway, for the first time or again.
func (p *play) submit(q *request) {
	x := p.sources[q.source]
	if q.submissions++; q.submissions > 1 {
		p.m.resubmitted(q)
	}
	q.run = run{}
	call, v := p.gateway.Arrive(p.time(), p.ask(q, x), q.slot)
	if v.Err != nil {
		p.tellRefused(q, v.Err)
		p.m.refused(q, v.Err.Reason)
		p.turnedAway(q, endOf{sluice.Rejected, v.Err.Reason}, v.Err.RetryAfter)
		return
	}
	q.call = call
	p.m.admitted(p, q)
	p.tellQueued(q, v)
	p.grant()
}

// turnedAway is a submission that did not complete: the client submits again, or
// gives up.
func (p *play) turnedAway(q *request, e endOf, retryAfter time.Duration) {
	x := p.sources[q.source]
	r := &x.client.Retry
	q.last = e
	if q.submissions > r.Max || !again(e.reason) {
		p.over(q, e.outcome)
		return
	}
	wait := r.wait(q.submissions)
	if r.Jitter > 0 {
		draw := p.dice.of(x.name, q.index, drawClient+uint64(q.submissions)<<8).Float64()
		wait -= time.Duration(float64(wait) * min(r.Jitter, 1) * draw)
	}
	if r.Honour {
		wait = max(wait, min(retryAfter, longestPace))
	}
	p.tell(q, "the client comes again in %v", wait.Round(time.Millisecond))
	p.timers.set(p.now+wait, timerSubmit, q.slot, q.gen)
}

// wait is what a client waits before its n-th resubmission, chance aside.
func (r *Retry) wait(n int) time.Duration {
	factor := r.Factor
	if factor == 0 {
		factor = 2
	}
	w := float64(r.Backoff)
	for range n - 1 {
		w *= factor
		if r.Cap > 0 && w > float64(r.Cap) {
			break
		}
	}
	if r.Cap > 0 {
		w = min(w, float64(r.Cap))
	}
	return time.Duration(min(w, float64(24*time.Hour)))
}

// again reports whether a client comes again after such an end: not where it would
// be answered the same.
func again(why sluice.Reason) bool {
	switch why {
	case sluice.InvalidRequest, sluice.NeverFits, sluice.ModelNotFound, sluice.ModelNotAllowed, sluice.CapabilityMissing,
		sluice.Unpriced, sluice.BudgetSpent, sluice.UpstreamRefused:
		return false
	}
	return true
}

// impatient is a client whose patience has ended.
func (p *play) impatient(q *request) {
	if q.run.seen > 0 {
		return // it has begun to answer
	}
	p.gone(q, true)
}

// leave is a client that leaves by its own will.
func (p *play) leave(q *request) {
	q.leaves = true
	p.gone(q, false)
}

func (p *play) gone(q *request, impatient bool) {
	p.tell(q, "the client leaves")
	if q.hedge != nil {
		p.lose(q.hedge, sluice.ClientGone)
	}
	if c := q.call; c != nil {
		if q.run.on != nil {
			p.abandon(q)
			p.settled(q, p.gateway.End(p.time(), c, q.truth.input, q.run.cached, sluice.Cancelled, sluice.ClientGone, false))
		} else {
			p.m.waited(q)
			p.m.left(q)
			p.settled(q, p.gateway.Leave(p.time(), c, sluice.ClientGone))
		}
		p.grant()
	}
	q.last = endOf{sluice.Cancelled, sluice.ClientGone}
	if impatient {
		p.m.impatient(q)
	}
	p.over(q, sluice.Cancelled)
}

// over ends a request for the person who waits.
func (p *play) over(q *request, o sluice.Outcome) {
	x := p.sources[q.source]
	p.m.ended(p, q, o)
	p.tell(q, "it has ended: %v", o)
	p.roster.remove(q)
	x.open--
	if x.arrived > x.submitted && p.now < p.s.Length {
		p.timers.set(p.now, timerStream, q.source, 0)
	}
}

// stream is a stream of a client that has become free: what waits for it goes on.
func (p *play) stream(x *source) {
	if p.now >= p.s.Length || x.arrived == x.submitted || x.client.Streams > 0 && x.open >= x.client.Streams {
		return
	}
	var row *Row
	if len(x.rows) > 0 {
		row, x.rows = x.rows[0], x.rows[1:]
	}
	p.start(x, row)
}
