package quota

import (
	"time"

	"sluice"
)

// LimitState is one counter of the caller, as the rate-limit headers show it.
type LimitState struct {
	Scope     sluice.Scope
	Limit     sluice.Limit
	Remaining int64         // never negative
	Reset     time.Duration // until the bucket is full or the window ends; 0 for gauges
}

// Limits appends the counters of the caller's own scopes, those up to tenant ×
// model: the very figures that decide. Shadows decide nothing.
func (b *Book) Limits(now time.Time, r *Reservation, to []LimitState) []LimitState {
	b.advance(now)
	for n, a := range r.accounts {
		if a.owner.Scope > sluice.ScopeTenantModel || r.isShadow(n) {
			continue
		}
		for i := range a.counters {
			c := &a.counters[i]
			if c.limit.Amount == 0 {
				continue
			}
			c.refresh(b.tick, &b.calendar)
			s := LimitState{Scope: a.owner.Scope, Limit: c.limit, Remaining: max(0, c.free())}
			switch w := c.limit.Window; {
			case w == sluice.NoWindow || w == sluice.PerRun:
			case w.Fixed():
				s.Reset = b.calendar.until(w, now)
			default:
				s.Reset = c.refillTime(c.limit.Amount)
			}
			to = append(to, s)
		}
	}
	return to
}

// CounterView is one limit's figures.
type CounterView struct {
	Limit     sluice.Limit // Amount 0: counted, not limited
	Used      int64        // spent, in the limit's unit; 0 for gauges
	Held      int64        // by requests in flight
	Remaining int64        // may be negative: a debt
	Exposed   int64        // Σ over live holds of (bound − hold): how much further into debt they can take it
	Previous  int64        // what the window before this one took; fixed windows only
}

// View appends an account's figures as of now.
func (b *Book) View(now time.Time, a *Account, to []CounterView) []CounterView {
	b.advance(now)
	for i := range a.counters {
		c := &a.counters[i]
		c.refresh(b.tick, &b.calendar)
		to = append(to, CounterView{Limit: c.limit, Used: c.used(), Held: c.inFlight(), Remaining: c.free(), Exposed: c.over, Previous: c.previous()})
	}
	return to
}

// Account finds an account by its owner, nil if it is not in memory.
func (b *Book) Account(o Owner) *Account { return b.accounts[o] }

// Scan calls f for every account in memory, in no order that matters, until f
// returns false.
func (b *Book) Scan(f func(*Account) bool) {
	for _, a := range b.order {
		if !f(a) {
			return
		}
	}
}

// Open is how many reservations refer to the account, expired ones included.
func (a *Account) Open() int { return a.refs }
