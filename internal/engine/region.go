package engine

import (
	"slices"
	"time"

	"sluice"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// offer is a pool that could serve a request, and its predicted wait there.
type offer struct {
	pool   *pool
	region string
	away   bool
	wait   time.Duration
	inTime bool // it can bear the wait
}

// shortest is the first of some pools whose predicted wait the request can bear, else
// the one with the shortest, of those that serve it at least so well.
func (e *Engine) shortest(now time.Time, r *request, ids []sluice.PoolID, least service) (best offer) {
	for _, id := range ids {
		p := e.poolOf(id).at(r)
		if p == nil || p.serves(now, r) < least {
			continue
		}
		w := p.wait(now, r)
		if e.decline(now, r, p, w) {
			continue
		}
		o := offer{pool: p, region: r.region, away: r.away, wait: w, inTime: w <= e.maxWaitOf(r, p)}
		if best.pool == nil || w < best.wait {
			best = o
		}
		if o.inTime {
			return o
		}
	}
	return best
}

// nearest is the offer of the first region that serves the request in time: of its
// home whatever the wait, unless its model lets it leave for that. While its home comes
// back it is offered only to those whose turn it is, if others can serve the rest in
// time. The request is in the region of the answer then.
func (e *Engine) nearest(now time.Time, r *request, m *route.Model, ids []sluice.PoolID, least service) (best offer) {
	l := r.locality(m)
	if l == nil {
		return e.shortest(now, r, ids, least)
	}
	atHome := false
	for i, region := range l.Regions {
		r.region, r.away = region, l.Away(i)
		o := e.shortest(now, r, ids, least)
		switch {
		case o.pool == nil, atHome && o.pool.state(now) == route.SiteReturning: // guests would take what others come back to
			continue
		case i == 0 && !e.welcome(now, r, m):
		case o.inTime, i == 0 && !l.Overload:
			return o
		}
		if i == 0 || best.pool == nil || !atHome && o.wait < best.wait {
			best, atHome = o, i == 0
		}
	}
	if best.pool != nil {
		r.region, r.away = best.region, best.away
	}
	return best
}

// welcome reports whether a request may go to its home, as far as that comes back
// still. REQUIRES: the request is in its home region. It counts the request, once: one
// whose turn it was not stays away until all may return.
func (e *Engine) welcome(now time.Time, r *request, m *route.Model) (yes bool) {
	yes = true
	r.visit(m, "", func(id sluice.PoolID, _ bool) bool {
		p := e.poolOf(id)
		if p == nil || p.serves(now, r) < avoided {
			return false
		}
		s := p.site(r.region)
		if s == nil {
			return false
		}
		if r.declined && s.State(now, m.Locality.Returns()) == route.SiteReturning {
			yes = false
			return true
		}
		yes = s.Takes(now, m.Locality)
		r.declined = !yes
		return true
	})
	return yes
}

// nextRegion is next for a model with a locality.
func (e *Engine) nextRegion(now time.Time, r *request, m *route.Model, least service) (to *pool, hope bool, err *sluice.Error) {
	l, region, away := m.Locality, r.region, r.away
	home := true
	if away {
		r.region, r.away = l.Regions[0], false
		home = e.welcome(now, r, m)
	}
	for _, patient := range []bool{false, true} {
		for i, region := range l.Regions {
			if i == 0 && !home && !patient {
				continue
			}
			r.region, r.away = region, l.Away(i)
			to, more, last := e.nextPool(now, r, m, least, patient || i == 0 && !l.Overload)
			if to != nil {
				return to, true, nil
			}
			hope = hope || more
			if last != nil {
				err = last
			}
		}
	}
	r.region, r.away = region, away
	return nil, hope, err
}

// nextPool is the first pool that serves the request, where it is to be served, at least
// so well; unless it is patient, one whose predicted wait it can bear.
func (e *Engine) nextPool(now time.Time, r *request, m *route.Model, least service, patient bool) (to *pool, hope bool, err *sluice.Error) {
	r.visit(m, r.pool.id, func(id sluice.PoolID, _ bool) bool {
		p := e.poolOf(id).at(r)
		if p == nil {
			return false
		}
		switch s := p.serves(now, r); {
		case s == never:
			return false
		case s < least:
			hope = true
			return false
		}
		if p != r.pool && p.queue.Full(&r.item) != "" || r.attempt > 0 && p.denies(now, r) != route.Allowed {
			hope = true
			return false
		}
		if !patient && (p.state(now) == route.SiteReturning || p.wait(now, r) > e.maxWaitOf(r, p)) {
			return false
		}
		if err = e.topUp(now, r, p); err != nil {
			return false
		}
		to = p
		return true
	})
	return to, hope, err
}

// bringHome takes the guests that wait for room away from home back to it, as far as
// it serves them again: all of them, where the region that has them is lost or comes back
// itself.
func (e *Engine) bringHome(now time.Time, guests *pool) (moved bool) {
	for _, it := range guests.queue.Stranded(func(*sched.Set) bool { return true }) {
		r := it.Value.(*request)
		m := e.modelOf(r)
		if m == nil || m.Locality == nil {
			continue
		}
		region, away, before := r.region, r.away, r.covers
		r.region, r.away = m.Locality.Regions[0], false
		to, _, _ := e.nextPool(now, r, m, serves, false)
		if to == nil || to == r.pool || guests.state(now) == route.SiteHealthy && !e.welcome(now, r, m) {
			r.region, r.away, r.covers = region, away, before // it holds no less, wherever home would have it cost less
			continue
		}
		e.move(r, to)
		moved = true
	}
	return moved
}

// locality is the model's for the request, nil where any region will do: what can go to
// one place alone is at home there.
func (r *request) locality(m *route.Model) *route.Locality {
	if r.call.Pin != nil {
		return nil
	}
	return m.Locality
}

// located puts the request into a region of its model where that has changed: the one
// of its pool if it is a guest there, else its home.
func (r *request) located(m *route.Model) {
	switch {
	case r.locality(m) == nil:
		r.region, r.away, r.roam = "", false, true
		return
	case r.pool != nil && r.pool.host != nil:
		r.region, r.away = r.pool.region, true
	case r.roam || !slices.Contains(m.Locality.Regions, r.region):
		r.region, r.away = m.Locality.Regions[0], false
	}
	r.roam = false
}

// considered is a word for every place of a pool that a request did not get: that it
// is in another region than it was to be served in only where nothing else is.
func (p *pool) considered(now time.Time, r *request) []route.Left {
	r.attempt-- // the one that it has got: as it was when it asked
	defer func() { r.attempt++ }()
	return p.leftOut(now, r)
}

// leftOut is considered for a request that has got no place at all.
func (p *pool) leftOut(now time.Time, r *request) []route.Left {
	roam := r.roam
	r.roam = true
	left := p.judge(now, r)
	r.roam = roam
	for i := range left {
		switch {
		case left[i] != route.Chosen:
		case !roam && p.places[i].Backend.Region != r.region:
			left[i] = route.LeftLocality
		default:
			left[i] = route.LeftOther
		}
	}
	return left
}
