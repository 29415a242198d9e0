package engine

import (
	"slices"
	"time"

	"sluice"
	"sluice/internal/ladder"
	"sluice/internal/quota"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// Advance sweeps expired holds, grants places in queue order and ends waits that
// are over. The slice is valid until the next Advance.
func (e *Engine) Advance(now time.Time) []Grant {
	now = e.tick(now)
	e.sweep(now)
	e.look(now)
	if !e.cools.IsZero() && !now.Before(e.cools) {
		e.healthChanged(now)
	}
	due := e.due(now) // if no wait is over, none will be: who moves keeps its deadline
	if due {
		e.endWaits(now.Add(-1)) // a place that comes too late is for those behind
	}
	for again := true; again; {
		again = e.evacuateAll(now)
		for _, p := range e.pools {
			if p.waits() && (e.serve(now, p) || e.displace(now, p)) {
				again = true // a request has moved to a pool that may have been served already
			}
		}
		if !again && due {
			again = e.endWaits(now) // what leaves may have kept others back
		}
	}
	e.answers, e.told = e.told, e.answers
	e.answers.reset()
	return e.told.grants
}

// due reports whether a wait is to be over by a moment.
func (e *Engine) due(by time.Time) bool {
	for _, p := range e.queues {
		if p.queue.Due(by) != nil {
			return true
		}
	}
	return false
}

// endWaits ends the waits that were to be over by a moment. It reports whether
// there were any.
func (e *Engine) endWaits(by time.Time) (any bool) {
	for _, p := range e.queues {
		for it := p.queue.Due(by); it != nil; it = p.queue.Due(by) {
			r := it.Value.(*request)
			e.endWait(r, e.waitedTooLong(e.now, r))
			any = true
		}
	}
	return any
}

// answers is what Advance returns, and the memory that it refers to. Two of them
// take turns, so that what was returned stays as it is until the next Advance.
type answers struct {
	grants     []Grant
	candidates []Candidate
	limits     quota.LimitsBuffer
	pools      []PoolFigure
}

func (a *answers) reset() {
	a.grants, a.candidates, a.pools = a.grants[:0], a.candidates[:0], a.pools[:0]
	a.limits.Reset()
}

// NextWake is when Advance has something to do though nothing else happens: a
// deadline in a queue, a hold that may have expired, a cool-down that ends or a
// provider's rate that has room again while something waits.
func (e *Engine) NextWake() (at time.Time, ok bool) {
	sooner := func(t time.Time) {
		if !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	waiting := false
	for _, p := range e.queues {
		if t, w := p.queue.NextDeadline(); w {
			waiting = true
			sooner(t)
			if t, paced := p.paced(e.now); paced {
				sooner(t)
			}
		}
	}
	if e.expiry.Len() > 0 {
		sooner(e.base.Add(time.Duration(e.expiry.Key())))
	}
	if e.ladders && (waiting || e.restless) {
		sooner(e.base.Add(time.Duration(e.looked) + ladderEvery))
	}
	if waiting && !e.cools.IsZero() {
		sooner(e.cools)
	}
	if len(e.answers.grants) > 0 {
		sooner(e.now)
	}
	return at, ok
}

// serve grants what it can of a pool's queue. It reports whether a request moved
// to another pool.
func (e *Engine) serve(now time.Time, p *pool) (moved bool) {
	p.room = room{p: p, now: now}
	for p.open(now) {
		it := p.next(now)
		if it == nil {
			break
		}
		r := it.Value.(*request)
		i := r.pool.choose(now, r)
		if i < 0 && r.attempt == 0 {
			break // it waits, as all do that it would let pass
		}
		if i < 0 {
			moved = e.stay(now, r) || moved
			continue
		}
		if blocked := e.book.TakeGauges(&r.res, r.hold()); blocked != nil {
			r.pool.queue.Park(it, blocked)
			e.retracts(r)
			continue
		}
		r.pool.queue.Dispatch(now, it)
		e.starts(r)
		e.begin(now, r, i)
	}
	return moved
}

// stay lets a further attempt, whose turn has come and which none of the backends
// outside of its failed domains may be given, take what is left within them; else it
// is denied. It reports whether the request moved.
func (e *Engine) stay(now time.Time, r *request) (moved bool) {
	if r.avoid {
		r.failed, r.avoid = r.failed[:0], false
		if e.relocate(now, r) {
			return true
		}
	}
	if r.item.Waiting() {
		e.deny(now, r)
	}
	return false
}

// topUp raises what a request holds to what the backends of a pool may cost it.
func (e *Engine) topUp(now time.Time, r *request, p *pool) *sluice.Error {
	e.rows = e.rows[:0]
	if !r.call.Free {
		e.rows = p.offers(r, e.rows)
	}
	return e.reserve(now, r, e.rows, e.book.TopUp)
}

// choose is the index of the best place for what the queue has picked. There is
// one, but that a further attempt may be left with those that have had their
// retries: then it is -1.
func (p *pool) choose(now time.Time, r *request) int {
	left := p.judge(now, r)
	if kept := p.keeps(); kept != nil && (r.beside || !p.queue.First(&r.item)) {
		left[slices.Index(p.places, kept)] = route.LeftKept
	}
	if p.host != nil && p.host.keeps() != nil {
		left[slices.Index(p.places, p.host.keeps())] = route.LeftKept
	}
	r.ownFirst(p.places, left)
	if probe := route.Ease(now, p.places, left); probe >= 0 {
		for i := range left {
			if i != probe && left[i] == route.Chosen {
				left[i] = route.LeftOther
			}
		}
	}
	p.favour(now, r, left)
	p.asking = route.Asking{}
	if r.sticky || p.chooser.Asks() {
		p.asking = r.asking()
	}
	return p.chooser.Choose(now, left, &p.asking)
}

// begin lets an attempt, whose gauges have been taken, run on the i-th place of its
// pool, and grants it.
func (e *Engine) begin(now time.Time, r *request, i int) {
	p := r.pool
	r.place = p.places[i]
	r.cached = p.chooser.Took(i, &p.asking)
	r.taken = e.newTaken()
	need := r.needOfPlace()
	r.place.Take(now, &need, r.taken)
	r.waited()
	r.bounded()
	r.phase = running
	if r.cached > 0 {
		e.correct(now, r, sluice.Usage{}, false)
		p.queue.Prefills(&r.item, int64(r.taken.Prefill))
		e.found(r)
	}
	switch r.attempt++; {
	case r.call.Shadow != nil: // earns nobody a retry
	case r.attempt == 1:
		e.retries.First(now, r.item.Flow.Tenant, r.place)
	default:
		e.retries.Retried(now, r.place)
	}
	r.started = e.ns
	e.running++
	e.watch(r)
	if s := p.base().site(r.place.Backend.Region); s != nil && !r.roam {
		s.traffic.Began(now, r.away)
	}
	e.grant(now, r)
}

// grant tells of a place.
func (e *Engine) grant(now time.Time, r *request) {
	out, p := e.answers, r.pool
	candidates, would := e.candidates(now, r), e.would(now, r)
	out.grants = append(out.grants, Grant{})
	g := &out.grants[len(out.grants)-1] // filled where it is: it is long
	g.ID, g.Handle, g.Attempt, g.Pool, g.Backend, g.Key = r.call.ID, Handle{r}, r.attempt, p.id, r.place.Backend, r.taken.Key()
	if m := e.modelOf(r); m != nil && r.call.Shadow == nil {
		g.Fallback = m.IsFallback(p.id)
		if m.Terms != nil {
			g.Canary = m.Terms[p.id].IsCanary()
		}
		if m.Evaluated != nil {
			g.Evaluated = m.Evaluated[p.id]
		}
		g.HedgeAfter = r.hedgeAfter(m)
	}
	g.Away, g.Queued, g.Stay = r.away, e.queued(r), p.chooser.Stayed()
	g.OutputBound, g.Clamped, g.HeldSpend, g.HeldTo = r.bound, r.bound < r.call.Work.OutputBound, r.spend, r.heldTo
	g.Whole = r.call.Run != "" && r.res.Whole()
	if g.Tier, g.Degraded = r.tier, r.clamped; g.Tier != ladder.None {
		g.Felt = r.felt
	}
	g.Policy, g.Candidates, g.Limits, g.Would = e.table.Version, candidates, e.book.Limits(now, &r.res, &out.limits), would
	if g.Prefer = r.prefer; g.Prefer != route.PreferNone && r.ranking != nil {
		g.Preferred = e.preferred(r)
	}
}

// queued is how long a request has waited for the attempt that begins.
func (e *Engine) queued(r *request) time.Duration {
	if r.attempt == 1 {
		return time.Duration(e.ns - r.arrived)
	}
	return e.now.Sub(r.item.Since)
}

// candidates lists the backends that were considered: those of the pools before
// the one that it got, and that one's.
func (e *Engine) candidates(now time.Time, r *request) []Candidate {
	out, from := e.answers.candidates, len(e.answers.candidates)
	if m := e.modelOf(r); m != nil && r.call.Shadow == nil && (m.Terms != nil || m.Locality != nil || m.Prefer != route.PreferNone || len(m.Pools) > 0 && m.Pools[0] != r.pool.id) {
		out = e.unmet(r, m, out)
		r.visit(m, "", func(id sluice.PoolID, fallback bool) bool {
			p := e.poolOf(id)
			if p == nil || p == r.pool.base() {
				return p != nil && r.locality(m) == nil
			}
			if fallback && !m.IsFallback(r.pool.id) {
				return true
			}
			for i, left := range p.considered(now, r) {
				out = append(out, r.candidate(id, p.places[i].Backend, left))
			}
			return false
		})
	}
	p := r.pool
	at := len(out)
	out = append(out, p.blanks...)
	own := out[at:]
	for i, left := range p.left[:len(own)] {
		if left == route.Chosen {
			continue
		}
		c := &own[i]
		if c.Left = string(left); left == route.LeftLacks || left == route.LeftTranslate {
			c.detail(r, p.places[i].Backend, left)
		}
	}
	if p.chooser.Asks() {
		for i := range own {
			note := p.chooser.Note(i)
			own[i].Cached, own[i].Cost = note.Cached, note.Cost
		}
	}
	for i, f := range p.figures {
		own[i].Expected, own[i].Price = f.Time, f.Price
	}
	e.answers.candidates = out
	return slices.Clip(out[from:])
}

// unmet lists the backends of the model's first pools whose terms a request does not
// meet.
func (e *Engine) unmet(r *request, m *route.Model, out []Candidate) []Candidate {
	if m.Terms == nil {
		return out
	}
	first := r.first(m)
	for _, id := range m.Pools {
		if p := e.poolOf(id); p != nil && p != r.pool.base() && !slices.Contains(first, id) {
			for _, pl := range p.places {
				out = append(out, r.candidate(id, pl.Backend, route.LeftTerms))
			}
		}
	}
	return out
}

// mostLeftOut bounds what is told of a request that nothing serves.
const mostLeftOut = 16

// leftOut lists the backends of all pools of a model, of which none serves a request.
func (e *Engine) leftOut(now time.Time, r *request, m *route.Model) (out []Candidate) {
	m.Visit("", func(id sluice.PoolID, _ bool) bool {
		p := e.poolOf(id)
		if p == nil {
			return false
		}
		for i, left := range p.leftOut(now, r) {
			if len(out) == mostLeftOut {
				return true
			}
			out = append(out, r.candidate(id, p.places[i].Backend, left))
		}
		return false
	})
	return out
}

// candidate tells of a backend that was considered.
func (r *request) candidate(p sluice.PoolID, b *route.Backend, left route.Left) Candidate {
	c := Candidate{Pool: p, Backend: b.ID, Left: string(left)}
	c.detail(r, b, left)
	return c
}

// detail tells what it is that a backend lacks, or cannot say.
func (c *Candidate) detail(r *request, b *route.Backend, left route.Left) {
	switch left {
	case route.LeftLacks:
		ask := r.spoken()
		c.Lacks = ask.NeedsOf(b) & b.Lacks
	case route.LeftTranslate:
		ask := r.spoken()
		if err := ask.Untranslated(b); err != nil {
			c.Field = err.Param
		}
	}
}

// endWait takes a request out of its queue without a place. A first attempt
// returns all it held; after an attempt the request stays open for its owner.
func (e *Engine) endWait(r *request, err *sluice.Error) {
	r.waited()
	r.pool.queue.Remove(&r.item, sched.Rejected)
	if err.Reason == sluice.ConcurrencyLimited {
		e.retracts(r)
	} else {
		e.leaves(r)
	}
	e.turnedAway(e.now, r.pool, r, err.Reason)
	e.answers.grants = append(e.answers.grants, Grant{
		ID: r.call.ID, Attempt: r.attempt, Pool: r.pool.id, Err: err, Queued: e.now.Sub(r.item.Since),
		Limits: e.book.Limits(e.now, &r.res, nil), Policy: e.table.Version, Tier: r.tier, Felt: r.felt,
	})
	if r.attempt > 0 {
		r.phase = idle
		e.watch(r)
		return
	}
	e.book.Release(e.now, &r.res)
	e.drop(r)
}
