package quota

import (
	"fmt"
	"slices"
	"time"

	"sluice"
)

// LimitState is one counter of the caller, as the rate-limit headers show it.
type LimitState struct {
	Scope     sluice.Scope
	Limit     sluice.Limit
	Remaining int64         // never negative
	Reset     time.Duration // until the bucket is full or the window ends; 0 for gauges
}

// Limits are the counters of a caller as they were at one moment, as they stood: every
// dispatch tells them, and what they come to is worked out where somebody looks, which is
// not where the engine's callers wait for each other. They do not change; their memory is
// that of their LimitsBuffer.
type Limits struct {
	at       time.Time
	ends     *windowEnds
	accounts []standing
	counters []figure // of the accounts, of each in the order of its rates
}

// standing is what an account has that its counters share.
type standing struct {
	terms   *terms
	held    [numGauges]int64
	elapsed int64 // since the counters were brought up to date
	scope   sluice.Scope
}

// figure is level and part of a bucket, level and held of another counter.
type figure struct{ level, rest int64 }

// LimitsBuffer is where Limits lie. It may be used again when they are not looked at any
// more.
type LimitsBuffer struct {
	accounts []standing
	counters []figure
}

// Reset empties it.
func (m *LimitsBuffer) Reset() { m.accounts, m.counters = m.accounts[:0], m.counters[:0] }

// Limits are the counters of the caller's own scopes, those up to tenant × model: the very
// figures that decide. Shadows decide nothing. Without a buffer they have memory of their
// own.
func (b *Book) Limits(now time.Time, r *Reservation, in *LimitsBuffer) Limits {
	if in == nil {
		in = &LimitsBuffer{}
	}
	b.advance(now)
	first, from := len(in.accounts), len(in.counters)
	for n, a := range r.Accounts() {
		scope := r.scopes[n]
		if scope > sluice.ScopeTenantModel || r.isShadow(n) {
			continue
		}
		t := a.terms
		if a.turn != b.calendar.turn || t.others < len(t.rates) {
			a.refresh(b.tick, &b.calendar) // else a bucket can be brought up to date as well later
		}
		in.accounts = append(in.accounts, standing{t, a.held, max(0, b.tick-a.at), scope})
		in.counters = slices.Grow(in.counters, len(t.rates))
		figures := in.counters[len(in.counters):][:len(t.rates)]
		in.counters = in.counters[:len(in.counters)+len(figures)]
		for i := range figures {
			c := &a.counters[t.rates[i].at]
			figures[i] = figure{c.level, c.held}
			if i < t.spans {
				figures[i].rest = c.part
			}
		}
	}
	return Limits{now, b.calendar.ends, in.accounts[first:len(in.accounts):len(in.accounts)], in.counters[from:len(in.counters):len(in.counters)]}
}

// Clone is a copy in memory of its own.
func (l Limits) Clone() Limits {
	l.accounts, l.counters = slices.Clone(l.accounts), slices.Clone(l.counters)
	return l
}

// Len is at least how many counters there are.
func (l Limits) Len() (n int) {
	for i := range l.accounts {
		n += len(l.accounts[i].terms.rows)
	}
	return n
}

// States appends the counters.
func (l Limits) States(to []LimitState) []LimitState {
	counters := l.counters
	for i := range l.accounts {
		a := &l.accounts[i]
		t := a.terms
		for row := range t.rows {
			s := LimitState{Scope: a.scope, Limit: t.rows[row]}
			switch {
			case s.Limit.Amount == 0:
				continue // it is none
			case s.Limit.Dimension.Gauge():
				g := gaugeOf(s.Limit.Dimension)
				s.Remaining = t.gauges[g] - a.held[g]
			default:
				n := t.of(row)
				s.Remaining, s.Reset = l.state(&t.rates[n], counters[n], a.elapsed)
			}
			s.Remaining = max(0, s.Remaining)
			to = append(to, s)
		}
		counters = counters[len(t.rates):]
	}
	return to
}

func (l Limits) String() string { return fmt.Sprintf("%+v", l.States(nil)) }

// state is what remained of a counter, and how long until that was whole again.
func (l Limits) state(r *rate, f figure, elapsed int64) (remaining int64, reset time.Duration) {
	if r.how != byBucket {
		c := counter{level: f.level, held: f.rest}
		if r.Window.Fixed() {
			reset = l.ends.until(r.Window, l.at)
		}
		return c.free(r), reset
	}
	c := counter{level: f.level, part: f.rest}
	if elapsed > 0 {
		c.refill(r, uint64(elapsed))
	}
	return c.level, c.refillTime(r, r.Amount)
}
