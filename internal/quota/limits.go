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
	counters []counter // of the accounts, one after the other
}

// standing is what an account has that its counters share.
type standing struct {
	terms   *terms
	held    [numGauges]int64
	elapsed int64 // since the counters were brought up to date
	scope   sluice.Scope
}

// LimitsBuffer is where Limits lie. It may be used again when they are not looked at any
// more.
type LimitsBuffer struct {
	accounts []standing
	counters []counter
}

// Reset empties it.
func (m *LimitsBuffer) Reset() { m.accounts, m.counters = m.accounts[:0], m.counters[:0] }

// room lengthens it by so many, and returns those.
func (m *LimitsBuffer) room(accounts, counters int) ([]standing, []counter) {
	n, k := len(m.accounts), len(m.counters)
	if n+accounts > cap(m.accounts) || k+counters > cap(m.counters) {
		m.accounts, m.counters = slices.Grow(m.accounts, accounts), slices.Grow(m.counters, counters)
	}
	m.accounts, m.counters = m.accounts[:n+accounts], m.counters[:k+counters]
	return m.accounts[n : n+accounts : n+accounts], m.counters[k : k+counters : k+counters]
}

// Limits are the counters of the caller's own scopes, those up to tenant × model: the very
// figures that decide. Shadows decide nothing. Without a buffer they have memory of their
// own.
func (b *Book) Limits(now time.Time, r *Reservation, in *LimitsBuffer) Limits {
	if in == nil {
		in = &LimitsBuffer{}
	}
	b.advance(now)
	accounts, counters := 0, 0
	for n, a := range r.Accounts() {
		if r.tells(n) {
			accounts++
			counters += len(a.counters)
		}
	}
	l := Limits{at: now, ends: b.calendar.ends}
	l.accounts, l.counters = in.room(accounts, counters)
	told, figures := l.accounts, l.counters
	for n, a := range r.Accounts() {
		if !r.tells(n) {
			continue
		}
		t := a.terms
		if a.turn != b.calendar.turn || t.others < len(t.rates) {
			a.refresh(b.tick, &b.calendar) // else a bucket can be brought up to date as well later
		}
		s := &told[0]
		told = told[1:]
		s.terms, s.held, s.elapsed, s.scope = t, a.held, max(0, b.tick-a.at), r.scopes[n]
		figures = figures[copy(figures, a.counters):]
	}
	return l
}

// tells reports whether the n-th account is one of the caller's own, and decides.
func (r *Reservation) tells(n int) bool {
	return r.scopes[n] <= sluice.ScopeTenantModel && !r.isShadow(n)
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
				r := t.rates[t.of(row)]
				s.Remaining, s.Reset = l.state(r, counters[r.at], a.elapsed)
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
func (l *Limits) state(r rate, c counter, elapsed int64) (remaining int64, reset time.Duration) {
	if r.how == byBucket {
		c.refill(&r, uint64(elapsed))
		return c.level, c.refillTime(&r, r.Amount)
	}
	if r.Window.Fixed() {
		reset = l.ends.until(r.Window, l.at)
	}
	return c.free(&r), reset
}
