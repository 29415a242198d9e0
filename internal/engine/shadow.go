package engine

import (
	"slices"
	"time"

	"sluice"
	"sluice/internal/quota"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// Copy gives a copy of a request, of which Call.Shadow tells, a place in the shadow's
// pool: at once, on what nobody else waits for or is kept for, or not at all, and then
// it says why. What it takes is on an account of its own alone. It ends by Settle or
// Cancel; a Grant with an error before that, from Advance, tells that it has lost its
// place, and is to be cancelled and settled. Call Advance next.
//
// REQUIRES: the policy of the call's principal has hard spend, and says no more than
// where it may go.
func (e *Engine) Copy(now time.Time, c Call) (Grant, route.Skip) {
	now = e.tick(now)
	m, p := e.modelNamed(c.Model), e.poolOf(c.Shadow.Pool)
	if e.requests.Find(c.ID) != nil || m == nil || p == nil {
		return Grant{}, route.SkipGone
	}
	c.Class, c.Least, c.Counted = sluice.Batch, c.Work.OutputBound, false // whole or not at all: a shorter answer compares with nothing
	r := e.newRequest(now, &c)
	r.maxSpend, r.risks, r.roam, r.pool = m.MaxSpend, c.Shadow.Risks(), true, p
	e.open(now, r, &c, m, nil)
	if skip := e.admitCopy(now, r); skip != route.Sent {
		e.book.Release(now, &r.res)
		e.reuse(r)
		return Grant{}, skip
	}
	r.hash = e.requests.Add(r)
	i := p.choose(now, r)
	p.addCopy(r)
	e.begin(now, r, i)
	last := len(e.answers.grants) - 1
	g := e.answers.grants[last]
	e.answers.grants = e.answers.grants[:last]
	return g, route.Sent
}

// admitCopy takes what a copy needs of its account and finds that its pool has a place
// for it, which is not taken yet.
func (e *Engine) admitCopy(now time.Time, r *request) route.Skip {
	p := r.pool
	if why := furthest(p.judge(now, r)); why != route.Chosen {
		return route.Skip(why)
	}
	r.item.Backends = *p.eligible(r)
	need := r.needOfPlace()
	r.item.Need = p.group(&r.item.Backends).need(&need)
	if wanted := p.wanted(); !wanted.Empty() || p.queue.Gathering() != nil {
		return route.SkipWaiting
	}
	if !p.queue.Spare(r.call.Class, r.item.Need, &room{p: p, now: now}) {
		return route.SkipReserved
	}
	e.rows = p.offers(r, e.rows[:0])
	if err := e.reserve(now, r, e.rows, e.book.Reserve); err != nil {
		if err.Refusal == nil {
			return route.Skip(err.Reason.String())
		}
		return route.Skip(err.Refusal.Limit.Dimension.String())
	}
	if e.book.TakeGauges(&r.res, r.hold()) != nil {
		return route.Skip(e.book.GaugeRefusal(now, &r.res, r.hold()).Limit.Dimension.String())
	}
	return route.Sent
}

// asked reports whether the pool serves requests of any model, and not copies alone.
func (p *pool) asked() bool { return len(p.others) > 0 }

// furthest is Chosen if any backend may be, else why not the one that came furthest.
func furthest(left []route.Left) route.Left {
	order := []route.Left{
		route.LeftDialect, route.LeftDrained, route.LeftRegion, route.LeftProvider, route.LeftRisk, route.LeftTranslate, route.LeftLacks, route.LeftContext,
		route.LeftUnpriced, route.LeftTooDear, route.LeftUnhealthy, route.LeftParked, route.LeftDomain, route.LeftPaced, route.LeftFull,
	}
	most, why := -1, route.LeftDrained // a pool without backends takes nothing
	for _, l := range left {
		if l == route.Chosen {
			return l
		}
		if at := slices.Index(order, l); at > most {
			most, why = at, l
		}
	}
	return why
}

// addCopy notes a copy that begins, and dropCopy one that has ended.
func (p *pool) addCopy(r *request) {
	p.queue.Copy(r.item.Need, +1)
	p.copies = append(p.copies, r)
}

func (p *pool) dropCopy(r *request) {
	p.queue.Copy(r.item.Need, -1)
	p.copies = slices.DeleteFunc(p.copies, func(c *request) bool { return c == r })
}

// wanted is the backends for which something waits whose turn its caller's own limits
// do not hold up, guests from other regions too.
func (p *pool) wanted() sched.Set {
	s := p.queue.Wanted()
	for _, site := range p.sites {
		if site.guests != nil {
			of := site.guests.queue.Wanted()
			s.Include(&of)
		}
	}
	return s
}

// yields reports whether a copy runs on a place of the pool, which it would lose to
// a request.
func (p *pool) yields(pl *route.Place) bool {
	return slices.ContainsFunc(p.copies, func(c *request) bool { return c.place == pl })
}

// displace takes its place from a copy, for what waits for the backend that it runs on.
// It reports whether there was one.
func (e *Engine) displace(now time.Time, p *pool) bool {
	if len(p.copies) == 0 {
		return false
	}
	wanted := p.wanted()
	return e.yield(now, p, &wanted)
}

// yield takes its place from the copy that began last of those on some backends. It
// reports whether there was one.
func (e *Engine) yield(now time.Time, p *pool, wanted *sched.Set) bool {
	for _, r := range slices.Backward(p.copies) {
		if at := slices.Index(p.places, r.place); at < 0 || !wanted.Has(at) {
			continue
		}
		e.free(now, r, route.Ending{Why: sluice.Displaced})
		r.phase = idle
		e.watch(r)
		e.answers.grants = append(e.answers.grants, Grant{ID: r.call.ID, Attempt: r.attempt, Pool: p.id, Err: &sluice.Error{
			Kind: sluice.KindCancelled, Reason: sluice.Displaced, Msg: "a request waited for the place of this copy",
		}})
		return true
	}
	return false
}

// shadowOwner is the account of a model's shadow.
func shadowOwner(m sluice.ModelID, p sluice.PoolID) quota.Owner {
	return quota.Owner{Scope: sluice.ScopeShadow, ID: string(m) + "/" + string(p)}
}
