package capacity

import (
	"math/big"
	"strings"
)

// Amount is an exact rational number and immutable. The zero value is 0. What
// the planner says of a workload is therefore what the workload's own figures
// say, to the last token: 20 requests a minute of 200 tokens are 200/3 tokens a
// second, and half of them is a half.
type Amount struct{ r *big.Rat }

// Int is a whole amount.
func Int[T ~int | ~int64](n T) Amount { return Amount{new(big.Rat).SetInt64(int64(n))} }

// Ratio is a/b; b must not be 0.
func Ratio[T ~int | ~int64](a, b T) Amount { return Amount{big.NewRat(int64(a), int64(b))} }

func (a Amount) rat() *big.Rat {
	if a.r == nil {
		return new(big.Rat)
	}
	return a.r
}

// Plus is a + b.
func (a Amount) Plus(b Amount) Amount { return Amount{new(big.Rat).Add(a.rat(), b.rat())} }

// Minus is a − b.
func (a Amount) Minus(b Amount) Amount { return Amount{new(big.Rat).Sub(a.rat(), b.rat())} }

// Times is a × b.
func (a Amount) Times(b Amount) Amount { return Amount{new(big.Rat).Mul(a.rat(), b.rat())} }

// Over is a / b, and 0 where b is 0: a demand over a supply that does not exist
// is told by the caller, not by a number.
func (a Amount) Over(b Amount) Amount {
	if b.Sign() == 0 {
		return Amount{}
	}
	return Amount{new(big.Rat).Quo(a.rat(), b.rat())}
}

// Sign is −1, 0 or 1.
func (a Amount) Sign() int { return a.rat().Sign() }

// Cmp compares: −1, 0 or 1.
func (a Amount) Cmp(b Amount) int { return a.rat().Cmp(b.rat()) }

// Equal reports whether both are the same number.
func (a Amount) Equal(b Amount) bool { return a.Cmp(b) == 0 }

// Max is the larger one.
func Max(a, b Amount) Amount {
	if a.Cmp(b) >= 0 {
		return a
	}
	return b
}

// Min is the smaller one.
func Min(a, b Amount) Amount {
	if a.Cmp(b) <= 0 {
		return a
	}
	return b
}

// Floor is the largest integer that is not larger. It saturates.
func (a Amount) Floor() int64 {
	q, _ := new(big.Int).DivMod(a.rat().Num(), a.rat().Denom(), new(big.Int))
	if !q.IsInt64() {
		return int64(q.Sign()) * (1<<63 - 1)
	}
	return q.Int64()
}

// Ceil is the smallest integer that is not smaller. It saturates.
func (a Amount) Ceil() int64 { return -Amount{new(big.Rat).Neg(a.rat())}.Floor() }

// Float is the nearest number that JSON has.
func (a Amount) Float() float64 {
	f, _ := a.rat().Float64()
	return f
}

// Text writes at most so many decimals, rounded half away from zero, without
// those at the end that are 0.
func (a Amount) Text(decimals int) string {
	s := a.rat().FloatString(decimals)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// String is Text with as many decimals as a reader needs.
func (a Amount) String() string { return a.Text(3) }

// coarse is the amount in steps of one part in den, rounded down, so that a
// long search does not carry ever longer fractions.
func (a Amount) coarse(den int64) Amount { return Ratio(a.Times(Int(den)).Floor(), den) }
