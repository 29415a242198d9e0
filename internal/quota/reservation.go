package quota

import (
	"time"

	"sluice"
)

// Reservation is one request's hold over all limits that apply. It ends exactly
// once: Settle, Release, or Expire and then, perhaps, SettleLate. Its memory may
// be used again for the next request; the zero value is closed.
type Reservation struct {
	accounts []*Account
	holds    []hold  // rates and budgets, then gauges
	rates    int     // how many of holds are rates and budgets
	posted   Amounts // by Post, of attempts that have ended
	state    state
}

type state uint8

const (
	closed state = iota
	open
	expired
)

// hold is what one reservation has taken from one counter.
type hold struct {
	account *Account
	counter int   // index in account.counters
	amount  int64 // held now
	charged int64 // what the expiry charged
	mark    int64 // see counter.mark
}

func (h *hold) of() *counter { return &h.account.counters[h.counter] }

// grows reports whether the hold can become what a request that needs n takes.
func (h *hold) grows(n int64) bool {
	c := h.of()
	more := c.hold(n) - h.amount
	return more <= 0 || c.freeIn(h.mark) >= more
}

// Open reports whether the reservation can still be settled or released in time.
func (r *Reservation) Open() bool { return r.state == open }

// Expired reports whether the reservation can be settled late.
func (r *Reservation) Expired() bool { return r.state == expired }

// Accounts are those that the reservation holds from.
func (r *Reservation) Accounts() []*Account { return r.accounts }

// Posted is what Post has charged.
func (r *Reservation) Posted() Amounts { return r.posted }

func (r *Reservation) reset() {
	if r.state != closed {
		panic("quota: reservation is in use")
	}
	clear(r.accounts)
	clear(r.holds)
	r.accounts, r.holds, r.rates = r.accounts[:0], r.holds[:0], 0
	r.posted = Amounts{}
}

func (r *Reservation) close() {
	for _, a := range r.accounts {
		a.refs--
	}
	r.state = closed
}

// Reserve takes requests, tokens and spend from every account, all or nothing.
// need is what is held; a limit below least can never admit the request, in any
// dimension, gauges too. Nil when it was taken, else the limit in the way, and
// nothing was taken. REQUIRES: r is open and holds nothing.
func (b *Book) Reserve(now time.Time, r *Reservation, need, least Amounts) *Refusal {
	b.advance(now)
	fits := true
	for _, a := range r.accounts {
		for i := range a.counters {
			c := &a.counters[i]
			if c.limit.Amount == 0 {
				continue
			}
			c.refresh(b.tick, &b.calendar)
			d := c.limit.Dimension
			if c.limit.Amount < least[d] || !d.Gauge() && !c.fits(c.hold(need[d])) {
				fits = false
			}
		}
	}
	if !fits {
		return b.refusal(now, r, need, least)
	}
	for _, a := range r.accounts {
		for i := range a.counters {
			if c := &a.counters[i]; !c.limit.Dimension.Gauge() {
				r.take(a, i, b.limited(c, need))
			}
		}
	}
	r.rates = len(r.holds)
	return nil
}

// limited is what a request takes from a counter: nothing where no limit is
// configured now, so that such a counter only counts what was used.
func (b *Book) limited(c *counter, need Amounts) int64 {
	if c.limit.Amount == 0 {
		c.refresh(b.tick, &b.calendar)
		return 0
	}
	return c.hold(max(0, need[c.limit.Dimension]))
}

func (r *Reservation) take(a *Account, i int, n int64) {
	c := &a.counters[i]
	h := hold{account: a, counter: i, amount: n, mark: c.mark()}
	c.take(n, h.mark)
	r.holds = append(r.holds, h)
}

// TakeGauges takes concurrency and KV tokens from every account, all or
// nothing. It returns nil, or the first account whose gauge is too full.
// REQUIRES: r is open and holds no gauges.
func (b *Book) TakeGauges(r *Reservation, need Amounts) (blocked *Account) {
	for _, a := range r.accounts {
		for i := range a.counters {
			c := &a.counters[i]
			if d := c.limit.Dimension; d.Gauge() && c.limit.Amount > 0 && !c.fits(c.hold(need[d])) {
				return a
			}
		}
	}
	for _, a := range r.accounts {
		for i := range a.counters {
			if c := &a.counters[i]; c.limit.Dimension.Gauge() {
				r.take(a, i, b.limited(c, need))
			}
		}
	}
	return nil
}

// ReturnGauges gives concurrency and KV tokens back: the attempt has ended.
func (b *Book) ReturnGauges(r *Reservation) {
	for i := r.rates; i < len(r.holds); i++ {
		h := &r.holds[i]
		h.of().settle(h.amount, 0, 0)
	}
	clear(r.holds[r.rates:])
	r.holds = r.holds[:r.rates]
}

// TopUp raises the holds on tokens and spend to need, all or nothing, before a
// further attempt. Requests are not taken again. A fixed window is the one of
// the reservation, though it may be over. Nil when it was taken.
func (b *Book) TopUp(now time.Time, r *Reservation, need, least Amounts) *Refusal {
	b.advance(now)
	need[sluice.Requests], least[sluice.Requests] = 0, 0
	for i := range r.holds[:r.rates] {
		h := &r.holds[i]
		c := h.of()
		c.refresh(b.tick, &b.calendar)
		d := c.limit.Dimension
		if c.limit.Amount == 0 {
			continue
		}
		if c.limit.Amount < least[d] || !h.grows(need[d]) {
			return b.topUpRefusal(now, r, need, least)
		}
	}
	for i := range r.holds[:r.rates] {
		h := &r.holds[i]
		c := h.of()
		if more := b.limited(c, need) - h.amount; more > 0 {
			h.amount += more
			c.take(more, h.mark)
		}
	}
	return nil
}

// Post charges what an attempt used while the request goes on: it comes out of
// the hold, and what the hold does not cover leaves a debt.
func (b *Book) Post(now time.Time, r *Reservation, used Amounts) {
	b.advance(now)
	for i := range r.holds[:r.rates] {
		h := &r.holds[i]
		c := h.of()
		c.refresh(b.tick, &b.calendar)
		n := used[c.limit.Dimension]
		covered := min(n, h.amount)
		c.settle(covered, n, h.mark)
		h.amount -= covered
	}
	for d := range used {
		r.posted[d] = add(r.posted[d], used[d])
	}
}

// Settle ends the reservation. actual is what the whole request took, what was
// posted included; the rest is returned, and what is beyond the hold leaves a
// debt.
func (b *Book) Settle(now time.Time, r *Reservation, actual Amounts) {
	if r.state != open {
		panic("quota: settle of a reservation that is not open")
	}
	b.finish(now, r, actual)
}

// Release ends a reservation that used nothing beyond what was posted: the rest
// is returned, the request itself too unless something was posted.
func (b *Book) Release(now time.Time, r *Reservation) {
	if r.state != open {
		panic("quota: release of a reservation that is not open")
	}
	b.finish(now, r, r.posted)
}

func (b *Book) finish(now time.Time, r *Reservation, actual Amounts) {
	b.advance(now)
	b.ReturnGauges(r)
	for i := range r.holds {
		h := &r.holds[i]
		c := h.of()
		c.refresh(b.tick, &b.calendar)
		d := c.limit.Dimension
		c.settle(h.amount, actual[d]-r.posted[d]-h.charged, h.mark)
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
	b.ReturnGauges(r)
	for i := range r.holds {
		h := &r.holds[i]
		c := h.of()
		c.refresh(b.tick, &b.calendar)
		c.settle(h.amount, h.amount, h.mark)
		h.charged, h.amount = h.amount, 0
	}
	r.state = expired
}

// SettleLate replaces what the expiry charged by the actual, in the windows of
// the reservation. REQUIRES: r is expired.
func (b *Book) SettleLate(now time.Time, r *Reservation, actual Amounts) {
	if r.state != expired {
		panic("quota: late settlement of a reservation that has not expired")
	}
	b.finish(now, r, actual)
}

// Forget closes an expired reservation whose late settlement is no longer
// waited for: the charge of the expiry stands. REQUIRES: r is expired.
func (b *Book) Forget(r *Reservation) {
	if r.state != expired {
		panic("quota: forgetting a reservation that has not expired")
	}
	r.close()
}
