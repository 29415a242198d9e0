package estimate

import (
	"math/bits"

	"sluice"
)

// one is the fixed point of ratios.
const one int64 = 1 << 16

const (
	// Learned ratios stay within these. Wider than the tokenizers differ on
	// ordinary text (Claude counts up to 1.35 of o200k), because the counter can
	// be a factor off on a script that a small vocabulary spells in bytes
	// (Hindi: 3.6), and narrow enough that no report, however wrong, makes a
	// request free or unaffordable.
	minRatio = one / 4
	maxRatio = one * 4

	memory    = 20  // observations that a warm mean looks back on: α = 0.05
	trusted   = 16  // observations from which on a level needs no fallback
	smallText = 256 // a text of fewer tokens counts for less: framing is much of it, and little of the sum
)

// ratio is a running mean of reported ÷ estimated, and its variance. The first
// observations are averaged plainly, later ones fade with α = 1/memory.
type ratio struct {
	mean     int64 // in 1/one
	variance int64 // of the ratio, in 1/one
	seen     int64 // observations, in 1/smallText, up to memory
}

// observe takes one more. A warm mean is moved by at most half its size before
// α applies, so that a wild report weighs like a large one, not like itself.
func (r *ratio) observe(raw, reported sluice.Tokens) {
	x := max(min(quotient(int64(reported), int64(raw)), maxRatio), minRatio)
	weight := min(int64(raw), smallText)
	warm := r.seen >= trusted*smallText
	r.seen = min(r.seen+weight, memory*smallText)
	if warm {
		x = max(min(x, r.mean+r.mean/2), r.mean-r.mean/2)
	}
	d := x - r.mean
	r.mean += divRound(d*weight, r.seen)
	// West's update: the product of the distances before and after.
	r.variance += divRound((d*(x-r.mean)/one-r.variance)*weight, r.seen)
	r.variance = max(r.variance, 0)
}

// ratios learns a ratio at three levels.
type ratios struct {
	tenants *table[scope, ratio]
	models  *table[string, ratio]
	global  ratio
}

func newRatios(keys int) ratios {
	return ratios{tenants: newTable[scope, ratio](keys), models: newTable[string, ratio](keys)}
}

func (t *ratios) observe(s scope, raw, reported sluice.Tokens) {
	if raw <= 0 || reported <= 0 {
		return
	}
	raw, reported = min(raw, maxTokens), min(reported, maxTokens)
	t.tenants.put(s).observe(raw, reported)
	t.models.put(s.model).observe(raw, reported)
	t.global.observe(raw, reported)
}

// at is the mean and the standard deviation for a tenant and model: each level
// is trusted by as much as it has seen, the rest comes from the level above,
// and above the highest the ratio is 1.
func (t *ratios) at(s scope) (mean, dev int64) {
	mean, variance := one, one/64 // a deviation of 1/8 until something is known
	mean, variance = t.global.over(mean, variance)
	mean, variance = t.models.get(s.model).over(mean, variance)
	mean, variance = t.tenants.get(s).over(mean, variance)
	return mean, isqrt(variance * one)
}

// warm reports whether the tenant's use of the model, or the model's, is trusted by
// itself.
func (t *ratios) warm(s scope) bool {
	for _, r := range [...]*ratio{t.tenants.get(s), t.models.get(s.model)} {
		if r != nil && r.seen >= trusted*smallText {
			return true
		}
	}
	return false
}

// over blends the level with the one above it.
func (r *ratio) over(mean, variance int64) (int64, int64) {
	if r == nil || r.seen == 0 {
		return mean, variance
	}
	if r.seen >= trusted*smallText {
		return r.mean, r.variance
	}
	const prior = 2 * smallText
	whole := r.seen + prior
	return (r.mean*r.seen + mean*prior) / whole, (r.variance*r.seen + variance*prior) / whole
}

// maxTokens bounds every figure that enters, far above any real one, so that no
// product overflows.
const maxTokens = sluice.Tokens(1) << 40

// scale is n × ratio, rounded, at least 1 for any n above 0.
func scale(n sluice.Tokens, ratio int64) sluice.Tokens {
	if n <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(n), uint64(ratio))
	lo, carry := bits.Add64(lo, uint64(one/2), 0)
	hi += carry
	if hi>>15 != 0 {
		return 1<<63 - 1
	}
	return max(sluice.Tokens(hi<<48|lo>>16), 1)
}

// quotient is a ÷ b in 1/one, rounded, for positive a and b up to maxTokens.
func quotient(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(one))
	lo, carry := bits.Add64(lo, uint64(b/2), 0)
	hi += carry
	if hi >= uint64(b) {
		return maxRatio
	}
	q, _ := bits.Div64(hi, lo, uint64(b))
	return int64(min(q, uint64(maxRatio)))
}

// divRound is a ÷ b rounded half away from zero, for b above 0: a mean that
// truncates would drift towards zero.
func divRound(a, b int64) int64 {
	if a < 0 {
		return -((-a + b/2) / b)
	}
	return (a + b/2) / b
}

// isqrt is the square root rounded down.
func isqrt(n int64) int64 {
	if n <= 0 {
		return 0
	}
	x := int64(1) << ((bits.Len64(uint64(n)) + 1) / 2)
	for {
		y := (x + n/x) / 2
		if y >= x {
			return x
		}
		x = y
	}
}
