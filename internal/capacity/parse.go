package capacity

import (
	"fmt"
	"math/big"
	"strings"

	"sluice"
)

// The bounds of what is read: beyond them a figure is a mistake, and exact
// arithmetic on it would only be slow.
const (
	maxDigits = 18
	maxTokens = 100_000_000 // of one request
)

// units are the factors that a number may carry.
var units = map[string]int64{"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}

func mistake(hint, format string, args ...any) error {
	return &sluice.Error{Kind: sluice.KindInvalid, Reason: sluice.InvalidRequest, Msg: fmt.Sprintf(format, args...), Hint: hint}
}

// ParseAmount reads a decimal that is not negative, with k, M or G for
// thousands, millions or billions: 0.5, 20k, 1.5M.
func ParseAmount(s string) (Amount, error) {
	const hint = "write a number, with k, M or G for thousands, millions or billions: 0.5, 20k, 1.5M"
	text := strings.ReplaceAll(strings.TrimSpace(s), "_", "")
	n := len(text)
	for n > 0 && (text[n-1] < '0' || text[n-1] > '9') {
		n--
	}
	factor, ok := units[strings.TrimSpace(text[n:])]
	digits := text[:n]
	if strings.HasPrefix(digits, "-") {
		return Amount{}, mistake(hint, "%q is negative", s)
	}
	if !ok || digits == "" || len(digits) > maxDigits || strings.Trim(digits, "0123456789.") != "" || strings.Count(digits, ".") > 1 || digits[0] == '.' {
		return Amount{}, mistake(hint, "%q is not an amount", s)
	}
	r, ok := new(big.Rat).SetString(digits)
	if !ok {
		return Amount{}, mistake(hint, "%q is not an amount", s)
	}
	return Amount{r}.Times(Int(factor)), nil
}

// UnmarshalText reads what ParseAmount does.
func (a *Amount) UnmarshalText(b []byte) (err error) {
	*a, err = ParseAmount(string(b))
	return err
}

// MarshalText writes what UnmarshalText reads, to six decimals.
func (a Amount) MarshalText() ([]byte, error) { return []byte(a.Text(6)), nil }

// Rate is requests per second.
type Rate struct{ Amount }

// spans are the words for a time and its seconds. A month is a twelfth of a year
// of 365.25 days.
var spans = map[string]int64{
	"s": 1, "sec": 1, "second": 1,
	"m": 60, "min": 60, "minute": 60,
	"h": 3600, "hour": 3600,
	"d": 86_400, "day": 86_400,
	"w": 604_800, "week": 604_800,
	"mo": 2_629_800, "month": 2_629_800,
	"y": 31_557_600, "year": 31_557_600,
}

// UnmarshalText reads requests per second, or per another time: 30, 0.5, 20/min,
// 1.2k/h.
func (r *Rate) UnmarshalText(b []byte) error {
	const hint = "write requests per second, or per another time: 30, 0.5, 20/min, 1200/h"
	number, per, divided := strings.Cut(string(b), "/")
	a, err := ParseAmount(number)
	if err != nil {
		return mistake(hint, "%s", sluice.AsError(err).Msg)
	}
	seconds := int64(1)
	if divided {
		ok := false
		if seconds, ok = spans[strings.TrimSpace(per)]; !ok || seconds > 86_400 {
			return mistake(hint, "%q is not a time that a rate is per", per)
		}
	}
	r.Amount = a.Over(Int(seconds))
	return nil
}

// Share is a part of a whole, from 0 to 1.
type Share struct{ Amount }

// UnmarshalText reads a percentage or a fraction: 25%, 0.25.
func (s *Share) UnmarshalText(b []byte) error {
	a, err := ParsePart(string(b))
	if err != nil {
		return err
	}
	if a.Cmp(Int(1)) > 0 {
		return mistake("write a share from 0% to 100%", "%q is more than the whole", b)
	}
	s.Amount = a
	return nil
}

// ParsePart reads a percentage or a fraction that may be more than the whole:
// 250%, 2.5.
func ParsePart(s string) (Amount, error) {
	const hint = "write a share such as 25% or 0.25"
	text, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	a, err := ParseAmount(text)
	if err != nil {
		return Amount{}, mistake(hint, "%q is not a share", s)
	}
	if percent {
		a = a.Over(Int(100))
	}
	return a, nil
}

// Part is a share that may be more than the whole, such as what retries add.
type Part struct{ Amount }

// UnmarshalText reads what ParsePart does, up to 100 times the whole.
func (p *Part) UnmarshalText(b []byte) error {
	a, err := ParsePart(string(b))
	if err == nil && a.Cmp(Int(100)) > 0 {
		err = mistake("write a share such as 25% or 0.25", "%q is more than 100 times the whole", b)
	}
	p.Amount = a
	return err
}

// Tokens is a whole number of tokens of one request.
type Tokens int64

// UnmarshalText reads a whole number: 1500, 20k.
func (t *Tokens) UnmarshalText(b []byte) error {
	const hint = "write a whole number of tokens: 1500, 20k"
	a, err := ParseAmount(string(b))
	if err != nil {
		return mistake(hint, "%s", sluice.AsError(err).Msg)
	}
	if n := a.Floor(); !Int(n).Equal(a) || n > maxTokens {
		return mistake(hint, "%q is not a whole number of at most %d", b, maxTokens)
	}
	*t = Tokens(a.Floor())
	return nil
}

// Growth is what a demand grows by in each period, compounded.
type Growth struct {
	Rate   Amount // 0.05 is 5 %; above −1
	Period int64  // seconds; 0 is no growth given
}

// UnmarshalText reads a growth per time: 5%/month, -2%/week, 0.
func (g *Growth) UnmarshalText(b []byte) error {
	const hint = "write a growth per time: 5%/month, -2%/week, 30%/year, or fit"
	text, per, divided := strings.Cut(strings.TrimSpace(string(b)), "/")
	shrinks := strings.HasPrefix(text, "-")
	rate, err := ParsePart(strings.TrimLeft(text, "+-"))
	if err != nil {
		return mistake(hint, "%q is not a growth", b)
	}
	seconds, ok := spans[strings.TrimSpace(per)]
	switch {
	case !divided && rate.Sign() == 0:
		seconds = spans["month"]
	case !divided || !ok || seconds < 86_400:
		return mistake(hint, "%q does not say per what time, of a day at least", b)
	case shrinks && rate.Cmp(Int(1)) >= 0:
		return mistake(hint, "%q leaves nothing", b)
	case rate.Cmp(Int(10)) > 0:
		return mistake(hint, "%q is more than tenfold each time", b)
	}
	if shrinks {
		rate = Int(0).Minus(rate)
	}
	g.Rate, g.Period = rate, seconds
	return nil
}

// ParseSpan reads a time in seconds: 28d, 6mo, 1y, 36h.
func ParseSpan(s string) (int64, error) {
	const hint = "write a number and a unit: 36h, 28d, 8w, 6mo or 1y"
	text := strings.TrimSpace(s)
	n := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if n <= 0 || n > 5 {
		return 0, mistake(hint, "%q is not a span of time", s)
	}
	a, err := ParseAmount(text[:n])
	seconds, ok := spans[strings.TrimSpace(text[n:])]
	if err != nil || !ok || a.Sign() == 0 {
		return 0, mistake(hint, "%q is not a span of time", s)
	}
	return a.Times(Int(seconds)).Floor(), nil
}
