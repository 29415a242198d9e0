package quota

import (
	"math"
	"slices"
	"time"

	"sluice"
)

// Reservation is one request's hold over all limits that apply. It ends exactly
// once: Settle, Release, or Expire and then, perhaps, SettleLate. Its memory may
// be used again for the next request; the zero value is closed.
type Reservation struct {
	accounts [MaxClaims]*Account
	gauges   [MaxClaims][numGauges]int64 // what is held of those of the accounts
	ends     [MaxClaims]uint16           // where in holds those of an account end
	claims   uint8                       // how many of accounts there are
	shadow   uint8                       // bit i: accounts[i] lets in what does not fit
	state    state                       // see Open and Expired
	running  bool                        // gauges are held
	holds    []hold                      // of rates and budgets: of each account, of its counters in order
	would    *Refusal                    // by the shadows; nil if all fitted
	most     Amounts                     // what an attempt can use at most, as of the last Bound
	bound    Amounts                     // most, less what was posted, as of when the holds were taken
	posted   Amounts                     // by Post, of attempts that have ended
}

type state uint8

const (
	closed state = iota
	open
	expired
)

// hold is what one reservation has taken from one counter.
type hold struct {
	amount int64 // held now; once it has expired, what the expiry charged
	mark   int64 // see counter.take; untaken of a counter that nothing was taken from
}

// untaken marks the place of a hold that there is none of: a shadow that lets
// somebody in takes nothing from its buckets.
const untaken = math.MinInt64

// each calls f for what is held of rates and budgets of the accounts. It stops where f
// returns false, and reports whether it came to the end.
func (r *Reservation) each(f func(n int, h *hold, c *counter, l *rate) bool) bool {
	from := 0
	for n, a := range r.Accounts() {
		held := r.holds[from:r.ends[n]]
		from += len(held)
		for i := range held { // what has become limited since is behind
			if held[i].mark != untaken && !f(n, &held[i], &a.counters[i], &a.terms.rates[i]) {
				return false
			}
		}
	}
	return true
}

// refresh brings the reservation's accounts to the present moment.
func (b *Book) refresh(r *Reservation) {
	for _, a := range r.Accounts() {
		a.refresh(b.tick, &b.calendar)
	}
}

// grows reports whether the hold can become what a request that needs n takes.
func (h *hold) grows(c *counter, l *rate, n int64) bool {
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
	fits, shadows := true, true
	for n, a := range r.Accounts() {
		a.refresh(b.tick, &b.calendar)
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
		r.take(n, a, &need, shadows || !r.isShadow(n))
	}
	return nil
}

// take takes what a request needs from the counters of its n-th account, and notes it.
// A shadow that is left out counts what is used of its windows, and no more. REQUIRES:
// reach, and the accounts before.
func (r *Reservation) take(n int, a *Account, need *Amounts, in bool) {
	from := len(r.holds)
	r.holds = r.holds[:from+len(a.counters)]
	held := r.holds[from:]
	r.ends[n] = uint16(len(r.holds))
	rates, counters := a.terms.rates[:len(held)], a.counters[:len(held)]
	for i := range held {
		l, c, h := &rates[i], &counters[i], &held[i]
		d := l.Dimension % sluice.NumDimensions // as the compiler cannot know: it need not look whether it is in range
		if !in && (l.how == byBucket || l.how == inFlight) {
			*h = hold{mark: untaken}
			continue
		}
		take := int64(0)
		if in && l.how != byRunTime {
			take = min(max(0, need[d]), l.Amount)
		}
		h.amount = take
		if l.how == byBucket { // take, written out: most are
			c.held += take
			c.returnable += take
			c.level = add(c.level, -take)
			h.mark = c.overflow
		} else {
			h.mark = c.take(l, take)
		}
		c.over += max(0, r.bound[d]-take)
	}
}

// admits reports whether the account has room for what a request takes at arrival,
// and could ever admit it.
func (a *Account) admits(need, least *Amounts) bool {
	for g := range a.gauges {
		if most := a.gauges[g].most; most > 0 && most < least[dimensionOf(g)] {
			return false
		}
	}
	rates := a.terms.rates
	counters := a.counters[:len(rates)]
	for i := range rates {
		l := &rates[i]
		d := l.Dimension % sluice.NumDimensions
		h := min(need[d], l.Amount)
		switch {
		case l.Amount == 0:
		case l.Amount < least[d]:
			return false
		case l.how == byBucket: // written out: most are
			if h > 0 && h > counters[i].level {
				return false
			}
		case !counters[i].fits(l, h):
			return false
		}
	}
	return true
}

// limited is what a request takes from a counter: nothing where no limit is
// configured now, so that such a counter only counts what was used.
func limited(l *rate, need int64) int64 { return holdOf(l, max(0, need)) }

// over is how much more than a hold of n an attempt can use of a rate or budget.
func (r *Reservation) over(l *rate, n int64) int64 { return max(0, r.bound[l.Dimension]-n) }

// reach makes room for a hold of every counter, so that a reservation that is used
// again allocates no more.
func (r *Reservation) reach() {
	n := 0
	for _, a := range r.Accounts() {
		n += len(a.counters)
	}
	r.holds = slices.Grow(r.holds, n)
}

// TakeGauges takes concurrency and KV tokens from every account, all or
// nothing. It returns nil, or the first account whose gauge is too full.
// REQUIRES: r is open and holds no gauges.
func (b *Book) TakeGauges(r *Reservation, need Amounts) (blocked *Account) {
	out := r.would != nil // a shadow would have refused it already
	for n, a := range r.Accounts() {
		if out && r.isShadow(n) || a.runs(&need) {
			continue
		}
		if !r.isShadow(n) {
			return a
		}
		if r.would == nil {
			r.would = b.tooFull(b.base.Add(time.Duration(b.tick)), a, &need)
		}
	}
	for n, a := range r.Accounts() {
		if out && r.isShadow(n) {
			continue
		}
		for g := range a.gauges {
			gauge := &a.gauges[g]
			h := gauge.holdOf(need[dimensionOf(g)])
			gauge.held += h
			r.gauges[n][g] = h
		}
	}
	r.running = true
	return nil
}

// runs reports whether the account's gauges have room for a request.
func (a *Account) runs(need *Amounts) bool {
	return a.gauges[0].fits(need[dimensionOf(0)]) && a.gauges[1].fits(need[dimensionOf(1)])
}

// ReturnGauges gives concurrency and KV tokens back: the attempt has ended.
func (b *Book) ReturnGauges(r *Reservation) {
	if !r.running {
		return
	}
	for n, a := range r.Accounts() {
		for g := range a.gauges {
			a.gauges[g].held -= r.gauges[n][g]
		}
	}
	r.gauges, r.running = [MaxClaims][numGauges]int64{}, false
}

// TopUp raises the holds on tokens and spend to need, all or nothing, before a
// further attempt. Requests are not taken again. A fixed window is the one of
// the reservation, though it may be over. Nil when it was taken.
func (b *Book) TopUp(now time.Time, r *Reservation, need, least Amounts) *Refusal {
	b.advance(now)
	b.refresh(r)
	need[sluice.Requests], least[sluice.Requests] = 0, 0
	if !r.each(func(n int, h *hold, c *counter, l *rate) bool {
		d := l.Dimension
		return l.Amount == 0 || r.isShadow(n) || l.Amount >= least[d] && h.grows(c, l, need[d])
	}) {
		return b.topUpRefusal(now, r, &need, &least)
	}
	before := r.bound
	r.bound = r.most
	r.each(func(n int, h *hold, c *counter, l *rate) bool {
		d := l.Dimension
		r.raise(n, h, c, l, need[d], before[d])
		return true
	})
	return nil
}

// raise brings a hold of the n-th account to what a request that needs so much takes,
// and what it can exceed the hold by from one bound to the present one.
func (r *Reservation) raise(n int, h *hold, c *counter, l *rate, need, before int64) {
	c.over -= max(0, before-h.amount)
	if more := limited(l, need) - h.amount; more > 0 && (!r.isShadow(n) || h.grows(c, l, need)) {
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
	if !r.each(func(n int, h *hold, c *counter, l *rate) bool {
		return l.Dimension != d || l.Amount == 0 || r.isShadow(n) || l.Amount >= need && h.grows(c, l, need)
	}) {
		return false
	}
	before := r.bound[d]
	r.bound[d] = max(before, need)
	r.each(func(n int, h *hold, c *counter, l *rate) bool {
		if l.Dimension == d {
			r.raise(n, h, c, l, need, before)
		}
		return true
	})
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
	r.each(func(_ int, h *hold, c *counter, l *rate) bool {
		n := used[l.Dimension]
		covered := min(n, h.amount)
		c.settle(l, covered, n, h.mark)
		c.over -= max(0, before[l.Dimension]-h.amount)
		h.amount -= covered
		c.over += r.over(l, h.amount)
		return true
	})
}
