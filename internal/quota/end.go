package quota

import (
	"time"

	"sluice"
)

// Settle ends the reservation. actual is what the whole request took, what was
// posted included; the rest is returned, and what is beyond the hold leaves a
// debt.
func (b *Book) Settle(now time.Time, r *Reservation, actual Amounts) {
	if r.state != open {
		panic("quota: settle of a reservation that is not open")
	}
	b.finish(now, r, &actual)
}

// Release ends a reservation that used nothing beyond what was posted: the rest
// is returned, the request itself too unless something was posted.
func (b *Book) Release(now time.Time, r *Reservation) {
	if r.state != open {
		panic("quota: release of a reservation that is not open")
	}
	posted := r.Posted()
	b.finish(now, r, &posted)
}

func (b *Book) finish(now time.Time, r *Reservation, actual *Amounts) {
	b.advance(now)
	b.ReturnGauges(r)
	if r.posted {
		for d := range actual {
			actual[d] -= r.charged[d]
		}
	}
	from := 0
	for n, a := range r.Accounts() {
		a.refresh(b.tick, &b.calendar)
		to := int(r.ends[n])
		a.settle(r.holds[from:to], actual, &r.bound)
		from = to
		a.refs--
	}
	r.state = closed
}

// settle charges what was used, less what was posted, to the account's counters. It is
// [Reservation.each] written out: every request ends here.
func (a *Account) settle(held []hold, used, bound *Amounts) {
	a.settleUsual(held, used, bound)
	others := a.terms.rates[a.terms.others:]
	for i := range others {
		l := &others[i]
		if at := int(l.at); at < len(held) && held[at].mark != untaken {
			d := l.Dimension % sluice.NumDimensions
			c, n := &a.counters[at], held[at].amount
			c.over -= max(0, bound[d]-n)
			c.settle(l, n, used[d], held[at].mark)
		}
	}
}

// Expire ends a reservation whose owner has shown no activity: gauges are
// returned, and what is held of rates and budgets is charged, since a backend
// may have done the work and unknown usage is never zero. SettleLate corrects
// the charge; until it or Forget is called the accounts stay in memory.
func (b *Book) Expire(now time.Time, r *Reservation) {
	if r.state != open {
		panic("quota: expiry of a reservation that is not open")
	}
	b.advance(now)
	b.refresh(r)
	b.ReturnGauges(r)
	r.each(func(_ int, h *hold, c *counter, l *rate) bool {
		c.settle(l, h.amount, h.amount, h.mark)
		c.over -= r.over(l, h.amount)
		return true
	})
	r.state = expired
}

// SettleLate replaces what the expiry charged by the actual, in the windows of
// the reservation. REQUIRES: r is expired.
func (b *Book) SettleLate(now time.Time, r *Reservation, actual Amounts) {
	if r.state != expired {
		panic("quota: late settlement of a reservation that has not expired")
	}
	b.advance(now)
	b.refresh(r)
	posted := r.Posted()
	r.each(func(_ int, h *hold, c *counter, l *rate) bool {
		d := l.Dimension
		c.settle(l, 0, actual[d]-posted[d]-h.amount, h.mark)
		return true
	})
	r.close()
}

// Forget closes an expired reservation whose late settlement is no longer
// waited for: the charge of the expiry stands. REQUIRES: r is expired.
func (b *Book) Forget(r *Reservation) {
	if r.state != expired {
		panic("quota: forgetting a reservation that has not expired")
	}
	r.close()
}
