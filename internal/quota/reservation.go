package quota

import (
	"math/bits"
	"slices"
	"time"

	"sluice"
)

// Reservation is one request's hold over all limits that apply. It ends exactly
// once: Settle, Release, or Expire and then, perhaps, SettleLate. Its memory may
// be used again for the next request; the zero value is closed.
type Reservation struct {
	accounts []*Account
	shadow   uint8    // bit i: accounts[i] lets in what does not fit
	would    *Refusal // by the shadows; nil if all fitted
	holds    []hold   // rates and budgets, then gauges
	rates    int      // how many of holds are rates and budgets
	bound    Amounts  // what one attempt can use at most
	posted   Amounts  // by Post, of attempts that have ended
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
	amount  int64 // held now; once it has expired, what the expiry charged
	over    int64 // its part of counter.over
	mark    int64 // see counter.mark
	account uint8 // index in accounts
	counter uint8 // index in its counters
	shadow  bool  // of an account that lets in what does not fit
}

func (r *Reservation) of(h *hold) *counter { return &r.accounts[h.account].counters[h.counter] }

// grows reports whether the hold can become what a request that needs n takes.
func (r *Reservation) grows(h *hold, n int64) bool {
	c := r.of(h)
	more := c.hold(n) - h.amount
	return more <= 0 || c.freeIn(h.mark) >= more
}

// Open reports whether the reservation can still be settled or released in time.
func (r *Reservation) Open() bool { return r.state == open }

// Expired reports whether the reservation can be settled late.
func (r *Reservation) Expired() bool { return r.state == expired }

// Would, after Reserve and again after TakeGauges, is the limit that would have kept the request out, or waiting, had it
// not been a shadow. Nil if there was none.
func (r *Reservation) Would() *Refusal { return r.would }

// Bound tells what one attempt can use at most, before Reserve or TopUp: what
// of it is not held may become debt. What is less than the hold counts as that.
func (r *Reservation) Bound(most Amounts) { r.bound = most }

func (r *Reservation) isShadow(i int) bool { return r.shadow>>i&1 != 0 }

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
	r.shadow, r.would = 0, nil
	r.bound, r.posted = Amounts{}, Amounts{}
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
//
// What only shadows have no room for is let in. It takes nothing from them: they
// go on as if it had been refused, but for windows, which count what is used.
func (b *Book) Reserve(now time.Time, r *Reservation, need, least Amounts) *Refusal {
	b.advance(now)
	fits, shadows := true, true
	for n, a := range r.accounts {
		for i := range a.counters {
			c := &a.counters[i]
			if c.limit.Amount == 0 {
				continue
			}
			c.refresh(b.tick, &b.calendar)
			d := c.limit.Dimension
			switch {
			case c.limit.Amount >= least[d] && (d.Gauge() || c.fits(c.hold(need[d]))):
			case r.isShadow(n):
				shadows = false
			default:
				fits = false
			}
		}
	}
	if !fits {
		return b.refusal(now, r, need, least, false)
	}
	if !shadows {
		r.would = b.refusal(now, r, need, least, true)
	}
	r.reach()
	for n, a := range r.accounts {
		out := !shadows && r.isShadow(n)
		for i := range a.counters {
			c := &a.counters[i]
			switch {
			case c.limit.Dimension.Gauge() || c.limit.Dimension == sluice.RunTime:
			case !out:
				r.take(n, i, b.limited(c, need))
			case spans(c.limit.Window):
				c.refresh(b.tick, &b.calendar)
				r.take(n, i, 0)
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

func (r *Reservation) take(at, i int, n int64) {
	a := r.accounts[at]
	c := &a.counters[i]
	h := hold{account: uint8(at), counter: uint8(i), shadow: r.isShadow(at), amount: n, mark: c.mark()}
	c.take(n, h.mark)
	r.expose(&h, c)
	r.holds = append(r.holds, h)
}

// reach makes room for a hold of every counter, gauges too, so that a reservation
// that is used again allocates no more.
func (r *Reservation) reach() {
	n := 0
	for _, a := range r.accounts {
		n += len(a.counters)
	}
	r.holds = slices.Grow(r.holds, n)
}

// expose notes how much more than it holds an attempt can use.
func (r *Reservation) expose(h *hold, c *counter) {
	over := max(0, r.bound[c.limit.Dimension]-h.amount)
	if c.limit.Amount == 0 || c.limit.Dimension.Gauge() {
		over = 0
	}
	c.over += over - h.over
	h.over = over
}

// TakeGauges takes concurrency and KV tokens from every account, all or
// nothing. It returns nil, or the first account whose gauge is too full.
// REQUIRES: r is open and holds no gauges.
func (b *Book) TakeGauges(r *Reservation, need Amounts) (blocked *Account) {
	out := r.would != nil // a shadow would have refused it already
	for n, a := range r.accounts {
		if out && r.isShadow(n) {
			continue
		}
		for m := a.gauges; m != 0; m &= m - 1 {
			c := &a.counters[bits.TrailingZeros64(m)]
			d := c.limit.Dimension
			if c.limit.Amount == 0 || c.fits(c.hold(need[d])) {
				continue
			}
			if !r.isShadow(n) {
				return a
			}
			if r.would == nil {
				r.would = b.describe(b.base.Add(time.Duration(b.tick)), a, c, c.hold(need[d]), 0)
			}
		}
	}
	for n, a := range r.accounts {
		if out && r.isShadow(n) {
			continue
		}
		for m := a.gauges; m != 0; m &= m - 1 {
			i := bits.TrailingZeros64(m)
			r.take(n, i, b.limited(&a.counters[i], need))
		}
	}
	return nil
}

// ReturnGauges gives concurrency and KV tokens back: the attempt has ended.
func (b *Book) ReturnGauges(r *Reservation) {
	for i := r.rates; i < len(r.holds); i++ {
		h := &r.holds[i]
		r.of(h).settle(h.amount, 0, 0)
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
		c := r.of(h)
		c.refresh(b.tick, &b.calendar)
		d := c.limit.Dimension
		if c.limit.Amount == 0 || h.shadow {
			continue
		}
		if c.limit.Amount < least[d] || !r.grows(h, need[d]) {
			return b.topUpRefusal(now, r, need, least)
		}
	}
	for i := range r.holds[:r.rates] {
		h := &r.holds[i]
		c := r.of(h)
		if more := b.limited(c, need) - h.amount; more > 0 && (!h.shadow || r.grows(h, need[c.limit.Dimension])) {
			h.amount += more
			c.take(more, h.mark)
		}
		r.expose(h, c)
	}
	return nil
}

// Raise raises the holds on one dimension of rates or budgets to need, all or
// nothing, while an attempt runs. It reports whether there was room.
func (b *Book) Raise(now time.Time, r *Reservation, d sluice.Dimension, need int64) bool {
	b.advance(now)
	for i := range r.holds[:r.rates] {
		h := &r.holds[i]
		c := r.of(h)
		if c.limit.Dimension != d || c.limit.Amount == 0 {
			continue
		}
		c.refresh(b.tick, &b.calendar)
		if !h.shadow && (c.limit.Amount < need || !r.grows(h, need)) {
			return false
		}
	}
	r.bound[d] = max(r.bound[d], need)
	for i := range r.holds[:r.rates] {
		h := &r.holds[i]
		c := r.of(h)
		if c.limit.Dimension != d || c.limit.Amount == 0 {
			continue
		}
		if more := c.hold(need) - h.amount; more > 0 && (!h.shadow || r.grows(h, need)) {
			h.amount += more
			c.take(more, h.mark)
		}
		r.expose(h, c)
	}
	return true
}

// Post charges what an attempt used while the request goes on: it comes out of
// the hold, and what the hold does not cover leaves a debt.
func (b *Book) Post(now time.Time, r *Reservation, used Amounts) {
	b.advance(now)
	for i := range r.holds[:r.rates] {
		h := &r.holds[i]
		c := r.of(h)
		c.refresh(b.tick, &b.calendar)
		n := used[c.limit.Dimension]
		covered := min(n, h.amount)
		c.settle(covered, n, h.mark)
		h.amount -= covered
		debt := min(max(n-covered, 0), h.over)
		h.over -= debt
		c.over -= debt
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
		c := r.of(h)
		c.refresh(b.tick, &b.calendar)
		d := c.limit.Dimension
		c.over -= h.over
		held, charged := h.amount, int64(0)
		if r.state == expired {
			held, charged = 0, h.amount
		}
		c.settle(held, actual[d]-r.posted[d]-charged, h.mark)
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
		c := r.of(h)
		c.refresh(b.tick, &b.calendar)
		c.settle(h.amount, h.amount, h.mark)
		c.over -= h.over
		h.over = 0
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
