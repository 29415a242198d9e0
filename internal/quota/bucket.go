package quota

import (
	"math/bits"

	"sluice"
)

// A request goes over all counters of its accounts four times: they are brought up to
// date when it arrives and when it ends, it takes of them, and gives back. These are the
// loops that do so for buckets, which most are, and for spans. They call nothing, so that
// all that they work with stays in registers; where a counter needs more than most do,
// they stop at it.

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

// takeUsual takes from buckets and spans what a request asks, at most their limits, and
// notes it in held, up to the first that has no room for it now or ever, where it stops.
func (a *Account) takeUsual(held []hold, of *asks) int {
	t, counters := a.terms, a.counters[:len(held)]
	buckets, rates := t.rates[:t.spans], t.rates[:t.others]
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
	for i := len(buckets); i < len(rates); i++ {
		l := &rates[i]
		at := int(l.at)
		o, c := &of[l.Dimension%sluice.NumDimensions], &counters[at]
		n := min(o.need, l.Amount)
		if n > 0 && n > add(l.Amount, -add(c.level, c.held)) || o.least > l.Amount && l.Amount > 0 {
			return i
		}
		c.held += n
		c.over += max(0, o.most-n)
		held[at].amount, held[at].mark = n, c.part>>32
	}
	return len(rates)
}

// settleUsual charges buckets and spans what was used of a hold, and gives the rest back:
// see [counter.settle]. What has become limited since has no hold; a shadow that had no
// room has an untaken one.
func (a *Account) settleUsual(held []hold, used, bound *Amounts) {
	t, counters := a.terms, a.counters[:len(held)]
	buckets, spans := t.rates[:t.spans], t.rates[t.spans:t.others]
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
	for i := range spans {
		l := &spans[i]
		at := int(l.at)
		if at >= len(held) {
			continue
		}
		d := l.Dimension % sluice.NumDimensions
		c, n := &counters[at], held[at].amount
		c.over -= max(0, bound[d]-n)
		switch current, before := c.windows(); held[at].mark {
		case current:
			c.held -= n
			c.level = add(c.level, used[d])
		case before:
			c.overflow -= n
			c.returnable = add(c.returnable, used[d])
		}
	}
}
