package sluice

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Nano is an amount of money in nano-dollars (10⁻⁹ USD).
type Nano int64

// Dollar is one US dollar.
const Dollar Nano = 1_000_000_000

// Price is nano-dollars per million units: $3 per million tokens is 3·10⁹.
type Price int64

// perMillion divides a Price × count.
const perMillion = 1_000_000

// Cost accumulates Σ count × price in 128 bits, so that an entry is rounded once. The zero value is an empty sum.
// Counts and prices must not be negative; negative ones count as zero. A sum beyond 128 bits saturates.
type Cost struct{ hi, lo uint64 }

// Add adds n units at price p.
func (c *Cost) Add(n int64, p Price) {
	if n <= 0 || p <= 0 {
		return
	}
	hi, lo := bits.Mul64(uint64(n), uint64(p))
	var carry uint64
	c.lo, carry = bits.Add64(c.lo, lo, 0)
	c.hi, carry = bits.Add64(c.hi, hi, carry)
	if carry != 0 {
		c.hi, c.lo = ^uint64(0), ^uint64(0)
	}
}

// Scale multiplies the sum by num/den, for discounts and uplifts, rounding the 128-bit remainder towards zero. den
// must be positive.
func (c *Cost) Scale(num, den uint64) {
	hi1, lo := bits.Mul64(c.lo, num)
	hi2, mid := bits.Mul64(c.hi, num)
	mid, carry := bits.Add64(mid, hi1, 0)
	if hi2+carry != 0 {
		c.hi, c.lo = ^uint64(0), ^uint64(0)
		return
	}
	qhi, r := bits.Div64(0, mid, den)
	qlo, _ := bits.Div64(r, lo, den)
	c.hi, c.lo = qhi, qlo
}

// Up is the sum in nano-dollars rounded up: what a hold takes.
func (c Cost) Up() Nano {
	q, r := c.div()
	if r != 0 {
		q++
	}
	return saturate(q)
}

// Even is the sum in nano-dollars rounded half to even: what a settlement charges.
func (c Cost) Even() Nano {
	q, r := c.div()
	if r > perMillion/2 || r == perMillion/2 && q&1 == 1 {
		q++
	}
	return saturate(q)
}

func (c Cost) div() (q, r uint64) {
	if c.hi >= perMillion { // the quotient does not fit 64 bits
		return 1<<63 - 1, 0
	}
	return bits.Div64(c.hi, c.lo, perMillion)
}

func saturate(q uint64) Nano {
	return Nano(min(q, 1<<63-1))
}

// String prints dollars with as many of nine decimals as are needed, at least two: $1.00, $0.000123456.
func (n Nano) String() string {
	sign := ""
	u := uint64(n)
	if n < 0 {
		sign, u = "-", -u
	}
	frac := strings.TrimRight(fmt.Sprintf("%09d", u%uint64(Dollar)), "0")
	for len(frac) < 2 {
		frac += "0"
	}
	return sign + "$" + strconv.FormatUint(u/uint64(Dollar), 10) + "." + frac
}

// ParseMoney reads "$1.50", "1.50" or "0.000000001" exactly; more than nine decimals, a sign, or an amount beyond
// 9.2 billion dollars is an error.
func ParseMoney(s string) (Nano, error) {
	t := strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(s), "$"), "_", "")
	whole, frac, dot := strings.Cut(t, ".")
	if whole == "" && frac == "" || dot && frac == "" || len(frac) > 9 {
		return 0, fmt.Errorf("amount %q: write dollars with at most nine decimals, such as $1.50", s)
	}
	digits := whole + frac + strings.Repeat("0", 9-len(frac))
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, fmt.Errorf("amount %q: write dollars with at most nine decimals, such as $1.50", s)
		}
	}
	v, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("amount %q is out of range", s)
	}
	return Nano(v), nil
}

// MarshalText writes what String prints.
func (n Nano) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText reads what ParseMoney reads.
func (n *Nano) UnmarshalText(b []byte) (err error) {
	*n, err = ParseMoney(string(b))
	return err
}

// String prints the price per million units.
func (p Price) String() string { return Nano(p).String() + "/M" }

// MarshalText writes the amount alone, in dollars per million units.
func (p Price) MarshalText() ([]byte, error) { return Nano(p).MarshalText() }

// UnmarshalText reads dollars per million units, as ParseMoney does.
func (p *Price) UnmarshalText(b []byte) error { return (*Nano)(p).UnmarshalText(b) }
