package engine

import (
	"slices"
	"strings"
	"time"

	"sluice"
	"sluice/internal/route"
)

// besideMark ends the id by which a hedge goes: that of its request and this, which no
// request's own id ends with.
const besideMark = "+"

// Hedged answers Hedge.
type Hedged struct {
	// Grant is the place of the second attempt. Its ID is the attempt's own, by which
	// it is told of until its end: Progress, Step, and AttemptEnded, Settle or Cancel.
	Grant  Grant
	Denied route.Denied  // why there is none
	Err    *sluice.Error // why not, when a limit of the caller or a budget had no room for it
}

// Hedge begins a second attempt at a running request that has shown no content since
// Grant.HedgeAfter. It runs at once or not at all: on a backend of the request's pool
// or of the model's other first pools, outside of the failure domains that the request
// has been in if there is a place, where that takes nothing from anybody who waits.
//
// It is charged and counted as a retry, and has a reservation of its own, which is
// taken before it runs and ends by itself. The two race: the owner ends the one that
// loses by Settle, with LostRace, and the other as any request. Where one fails before
// that, AttemptEnded of it says Race; where the second fails too, what follows is as
// after any failed attempt of the request. Call Advance next.
func (e *Engine) Hedge(now time.Time, id sluice.RequestID) Hedged {
	now = e.tick(now)
	r := e.requests.Find(id)
	if r == nil || r.phase != running || r.begun {
		return Hedged{Denied: route.DeniedOver}
	}
	m, tenant := e.modelNamed(r.item.Flow.Model), r.item.Flow.Tenant
	switch {
	case m == nil || !r.hedges(m):
		return Hedged{Denied: route.DeniedOver}
	case r.away: // headroom is not for what has a place
		return Hedged{Denied: route.DeniedPlace}
	}
	if r.attempt >= e.retries.Policy().Attempts {
		return Hedged{Denied: route.DeniedAttempts}
	}
	if why := e.retries.Allows(now, tenant); why != route.Allowed {
		return Hedged{Denied: why}
	}
	h := e.newHedge(now, r, m)
	i, why := e.seat(now, h, m)
	if why != route.Allowed {
		e.reuse(h)
		return Hedged{Denied: why}
	}
	if why, err := e.startHedge(now, h, r); why != route.Allowed || err != nil {
		e.book.Release(now, &h.res)
		e.reuse(h)
		return Hedged{Denied: why, Err: err}
	}
	e.retries.Admit(now, tenant)
	h.hash = e.requests.Add(h)
	r.other, h.other = h, r
	r.hedged, h.hedged = true, true
	e.races++
	e.begin(now, h, i)
	r.attempt = h.attempt // how many there were
	grants := e.answers.grants
	g := grants[len(grants)-1] // to be returned, not to be waited for
	e.answers.grants = grants[:len(grants)-1]
	return Hedged{Grant: g}
}

// hedges reports whether a request of a model may have a second attempt beside one of
// its own, of which it has had none.
func (r *request) hedges(m *route.Model) bool {
	c := &r.call
	return m.Hedge != nil && m.Hedge.Classes[c.Class] && c.Streaming && !c.Single && !c.Free && c.Shadow == nil && !r.hedged
}

// hedgeAfter is when the attempt that begins is late, 0 if that has no consequence.
func (r *request) hedgeAfter(m *route.Model) time.Duration {
	if !r.hedges(m) {
		return 0
	}
	late, _ := m.Hedge.Delay(&r.pool.base().latency)
	return late
}

// newHedge is a request that stands for the second attempt at another, to be held
// against what a further attempt of that one would be.
func (e *Engine) newHedge(now time.Time, r *request, m *route.Model) *request {
	h := e.newRequest(now, &Call{Principal: r.principal(), Model: r.item.Flow.Model, Class: r.call.Class, Work: r.call.Work, Bytes: r.item.Bytes})
	h.call = r.call
	h.call.ID += besideMark
	h.beside, h.arrived, h.attempt = true, r.arrived, r.attempt
	h.predicted = r.predicted
	h.region, h.roam = r.region, r.roam
	h.under(m)
	h.call.Least = r.bound // its answer is not shorter
	h.covers = r.covers    // it is to hold as much before it runs
	if r.ranked(m) {
		h.rank(m, r.first(m))
	}
	h.tried = append(slices.Clone(r.tried), r.place.Backend.ID)
	h.failed = append(slices.Clone(r.failed), r.place.Backend.Domain)
	return h
}

// seat finds a place for a hedge: in its request's pool, then in the model's other
// first pools, outside of the failure domains that the request has been in and then
// within them. why says what is in the way where there is none.
func (e *Engine) seat(now time.Time, h *request, m *route.Model) (i int, why route.Denied) {
	current := e.requests.Find(h.of()).pool.id // a guest has no hedge
	i, why = -1, route.DeniedNowhere
	for _, h.avoid = range []bool{true, false} {
		found := h.visit(m, current, func(id sluice.PoolID, fallback bool) bool {
			p := e.poolOf(id)
			if p == nil || fallback && id != current { // it is late, and has not failed
				return false
			}
			if d := p.denies(now, h); d != route.Allowed {
				if why == route.DeniedNowhere {
					why = d
				}
				return false
			}
			h.pool = p
			i = p.choose(now, h)
			for i < 0 && e.yield(now, p, p.eligible(h)) {
				i = p.choose(now, h)
			}
			if i < 0 {
				why = route.DeniedPlace
			}
			return i >= 0
		})
		if found {
			return i, route.Allowed
		}
	}
	return -1, why
}

// startHedge takes what a hedge needs, all or nothing but for the memory of its
// reservation: the hold on rates and budgets, its caller's gauges, and its part of the
// pool.
func (e *Engine) startHedge(now time.Time, h, r *request) (route.Denied, *sluice.Error) {
	p := h.pool
	e.book.Beside(&h.res, &r.res)
	e.rows = p.offers(h, e.rows[:0])
	if err := e.reserve(now, h, e.rows, e.book.TopUp); err != nil {
		return route.Allowed, err
	}
	if e.book.TakeGauges(&h.res, h.hold()) != nil {
		return route.Allowed, e.refused(now, h, e.book.GaugeRefusal(now, &h.res, h.hold()))
	}
	h.weigh(p)
	p.room = room{p: p, now: now}
	if p.entertains() || !p.queue.StartSpare(now, &h.item, &p.room) {
		return route.DeniedPlace, nil
	}
	return route.Allowed, nil
}

// entertains reports whether a guest waits for one of the pool's places.
func (p *pool) entertains() bool {
	return slices.ContainsFunc(p.sites, func(s *site) bool { return s.guests != nil && s.guests.queue.Len() > 0 })
}

// of is the id of the request that a hedge is beside; a request's own id.
func (r *request) of() sluice.RequestID {
	if !r.beside {
		return r.call.ID
	}
	return sluice.RequestID(strings.TrimSuffix(string(r.call.ID), besideMark))
}

// part ends a race: one of the two has ended.
func (e *Engine) part(r *request) {
	o := r.other
	if o == nil {
		return
	}
	r.other, o.other = nil, nil
	e.races--
}

// lost notes how long an attempt that loses a race had shown nothing.
func (e *Engine) lost(now time.Time, r *request, why sluice.Reason) {
	if why == sluice.LostRace && r.phase == running && !r.begun {
		r.pool.base().latency.Observe(time.Duration(e.ns - r.started))
	}
}
