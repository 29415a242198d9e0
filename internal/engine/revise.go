package engine

import (
	"time"

	"sluice"
	"sluice/internal/quota"
)

// Revise takes up policies that have changed, as far as a limit keeps requests waiting: a
// gauge may be larger now, or refuse nobody any more. What they hold, and whatever else
// their policies say, stays as it was when they came; and what has become limited since is
// not counted for them. policyOf answers nil for whom it does not know. Call Advance next.
// REQUIRES: it was called after a Swap, which lets all of them look again.
func (e *Engine) Revise(now time.Time, policyOf func(sluice.Principal) *sluice.Policy) {
	now = e.tick(now)
	changed := false
	for _, p := range e.queues {
		for _, it := range p.queue.Aside() {
			r := it.Value.(*request)
			who := r.principal()
			if policy := policyOf(who); policy != nil && policy != who.Policy {
				who.Policy = policy
				call := Call{Principal: who, Model: it.Flow.Model, Owed: r.call.Owed}
				changed = e.book.Revise(now, &r.res, e.claimsOf(&call, e.modelOf(r))) || changed
			}
		}
	}
	if changed {
		e.unpark()
	}
}

// reviseShared takes up the limits that the table has for models and the fleet.
func (e *Engine) reviseShared(now time.Time) {
	e.book.ReviseAccount(now, &quota.Claim{Owner: quota.Owner{Scope: sluice.ScopeFleet}, Limits: e.table.Fleet})
	for id, m := range e.table.Models {
		e.book.ReviseAccount(now, &quota.Claim{Owner: quota.Owner{Scope: sluice.ScopeModel, ID: string(id)}, Limits: m.Limits})
	}
}

// unpark has what waits for room in a gauge look again.
func (e *Engine) unpark() {
	for _, p := range e.queues {
		p.queue.UnparkAll()
	}
}
