package quota

import (
	"math/bits"

	"sluice"
)

// Most counters are buckets, and a request goes over all of those of its accounts four
// times: they refill when it arrives and when it ends, it takes of them, and gives back.
// These are the loops that do so. They call nothing, so that all that they work with
// stays in registers; where one of the buckets needs more than the usual they stop at it.

// fill brings the buckets to the brim that have had the time for it, up to the first
// that has not, which is where it stops. See [counter.refill].
func fill(buckets []rate, counters []counter, elapsed uint64) int {
	for i := range buckets {
		l := &buckets[i]
		c := &counters[l.at]
		hi, lo := bits.Mul64(elapsed, uint64(l.Amount))
		lo, carry := bits.Add64(lo, uint64(c.part), 0)
		most, least := bits.Mul64(c.missing(l), l.period)
		_, short := bits.Sub64(lo, least, 0)
		if _, short = bits.Sub64(hi+carry, most, short); short != 0 {
			return i
		}
		c.level, c.part = l.Amount, 0
		c.overflow += c.returnable
		c.returnable = 0
	}
	return len(buckets)
}

// ask is what a request asks of a dimension: what it takes, what it needs at least, and
// what it can use at most.
type ask struct{ need, least, most int64 }

// asks are those of a request.
type asks [sluice.NumDimensions]ask

// takeFrom takes from the buckets what a request asks, at most their limits, and notes
// it in held, up to the first that has no room for it now or ever, where it stops.
func takeFrom(buckets []rate, counters []counter, held []hold, of *asks) int {
	held = held[:len(counters)]
	for i := range buckets {
		l := &buckets[i]
		at := int(l.at)
		a, c := &of[l.Dimension%sluice.NumDimensions], &counters[at] // by the remainder: as the compiler cannot know, it is in range
		n := min(a.need, l.Amount)
		if n > max(0, c.level) || a.least > l.Amount {
			return i
		}
		c.level -= n
		c.held += n
		c.returnable += n
		c.over += max(0, a.most-n)
		held[at] = hold{amount: n, mark: c.overflow}
	}
	return len(buckets)
}

// settle charges the buckets what was used of a hold, and gives the rest back. See
// [counter.settle].
func settle(buckets []rate, counters []counter, held []hold, used, bound *Amounts) {
	counters = counters[:len(held)]
	for i := range buckets {
		l := &buckets[i]
		at := int(l.at)
		if at >= len(held) || held[at].mark == untaken {
			continue // it has become limited since, or let in what it had no room for
		}
		d := l.Dimension % sluice.NumDimensions
		c, h := &counters[at], &held[at]
		c.over -= max(0, bound[d]-h.amount)
		c.giveBack(l, h.amount, used[d], h.mark)
	}
}
