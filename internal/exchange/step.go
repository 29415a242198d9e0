package exchange

import (
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/estimate"
	"sluice/internal/ledger"
	"sluice/internal/route"
	"sluice/internal/wire"
)

// showsAll reports whether every token that the request can be billed for shows in
// its stream as it comes: then a hard budget may hold the output in steps, where the
// backends stop with the connection.
func (t *turn) showsAll(table *route.Table, m *route.Model) bool {
	h := t.r.Head
	if m == nil || !h.Stream || !h.Op.Generates() || h.Op == wire.Responses || t.choices() > 1 || h.ServerTools > 0 || h.Prediction > 0 || !t.hard() {
		return false
	}
	shows := true
	t.x.mu.Lock()
	defer t.x.mu.Unlock()
	m.Visit("", func(id sluice.PoolID, _ bool) bool {
		if p := table.Pools[id]; p != nil {
			for _, b := range p.Backends {
				shows = shows && !t.x.o.Learned.Hides(estimate.Place{Backend: string(b.ID), Model: b.Model})
			}
		}
		return !shows
	})
	return shows
}

// afford raises the hold of an output that is held in steps as it comes. It reports
// whether the budget has room for more of it. The hold is ahead of what can be
// billed by what the backend writes in half a second, and by no less than
// engine.StepLead.
func (t *turn) afford(a *attempt, now time.Time) bool {
	if a.heldTo == 0 || a.heldTo >= t.bound(a) {
		return true
	}
	if a.tap.DeliveredBytes() == 0 {
		return true
	}
	used := t.billable(a)
	if a.stepping.IsZero() {
		a.stepping = now
	}
	lead := engine.StepLead
	if d := now.Sub(a.stepping); d >= 100*time.Millisecond {
		lead = max(lead, sluice.Tokens(int64(used)*int64(500*time.Millisecond)/int64(d)))
	}
	if a.heldTo-used >= lead {
		return true
	}
	to, goOn := t.grant.Step(used, lead)
	if to == 0 { // the reservation has ended: Progress tells
		return true
	}
	if to > a.heldTo {
		a.heldTo = to
		t.checkpoint(a, now)
	}
	return goOn
}

// billable is the most output that the backend can bill for what has come of it.
func (t *turn) billable(a *attempt) sluice.Tokens {
	u, told := a.tap.Partial()
	tail := a.tap.Delivered()
	if told {
		tail -= a.tap.Covered()
	}
	if tail <= 0 {
		return u.OutputTotal()
	}
	t.x.mu.Lock()
	defer t.x.mu.Unlock()
	upper := t.x.o.Learned.CountedUpper(t.key(a.place.Backend), tail, a.tap.DeliveredBytes())
	if told && a.tap.Covered() == 0 {
		return max(u.OutputTotal(), upper)
	}
	return u.OutputTotal() + upper
}

// held is the most output that the hold of an attempt covers.
func (t *turn) held(a *attempt) sluice.Tokens {
	if a.heldTo > 0 {
		return min(t.bound(a), a.heldTo)
	}
	return t.bound(a)
}

// checkpoint keeps how far an attempt is, and what a hard budget has held for it.
func (t *turn) checkpoint(a *attempt, now time.Time) {
	if t.stored() { // it is in no ledger
		return
	}
	u := t.seen(a)
	cost, high := t.price(a, u)
	if row := a.billed(); a.heldTo > 0 && row != nil { // what may be written until the next is within the hold
		w := t.plan.work
		w.OutputBound = t.held(a)
		high = max(high, row.HardHold(w))
	}
	err := t.x.o.Journal.Checkpoint(ledger.Checkpoint{Request: t.r.ID, Attempt: a.place.Attempt, At: now, Usage: u, Cost: cost, CostHigh: high})
	if err != nil {
		t.journalFailed("checkpoint", err)
	}
}

// shorten ends a stream for want of budget: the backend is cancelled, the client
// told that its answer reached its bound.
func (t *turn) shorten(s *stream, last wire.Event) {
	end := s.a.closing(s.a.tap.Shorten(last, t.seen(s.a), t.r.Head.IncludeUsage))
	s.ans.Close()
	if s.hooks != nil {
		var ok bool
		if end, ok = s.inspected(end, true); !ok {
			return
		}
	}
	s.a.short = true
	s.out = append(s.out, end...)
	t.conclude(s)
}
