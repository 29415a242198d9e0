package engine

import (
	"time"

	"sluice"
	"sluice/internal/route"
)

// Progress renews the hold of a running request and, the first time, frees its
// prefill tokens on the backend.
func (e *Engine) Progress(now time.Time, id sluice.RequestID, u sluice.Usage) Directive {
	now = e.tick(now)
	r := e.requests.Find(id)
	if r != nil && r.phase == idle && r.left > 0 {
		r.expires = e.ns + int64(e.ttl(r))
		return Directive{}
	}
	if r == nil || r.phase != running {
		return Directive{Stop: true}
	}
	r.expires = e.ns + int64(e.ttl(r))
	if r.call.Free { // nothing is generated for it
		return Directive{}
	}
	e.correct(now, r, u, false)
	r.place.Progressed(now, r.taken, u.OutputTotal(), r.call.Choices)
	if !r.begun && r.call.Streaming {
		r.begun = true
		if r.call.Shadow == nil { // what is learned of requests is as if there were no copies
			r.pool.base().latency.Observe(time.Duration(e.ns - r.started))
		}
	}
	if r.taken.Prefill == 0 {
		return Directive{}
	}
	r.place.Answered(r.taken)
	r.pool.queue.Answered(&r.item)
	return Directive{Advance: true}
}

// Leave frees the backend and the caller's gauges of a running request whose client has
// left while its backend goes on, for at most d: what it holds of rates and budgets
// stays held until Settle, by which it ends as any. u is what it is taken to have taken,
// by which its work is charged. It is false, and nothing has changed, of a request that
// does not run or that races. Call Advance next.
func (e *Engine) Leave(now time.Time, id sluice.RequestID, u sluice.Usage, d time.Duration) bool {
	now = e.tick(now)
	r := e.requests.Find(id)
	if r == nil || r.phase != running || r.other != nil {
		return false
	}
	e.correct(now, r, u, true)
	r.taken.Spent(u.InputTotal(), u.OutputTotal(), sluice.ClientGone)
	e.free(now, r, route.Ending{Why: sluice.ClientGone})
	r.phase, r.left = idle, d
	e.watch(r)
	return true
}

// AttemptEnded frees the backend and the caller's gauges, posts what the failed
// attempt took and says whether another follows. Call Advance next.
func (e *Engine) AttemptEnded(now time.Time, id sluice.RequestID, res Result) Next {
	now = e.tick(now)
	r := e.requests.Find(id)
	if r == nil || r.phase != running {
		return Next{Step: Fail}
	}
	pl, key := r.place, r.taken.Key()
	failed := pl.Backend
	if res.Others != nil {
		r.call.Others, r.call.Versed = res.Others, len(res.Others) > 0
		e.number(r)
	}
	e.correct(now, r, res.Usage, true)
	r.reported(&res.Usage)
	r.taken.Spent(res.Usage.InputTotal(), res.Usage.OutputTotal(), res.Reason)
	e.free(now, r, route.Ending{Why: res.Reason, RetryAfter: res.RetryAfter, Overload: res.Overload, Credential: res.Credential})
	other := r.other
	if r.beside {
		e.book.Settle(now, &r.res, r.amounts(&res.Usage, res.Cost))
		e.drop(r)
		if other == nil {
			return Next{Step: Fail, Denied: route.DeniedCause}
		}
		r = other // of which it was an attempt
		r.expires = e.ns + int64(e.ttl(r))
	} else {
		e.post(now, r, res)
		r.phase = idle
		e.watch(r)
	}
	if !res.Credential || r.call.Pin != nil || !pl.OtherKey(now, key) {
		r.tried = append(r.tried, failed.ID)
		if route.FailsDomain(res.Reason) && !e.table.NoBreakers {
			r.failed = append(r.failed, failed.Domain)
		}
	}
	switch {
	case r.phase == running, r.other != nil: // of the two one is left
		return Next{Step: Race}
	case res.Content || !route.Retryable(res.Reason):
		return Next{Step: Fail, Denied: route.DeniedCause}
	}
	to, why, err := e.again(now, r)
	if to == nil && err == nil && e.linger(now, r, pl, &res) {
		to = r.pool
	}
	if to == nil {
		return Next{Step: Fail, Denied: why, Err: err}
	}
	e.unwatch(r)
	r.item.Since = now
	e.enqueue(now, r, to)
	return Next{Step: Queue}
}

// post charges the billable work of an attempt that failed. The request itself is
// charged with the first.
func (e *Engine) post(now time.Time, r *request, res Result) {
	used := r.amounts(&res.Usage, res.Cost)
	if r.call.Free || res.Usage.Total() <= 0 && res.Cost <= 0 {
		return
	}
	if r.billed {
		used[sluice.Requests] = 0
	}
	r.billed = true
	e.book.Post(now, &r.res, used)
}

// free ends what a running request holds of its place and its caller's gauges.
func (e *Engine) free(now time.Time, r *request, end route.Ending) {
	pl := r.place
	if b := &e.table.Breaker; end.Why != sluice.ReasonNone || b.FirstToken > 0 || b.Rate > 0 {
		end.Last = !pl.Retired && r.pool.base().last(now, pl)
	}
	if r.call.Shadow != nil && r.pool.asked() { // what copies do to a backend keeps no request from it
		end = route.Ending{Why: sluice.Displaced}
	}
	changed := pl.Ended(now, r.taken, end)
	pl.Give(r.taken)
	if len(e.takens) < spareRequests {
		e.takens = append(e.takens, r.taken)
	}
	r.place, r.taken, r.cached = nil, nil, 0
	e.running--
	if changed {
		e.healthChanged(now)
		if pl.Health.Open() {
			r.pool.chooser.Lost(pl)
		}
	}
	if pl.Retired && pl.Running() == 0 {
		delete(e.places, pl.Backend.ID)
	}
	r.worked += r.item.Charged()
	if r.call.Shadow != nil {
		r.pool.dropCopy(r)
	} else {
		r.pool.queue.End(&r.item, time.Duration(e.ns-r.started))
	}
	e.book.ReturnGauges(&r.res)
	for _, p := range e.queues {
		if !p.queue.Parked() {
			continue
		}
		for _, a := range r.res.Accounts() {
			p.queue.Unpark(a)
		}
	}
	e.unwatch(r)
}

// reported tells the pool what the attempt that ends has read from a prefix cache.
func (r *request) reported(u *sluice.Usage) {
	if u.Source.Final() && r.phase == running {
		r.pool.chooser.Reported(r.place, r.cached, u.CacheRead, u.InputTotal())
	}
}

// upfront is the part of the expected output that is charged at dispatch, one half:
// the rest is charged as it comes. So what a tenant is charged for what runs is
// never more than half of its output away from what has been delivered, on either
// side, and a tenant of long answers is neither served too little at first, as
// where all is charged at once, nor too much, as where nothing is.
const upfront = 2

// correct puts the work that the tenant is charged for the attempt right: what it
// took in the end, or as long as it runs what is known to be more than expected.
func (e *Engine) correct(now time.Time, r *request, u sluice.Usage, ended bool) {
	if r.phase != running || r.call.Free {
		return
	}
	w := r.shape()
	in, out := max(0, w.Input-w.CachedInput), min(w.Output, w.OutputBound)/upfront
	if ended {
		in, out = u.Input+u.CacheWrite, u.OutputTotal()
	} else {
		if u.Source.Final() {
			in = u.Input + u.CacheWrite
		}
		out = max(out, u.OutputTotal())
	}
	r.pool.queue.Correct(now, &r.item, r.pool.cost(in, out))
}
