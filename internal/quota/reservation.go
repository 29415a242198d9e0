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
	parties
	holds []hold  // of rates and budgets: of each account, of its counters in order
	bound Amounts // what an attempt can use at most, less what was posted, as of when the holds were taken

	// What is seldom looked at, and not put right by reset.
	most    Amounts                     // what an attempt can use at most, as of the last Bound
	charged Amounts                     // by Post, of attempts that have ended, if there was one
	lesser  [MaxClaims][numGauges]int64 // what is held of gauges where that is not need
}

// parties are what of a reservation begins anew with every request.
type parties struct {
	accounts [MaxClaims]*Account
	would    *Refusal         // by the shadows; nil if all fitted
	need     [numGauges]int64 // of gauges, while they are held
	whole    uint8            // bit i: accounts[i] has given need
	less     uint8            // bit i: it has given less, as its limits are, or it has but one: see lesser
	claims   uint8            // how many of accounts there are
	shadow   uint8            // bit i: accounts[i] lets in what does not fit
	state    state            // see Open and Expired
	posted   bool             // there is something in charged
	scopes   [MaxClaims]sluice.Scope
	ends     [MaxClaims]uint16 // where in holds those of an account end
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

// Holds is memory for what most reservations hold. What lies elsewhere than the rest of a
// request is in another page, which is one more to be found.
type Holds [32]hold

// Use gives a reservation that was never opened memory for what it holds. Where that is
// not enough it finds its own, as without.
func (r *Reservation) Use(m *Holds) { r.holds = m[:0] }

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
		for i := range a.terms.rates {
			l := &a.terms.rates[i]
			if int(l.at) >= len(held) {
				continue // it has become limited since
			}
			if h := &held[l.at]; h.mark != untaken && !f(n, h, &a.counters[l.at], l) {
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
func (r *Reservation) Posted() (a Amounts) {
	if r.posted {
		a = r.charged
	}
	return a
}

func (r *Reservation) reset() {
	if r.state != closed {
		panic("quota: reservation is in use")
	}
	r.parties, r.holds = parties{}, r.holds[:0]
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
	var of asks
	for d := range of {
		of[d] = ask{max(0, need[d]), least[d], r.most[d]}
	}
	r.bound = r.most
	r.reach()
	if b.takeAll(r, &of, 0) {
		return nil
	}
	b.refresh(r)
	ofRun := r.ofRun(&need)
	if f := b.refusal(now, r, &need, &ofRun, &least, false); f != nil {
		return f
	}
	r.would = b.refusal(now, r, &need, &ofRun, &least, true)
	b.takeAll(r, &of, r.shadow)
	return nil
}

// takeAll takes what a request needs from all accounts, those left out excepted. It
// reports whether all had room, else nothing was taken.
func (b *Book) takeAll(r *Reservation, of *asks, leftOut uint8) bool {
	for n, a := range r.Accounts() {
		a.refresh(b.tick, &b.calendar)
		from := len(r.holds)
		r.holds = r.holds[:from+len(a.counters)]
		r.ends[n] = uint16(len(r.holds))
		held := r.holds[from:]
		if leftOut>>n&1 != 0 {
			r.count(a, held)
		} else if !a.take(held, of) {
			r.untake(n, of)
			return false
		}
	}
	return true
}

// take takes what a request asks from the counters of an account, and notes it in held.
// It reports whether the account has room for it and could ever have; if not, nothing was
// taken.
func (a *Account) take(held []hold, of *asks) bool {
	t := a.terms
	if t.never(of) {
		return false
	}
	if t.whole {
		ofRun := of.ofRun()
		of = &ofRun
	}
	taken := a.takeUsual(held, of)
	if taken == len(t.rates) {
		return true
	}
	if taken == t.others {
		taken += a.takeOthers(held, of)
	}
	if taken < len(t.rates) {
		a.giveUp(t.rates[:taken], held, of)
		return false
	}
	return true
}

// takeOthers is takeUsual of the others.
func (a *Account) takeOthers(held []hold, of *asks) int {
	others := a.terms.rates[a.terms.others:]
	for i := range others {
		l := &others[i]
		o, c := &of[l.Dimension], &a.counters[l.at]
		n := holdOf(l, o.need)
		if l.Amount > 0 && (l.Amount < o.least || !c.fits(l, n)) {
			return i
		}
		held[l.at] = hold{n, c.take(l, n)}
		c.over += max(0, o.most-n)
	}
	return len(others)
}

// never reports whether a gauge can never admit a request.
func (t *terms) never(of *asks) bool {
	first, second := t.gauges[0], t.gauges[1]
	return first > 0 && first < of[dimensionOf(0)].least || second > 0 && second < of[dimensionOf(1)].least
}

// giveUp takes back what take has taken for some rates of an account.
func (a *Account) giveUp(rates []rate, held []hold, of *asks) {
	for i := range rates {
		l := &rates[i]
		c, n := &a.counters[l.at], held[l.at].amount
		c.over -= max(0, of[l.Dimension].most-n)
		c.held -= n
		if l.how == byBucket {
			c.level += n
			c.returnable -= n
		}
	}
}

// untake takes back what was taken from the accounts before the n-th.
func (r *Reservation) untake(n int, of *asks) {
	from := 0
	for i, a := range r.accounts[:n] {
		a.giveUp(a.terms.rates, r.holds[from:r.ends[i]], of)
		from = int(r.ends[i])
	}
	r.holds, r.ends = r.holds[:0], [MaxClaims]uint16{}
}

// count notes in held that nothing was taken from a shadow, which counts what is used of
// its windows, and no more.
func (r *Reservation) count(a *Account, held []hold) {
	for i := range a.terms.rates {
		l := &a.terms.rates[i]
		c, h := &a.counters[l.at], &held[l.at]
		if l.how == byBucket || l.how == inFlight {
			*h = hold{mark: untaken}
			continue
		}
		*h = hold{mark: c.take(l, 0)}
		c.over += r.over(l, 0)
	}
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

// Prefetch asks the processor for all accounts, for who is about to take of them, or to end
// the reservation.
func (r *Reservation) Prefetch() {
	from := 0
	for n, a := range r.Accounts() {
		to := int(r.ends[n])
		a.prefetch(r.scopes[n], to-from)
		from = to
	}
}

// TakeGauges takes concurrency and KV tokens from every account, all or
// nothing. It returns nil, or the first account whose gauge is too full.
// REQUIRES: r is open and holds no gauges.
func (b *Book) TakeGauges(r *Reservation, need Amounts) (blocked *Account) {
	r.need = [numGauges]int64{max(0, need[dimensionOf(0)]), max(0, need[dimensionOf(1)])}
	out := r.shadow
	if r.would == nil { // else a shadow would have refused it already
		out = 0
	}
	for n, a := range r.Accounts() {
		if out>>n&1 != 0 {
			continue
		}
		most := &a.terms.gauges
		first, second := min(r.need[0], most[0]), min(r.need[1], most[1])
		if first > 0 && most[0]-a.held[0] < first || second > 0 && most[1]-a.held[1] < second {
			if !r.isShadow(n) {
				b.ReturnGauges(r)
				return a
			}
			if r.would == nil {
				r.would = b.tooFull(b.base.Add(time.Duration(b.tick)), a, &need)
			}
		}
		a.held[0] += first
		a.held[1] += second
		if first == r.need[0] && second == r.need[1] {
			r.whole |= 1 << n
		} else if first|second != 0 {
			r.less |= 1 << n
			r.lesser[n] = [numGauges]int64{first, second}
		}
	}
	return nil
}

// ReturnGauges gives concurrency and KV tokens back: the attempt has ended.
func (b *Book) ReturnGauges(r *Reservation) {
	if r.whole|r.less == 0 {
		return
	}
	for n, a := range r.Accounts() {
		switch bit := uint8(1) << n; {
		case r.whole&bit != 0:
			a.held[0] -= r.need[0]
			a.held[1] -= r.need[1]
		case r.less&bit != 0:
			a.held[0] -= r.lesser[n][0]
			a.held[1] -= r.lesser[n][1]
		}
	}
	r.whole, r.less = 0, 0
}

// TopUp raises the holds on tokens and spend to need, all or nothing, before a
// further attempt. Requests are not taken again. A fixed window is the one of
// the reservation, though it may be over. Nil when it was taken.
func (b *Book) TopUp(now time.Time, r *Reservation, need, least Amounts) *Refusal {
	b.advance(now)
	b.refresh(r)
	need[sluice.Requests], least[sluice.Requests] = 0, 0
	ofRun := r.ofRun(&need)
	if !r.each(func(n int, h *hold, c *counter, l *rate) bool {
		d := l.Dimension
		return l.Amount == 0 || r.isShadow(n) || l.Amount >= least[d] && h.grows(c, l, needOf(l, &need, &ofRun))
	}) {
		return b.topUpRefusal(now, r, &need, &ofRun, &least)
	}
	before := r.bound
	r.bound = r.most
	r.each(func(n int, h *hold, c *counter, l *rate) bool {
		r.raise(n, h, c, l, needOf(l, &need, &ofRun), before[l.Dimension])
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
	r.charged, r.posted = r.Posted(), true
	for d := range used {
		r.bound[d] = max(0, before[d]-max(0, used[d]))
		r.charged[d] = add(r.charged[d], used[d])
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
