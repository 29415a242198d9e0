package quota

import (
	"time"

	"sluice"
)

// Refusal is the limit that did not fit, and the truth about it.
type Refusal struct {
	Never     bool // the limit can never admit the request
	Owner     Owner
	Limit     sluice.Limit
	Requested int64 // what the request would have held; what it needs at least if Never
	Used      int64 // spent, in the limit's unit
	Held      int64 // held by requests in flight
	InFlight  bool  // it would fit if nothing were in flight
	// Wait is when the request would fit if nothing else happened: the refill
	// of a bucket or the end of a fixed window. Zero where that is for requests
	// in flight to decide, or never: what a run has spent does not come back.
	Wait  time.Duration
	Spent bool      // of a run, which gets nothing back: no later request of it fits
	Reset time.Time // when the bucket is full or the window ends; zero for gauges
}

// refusal finds the limit to name: one that can never admit the request, else
// the one that takes longest to admit it, else, of those that requests in flight
// decide, the first. Scope order breaks ties. shadow looks at the accounts that
// let in what does not fit, and at no others.
func (b *Book) refusal(now time.Time, r *Reservation, need, least Amounts, shadow bool) *Refusal {
	var worst *Refusal
	for n, a := range r.accounts {
		if r.isShadow(n) != shadow {
			continue
		}
		for i := range a.counters {
			c := &a.counters[i]
			if c.limit.Amount == 0 {
				continue
			}
			d := c.limit.Dimension
			if c.limit.Amount < least[d] {
				f := b.describe(now, a, c, least[d], 0)
				f.Never, f.InFlight, f.Wait = true, false, 0
				return f
			}
			if d.Gauge() || c.fits(c.hold(need[d])) {
				continue
			}
			if f := b.describe(now, a, c, c.hold(need[d]), 0); f.longer(worst) {
				worst = f
			}
		}
	}
	return worst
}

// longer reports whether f keeps a request out for longer than g, which may be
// nil, does.
func (f *Refusal) longer(g *Refusal) bool {
	return g == nil || f.Spent && !g.Spent || f.Spent == g.Spent && f.Wait > g.Wait
}

// topUpRefusal is refusal for TopUp, where what is held already counts.
func (b *Book) topUpRefusal(now time.Time, r *Reservation, need, least Amounts) *Refusal {
	var worst *Refusal
	for i := range r.holds[:r.rates] {
		h := &r.holds[i]
		c := r.of(h)
		d := c.limit.Dimension
		switch {
		case c.limit.Amount == 0 || h.shadow:
		case c.limit.Amount < least[d]:
			f := b.describe(now, r.accounts[h.account], c, least[d], h.amount)
			f.Never, f.InFlight, f.Wait = true, false, 0
			return f
		case !r.grows(h, need[d]):
			if f := b.describe(now, r.accounts[h.account], c, c.hold(need[d])-h.amount, h.amount); f.longer(worst) {
				worst = f
			}
		}
	}
	return worst
}

// GaugeRefusal describes the gauge that is too full for a request, nil if none
// is.
func (b *Book) GaugeRefusal(now time.Time, r *Reservation, need Amounts) *Refusal {
	for n, a := range r.accounts {
		if r.isShadow(n) {
			continue
		}
		for i := range a.counters {
			c := &a.counters[i]
			if d := c.limit.Dimension; d.Gauge() && c.limit.Amount > 0 && !c.fits(c.hold(need[d])) {
				return b.describe(now, a, c, c.hold(need[d]), 0)
			}
		}
	}
	return nil
}

// SpendRefusal describes the tightest spend budget for a request that needs at
// least that much and already holds what r does. Nil if every budget has it.
func (b *Book) SpendRefusal(now time.Time, r *Reservation, least int64) *Refusal {
	b.advance(now)
	var need Amounts
	need[sluice.Spend] = least
	if r.rates == 0 {
		return b.refusal(now, r, need, need, false)
	}
	return b.topUpRefusal(now, r, need, need)
}

// Room is how much a request could hold of every spend budget at once, with what
// it holds already. limited is false where no budget applies.
func (b *Book) Room(now time.Time, r *Reservation) (room sluice.Nano, limited bool) {
	b.advance(now)
	for n, a := range r.accounts {
		if r.isShadow(n) {
			continue
		}
		for i := range a.counters {
			c := &a.counters[i]
			if c.limit.Dimension != sluice.Spend || c.limit.Amount == 0 {
				continue
			}
			c.refresh(b.tick, &b.calendar)
			free := sluice.Nano(c.free())
			if h := r.holdOf(a, i); h != nil {
				free = sluice.Nano(add(c.freeIn(h.mark), h.amount))
			}
			if !limited || free < room {
				room, limited = free, true
			}
		}
	}
	return room, limited
}

func (r *Reservation) holdOf(a *Account, i int) *hold {
	for j := range r.holds[:r.rates] {
		if h := &r.holds[j]; r.accounts[h.account] == a && int(h.counter) == i {
			return h
		}
	}
	return nil
}

// describe tells about a counter that has no room for h. own is what the request
// itself holds of it: that will not come back first.
func (b *Book) describe(now time.Time, a *Account, c *counter, h, own int64) *Refusal {
	f := &Refusal{
		Owner: a.owner, Limit: c.limit, Requested: h,
		Used: c.used(), Held: c.inFlight(),
		InFlight: add(c.free(), c.pending()-own) >= h,
	}
	if c.limit.Window == sluice.PerRun {
		f.InFlight = f.InFlight && c.limit.Dimension != sluice.RunTime
		f.Spent = !f.InFlight
	}
	switch w := c.limit.Window; {
	case w == sluice.NoWindow || w == sluice.PerRun:
	case w.Fixed():
		f.Reset = time.Unix(b.calendar.end[w], 0).UTC()
		if !f.InFlight {
			f.Wait = b.calendar.until(w, now)
		}
	default:
		f.Wait = c.refillTime(h)
		f.Reset = now.Add(c.refillTime(c.limit.Amount))
	}
	return f
}
