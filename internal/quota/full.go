package quota

import (
	"math"
	"math/bits"

	"sluice"
)

// A request goes over all counters of its accounts when it arrives and when it ends. Most
// limits have room most of the time: the buckets have become full since the last request
// took of them, and give what is needed, the whole of it. An account's slack tells so
// without a look at them. These are the loops over the counters of such an account, which
// only add. Whatever else there may be is for the loops that know all cases: takeRest and
// settle.

// Slack is counted in 16 ns, so that a minute of it has 32 bits. It is never less than it
// takes. What is more than that, as only a debt can be, is unknown, and so is that of an
// account which others than reservations that begin or end may have changed: see refresh.
const (
	slackBits = 4
	slowBits  = 20 // of a fraction, below that
	unknown   = math.MaxUint32
)

// slowness is how long a unit takes a bucket, in fractions of what slack is counted in.
func slowness(l *sluice.Limit) uint64 {
	if l.Amount <= 0 || !bucket(l.Window) {
		return 0
	}
	n := uint64(l.Amount)
	return (period(l.Window)<<(slowBits-slackBits)-1)/n + 1
}

// slackOf is the slack for the slowest bucket, which needs so many fractions of it.
func slackOf(slowest uint64) uint32 { return uint32((slowest + 1<<slowBits - 1) >> slowBits) }

// loosen works out what slack the account has.
func (a *Account) loosen() {
	slowest := uint64(1) // as a fraction may be left in one that is full, until time passes
	for i := range a.terms.rates {
		if l := &a.terms.rates[i]; l.how == byBucket {
			hi, lo := bits.Mul64(a.counters[i].missing(l), l.slow)
			if hi > 0 || lo >= unknown<<slowBits {
				a.slack = unknown
				return
			}
			slowest = max(slowest, lo)
		}
	}
	a.slack = slackOf(slowest)
}

// full reports whether all buckets of an account are full now, when they have not been
// refilled for so long. False is no answer.
func (a *Account) full(elapsed uint64) bool {
	return a.terms.usual && elapsed>>slackBits >= uint64(a.slack) && a.slack != unknown
}

// ask is what a request asks of a dimension.
type ask struct {
	need  int64 // what it takes
	least int64 // what it needs at least
	most  int64 // what it can use at most
	over  int64 // by how much that is more than it takes
}

// asks are those of a request.
type asks [sluice.NumDimensions]ask

// takeFull takes what a request asks from the counters of an account that is full, the
// whole of it, and notes it in held, up to the first that has no room for it, where it
// stops.
func (a *Account) takeFull(held []hold, of *asks) int {
	rates, counters := a.terms.rates[:len(held)], a.counters[:len(held)]
	slowest := uint64(0)
	for i := range held {
		l, c := &rates[i], &counters[i]
		o := &of[l.Dimension%sluice.NumDimensions] // by the remainder: as the compiler cannot know, it is in range
		need, room := o.need, l.Amount-o.need
		if room < 0 || o.least > l.Amount {
			return i
		}
		mark := c.part >> 32
		if l.how == byBucket {
			mark = c.overflow + c.returnable
			c.overflow = mark
			c.level, c.part, c.returnable = room, 0, need
			slowest = max(slowest, uint64(need)*l.slow)
		} else if c.level > room-c.held {
			return i
		}
		c.held += need
		c.over += o.over
		held[i] = hold{need, mark}
	}
	a.slack = slackOf(slowest)
	return len(held)
}

// charge is what becomes of a dimension's holds when a request ends.
type charge struct {
	need int64 // what was taken
	used int64
	debt int64 // by how much less that is; else 0
	over int64 // by how much more it could have been
}

// charges are those of a request.
type charges struct {
	of   [sluice.NumDimensions]charge
	debt bool // there is one
}

// settleFull charges what was used to the counters of an account that is full, and which
// has given the whole, in windows that are still in force. To a full bucket nothing can be
// given back, so that only a debt makes a difference.
func (a *Account) settleFull(of *charges) {
	rates, counters := a.terms.rates, a.counters[:len(a.terms.rates)]
	for i := range rates {
		l, c := &rates[i], &counters[i]
		o := &of.of[l.Dimension%sluice.NumDimensions]
		c.held -= o.need
		c.over -= o.over
		if l.how == byBucket {
			c.overflow += c.returnable
			c.level, c.part, c.returnable = l.Amount+o.debt, 0, 0
		} else {
			c.level = add(c.level, o.used)
		}
	}
	a.slack = 0 // but for a debt
}
