package engine

import (
	"time"

	"sluice"
	"sluice/internal/price"
	"sluice/internal/quota"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// Arrive reserves requests, tokens and spend over every scope, all or nothing,
// and puts the request into one queue. Call Advance next.
func (e *Engine) Arrive(now time.Time, c Call) (v Verdict) {
	now = e.tick(now)
	who := c.caller()
	hash, whose := e.requests.Hash(c.ID), e.callers.index.Hash(who)
	e.requests.Prefetch(hash)
	e.callers.index.Prefetch(whose)
	m, err := e.model(&c) // which is at hand
	e.callers.index.PrefetchElement(whose)
	if e.requests.FindHashed(c.ID, hash) != nil {
		return Verdict{Err: &sluice.Error{Kind: sluice.KindConflict, Reason: sluice.InternalError, Msg: "a request with this id is open"}}
	}
	v.Policy = e.table.Version
	if err != nil {
		v.Err = err
		return v
	}
	k := e.callers.of(who, whose, e.ns)
	k.prefetch() // for when the request is made
	r := e.newRequest(now, &c)
	r.table, r.model = e.table, m
	r.under(m)
	e.prefer(now, r, m)
	if r.untried() && !e.takes(now, r, m) {
		e.reuse(r)
		v.Translate = true
		return v
	}
	e.open(now, r, &c, m, k)
	err = e.admit(now, r, m, &v)
	e.graded(r, r.pool)
	switch {
	case v.Smaller != "":
		e.book.Release(now, &r.res)
		e.reuse(r)
	case err != nil:
		v.Err, v.Tier, v.Felt, v.Limits = err, r.tier, r.felt, e.book.Limits(now, &r.res, nil)
		if r.pool == nil {
			v.Candidates = e.leftOut(now, r, m)
		}
		e.refuse(now, r, m, err)
		e.book.Release(now, &r.res)
		e.reuse(r)
	default:
		r.hash = hash
		e.requests.AddHashed(r, hash)
	}
	return v
}

// untried reports whether nobody has looked into which dialects the request may be
// put.
func (r *request) untried() bool { return r.call.Versed && r.call.Others[0].Untried }

// takes reports whether the pool that the request would go to first takes it at once,
// as far as its backends are concerned.
func (e *Engine) takes(now time.Time, r *request, m *route.Model) bool {
	first := r.first(m)
	if len(first) == 0 {
		return false
	}
	p := e.poolOf(first[0])
	if p.queue.Len() > 0 {
		return false
	}
	may, need := p.eligible(r), r.needOfPlace()
	for i, pl := range p.places {
		if may.Has(i) && pl.Usable(now, &need) == route.Chosen {
			return true
		}
	}
	return false
}

func (e *Engine) model(c *Call) (*route.Model, *sluice.Error) {
	m := e.modelNamed(c.Model)
	if m == nil {
		return nil, &sluice.Error{
			Kind: sluice.KindNotFound, Reason: sluice.ModelNotFound, Param: "model",
			Msg: "names a model that does not exist here", Hint: "list the models with GET /v1/models",
		}
	}
	if p := c.Principal.Policy; p != nil && !p.Allows(c.Model) {
		return nil, &sluice.Error{
			Kind: sluice.KindForbidden, Reason: sluice.ModelNotAllowed, Param: "model",
			Msg: "names a model that this key may not use", Hint: "list the models of the key with GET /v1/models",
		}
	}
	return m, nil
}

// claimsOf lists the scopes of a request, narrowest first. The slice is valid
// until the next call. Limits of the caller that are off are as if there were
// none; those of models and the fleet are always in force. To a request that is owed all
// are shadows. A copy has an account of its own alone.
func (e *Engine) claimsOf(call *Call, m *route.Model) []quota.Claim {
	p, c := &call.Principal, e.claims[:0]
	if s := call.Shadow; s != nil {
		return append(c, quota.Claim{Owner: shadowOwner(call.Model, s.Pool), Limits: s.Limits})
	}
	tenant, policy := string(p.Tenant), p.Policy
	if policy == nil {
		policy = &unlimited
	}
	if policy.Mode != sluice.Off {
		shadow := call.Owed || policy.Mode == sluice.Shadow
		own := func(s sluice.Scope, part string) *quota.Claim {
			c = c[:len(c)+1]
			last := &c[len(c)-1]
			last.Owner, last.Limits, last.Asked, last.Shadow = quota.Owner{Scope: s, ID: tenant, Part: part}, policy.Limits[s], nil, shadow
			return last
		}
		own(sluice.ScopeKey, string(p.Key)) // what stands for a token's key may be of several tenants
		if p.User != "" {
			own(sluice.ScopeUser, string(p.User))
		}
		if p.Run != "" {
			run := own(sluice.ScopeRun, string(p.Run))
			run.Asked = call.RunLimits
			if shadow && !call.Owed && len(call.RunLimits) > 0 { // what a caller asks for itself is kept
				run.Shadow, run.Limits = false, nil
			}
		}
		own(sluice.ScopeProject, string(p.Project))
		own(sluice.ScopeTenant, "")
		of := own(sluice.ScopeTenantModel, string(call.Model))
		if l, ok := policy.ByModel[call.Model]; ok {
			of.Limits = l
		}
	}
	if len(c) == 0 && p.Run != "" && len(call.RunLimits) > 0 {
		c = append(c, quota.Claim{Owner: quota.Owner{Scope: sluice.ScopeRun, ID: tenant, Part: string(p.Run)}, Asked: call.RunLimits, Shadow: call.Owed})
	}
	var limits []sluice.Limit
	if m != nil {
		limits = m.Limits
	}
	return append(c,
		quota.Claim{Owner: quota.Owner{Scope: sluice.ScopeModel, ID: string(call.Model)}, Limits: limits, Shadow: call.Owed},
		quota.Claim{Owner: quota.Owner{Scope: sluice.ScopeFleet}, Limits: e.table.Fleet, Shadow: call.Owed})
}

// unlimited is the policy of who has none.
var unlimited sluice.Policy

// admit finds a pool, reserves, and queues, and tells v of it.
func (e *Engine) admit(now time.Time, r *request, m *route.Model, v *Verdict) *sluice.Error {
	p, wait, err := e.choosePool(now, r, m)
	if e.declined.why == EffectSmaller {
		e.smaller(r, v)
		return nil
	}
	if err != nil {
		return err
	}
	r.pool = p // who is refused was refused there
	e.degrade(now, r, p)
	if p.queue.Service() > 0 {
		r.predicted = wait
	}
	if bound := p.queue.FullFor(&r.item); bound != "" {
		r.partly = true
		return queueFull(now, p, bound+" of this tenant")
	}
	if most := e.maxWaitOf(r, p); wait > most && most > 0 && p.queue.Service() > 0 && !p.defers(r) {
		return tooLong(p, wait, most)
	}
	bound := p.queue.Full(&r.item)
	var victim *sched.Item
	if bound != "" {
		if victim = p.queue.Shed(&r.item); victim == nil {
			return queueFull(now, p, bound)
		}
	}
	rows := e.firstOffers(r, m, p)
	if err := e.reserve(now, r, rows, e.book.Reserve); err != nil {
		return err
	}
	if victim != nil {
		e.endWait(victim.Value.(*request), queueFull(now, p, bound))
	}
	v.Pool, v.Wait, v.Position, v.Tier, v.Felt = p.id, wait, p.position(r, wait), r.tier, r.felt
	e.enqueue(now, r, p)
	return nil
}

// choosePool is the first pool whose predicted wait the request can bear, else
// the one with the shortest; fallback pools only where no first pool serves it, and one
// that will serve it soon where none does now.
func (e *Engine) choosePool(now time.Time, r *request, m *route.Model) (best *pool, wait time.Duration, err *sluice.Error) {
	e.declined = declined{}
	for _, least := range []service{serves, avoided} {
		for i, ids := range [][]sluice.PoolID{r.first(m), m.Fallback} {
			if o := e.nearest(now, r, m, ids, least); o.pool != nil {
				e.declined = declined{}
				return o.pool, o.wait, nil
			}
			if e.declined.why == EffectSmaller {
				return nil, 0, nil
			}
			if err := e.left(now, r, i > 0); err != nil {
				return nil, 0, err
			}
		}
	}
	if p, wait := e.soon(now, r, m); p != nil {
		return p, wait, nil
	}
	return nil, 0, e.unserved(now, r, m)
}

// firstOffers is what the request may be billed at without falling back, and in
// the pool that it joins.
func (e *Engine) firstOffers(r *request, m *route.Model, joined *pool) []*price.Row {
	e.rows = e.rows[:0]
	if r.call.Free {
		return nil
	}
	for _, id := range r.first(m) {
		e.rows = e.poolOf(id).offers(r, e.rows)
	}
	if m.IsFallback(joined.id) {
		e.rows = joined.offers(r, e.rows)
	}
	return e.rows
}

// enqueue puts the request at its place in a pool's queue.
func (e *Engine) enqueue(now time.Time, r *request, p *pool) {
	r.pool, r.phase = p, waiting
	r.item.Deadline = r.item.Since.Add(e.maxWaitOf(r, p))
	e.push(r, p)
}

// move takes a waiting request to another pool's queue: arrival and deadline
// stay.
func (e *Engine) move(r *request, to *pool) {
	if r.pool.base().meter == to.base().meter {
		e.retracts(r)
	} else {
		e.leaves(r)
	}
	r.waited()
	r.pool.queue.Remove(&r.item, sched.Moved)
	r.pool = to
	e.push(r, to)
}

// push puts the request into a queue as that pool's backends see it.
func (e *Engine) push(r *request, p *pool) {
	r.weigh(p)
	p.queue.Push(&r.item)
	e.joined(r)
}

// weigh brings the request's item in line with what a pool's backends are.
func (r *request) weigh(p *pool) {
	w, need := &r.call.Work, r.needOfPlace()
	r.item.Backends = p.set(r)
	r.item.Need = p.group(&r.item.Backends).need(&need)
	in, out := max(0, w.Input-w.CachedInput), min(w.Output, r.bound)
	r.item.Cost, r.item.Upfront = p.cost(in, out), p.cost(in, out/upfront)
}
