package engine

import (
	"time"

	"sluice"
	"sluice/internal/prefetch"
	"sluice/internal/quota"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// Settle ends a request: what it took is charged, the rest of its hold is
// returned. Nil, ErrLate or ErrSettled. Call Advance next.
//
// A request that had a place is charged as one request, whatever became of it;
// one that never had is not.
func (e *Engine) Settle(now time.Time, id sluice.RequestID, a Actual) error {
	now = e.tick(now)
	r := e.find(id, a.Handle)
	if r == nil {
		return ErrSettled
	}
	r.res.Prefetch()
	e.requests.Prefetch(r.hash)
	if r.phase == running {
		e.ahead.begin(r.pool.queue)
	}
	if r.attempt > 0 { // what earlier attempts took has been charged
		e.correctTotal(now, r, &a.Usage)
		e.ahead.step()
		e.lost(now, r, a.Reason)
		r.reported(&a.Usage)
		e.spent(now, r, &a)
	}
	actual := r.amounts(&a.Usage, a.Cost)
	if r.call.Free {
		actual = quota.Amounts{sluice.Requests: 1}
	}
	if r.attempt == 0 {
		actual = quota.Amounts{}
	}
	return e.end(now, r, a.Reason, actual)
}

// find is the open request of an id, which is looked up unless the handle is its.
func (e *Engine) find(id sluice.RequestID, h Handle) *request {
	if r := h.r; r != nil {
		prefetch.From(&r.hash, endBytes)
		if r.phase != ended && r.call.ID == id {
			return r
		}
	}
	return e.requests.Find(id)
}

// correctTotal charges the attempt that runs for all that the request took less
// what its earlier attempts did.
func (e *Engine) correctTotal(now time.Time, r *request, u *sluice.Usage) {
	if r.phase != running || r.call.Free {
		return
	}
	cost := r.pool.cost(u.Input+u.CacheWrite, u.OutputTotal())
	r.pool.queue.Correct(now, &r.item, max(0, cost-r.worked))
}

// Cancel ends a request that used nothing: everything is returned, the request
// count too, but for what AttemptEnded posted. It reports whether the request was
// open. Call Advance next.
func (e *Engine) Cancel(now time.Time, id sluice.RequestID, why sluice.Reason) bool {
	now = e.tick(now)
	r := e.requests.Find(id)
	if r == nil {
		return false
	}
	e.correct(now, r, sluice.Usage{}, true)
	if r.phase == running {
		r.taken.Spent(0, 0, why)
	}
	_ = e.end(now, r, why, r.res.Posted())
	return true
}

// end leaves whatever phase the request is in, for good.
func (e *Engine) end(now time.Time, r *request, why sluice.Reason, actual quota.Amounts) error {
	switch r.phase {
	case waiting:
		r.pool.queue.Remove(&r.item, sched.Cancelled)
		e.leaves(r)
	case running:
		e.ahead.step()
		e.free(now, r, route.Ending{Why: why})
		e.ahead.step()
	case idle:
		e.unwatch(r)
	case expired:
		e.expired.Remove(&r.spot)
		e.book.SettleLate(now, &r.res, actual)
		e.drop(r)
		return ErrLate
	}
	e.book.Settle(now, &r.res, actual)
	e.ahead.step()
	if r.call.Shadow == nil {
		e.learnLife(time.Duration(e.ns - r.arrived))
	}
	e.drop(r)
	e.ahead.step()
	return nil
}

// learnLife follows how long requests hold their reservation, with weight 1/8:
// the estimate of when a limit that is held by requests in flight has room.
func (e *Engine) learnLife(d time.Duration) {
	if e.life == 0 {
		e.life = d
		return
	}
	e.life += (d - e.life) / 8
}

// watch puts a request under the expiry rule.
func (e *Engine) watch(r *request) {
	r.expires = e.ns + int64(e.ttl(r))
	e.expiry.Push(r, &r.spot, r.expires, 0)
}

// ttl is how long a request may show no activity: longer than its backend may. An
// answer in one piece shows none until its end.
func (e *Engine) ttl(r *request) time.Duration {
	switch {
	case r.place != nil:
	case r.left > 0:
		return max(e.opts.HoldTTL, r.left+time.Minute)
	default:
		return e.opts.HoldTTL
	}
	quiet := r.place.Backend.Silence
	if !r.call.Streaming {
		quiet = r.place.Backend.Longest
	}
	if quiet > 0 {
		quiet += time.Minute // for what follows the deadline
	}
	return max(e.opts.HoldTTL, quiet)
}

func (e *Engine) unwatch(r *request) { e.expiry.Remove(&r.spot) }

// sweep expires the holds without activity. Progress moves expires alone, so that
// it costs nothing; the heap is put right when it is looked at.
func (e *Engine) sweep(now time.Time) {
	for e.expiry.Len() > 0 {
		at := e.expiry.Key()
		if at > e.ns {
			return
		}
		r := e.expiry.Top()
		if r.expires > e.ns {
			e.expiry.Fix(&r.spot, r.expires)
			continue
		}
		e.expire(now, r, at)
	}
}

// expire charges what a request holds and frees its place. The oldest expired
// request, by when that was looked at, is forgotten when there are too many.
func (e *Engine) expire(now time.Time, r *request, at int64) {
	e.part(r)
	g := Grant{ID: r.call.ID, Attempt: r.attempt, Pool: r.pool.id, Err: &sluice.Error{
		Kind: sluice.KindTimeout, Reason: sluice.HoldExpired, Msg: "the request showed no activity until its reservation ran out",
	}}
	if r.phase == running {
		e.free(now, r, route.Ending{Why: sluice.HoldExpired})
	} else {
		e.unwatch(r)
	}
	e.book.Expire(now, &r.res)
	r.phase = expired
	e.expired.Push(r, &r.spot, at, 0)
	if e.expired.Len() > e.opts.MaxExpired {
		oldest := e.expired.Top()
		e.expired.Remove(&oldest.spot)
		e.book.Forget(&oldest.res)
		e.drop(oldest)
	}
	e.answers.grants = append(e.answers.grants, g)
}
