package quota

import (
	"math/bits"

	"sluice"
)

// Most counters are buckets, and a request goes over all of those of its accounts four
// times: they refill when it arrives and when it ends, it takes of them, and gives back.
// These are the loops that do so. They call nothing, so that all that they work with
// stays in registers; where a bucket needs more than most do, they stop at it.

// fill brings the buckets to the brim that have had the time for it, up to the first
// that has not, where it stops. See [counter.refill].
func fill(buckets []rate, counters []counter, elapsed uint64) int {
	for i := range buckets {
		l := &buckets[i]
		c := &counters[l.at]
		hi, lo := bits.Mul64(elapsed, uint64(l.Amount))
		lo, carry := bits.Add64(lo, uint64(c.part), 0)
		hi += carry
		if most, least := bits.Mul64(c.missing(l), l.period); hi < most || hi == most && lo < least {
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

// takeBuckets takes from the buckets what a request asks, at most their limits, and notes
// it in held, up to the first that has no room for it now or ever, where it stops.
func (a *Account) takeBuckets(held []hold, of *asks) int {
	buckets, counters := a.terms.rates[:a.terms.spans], a.counters[:len(held)]
	for i := range buckets {
		l := &buckets[i]
		at := int(l.at)
		o, c := &of[l.Dimension%sluice.NumDimensions], &counters[at] // by the remainder: as the compiler cannot know, it is in range
		n := min(o.need, l.Amount)
		if n > c.level && n > 0 || o.least > l.Amount {
			return i
		}
		c.level -= n
		c.held += n
		c.returnable += n
		c.over += max(0, o.most-n)
		held[at].amount, held[at].mark = n, c.overflow
	}
	return len(buckets)
}

// settleBuckets charges the buckets what was used of a hold, and gives the rest back: see
// [counter.giveBack]. What has become limited since has no hold; a shadow that had no room
// has an untaken one.
func (a *Account) settleBuckets(held []hold, used, bound *Amounts) {
	buckets, counters := a.terms.rates[:a.terms.spans], a.counters[:len(held)]
	for i := range buckets {
		l := &buckets[i]
		at := int(l.at)
		if at >= len(held) || held[at].mark == untaken {
			continue
		}
		d := l.Dimension % sluice.NumDimensions
		c, n := &counters[at], held[at].amount
		own := max(0, n-(c.overflow-held[at].mark))
		c.over -= max(0, bound[d]-n)
		c.held -= n
		c.returnable = min(c.returnable-own, c.held)
		back := min(n-max(0, used[d]), own)
		level := c.level + back
		if back < 0 && level > c.level { // more debt than can be counted
			level = most(-1)
		}
		c.level = level
	}
}
