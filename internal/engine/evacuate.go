package engine

import (
	"time"

	"sluice"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// evacuateAll evacuates every pool before any is served: who comes home goes before the
// guests that wait there. It reports whether a request moved.
func (e *Engine) evacuateAll(now time.Time) (moved bool) {
	for _, p := range e.pools {
		if !p.waits() {
			continue
		}
		moved = e.evacuate(now, p) || moved
		for _, s := range p.sites {
			if s.guests != nil {
				moved = e.evacuate(now, s.guests) || moved
			}
		}
	}
	return moved
}

// evacuate takes requests that no healthy backend of their pool can serve to
// others that can. It looks again only when health or the table has changed.
func (e *Engine) evacuate(now time.Time, p *pool) (moved bool) {
	if p.scanned == e.epoch {
		return false
	}
	p.scanned = e.epoch
	stranded := p.queue.Stranded(func(s *sched.Set) bool {
		for i, pl := range p.places {
			if s.Has(i) && pl.Ready(now) {
				return false
			}
		}
		return true
	})
	for _, it := range stranded {
		if e.relocate(now, it.Value.(*request)) {
			moved = true
		}
	}
	if p.host != nil {
		moved = e.bringHome(now, p) || moved
	}
	return moved
}

// relocate takes a waiting request whose pool cannot serve it now to the first
// one that can, in the order of its model. It fails a request that no backend of
// its model could ever serve; one that has only health in its way stays. It
// reports whether the request moved.
func (e *Engine) relocate(now time.Time, r *request) bool {
	m := e.modelOf(r)
	if m == nil {
		e.endWait(r, noBackend(r.item.Flow.Model))
		return false
	}
	to, hope, err := e.elsewhere(now, r, m)
	switch {
	case to != nil:
		e.move(r, to)
		return true
	case err != nil:
		e.endWait(r, err)
	case !hope:
		e.endWait(r, noBackend(m.ID))
	}
	return false
}

// elsewhere finds the next pool for a request: outside of the failure domains in
// which its attempts failed, and inside only where no pool outside takes it; and of
// those that have failed altogether, if there is another. hope is that there may be one
// later: health or a full queue is all that is in the way. err is the last refusal of
// a hold.
func (e *Engine) elsewhere(now time.Time, r *request, m *route.Model) (to *pool, hope bool, err *sluice.Error) {
	before := r.avoid
	r.under(m)
	e.prefer(now, r, m)
	for _, least := range []service{serves, avoided} {
		for _, r.avoid = range []bool{true, false} {
			if r.avoid && len(r.failed) == 0 {
				continue
			}
			to, more, last := e.next(now, r, m, least)
			if to != nil {
				return to, true, nil
			}
			hope = hope || more
			if last != nil {
				err = last
			}
		}
	}
	r.avoid = before // it stays as it waits
	return nil, hope, err
}

// next finds the next pool for a request, of those with a backend that serves it at
// least so well: the first whose predicted wait it can bear, else the first.
func (e *Engine) next(now time.Time, r *request, m *route.Model, least service) (to *pool, hope bool, err *sluice.Error) {
	if r.locality(m) != nil {
		return e.nextRegion(now, r, m, least)
	}
	if to, hope, _ = e.nextPool(now, r, m, least, false); to != nil {
		return to, hope, nil
	}
	return e.nextPool(now, r, m, least, true)
}
