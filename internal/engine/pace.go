package engine

import (
	"time"

	"sluice"
	"sluice/internal/route"
)

// A backend that is well but asked to be left alone for a while (429, 529,
// Retry-After) is worth waiting for, where no other serves the request and the while is
// no longer than the request may wait. An open breaker is not: nobody knows when it
// closes.

// resumes is when the first of the pool's backends that may serve r and asked to be left
// alone takes requests again; false if none does within the time that r may wait.
func (e *Engine) resumes(now time.Time, r *request, p *pool) (at time.Time, ok bool) {
	may := p.eligible(r)
	for i, pl := range p.places {
		if !may.Has(i) {
			continue
		}
		if t, paced := pl.Resumes(now, r.only()); paced && (!ok || t.Before(at)) {
			at, ok = t, true
		}
	}
	return at, ok && at.Sub(now) < e.maxWaitOf(r, p)
}

// soon is the first pool of a model that serves the request again within the time that
// it may wait, and how long that is: in its home region, if it has one.
func (e *Engine) soon(now time.Time, r *request, m *route.Model) (in *pool, wait time.Duration) {
	if l := r.locality(m); l != nil {
		r.region, r.away = l.Regions[0], false
	}
	r.visit(m, "", func(id sluice.PoolID, _ bool) bool {
		p := e.poolOf(id)
		if at, ok := e.resumes(now, r, p); ok {
			in, wait = p, max(at.Sub(now), p.wait(now, r))
		}
		return in != nil
	})
	return in, wait
}

// linger lets a request that pl has refused for now (429), and that nothing else serves,
// wait for pl. It is a further attempt like any other. It reports whether it waits.
func (e *Engine) linger(now time.Time, r *request, pl *route.Place, res *Result) bool {
	paced := res.Reason == sluice.UpstreamLimited && !res.Overload
	if !paced || pl.Retired || r.attempt >= e.retries.Policy().Attempts || e.retries.Allows(now, r.item.Flow.Tenant) != route.Allowed {
		return false
	}
	tried := r.tried
	if n := len(tried); n > 0 && tried[n-1] == pl.Backend.ID {
		r.tried = tried[:n-1]
	}
	if _, ok := e.resumes(now, r, r.pool); !ok {
		r.tried = tried
		return false
	}
	e.retries.Admit(now, r.item.Flow.Tenant)
	return true
}
