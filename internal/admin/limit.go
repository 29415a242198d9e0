package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/quota"
)

// Limits are limits by name, as the configuration writes them:
// requests_per_minute, concurrency, spend_per_month. In an update a name with
// null removes what is said of that limit, so that what stands above counts
// again; "none" lifts what stands above too; names that are left out stay.
type Limits map[string]Amount

// Amount is a limit's amount: a count, or for spend nano-dollars. As JSON it is
// an integer or a text such as "200k", "1M", "$100" or "none"; null says nothing.
type Amount struct {
	text  string // as it was written; empty says nothing
	known bool   // n and of are set, and count
	of    sluice.Dimension
	n     int64
}

// unlimited is how an amount says that there is no limit.
const unlimited = "none"

// ParseAmount takes the text of a command line. "none" is no limit, "default"
// what stands above.
func ParseAmount(s string) Amount {
	if s == "default" {
		return Amount{}
	}
	return Amount{text: s}
}

// MarshalJSON writes what UnmarshalJSON reads.
func (a Amount) MarshalJSON() ([]byte, error) {
	switch {
	case a.known && a.n == auth.Unlimited:
		return json.Marshal(unlimited)
	case a.known && (a.of == sluice.Spend || a.of == sluice.RunTime):
		return json.Marshal(a.String())
	case a.known:
		return json.Marshal(a.n)
	case a.text == "":
		return []byte("null"), nil
	}
	return json.Marshal(a.text)
}

// UnmarshalJSON reads an integer, a text or null.
func (a *Amount) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	if string(b) == "null" {
		*a = Amount{}
		return nil
	}
	if b[0] == '"' {
		return json.Unmarshal(b, &a.text)
	}
	a.text = string(b)
	return nil
}

// String is the amount as people write it.
func (a Amount) String() string {
	switch {
	case a.known && a.n == auth.Unlimited:
		return unlimited
	case a.known && a.of == sluice.Spend:
		return sluice.Nano(a.n).String()
	case a.known && a.of == sluice.RunTime:
		return time.Duration(a.n).Round(time.Second).String()
	case a.known:
		return strconv.FormatInt(a.n, 10)
	}
	return a.text
}

// Schema implements huma.SchemaProvider.
func (Amount) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Description: `A count, or a text such as "200k", "1M" or "$100"; "none" for no limit, also where one stands above; null says nothing, so that what stands above counts`,
		OneOf:       []*huma.Schema{{Type: "integer"}, {Type: "string", Nullable: true}},
	}
}

// LimitName is the name of a limit: its dimension, and its window unless it is a
// gauge.
func LimitName(d sluice.Dimension, w sluice.Window) string {
	switch w {
	case sluice.NoWindow:
		return d.String()
	case sluice.PerRun:
		return quota.RunBoundName(d)
	}
	return d.String() + "_per_" + w.String()
}

// limitsOf names limits.
func limitsOf(ls []sluice.Limit) Limits {
	if len(ls) == 0 {
		return nil
	}
	out := make(Limits, len(ls))
	for _, l := range ls {
		out[LimitName(l.Dimension, l.Window)] = amount(l.Amount, l.Dimension)
	}
	return out
}

// applyTop is apply for limits above which none stand: to lift one is to remove it.
func (l Limits) applyTop(base []sluice.Limit, param string) ([]sluice.Limit, error) {
	out, err := l.apply(base, param)
	return slices.DeleteFunc(out, func(l sluice.Limit) bool { return l.Amount == auth.Unlimited }), err
}

// apply returns the limits of base changed by l, in a fixed order. param names
// the field in errors.
func (l Limits) apply(base []sluice.Limit, param string) ([]sluice.Limit, error) {
	out := slices.Clone(base)
	names := make([]string, 0, len(l))
	for name := range l {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		limit, err := parseLimit(name, l[name], param)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(out, func(o sluice.Limit) bool { return o.Dimension == limit.Dimension && o.Window == limit.Window })
		switch {
		case limit.Amount == 0 && i >= 0:
			out = slices.Delete(out, i, i+1)
		case limit.Amount == 0:
		case i >= 0:
			out[i] = limit
		default:
			out = append(out, limit)
		}
	}
	slices.SortFunc(out, func(a, b sluice.Limit) int {
		return int(a.Dimension)*sluice.NumWindows + int(a.Window) - int(b.Dimension)*sluice.NumWindows - int(b.Window)
	})
	return out, nil
}

// parseLimit reads one named amount; the amount 0 says nothing.
func parseLimit(name string, a Amount, param string) (sluice.Limit, error) {
	var l sluice.Limit
	where := param + "." + name
	dim, win, windowed := strings.Cut(name, "_per_")
	if err := l.Dimension.UnmarshalText([]byte(dim)); err != nil || l.Dimension > sluice.Spend {
		return l, hinted(sluice.Invalid(where, "is not a limit"), limitHint)
	}
	if windowed {
		if err := l.Window.UnmarshalText([]byte(win)); err != nil || l.Window == sluice.NoWindow || l.Window == sluice.PerRun {
			return l, hinted(sluice.Invalid(where, "has no window %q", win), "use second, minute, hour, day or month")
		}
	}
	switch {
	case l.Dimension.Gauge() == windowed && windowed:
		return l, hinted(sluice.Invalid(where, "counts what is in flight and has no window"), "write "+dim)
	case !l.Dimension.Gauge() && !windowed:
		return l, hinted(sluice.Invalid(where, "needs a window"), "write "+dim+"_per_hour or "+dim+"_per_day")
	case l.Dimension == sluice.Spend && !l.Window.Fixed():
		return l, hinted(sluice.Invalid(where, "is a budget"), "use spend_per_hour, spend_per_day or spend_per_month")
	case l.Dimension != sluice.Spend && l.Window == sluice.PerMonth:
		return l, hinted(sluice.Invalid(where, "is a rate"), "use "+dim+" with _per_second, _per_minute, _per_hour or _per_day")
	}
	var err error
	switch {
	case a.known:
		l.Amount = a.n
	case a.text == "":
		return l, nil
	case a.text == unlimited:
		l.Amount = auth.Unlimited
		return l, nil
	case l.Dimension == sluice.Spend:
		var n sluice.Nano
		n, err = sluice.ParseMoney(a.text)
		l.Amount = int64(n)
	default:
		l.Amount, err = parseCount(a.text)
	}
	if err != nil {
		return l, hinted(sluice.Invalid(where, "is wrong: %s", err), "")
	}
	if l.Amount <= 0 {
		return l, hinted(sluice.Invalid(where, "must be positive"), "write none for no limit")
	}
	return l, nil
}

const limitHint = "use requests, input_tokens or output_tokens with _per_second, _per_minute, _per_hour or _per_day; concurrency; kv_tokens; spend with _per_hour, _per_day or _per_month"

func hinted(e *sluice.Error, hint string) *sluice.Error {
	e.Hint = hint
	return e
}

// parseCount reads "600", "200k", "1.5M" or "2G", exactly.
func parseCount(s string) (int64, error) {
	bad := fmt.Errorf("%q is not a count: write 600, 200k, 1.5M or 2G", s)
	digits, scale := strings.ReplaceAll(strings.TrimSpace(s), "_", ""), 0
	if digits == "" {
		return 0, bad
	}
	switch digits[len(digits)-1] {
	case 'k', 'K':
		scale = 3
	case 'M':
		scale = 6
	case 'G':
		scale = 9
	}
	if scale > 0 {
		digits = digits[:len(digits)-1]
	}
	whole, frac, dot := strings.Cut(digits, ".")
	if dot && (frac == "" || len(frac) > scale) || whole == "" {
		return 0, bad
	}
	n, err := strconv.ParseUint(whole+frac+strings.Repeat("0", scale-len(frac)), 10, 63)
	if err != nil {
		return 0, bad
	}
	return int64(n), nil
}

// amount is a known figure, in nano-dollars for spend.
func amount(n int64, of sluice.Dimension) Amount { return Amount{n: n, of: of, known: true} }
