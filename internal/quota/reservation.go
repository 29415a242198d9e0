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
	accounts [MaxClaims]*Account
	claims   uint8    // how many of accounts there are
	shadow   uint8    // bit i: accounts[i] lets in what does not fit
	state    state    // see Open and Expired
	rates    int      // how many of holds are rates and budgets
	holds    []hold   // rates and budgets, then gauges
	would    *Refusal // by the shadows; nil if all fitted
	most     Amounts  // what an attempt can use at most, as of the last Bound
	bound    Amounts  // most, less what was posted, as of when the holds were taken
	posted   Amounts  // by Post, of attempts that have ended
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
	mark    int64 // see counter.mark
	account uint8 // index in accounts
	counter uint8 // index in its counters
	shadow  bool  // of an account that lets in what does not fit
}

func (r *Reservation) of(h *hold) (*counter, *sluice.Limit) {
	a := r.accounts[h.account]
	return &a.counters[h.counter], &a.rows[h.counter]
}

// refresh brings the reservation's accounts to the present moment.
func (b *Book) refresh(r *Reservation) {
	for _, a := range r.Accounts() {
		a.refresh(b.tick, &b.calendar)
	}
}

// grows reports whether the hold can become what a request that needs n takes.
func (r *Reservation) grows(h *hold, n int64) bool {
	c, l := r.of(h)
	more := holdOf(l, n) - h.amount
	return more <= 0 || c.freeIn(l, h.mark) >= more
}

// Open reports whether the reservation can still be settled or released in time.
func (r *Reservation) Open() bool { return r.state == open }

// Expired reports whether the reservation can be settled late.
func (r *Reservation) Expired() bool { return r.state == expired }

// Would, after Reserve and again after TakeGauges, is the limit that would have kept
// the request out, or waiting, had it not been a shadow. Nil if there was none.
func (r *Reservation) Would() *Refusal { return r.would }

// Bound tells what one attempt can use at most, before Reserve or TopUp: what
// of it is not held may become debt. What is less than the hold counts as that.
func (r *Reservation) Bound(most Amounts) { r.most = most }

func (r *Reservation) isShadow(i int) bool { return r.shadow>>i&1 != 0 }

// Accounts are those that the reservation holds from.
func (r *Reservation) Accounts() []*Account { return r.accounts[:r.claims] }

// Posted is what Post has charged.
func (r *Reservation) Posted() Amounts { return r.posted }

func (r *Reservation) reset() {
	if r.state != closed {
		panic("quota: reservation is in use")
	}
	*r = Reservation{holds: r.holds[:0]}
}

func (r *Reservation) close() {
	for _, a := range r.Accounts() {
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
	b.refresh(r)
	fits, shadows := true, true
	for n, a := range r.Accounts() {
		switch {
		case a.admits(&need, &least):
		case r.isShadow(n):
			shadows = false
		default:
			fits = false
		}
	}
	if !fits {
		return b.refusal(now, r, &need, &least, false)
	}
	if !shadows {
		r.would = b.refusal(now, r, &need, &least, true)
	}
	r.bound = r.most
	r.reach()
	for n, a := range r.Accounts() {
		out := !shadows && r.isShadow(n)
		for i := range a.rows {
			l := &a.rows[i]
			switch d := l.Dimension; {
			case d.Gauge() || d == sluice.RunTime:
			case !out:
				r.take(n, i, limited(l, need[d]))
			case spans(l.Window):
				r.take(n, i, 0)
			}
		}
	}
	r.rates = len(r.holds)
	return nil
}

// admits reports whether the account has room for what a request takes at arrival,
// and could ever admit it.
func (a *Account) admits(need, least *Amounts) bool {
	for i := range a.counters {
		l := &a.rows[i]
		if l.Amount == 0 {
			continue
		}
		if d := l.Dimension; l.Amount < least[d] || !d.Gauge() && !a.counters[i].fits(l, holdOf(l, need[d])) {
			return false
		}
	}
	return true
}

// limited is what a request takes from a counter: nothing where no limit is
// configured now, so that such a counter only counts what was used.
func limited(l *sluice.Limit, need int64) int64 { return holdOf(l, max(0, need)) }

// take takes n from the i-th counter of an account, and notes it. REQUIRES: reach.
func (r *Reservation) take(at, i int, n int64) {
	a := r.accounts[at]
	c, l := &a.counters[i], &a.rows[i]
	r.holds = r.holds[:len(r.holds)+1]
	h := &r.holds[len(r.holds)-1]
	h.amount, h.mark = n, c.take(l, n)
	h.account, h.counter, h.shadow = uint8(at), uint8(i), r.isShadow(at)
	if !l.Dimension.Gauge() {
		c.over += r.over(l, n)
	}
}

// over is how much more than a hold of n an attempt can use of a rate or budget.
func (r *Reservation) over(l *sluice.Limit, n int64) int64 { return max(0, r.bound[l.Dimension]-n) }

// reach makes room for a hold of every counter, gauges too, so that a reservation
// that is used again allocates no more.
func (r *Reservation) reach() {
	n := 0
	for _, a := range r.Accounts() {
		n += len(a.counters)
	}
	r.holds = slices.Grow(r.holds, max(0, n-len(r.holds)))
}

// TakeGauges takes concurrency and KV tokens from every account, all or
// nothing. It returns nil, or the first account whose gauge is too full.
// REQUIRES: r is open and holds no gauges.
func (b *Book) TakeGauges(r *Reservation, need Amounts) (blocked *Account) {
	out := r.would != nil // a shadow would have refused it already
	for n, a := range r.Accounts() {
		if out && r.isShadow(n) {
			continue
		}
		for m := a.gauges; m != 0; m &= m - 1 {
			i := bits.TrailingZeros64(m)
			c, l := &a.counters[i], &a.rows[i]
			h := holdOf(l, need[l.Dimension])
			if l.Amount == 0 || c.fits(l, h) {
				continue
			}
			if !r.isShadow(n) {
				return a
			}
			if r.would == nil {
				r.would = b.describe(b.base.Add(time.Duration(b.tick)), a, i, h, 0)
			}
		}
	}
	r.reach()
	for n, a := range r.Accounts() {
		if out && r.isShadow(n) {
			continue
		}
		for m := a.gauges; m != 0; m &= m - 1 {
			i := bits.TrailingZeros64(m)
			r.take(n, i, limited(&a.rows[i], need[a.rows[i].Dimension]))
		}
	}
	return nil
}

// ReturnGauges gives concurrency and KV tokens back: the attempt has ended.
func (b *Book) ReturnGauges(r *Reservation) {
	for i := r.rates; i < len(r.holds); i++ {
		h := &r.holds[i]
		c, l := r.of(h)
		c.settle(l, h.amount, 0, h.mark)
	}
	r.holds = r.holds[:r.rates]
}

// TopUp raises the holds on tokens and spend to need, all or nothing, before a
// further attempt. Requests are not taken again. A fixed window is the one of
// the reservation, though it may be over. Nil when it was taken.
func (b *Book) TopUp(now time.Time, r *Reservation, need, least Amounts) *Refusal {
	b.advance(now)
	b.refresh(r)
	need[sluice.Requests], least[sluice.Requests] = 0, 0
	for i := range r.holds[:r.rates] {
		h := &r.holds[i]
		_, l := r.of(h)
		d := l.Dimension
		if l.Amount == 0 || h.shadow {
			continue
		}
		if l.Amount < least[d] || !r.grows(h, need[d]) {
			return b.topUpRefusal(now, r, &need, &least)
		}
	}
	before := r.bound
	r.bound = r.most
	for i := range r.holds[:r.rates] {
		h := &r.holds[i]
		_, l := r.of(h)
		r.raise(h, limited(l, need[l.Dimension]), need[l.Dimension], before[l.Dimension])
	}
	return nil
}

// raise brings a hold to what a request that needs n takes, and what it can exceed
// the hold by from one bound to the present one.
func (r *Reservation) raise(h *hold, to, n, before int64) {
	c, l := r.of(h)
	c.over -= max(0, before-h.amount)
	if more := to - h.amount; more > 0 && (!h.shadow || r.grows(h, n)) {
		h.amount += more
		c.takeMore(l, more, h.mark)
	}
	c.over += r.over(l, h.amount)
}

// Raise raises the holds on one dimension of rates or budgets to need, all or
// nothing, while an attempt runs. It reports whether there was room.
func (b *Book) Raise(now time.Time, r *Reservation, d sluice.Dimension, need int64) bool {
	b.advance(now)
	b.refresh(r)
	for i := range r.holds[:r.rates] {
		h := &r.holds[i]
		_, l := r.of(h)
		if l.Dimension != d || l.Amount == 0 || h.shadow {
			continue
		}
		if l.Amount < need || !r.grows(h, need) {
			return false
		}
	}
	before := r.bound[d]
	r.bound[d] = max(before, need)
	for i := range r.holds[:r.rates] {
		h := &r.holds[i]
		if _, l := r.of(h); l.Dimension == d {
			r.raise(h, limited(l, need), need, before)
		}
	}
	return true
}

// Post charges what an attempt used while the request goes on: it comes out of
// the hold, and what the hold does not cover leaves a debt.
func (b *Book) Post(now time.Time, r *Reservation, used Amounts) {
	b.advance(now)
	b.refresh(r)
	before := r.bound
	for d := range used {
		r.bound[d] = max(0, before[d]-max(0, used[d]))
		r.posted[d] = add(r.posted[d], used[d])
	}
	for i := range r.holds[:r.rates] {
		h := &r.holds[i]
		c, l := r.of(h)
		n := used[l.Dimension]
		covered := min(n, h.amount)
		c.settle(l, covered, n, h.mark)
		c.over -= max(0, before[l.Dimension]-h.amount)
		h.amount -= covered
		c.over += r.over(l, h.amount)
	}
}
