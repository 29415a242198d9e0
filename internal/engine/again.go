package engine

import (
	"time"

	"sluice"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// again finds the pool in which a request whose attempt has failed waits for the
// next, and counts that against the budgets of all and of its tenant. Without one,
// err is what refused to raise its hold, or else why says what was in the way.
func (e *Engine) again(now time.Time, r *request) (to *pool, why route.Denied, err *sluice.Error) {
	m, tenant := e.modelOf(r), r.item.Flow.Tenant
	if m == nil {
		return nil, route.DeniedNowhere, nil
	}
	if r.attempt >= e.retries.Policy().Attempts {
		return nil, route.DeniedAttempts, nil
	}
	if why = e.retries.Allows(now, tenant); why != route.Allowed {
		return nil, why, nil
	}
	to, _, err = e.elsewhere(now, r, m)
	switch {
	case to != nil:
		e.retries.Admit(now, tenant)
		return to, route.Allowed, nil
	case err != nil:
		return nil, route.Allowed, err
	}
	why = route.DeniedNowhere
	roam := r.roam
	r.roam = true
	r.visit(m, r.pool.id, func(id sluice.PoolID, _ bool) bool {
		if p := e.poolOf(id); p != nil {
			why = p.denies(now, r)
		}
		return why != route.DeniedNowhere
	})
	r.roam = roam
	return nil, why, nil
}

// denies tells why the pool may not be given a further attempt of r, which has
// failed elsewhere.
func (p *pool) denies(now time.Time, r *request) route.Denied {
	bounded := !p.retries.Policy().Unbounded
	if bounded && p.sheds(now) {
		return route.DeniedShedding
	}
	why, ask := route.DeniedNowhere, r.ask(p)
	for _, pl := range p.places {
		if r.eligible(pl.Backend, &ask) != route.Chosen {
			continue
		}
		on := p.retries.AllowsOn(now, pl)
		switch {
		case pl.FitWith(now, r.only()) != route.Chosen:
			if why == route.DeniedNowhere {
				why = route.DeniedBreaker
			}
		case on == route.Allowed:
			if in := r.phase == waiting && r.pool == p; bounded && !in && p.queue.Full(&r.item) != "" {
				return route.DeniedShedding
			}
			return route.Allowed
		default:
			why = on
		}
	}
	return why
}

// deny ends the wait of a further attempt: its turn has come, and the backends
// that have room for it may not be given another retry any more.
func (e *Engine) deny(now time.Time, r *request) {
	why := r.pool.denies(now, r)
	if why == route.Allowed { // by a backend that has no room
		why = route.DeniedBackend
	}
	r.pool.queue.Remove(&r.item, sched.Rejected)
	e.leaves(r)
	e.answers.grants = append(e.answers.grants, Grant{
		ID: r.call.ID, Attempt: r.attempt, Pool: r.pool.id, Queued: now.Sub(r.item.Since), Denied: why,
		Err:    &sluice.Error{Kind: sluice.KindOverloaded, Reason: sluice.NoBackend, Msg: "no further attempt: " + string(why)},
		Limits: e.book.Limits(now, &r.res, nil),
	})
	r.phase = idle
	e.watch(r)
}

// turnedAway counts a request that got no place, for the view, and notes that the
// pool sheds if that is for want of room.
func (e *Engine) turnedAway(now time.Time, p *pool, r *request, why sluice.Reason) {
	p.base().queue.Refuse(now, r.call.Class, r.item.Flow.Tenant, why)
	switch why {
	case sluice.QueueFull:
	case sluice.DeadlineUnmet, sluice.QueueTimeout: // nobody can make a pool shed by being impatient
		if e.maxWaitOf(r, p) < e.mostWait(r.call.Policy, p) {
			return
		}
	default:
		return
	}
	if g := p.base().grade; g != nil && r.call.Class < sluice.Batch && !r.partly {
		g.window.Refused(now)
	}
	p.shed = now
}

// sheds reports whether the pool had no room for a request just now.
func (p *pool) sheds(now time.Time) bool {
	return !p.shed.IsZero() && now.Sub(p.shed) < route.ShedFor
}
