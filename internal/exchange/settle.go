package exchange

import (
	"errors"
	"net/http"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/handover"
	"sluice/internal/price"
	"sluice/internal/wire"
)

// lead is how much a backend that stops with the connection may have generated
// beyond what was seen of it.
const lead sluice.Tokens = 256

// spent is what an attempt took, by the settlement table, and what that costs:
// to the ledger, and to a hard budget.
func (t *turn) spent(a *attempt) (u sluice.Usage, cost, high sluice.Nano) {
	u = t.took(a)
	if a.batched {
		u.ServiceTier = price.BatchTier
	}
	cost, high = t.price(a, u)
	return u, cost, high
}

func (t *turn) took(a *attempt) sluice.Usage {
	if t.r.Free {
		return sluice.Usage{Source: sluice.UsageNone}
	}
	if u, ok := a.tap.Usage(); ok {
		if a.call.left() != nil && u.Source == sluice.UsageReported {
			u.Source = sluice.UsageDrained
		}
		if u.Units == 0 { // it tells tokens alone
			u.Units = t.r.Head.Units
		}
		return u
	}
	if !a.sent || a.refused {
		return sluice.Usage{Source: sluice.UsageNone}
	}
	u := t.seen(a)
	switch {
	case a.failure == nil, a.drained:
		return u
	case a.idle() && (a.failure.Reason == sluice.UpstreamLimited || a.failure.Reason == sluice.UpstreamRefused):
		return sluice.Usage{Source: sluice.UsageNone} // as if its status had said so
	case a.idle():
		return u
	}
	if u.Source == sluice.UsageEstimated && a.tap.Delivered() == 0 && a.lostBound() {
		u.Input, u.Output, u.Units = t.plan.work.InputBound, t.bound(a), t.plan.work.UnitsBound
		return u
	}
	return t.withUnseen(a, u)
}

// bound is the most output that an attempt can have made.
func (t *turn) bound(a *attempt) sluice.Tokens {
	if b := a.place.OutputBound; b > 0 {
		return min(b, t.plan.work.OutputBound)
	}
	return t.plan.work.OutputBound
}

// idle reports whether the backend told of an error of its own inside its answer
// before any of it: it has generated nothing.
func (a *attempt) idle() bool { return a.told && a.tap.Delivered() == 0 }

// lostBound reports whether an attempt of which nothing ever became known is
// charged all that it could have cost, not the estimate.
func (a *attempt) lostBound() bool { return a.target != nil && a.target.LostBound }

// seen is what is known of an attempt so far: the provider's cumulative figures
// where it has told any, else the estimate of the input; and the output that these
// do not cover, counted.
func (t *turn) seen(a *attempt) sluice.Usage {
	u, ok := a.tap.Partial()
	if !ok {
		u = sluice.Usage{Input: a.input, Units: t.r.Head.Units, Source: sluice.UsageEstimated}
	}
	covered := a.tap.Covered()
	if tail := t.counted(a, a.tap.Delivered()-covered); covered > 0 {
		u.Output += tail
	} else {
		u.Output = max(u.Output, tail-u.Reasoning)
	}
	return u
}

// price is what usage costs, and what a hard budget is charged for it. Before the
// dial that is for an attempt of which nothing more becomes known: its backend may
// have written far more than the last checkpoint has, or, where a machine has lost
// its power, not know of the end at all.
func (t *turn) price(a *attempt, u sluice.Usage) (cost, high sluice.Nano) {
	if cost, ok := t.reported(a, &u); ok {
		return cost, cost
	}
	row := a.billed()
	if row == nil {
		return 0, 0
	}
	cost = row.Cost(u)
	p := t.r.Principal.Policy
	if p == nil || !p.HardSpend || u.Source.Final() || u.Source == sluice.UsageNone {
		return cost, cost
	}
	w := t.plan.work
	w.OutputBound = t.held(a)
	switch {
	case a.idle():
		w.OutputBound = u.OutputTotal()
	case a.sent && t.stops(a) && t.r.Head.Stream:
		w.OutputBound = min(w.OutputBound, u.OutputTotal()+lead)
	}
	return cost, max(cost, row.HardHold(w))
}

// reported is what the provider says that the attempt has cost, where that is what it is
// charged and its answer came whole: false where prices say. A hard budget holds what
// prices say all the same, since nothing else is known before; what is reported beyond
// that shows as debt.
func (t *turn) reported(a *attempt, u *sluice.Usage) (sluice.Nano, bool) {
	if t.r.Free || a.target == nil || !a.target.ChargeReported || !u.Source.Final() {
		return 0, false
	}
	return a.tap.Cost()
}

// finish ends the reservation and records the last attempt. e is nil when the
// answer is whole. Only the first call counts.
func (t *turn) finish(a *attempt, e *sluice.Error) {
	if t.finished {
		return
	}
	t.finished = true
	if e == nil {
		a.times.end()
	}
	u, cost, high := t.spent(a)
	t.add(a, u, cost, high)
	entry := t.entry(a, u, cost, high)
	entry.Final, entry.Outcome, entry.Status = true, outcome(e), t.status(e, a)
	switch {
	case e != nil:
		entry.Reason = e.Reason
		if u, ok := errors.AsType[*handover.Undone](e.Err); ok { // which batch, and what became of it
			entry.Detail = withMessage(entry.Detail, &sluice.Error{Kind: e.Kind, Msg: u.Error()})
		}
	case a.short:
		entry.Reason = sluice.BudgetStop
	}
	if a.grant != t.grant { // a hedge that outlived its request's own attempt, and failed; Next may have ended it
		_ = a.grant.Settle(engine.Actual{Usage: u, Cost: high, Outcome: entry.Outcome, Reason: entry.Reason})
	}
	err := t.grant.Settle(engine.Actual{Usage: t.own.usage, Cost: t.own.high, Outcome: entry.Outcome, Reason: entry.Reason})
	entry.Late = err == engine.ErrLate
	if err != nil && t.x.o.Hooks.Settle != nil {
		t.x.o.Hooks.Settle(t.r.ID, err)
	}
	t.result = Result{Head: t.head, Would: a.place.Would, Limits: t.grant.Limits(), Final: entry, Usage: t.total.usage, Cost: t.total.cost}
	t.record(&entry)
	t.beside()
	t.lesson, t.untaught = u, true
}

// taught takes into the estimates what the last attempt took, once it is finished.
// The client need not wait for that. Copies teach nothing: what requests hold is as if
// there were none.
func (t *turn) taught(a *attempt) {
	if !t.untaught || t.shadow != nil {
		return
	}
	t.untaught = false
	t.learn(a, t.lesson)
	t.learnPace(a, t.lesson)
	t.learnCut(a)
}

// sum is what attempts took.
type sum struct {
	usage sluice.Usage
	cost  sluice.Nano
	high  sluice.Nano
}

func (s *sum) add(u sluice.Usage, cost, high sluice.Nano) {
	s.usage.Add(u)
	s.cost += cost
	s.high += high
}

// add sums up attempts. A hedge is held for by itself, until it is all that is left.
func (t *turn) add(a *attempt, u sluice.Usage, cost, high sluice.Nano) {
	t.total.add(u, cost, high)
	if a.grant == t.grant {
		t.own.add(u, cost, high)
	}
}

// status is what the client got.
func (t *turn) status(e *sluice.Error, a *attempt) int {
	switch {
	case t.shadow != nil:
		return 0
	case t.later != nil && t.later.why == nil: // the client has had its answer
		return t.head.Status
	case e == nil:
		return t.head.Status
	case e.Reason == sluice.ClientGone:
		return statusLeft
	case t.client.Committed():
		return http.StatusOK
	case a != nil && a.pass != nil:
		return a.pass.Status
	}
	p := t.r.Principal.Policy
	return wire.Status(t.r.Head.Op.Dialect(), e, wire.ErrorOptions{Budget402: p != nil && p.Budget402})
}

// since is never zero, which means that something did not happen.
func since(at time.Time) time.Duration { return max(time.Since(at), 1) }
