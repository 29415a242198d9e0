package quota

import (
	"time"

	"sluice"
)

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
			g := gaugeOf(l.Dimension)
			to = append(to, CounterView{Limit: *l, Held: a.held[g], Remaining: a.free(g)})
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
