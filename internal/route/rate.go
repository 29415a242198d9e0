package route

import (
	"math"
	"math/bits"
	"time"
)

// Rate is one of the rates that a provider limits.
type Rate uint8

// The rates.
const (
	RateRequests Rate = iota
	RateInput         // input tokens, cached or not
	RateOutput        // output tokens
	RateTokens        // both together

	NumRates = 4
)

// String is the word of the configuration and of metrics.
func (r Rate) String() string {
	return [...]string{"requests", "input_tokens", "output_tokens", "tokens"}[r]
}

// Rates is what a provider takes in a minute, by Rate. Zero is not known.
type Rates [NumRates]int64

// MaxRate is the largest rate per minute.
const MaxRate = int64(1) << 50

// Hint is what a provider's answer told of one of its rates.
type Hint struct {
	Rate      Rate
	Limit     int64         // 0 if it was not told
	Remaining int64         // what was left of it
	Reset     time.Duration // until all of it is there again; 0 if it was not told
	At        time.Time     // the earliest that this can have been so: when the request was sent
}

// bucket is a rate as quota counts one: level is what can be taken now, negative
// in debt; returnable bounds how much of what live attempts hold may still come
// back; overflow is what a refill would have lost had it not been taken, which a
// hold that lasts cannot return, or it would buy a second burst.
// Invariant: level + returnable ≤ amount.
type bucket struct {
	amount int64 // per period, and the burst; 0 counts nothing
	period int64 // nanoseconds
	learnt bool  // the provider's headers made it, not the configuration

	level, returnable, overflow int64
	part                        int64 // the fraction of a unit, in 1/period
	at                          int64 // tick of the last refill; later than now while it is paused
}

// set changes the rate. Debt is not forgiven, and a bucket that was full stays so.
func (b *bucket) set(amount, period int64) {
	if b.amount == amount && b.period == period {
		return
	}
	full := b.level >= b.amount
	b.amount, b.period, b.part = amount, period, 0
	if full {
		b.level = amount
	}
	b.level = min(b.level, amount)
	b.forfeit()
}

// refill adds amount × elapsed ÷ period, exactly.
func (b *bucket) refill(now int64) {
	elapsed := now - b.at
	if b.amount == 0 || elapsed <= 0 {
		return
	}
	b.at = now
	if b.level >= b.amount {
		return
	}
	hi, lo := bits.Mul64(uint64(elapsed), uint64(b.amount))
	lo, carry := bits.Add64(lo, uint64(b.part), 0)
	hi += carry
	missing := uint64(b.amount - b.level)
	units, rest := missing, uint64(0)
	if hi < uint64(b.period) {
		units, rest = bits.Div64(hi, lo, uint64(b.period))
	}
	if units >= missing {
		b.level, b.part = b.amount, 0
	} else {
		b.level += int64(units)
		b.part = int64(rest)
	}
	b.forfeit()
}

func (b *bucket) forfeit() {
	if excess := b.level + b.returnable - b.amount; excess > 0 {
		lost := min(excess, b.returnable)
		b.returnable -= lost
		b.overflow += lost
	}
}

// need clamps to the burst: what is larger goes when all of it is there.
func (b *bucket) need(n int64) int64 { return min(n, b.amount) }

// fitsAt is the tick at which it can, if nothing else happens.
func (b *bucket) fitsAt(n int64) int64 {
	missing := b.need(n) - b.level
	if b.amount == 0 || n <= 0 || missing <= 0 {
		return math.MinInt64
	}
	hi, lo := bits.Mul64(uint64(missing), uint64(b.period))
	lo, borrow := bits.Sub64(lo, uint64(b.part), 0)
	hi -= borrow
	if hi >= uint64(b.amount) {
		return math.MaxInt64
	}
	q, r := bits.Div64(hi, lo, uint64(b.amount))
	if r != 0 {
		q++
	}
	return b.at + int64(min(q, uint64(math.MaxInt64-max(b.at, 0))))
}

// held is what an attempt took of a bucket, and its overflow then.
type held struct{ n, mark int64 }

func (b *bucket) take(n int64) held {
	if b.amount == 0 || n <= 0 {
		return held{mark: b.overflow}
	}
	n = b.need(n)
	b.level -= n
	b.returnable += n
	return held{n, b.overflow}
}

// settle ends a hold of which actual was used: less returns the difference, more
// leaves a debt.
func (b *bucket) settle(h held, actual int64) {
	if b.amount == 0 {
		return
	}
	own := max(0, h.n-(b.overflow-h.mark))
	back := min(h.n-max(0, actual), own)
	b.returnable = max(0, b.returnable-own)
	b.level = max(b.level+back, -MaxRate)
	b.level = min(b.level, b.amount)
	b.forfeit()
}

// lower takes the level down to n, never up.
func (b *bucket) lower(n int64) {
	if n < b.level {
		b.level, b.part = n, 0
	}
}

const minute = int64(time.Minute)

// hint takes what the provider told. A figure has an age: since then the rate has
// refilled. What was told of a rate that nobody configured makes one.
func (b *bucket) hint(now, at int64, h Hint) {
	if h.Limit > 0 && (b.amount == 0 || b.learnt) {
		period := minute
		if used := h.Limit - h.Remaining; h.Reset > time.Minute+time.Second && used > 0 { // a longer one, such as of a day
			hi, lo := bits.Mul64(uint64(h.Reset), uint64(min(h.Limit, MaxRate)))
			if period = int64(24 * time.Hour); hi < uint64(used) {
				q, _ := bits.Div64(hi, lo, uint64(used))
				period = int64(min(q, uint64(24*time.Hour)))
			}
		}
		if b.amount == 0 {
			*b = bucket{learnt: true, at: now, level: min(h.Limit, MaxRate), amount: min(h.Limit, MaxRate), period: period}
		}
		if period > b.period || b.period <= minute {
			b.set(min(h.Limit, MaxRate), period)
		} else {
			b.set(min(h.Limit, MaxRate), b.period)
		}
	}
	if b.amount == 0 || h.Remaining < 0 {
		return
	}
	b.refill(now)
	since := bucket{amount: b.amount, period: b.period, level: min(h.Remaining, b.amount), at: min(at, now)}
	since.refill(now)
	b.lower(since.level)
}

// pause empties the bucket until d has passed.
func (b *bucket) pause(now int64, d time.Duration) {
	if b.amount == 0 {
		return
	}
	b.refill(now)
	b.lower(0)
	b.at = max(b.at, now+int64(max(d, 0)))
}
