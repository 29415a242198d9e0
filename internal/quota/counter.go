package quota

import (
	"math"
	"math/bits"
	"time"

	"sluice"
)

// counter counts one dimension over one window for one account. There are very many
// of them, and every request reads dozens out of memory that no cache holds, so each
// is 48 bytes without a pointer: its limit is the account's row of the same index,
// which accounts with the same policy share, and the time to which buckets have
// refilled is the account's. What its fields mean depends on the window:
//
//   - what is in flight (no window) has held alone; of the two dimensions that are
//     gauges the account itself keeps it;
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
//     one span that never rolls; of its time, level is what has passed.
//
//     field         bucket        span
//     level         level         posted
//     held          Σ of live holds, of a span of those that were taken in it
//     part          part          its window and the one before: see windows
//     returnable    returnable    posted of the one before
//     overflow      overflow      held of the one before
//
// A counter lives as long as its account, at the same index, since reservations
// refer to it by index. A limit that is no longer configured has Amount 0: it
// refuses nothing and still counts.
type counter struct {
	level      int64 // negative is debt
	held       int64
	part       int64 // the fraction of a unit refilled, in units of 1/period
	returnable int64 // at least what live holds can return, at most held
	overflow   int64 // total, ever
	over       int64 // Σ over live holds of (bound − hold): what may yet become debt
}

// newCounter is a counter that has counted nothing.
func newCounter(l *sluice.Limit) (c counter) {
	if bucket(l.Window) {
		c.level = l.Amount
	}
	return c
}

// spans reports whether a window is counted by spans, bucket whether by a bucket.
func spans(w sluice.Window) bool  { return w >= sluice.PerHour }
func bucket(w sluice.Window) bool { return w == sluice.PerSecond || w == sluice.PerMinute }

// windows are the numbers of a span's window and of the one before, 0 if there was
// none.
func (c *counter) windows() (current, before int64) { return c.part >> 32, c.part & math.MaxUint32 }

// previous is what the window before this one took.
func (c *counter) previous(l *rate) int64 {
	if !l.Window.Fixed() {
		return 0
	}
	return c.returnable
}

// period is the length of a bucket's window.
func period(w sluice.Window) uint64 {
	if w == sluice.PerSecond {
		return uint64(time.Second)
	}
	return uint64(time.Minute)
}

// roll puts a window into force if it is later than the one that is.
func (c *counter) roll(window int64) {
	current, _ := c.windows()
	if window <= current {
		return
	}
	if current != 0 {
		c.returnable, c.overflow = c.level, c.held
	}
	c.part, c.level, c.held = window<<32|current, 0, 0
}

// refill adds amount × elapsed ÷ period to a bucket, exactly: what does not make a whole
// unit is kept in part. It never takes away, and never exceeds the burst.
func (c *counter) refill(l *rate, elapsed uint64) {
	hi, lo := bits.Mul64(elapsed, uint64(l.Amount))
	lo, carry := bits.Add64(lo, uint64(c.part), 0)
	hi += carry
	if most, least := bits.Mul64(c.missing(l), l.period); hi > most || hi == most && lo >= least {
		c.level, c.part = l.Amount, 0
		c.overflow += c.returnable
		c.returnable = 0
		return
	}
	var units uint64
	switch {
	case hi > 0:
		units, _ = bits.Div64(hi, lo, l.period)
	case l.Window == sluice.PerMinute: // by a constant: a multiplication, where a division takes many times as long
		units = lo / uint64(time.Minute)
	default:
		units = lo / uint64(time.Second)
	}
	c.level += int64(units)
	c.part = int64(lo - units*l.period)
	c.forfeit(l.Amount)
}

// missing is what a bucket has room for, right for a debt of any size too.
func (c *counter) missing(l *rate) uint64 { return uint64(l.Amount) - uint64(c.level) }

// forfeit restores level + returnable ≤ amount.
func (c *counter) forfeit(amount int64) {
	if excess := add(add(c.level, c.returnable), -amount); excess > 0 {
		c.returnable -= excess
		c.overflow += excess
	}
}

// refillTime is how long a bucket takes to reach a level, from its last refill:
// ⌈((level − c.level) × period − part) ÷ amount⌉.
func (c *counter) refillTime(l *rate, level int64) time.Duration {
	if c.level >= level {
		return 0
	}
	hi, lo := bits.Mul64(uint64(level)-uint64(c.level), l.period)
	lo, borrow := bits.Sub64(lo, uint64(c.part), 0)
	hi -= borrow
	if hi >= uint64(l.Amount) {
		return math.MaxInt64
	}
	var q, rest uint64
	if hi == 0 { // most often, and a division of half the width
		q, rest = lo/uint64(l.Amount), lo%uint64(l.Amount)
	} else {
		q, rest = bits.Div64(hi, lo, uint64(l.Amount))
	}
	if rest != 0 {
		q++
	}
	return time.Duration(min(q, math.MaxInt64))
}

// holdOf is what a request that needs n takes: at most the limit. A request above
// a burst is clamped to it and so runs alone. Time is not taken.
func holdOf(l *rate, n int64) int64 {
	if l.how == byRunTime {
		return 0
	}
	return min(n, l.Amount)
}

// free is what can be taken now; negative in debt.
func (c *counter) free(l *rate) int64 {
	switch l.how {
	case byBucket:
		return c.level
	case inFlight:
		return l.Amount - c.held
	}
	return add(l.Amount, -add(c.level, c.held))
}

// freeIn is what can be taken in a fixed window. One that is no longer kept has
// room for anything: it is over, and nobody else can be refused by it.
func (c *counter) freeIn(l *rate, window int64) int64 {
	if !spans(l.Window) {
		return c.free(l)
	}
	switch current, before := c.windows(); window {
	case current:
		return c.free(l)
	case before:
		return add(l.Amount, -add(c.returnable, c.overflow))
	}
	return l.Amount
}

// fits reports whether h can be taken now. What takes nothing always fits, even
// in debt, but nothing does after a run's time.
func (c *counter) fits(l *rate, h int64) bool {
	switch l.how {
	case byBucket:
		return h <= 0 || c.level >= h
	case byRunTime:
		return c.level < l.Amount
	}
	return h <= 0 || c.free(l) >= h
}

// take holds h and returns its mark, which a hold remembers of the moment at which it
// was taken: the fixed window in force, or the overflow of a bucket.
func (c *counter) take(l *rate, h int64) (mark int64) {
	c.held += h
	switch l.how {
	case byBucket:
		c.returnable += h
		c.level = add(c.level, -h)
		return c.overflow
	case inFlight:
		return 0
	}
	return c.part >> 32
}

// takeMore adds h to a hold that was taken at mark.
func (c *counter) takeMore(l *rate, h, mark int64) {
	if current, before := c.windows(); spans(l.Window) && mark != current {
		if mark == before {
			c.overflow += h
		}
		return
	}
	c.take(l, h)
}

// settle ends h of a hold that was taken at mark, of which actual was used. Less
// than h returns the difference, more leaves a debt. A fixed window is charged where
// the hold was taken; a window before the previous one is no longer kept, and what
// it took is in the ledger alone. A negative actual corrects an earlier charge of a
// fixed window; a bucket has refilled by then.
func (c *counter) settle(l *rate, h, actual, mark int64) {
	switch l.how {
	case byBucket:
		c.giveBack(l, h, actual, mark)
	case inFlight:
		c.held -= h
	default:
		switch current, before := c.windows(); mark {
		case current:
			c.held -= h
			c.level = add(c.level, actual)
		case before:
			c.overflow -= h
			c.returnable = add(c.returnable, actual)
		}
	}
}

// giveBack is settle of a bucket.
func (c *counter) giveBack(l *rate, h, actual, mark int64) {
	own := max(0, h-(c.overflow-mark))
	c.held -= h
	c.returnable = min(max(0, c.returnable-own), c.held)
	if l.Amount > 0 {
		c.level = add(c.level, min(h-max(0, actual), own))
	}
}

// used is the figure that a refusal and a dump show.
func (c *counter) used(l *rate) int64 {
	switch w := l.Window; {
	case w == sluice.NoWindow:
		return 0
	case spans(w):
		return c.level
	}
	return max(0, add(l.Amount, -add(c.level, c.returnable)))
}

// pending is how much of what is held would be free again if it were returned.
func (c *counter) pending(l *rate) int64 {
	if bucket(l.Window) {
		return c.returnable
	}
	return c.held
}

// setAmount takes the limit from l to n. Neither debt nor what is spent is forgiven,
// and a bucket that was full stays full. A bucket without a limit counts nothing, and
// is full when it gets one; windows always count.
func (c *counter) setAmount(l *sluice.Limit, n int64) {
	if n == l.Amount || !bucket(l.Window) {
		return
	}
	c.part = 0
	if c.level >= l.Amount {
		c.level = n
	}
	c.level = min(c.level, n)
	if n == 0 {
		c.level = 0
	}
	c.forfeit(n)
}

// atRest reports whether a new counter would be in the same state.
func (c *counter) atRest(l *rate) bool {
	switch w := l.Window; {
	case w == sluice.NoWindow:
		return c.held == 0
	case spans(w):
		return c.level == 0 && c.held == 0
	}
	return c.held == 0 && c.level >= l.Amount
}

// add saturates instead of wrapping round: a counter that overflowed would give
// away what it should refuse.
func add(a, b int64) int64 {
	s := a + b
	if (a^s)&(b^s) < 0 { // the sign is that of neither
		return most(a)
	}
	return s
}

// most is the farthest from zero that a sum gets on a's side.
func most(a int64) int64 {
	if a > 0 {
		return math.MaxInt64
	}
	return math.MinInt64 + 1
}
