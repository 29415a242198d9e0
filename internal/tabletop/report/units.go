package report

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"sluice"
)

// quantity is a number ready to be shown, with its unit apart, so that columns
// can align both. The zero value is a quantity that is not known.
type quantity struct{ Num, Unit string }

// known reports whether there is something to show.
func (q quantity) known() bool { return q.Num != "" }

func (q quantity) String() string {
	switch {
	case !q.known():
		return "–"
	case q.Unit == "":
		return q.Num
	case q.Unit == "%" || q.Unit == "×":
		return q.Num + q.Unit
	}
	return q.Num + " " + q.Unit
}

// digits writes x, which is not negative, with three significant digits, or all
// of those before the point.
func digits(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x < 0.01:
		return strconv.FormatFloat(x, 'g', 2, 64)
	case x < 0.9995:
		return strconv.FormatFloat(x, 'f', 3, 64)
	case x < 9.995:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case x < 99.95:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 0, 64)
}

// duration shows a time to three digits; negative is unknown.
func duration(d time.Duration) quantity {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case d < 0:
		return quantity{}
	case ms < 999.5:
		return quantity{digits(ms), "ms"}
	case ms < 119_950:
		return quantity{digits(ms / 1e3), "s"}
	case ms < 120*60_000:
		return quantity{digits(ms / 60e3), "min"}
	case ms < 96*3600_000:
		return quantity{digits(ms / 3600e3), "h"}
	}
	return quantity{digits(ms / (24 * 3600e3)), "d"}
}

// moment shows a point of the run: 0, 45s, 2m, 1h05m.
func moment(d time.Duration) string {
	if d <= 0 {
		return "0"
	}
	if d < time.Second {
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	}
	d = d.Round(time.Second)
	h, m, s := int(d/time.Hour), int(d/time.Minute)%60, int(d/time.Second)%60
	var b strings.Builder
	if h > 0 {
		b.WriteString(strconv.Itoa(h) + "h")
	}
	if m > 0 || h > 0 && s > 0 {
		b.WriteString(padded(m, h > 0) + "m")
	}
	if s > 0 {
		b.WriteString(padded(s, h > 0 || m > 0) + "s")
	}
	return b.String()
}

func padded(n int, two bool) string {
	if two && n < 10 {
		return "0" + strconv.Itoa(n)
	}
	return strconv.Itoa(n)
}

var multiples = []struct {
	at   float64
	mark string
}{{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}

// amount shows a figure that is not negative with k, M, G, T or P.
func amount(x float64) quantity {
	if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
		return quantity{}
	}
	if x >= 1e18 {
		return quantity{Num: strconv.FormatFloat(x, 'e', 1, 64)}
	}
	for _, m := range multiples {
		if x >= m.at*0.9995 {
			return quantity{Num: digits(x/m.at) + m.mark}
		}
	}
	return quantity{Num: digits(x)}
}

// count shows a whole number, exactly below a million.
func count(n int64) quantity {
	if n < 0 {
		return quantity{}
	}
	if n >= 1_000_000 {
		return amount(float64(n))
	}
	s := strconv.FormatInt(n, 10)
	if len(s) > 3 {
		s = s[:len(s)-3] + "," + s[len(s)-3:]
	}
	return quantity{Num: s}
}

// percent shows a permille as a percentage with one decimal.
func percent(permille int64) quantity {
	if permille < 0 {
		return quantity{}
	}
	return quantity{strconv.FormatFloat(float64(permille)/10, 'f', 1, 64), "%"}
}

// times shows a permille as a factor with two decimals.
func times(permille int64) quantity {
	if permille < 0 {
		return quantity{}
	}
	return quantity{strconv.FormatFloat(float64(permille)/1000, 'f', 2, 64), "×"}
}

// dollars shows money to three digits.
func dollars(n sluice.Nano) quantity {
	x := float64(n) / float64(sluice.Dollar)
	switch {
	case n < 0:
		return quantity{}
	case n == 0:
		return quantity{Num: "$0"}
	case x >= 1000:
		return quantity{Num: "$" + amount(x).Num}
	case x >= 0.995:
		return quantity{Num: "$" + strconv.FormatFloat(x, 'f', 2, 64)}
	}
	places := min(9, 2-int(math.Floor(math.Log10(x))))
	return quantity{Num: "$" + strconv.FormatFloat(x, 'f', places, 64)}
}

// clean replaces what does not belong in a line of text: control characters,
// and those that change the direction of what follows.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
