package quota

import (
	"math"
	"math/bits"
	"time"

	"sluice"
)

// counter counts one dimension over one window for one account. There are very many
// of them, so each is 72 bytes without a pointer, and what its fields mean depends on
// the window:
//
//   - a gauge (no window) has held alone;
//
//   - a bucket (second, minute) has level, what can be taken now; held, what live
//     reservations have taken; and returnable, a bound on how much of that may
//     still come back. Invariant: level + returnable ≤ amount. What would exceed it
//     on a refill has overflowed: had a live hold never been taken, as much of the
//     refill would have been lost, so the hold can no longer return it. Else a long
//     hold that used nothing would buy a second burst. overflow is the sum of that;
//     what a hold can return is its amount less the overflow since it was taken;
//
//   - a fixed window has two spans, the one in force and the one before it, so
//     that a settlement finds the window of its reservation after a roll. A run is
//     one span that never rolls; of its time, first is when it began, and what has
//     passed since is posted.
//
//     field         bucket        span
//     held          Σ of live holds, of a span of those that were taken in it
//     level         level         posted
//     at            last refill   start, its identity: a Unix second, 1 for a run
//     part          part          start of the one before; of the time of a run, first
//     returnable    returnable    posted of the one before
//     overflow      overflow      held of the one before
//
// A counter lives as long as its account, at the same index, since reservations
// refer to it by index. A limit that is no longer configured has Amount 0: it
// refuses nothing and still counts.
type counter struct {
	limit sluice.Limit
	held  int64
	over  int64 // Σ over live holds of (bound − hold): what may yet become debt

	level      int64 // negative is debt
	returnable int64 // at least what live holds can return, at most held
	overflow   int64 // total, ever
	part       int64 // the fraction of a unit refilled, in units of 1/period
	at         int64 // a tick
}

// newCounter is a counter that has counted nothing.
func newCounter(l sluice.Limit, tick int64) counter {
	if spans(l.Window) || l.Window == sluice.NoWindow {
		return counter{limit: l}
	}
	return counter{limit: l, level: l.Amount, at: tick}
}

// setFirst says when a run began.
func (c *counter) setFirst(tick int64) { c.part = tick }

// previous is what the window before this one took.
func (c *counter) previous() int64 {
	if !c.limit.Window.Fixed() {
		return 0
	}
	return c.returnable
}

// spans reports whether a window is counted by spans.
func spans(w sluice.Window) bool { return w >= sluice.PerHour }

// period is the length of a bucket's window.
func period(w sluice.Window) int64 {
	if w == sluice.PerSecond {
		return int64(time.Second)
	}
	return int64(time.Minute)
}

// refresh brings the counter to this moment: a bucket refills, a fixed window
// rolls.
func (c *counter) refresh(tick int64, cal *calendar) {
	w := c.limit.Window
	switch {
	case w == sluice.NoWindow:
	case spans(w):
		if start := cal.start[w]; c.at < start {
			c.roll(start)
		}
		if c.limit.Dimension == sluice.RunTime {
			c.level = max(tick-c.part, 0)
		}
	default:
		c.refill(tick)
	}
}

// roll puts the span that begins at start into force.
func (c *counter) roll(start int64) {
	if c.at != 0 {
		c.part, c.returnable, c.overflow = c.at, c.level, c.held
	}
	c.at, c.level, c.held = start, 0, 0
}

// refill adds amount × elapsed ÷ period, exactly: what does not make a whole
// unit is kept in part. It never takes away, and never exceeds the burst.
func (c *counter) refill(tick int64) {
	elapsed := tick - c.at
	if elapsed <= 0 {
		return
	}
	c.at = tick
	burst, p := c.limit.Amount, uint64(period(c.limit.Window))
	hi, lo := bits.Mul64(uint64(elapsed), uint64(burst))
	lo, carry := bits.Add64(lo, uint64(c.part), 0)
	hi += carry
	missing := uint64(burst) - uint64(c.level) // right for a negative level too
	units, rest := missing, uint64(0)
	if most, least := bits.Mul64(missing, p); hi < most || hi == most && lo < least { // else it fills, and a division is saved
		units, rest = bits.Div64(hi, lo, p)
	}
	if units >= missing {
		c.level, c.part = burst, 0
	} else {
		c.level += int64(units)
		c.part = int64(rest)
	}
	c.forfeit()
}

// forfeit restores level + returnable ≤ amount.
func (c *counter) forfeit() {
	if excess := add(add(c.level, c.returnable), -c.limit.Amount); excess > 0 {
		c.returnable -= excess
		c.overflow += excess
	}
}

// refillTime is how long a bucket takes to reach a level, from its last refill:
// ⌈((level − c.level) × period − part) ÷ amount⌉.
func (c *counter) refillTime(level int64) time.Duration {
	if c.level >= level {
		return 0
	}
	hi, lo := bits.Mul64(uint64(level)-uint64(c.level), uint64(period(c.limit.Window)))
	lo, borrow := bits.Sub64(lo, uint64(c.part), 0)
	hi -= borrow
	if hi >= uint64(c.limit.Amount) {
		return math.MaxInt64
	}
	q, r := bits.Div64(hi, lo, uint64(c.limit.Amount))
	if r != 0 {
		q++
	}
	return time.Duration(min(q, math.MaxInt64))
}

// hold is what a request that needs n takes: at most the limit. A request above
// a burst is clamped to it and so runs alone. Time is not taken.
func (c *counter) hold(n int64) int64 {
	if c.limit.Dimension == sluice.RunTime {
		return 0
	}
	return min(n, c.limit.Amount)
}

// free is what can be taken now; negative in debt.
func (c *counter) free() int64 { return c.freeIn(c.at) }

// freeIn is what can be taken in a fixed window. One that is no longer kept has
// room for anything: it is over, and nobody else can be refused by it.
func (c *counter) freeIn(window int64) int64 {
	w := c.limit.Window
	switch {
	case w == sluice.NoWindow:
		return c.limit.Amount - c.held
	case spans(w):
		switch window {
		case c.at:
			return add(c.limit.Amount, -add(c.level, c.held))
		case c.part:
			return add(c.limit.Amount, -add(c.returnable, c.overflow))
		}
		return c.limit.Amount
	default:
		return c.level
	}
}

// fits reports whether h can be taken now. What takes nothing always fits, even
// in debt, but nothing does after a run's time.
func (c *counter) fits(h int64) bool {
	if c.limit.Dimension == sluice.RunTime {
		return c.level < c.limit.Amount
	}
	return h <= 0 || c.free() >= h
}

// mark is what a hold remembers of the moment at which it was taken: the fixed
// window in force, or the overflow of a bucket.
func (c *counter) mark() int64 {
	if spans(c.limit.Window) {
		return c.at
	}
	return c.overflow
}

// take holds h. mark says which fixed window it belongs to.
func (c *counter) take(h, mark int64) {
	w := c.limit.Window
	switch {
	case w == sluice.NoWindow:
		c.held += h
	case spans(w):
		switch mark {
		case c.at:
			c.held += h
		case c.part:
			c.overflow += h
		}
	default:
		c.held += h
		c.returnable += h
		c.level = add(c.level, -h)
	}
}

// settle ends h of a hold that was taken at mark, of which actual was used. Less
// than h returns the difference, more leaves a debt. A fixed window is charged where
// the hold was taken; a window before the previous one is no longer kept, and what
// it took is in the ledger alone. A negative actual corrects an earlier charge of a
// fixed window; a bucket has refilled by then.
func (c *counter) settle(h, actual, mark int64) {
	w := c.limit.Window
	switch {
	case w == sluice.NoWindow:
		c.held -= h
	case spans(w):
		switch mark {
		case c.at:
			c.held -= h
			c.level = add(c.level, actual)
		case c.part:
			c.overflow -= h
			c.returnable = add(c.returnable, actual)
		}
	default:
		own := max(0, h-(c.overflow-mark))
		back := min(h-max(0, actual), own)
		c.held -= h
		c.returnable = min(max(0, c.returnable-own), c.held)
		if c.limit.Amount > 0 {
			c.level = add(c.level, back)
		}
	}
}

// used and inFlight are the figures that a refusal and a dump show.
func (c *counter) used() int64 {
	w := c.limit.Window
	switch {
	case w == sluice.NoWindow:
		return 0
	case spans(w):
		return c.level
	default:
		return max(0, add(c.limit.Amount, -add(c.level, c.returnable)))
	}
}

func (c *counter) inFlight() int64 { return c.held }

// pending is how much of what is held would be free again if it were returned.
func (c *counter) pending() int64 {
	if w := c.limit.Window; w == sluice.PerSecond || w == sluice.PerMinute {
		return c.returnable
	}
	return c.inFlight()
}

// setAmount changes the limit. Neither debt nor what is spent is forgiven, and
// a bucket that was full stays full. A bucket without a limit counts nothing, and
// is full when it gets one; windows always count.
func (c *counter) setAmount(n int64) {
	old := c.limit.Amount
	c.limit.Amount = n
	if n == old || c.limit.Window != sluice.PerSecond && c.limit.Window != sluice.PerMinute {
		return
	}
	c.part = 0
	if c.level >= old {
		c.level = n
	}
	c.level = min(c.level, n)
	if n == 0 {
		c.level = 0
	}
	c.forfeit()
}

// atRest reports whether a new counter would be in the same state.
func (c *counter) atRest() bool {
	w := c.limit.Window
	switch {
	case w == sluice.NoWindow:
		return c.held == 0
	case spans(w):
		return c.level == 0 && c.held == 0
	default:
		return c.held == 0 && c.level >= c.limit.Amount
	}
}

// add saturates instead of wrapping round: a counter that overflowed would give
// away what it should refuse.
func add(a, b int64) int64 {
	s := a + b
	switch {
	case a > 0 && b > 0 && s < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && s >= 0:
		return math.MinInt64 + 1
	}
	return s
}
