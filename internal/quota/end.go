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
	b.finish(now, r, &r.posted)
}

func (b *Book) finish(now time.Time, r *Reservation, actual *Amounts) {
	b.advance(now)
	b.ReturnGauges(r)
	from := 0
	for n, a := range r.Accounts() {
		a.refresh(b.tick, &b.calendar)
		held := r.holds[from:r.ends[n]]
		from += len(held)
		r.finish(a, held, actual)
	}
	r.close()
}

// finish charges the actual to the counters of one account. It is [Reservation.each]
// written out: every request ends here.
func (r *Reservation) finish(a *Account, held []hold, actual *Amounts) {
	rates := a.terms.rates[:len(held)] // what has become limited since is behind
	counters := a.counters[:len(held)]
	for i := range held {
		h, l, c := &held[i], &rates[i], &counters[i]
		d := l.Dimension % sluice.NumDimensions
		used := actual[d] - r.posted[d]
		switch {
		case h.mark == untaken:
			continue
		case r.state == expired:
			c.settle(l, 0, used-h.amount, h.mark)
			continue
		}
		c.over -= max(0, r.bound[d]-h.amount)
		if l.how == byBucket {
			c.giveBack(l, h.amount, used, h.mark)
		} else {
			c.settle(l, h.amount, used, h.mark)
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
	b.finish(now, r, &actual)
}

// Forget closes an expired reservation whose late settlement is no longer
// waited for: the charge of the expiry stands. REQUIRES: r is expired.
func (b *Book) Forget(r *Reservation) {
	if r.state != expired {
		panic("quota: forgetting a reservation that has not expired")
	}
	r.close()
}
