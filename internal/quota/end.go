package quota

import "time"

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
	b.refresh(r)
	b.ReturnGauges(r)
	for i := range r.holds {
		h := &r.holds[i]
		c, l := r.of(h)
		d := l.Dimension
		held, charged := h.amount, int64(0)
		if r.state == expired {
			held, charged = 0, h.amount
		} else {
			c.over -= r.over(l, h.amount)
		}
		c.settle(l, held, actual[d]-r.posted[d]-charged, h.mark)
	}
	r.close()
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
	for i := range r.holds {
		h := &r.holds[i]
		c, l := r.of(h)
		c.settle(l, h.amount, h.amount, h.mark)
		c.over -= r.over(l, h.amount)
	}
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
