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
// let in what does not fit, and at no others. ofRun is what is needed of a run.
func (b *Book) refusal(now time.Time, r *Reservation, need, ofRun, least *Amounts, shadow bool) *Refusal {
	var worst *Refusal
	for n, a := range r.Accounts() {
		if r.isShadow(n) != shadow {
			continue
		}
		for i := range a.terms.rows {
			l := &a.terms.rows[i]
			d := l.Dimension
			switch {
			case l.Amount == 0:
			case l.Amount < least[d]:
				return b.describe(now, a, i, least[d], 0).never()
			case !d.Gauge():
				t, c := a.counter(i)
				h := holdOf(t, needOf(t, need, ofRun))
				if c.fits(t, h) {
					continue
				}
				if f := b.describe(now, a, i, h, 0); f.longer(worst) {
					worst = f
				}
			}
		}
	}
	return worst
}

// never is the refusal of what the limit can never admit.
func (f *Refusal) never() *Refusal {
	f.Never, f.InFlight, f.Wait = true, false, 0
	return f
}

// longer reports whether f keeps a request out for longer than g, which may be
// nil, does.
func (f *Refusal) longer(g *Refusal) bool {
	return g == nil || f.Spent && !g.Spent || f.Spent == g.Spent && f.Wait > g.Wait
}

// topUpRefusal is refusal for TopUp, where what is held already counts.
func (b *Book) topUpRefusal(now time.Time, r *Reservation, need, ofRun, least *Amounts) (worst *Refusal) {
	r.each(func(n int, h *hold, c *counter, l *rate) bool {
		a, d := r.accounts[n], l.Dimension
		switch {
		case l.Amount == 0 || r.isShadow(n):
		case l.Amount < least[d]:
			worst = b.describe(now, a, int(l.row), least[d], h.amount).never()
			return false
		case !h.grows(c, l, needOf(l, need, ofRun)):
			if f := b.describe(now, a, int(l.row), holdOf(l, needOf(l, need, ofRun))-h.amount, h.amount); f.longer(worst) {
				worst = f
			}
		}
		return true
	})
	return worst
}

// GaugeRefusal describes the gauge that is too full for a request, nil if none
// is.
func (b *Book) GaugeRefusal(now time.Time, r *Reservation, need Amounts) *Refusal {
	for n, a := range r.Accounts() {
		if r.isShadow(n) {
			continue
		}
		if f := b.tooFull(now, a, &need); f != nil {
			return f
		}
	}
	return nil
}

// tooFull describes the first gauge of an account that has no room for a request, nil
// if all have.
func (b *Book) tooFull(now time.Time, a *Account, need *Amounts) *Refusal {
	for i := range a.terms.rows {
		if d := a.terms.rows[i].Dimension; d.Gauge() {
			if g := gaugeOf(d); !a.fits(g, need[d]) {
				return b.describe(now, a, i, a.holdOf(g, need[d]), 0)
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
	if len(r.holds) == 0 {
		return b.refusal(now, r, &need, &need, &need, false)
	}
	return b.topUpRefusal(now, r, &need, &need, &need)
}

// Room is how much a request could hold of every spend budget at once: what it holds
// already, which no debt of others takes from it, and what is free. A request with more
// need than that is refused, by what SpendRefusal describes. limited is false where no
// budget applies; to one that holds, a budget that came later does not.
func (b *Book) Room(now time.Time, r *Reservation) (room sluice.Nano, limited bool) {
	b.advance(now)
	for n, a := range r.Accounts() {
		if r.isShadow(n) {
			continue
		}
		for i := range a.terms.rates {
			l := &a.terms.rates[i]
			if l.Dimension != sluice.Spend || l.Amount == 0 {
				continue
			}
			a.refresh(b.tick, &b.calendar)
			c := &a.counters[l.at]
			most := max(0, c.free(l))
			if h := r.holdOf(n, int(l.at)); h != nil {
				most = min(add(max(0, c.freeIn(l, h.mark)), h.amount), l.Amount)
			} else if len(r.holds) > 0 {
				continue
			}
			if !limited || sluice.Nano(most) < room {
				room, limited = sluice.Nano(most), true
			}
		}
	}
	return room, limited
}

// holdOf is what the reservation holds of a counter of its n-th account, nil if nothing.
func (r *Reservation) holdOf(n, counter int) *hold {
	if len(r.holds) == 0 {
		return nil
	}
	from := 0
	if n > 0 {
		from = int(r.ends[n-1])
	}
	if i := from + counter; i < int(r.ends[n]) && r.holds[i].mark != untaken {
		return &r.holds[i]
	}
	return nil
}

// describe tells about a limit that has no room for h. own is what the request itself
// holds of it: that will not come back first.
func (b *Book) describe(now time.Time, a *Account, row int, h, own int64) *Refusal {
	l := &a.terms.rows[row]
	f := &Refusal{Owner: a.owner, Limit: *l, Requested: h}
	if l.Dimension.Gauge() {
		g := gaugeOf(l.Dimension)
		f.Held = a.held[g]
		f.InFlight = add(a.free(g), a.held[g]-own) >= h
		return f
	}
	t, c := a.counter(row)
	f.Used, f.Held, f.InFlight = c.used(t), c.held, add(c.free(t), c.pending(t)-own) >= h
	if l.Window == sluice.PerRun {
		f.InFlight = f.InFlight && l.Dimension != sluice.RunTime
		f.Spent = !f.InFlight
	}
	switch w := l.Window; {
	case w == sluice.NoWindow || w == sluice.PerRun:
	case w.Fixed():
		f.Reset = time.Unix(b.calendar.ends[w], 0).UTC()
		if !f.InFlight {
			f.Wait = b.calendar.ends.until(w, now)
		}
	default:
		f.Wait = c.refillTime(t, h)
		f.Reset = now.Add(c.refillTime(t, l.Amount))
	}
	return f
}
