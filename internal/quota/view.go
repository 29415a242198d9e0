package quota

import (
	"slices"
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
	var ends [sluice.NumWindows]time.Duration // of windows, once they were asked for
	for n, a := range r.Accounts() {
		scope := a.owner.Scope
		if scope > sluice.ScopeTenantModel || r.isShadow(n) {
			continue
		}
		a.refresh(b.tick, &b.calendar)
		rows, rates := a.terms.rows, a.terms.rates
		counters := a.counters[:len(rates)]
		to = slices.Grow(to, len(rows))
		told := to[len(to):][:len(rows)]
		n, j := 0, 0
		for i := range rows {
			l, s := &rows[i], &told[n]
			s.Scope, s.Limit, s.Reset = scope, *l, 0
			if l.Dimension.Gauge() {
				s.Remaining = max(0, a.gauges[gaugeOf(l.Dimension)].free())
			} else {
				t, c := &rates[j], &counters[j]
				j++
				switch {
				case t.how == byBucket:
					s.Remaining = max(0, c.level)
					if c.level < l.Amount {
						s.Reset = c.refillTime(t, l.Amount)
					}
				default:
					s.Remaining = max(0, c.free(t))
					if w := l.Window; w.Fixed() {
						if ends[w] == 0 {
							ends[w] = b.calendar.until(w, now)
						}
						s.Reset = ends[w]
					}
				}
			}
			if l.Amount > 0 { // else it is no limit
				n++
			}
		}
		to = to[:len(to)+n]
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
	a.refresh(b.tick, &b.calendar)
	for i := range a.terms.rows {
		l := &a.terms.rows[i]
		if l.Dimension.Gauge() {
			g := &a.gauges[gaugeOf(l.Dimension)]
			to = append(to, CounterView{Limit: *l, Held: g.held, Remaining: g.free()})
			continue
		}
		t, c := a.counter(i)
		v := CounterView{Limit: *l, Used: c.used(t), Held: c.held, Remaining: c.free(t), Previous: c.previous(t)}
		if l.Amount > 0 {
			v.Exposed = c.over
		}
		to = append(to, v)
	}
	return to
}

// Account finds an account by its owner, nil if it is not in memory.
func (b *Book) Account(o Owner) *Account { return b.accounts.Find(o) }

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
func (a *Account) Open() int { return int(a.refs) }
