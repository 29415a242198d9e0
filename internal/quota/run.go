package quota

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"sluice"
)

// RunBound is one thing that a run can be bounded by.
type RunBound struct {
	Name string
	Of   sluice.Dimension
	Doc  string
}

// RunBounds are all of them, in the order in which they are told.
var RunBounds = [...]RunBound{
	{"steps", sluice.Requests, "requests of the run"},
	{"input_tokens", sluice.InputTokens, "input tokens of all its requests"},
	{"output_tokens", sluice.OutputTokens, "output tokens of all its requests"},
	{"tokens", sluice.AllTokens, "input and output tokens of all its requests"},
	{"spend", sluice.Spend, "dollars of all its requests"},
	{"time", sluice.RunTime, "time from its first request, after which it admits none"},
}

// RunBoundName is the name of a run's bound on a dimension.
func RunBoundName(d sluice.Dimension) string {
	for _, b := range RunBounds {
		if b.Of == d {
			return b.Name
		}
	}
	return d.String()
}

// ParseRunBound reads one bound of a run: steps and tokens as 50, 50k or 1M,
// spend as $2, time as 10m. The amount is positive. The error is a sentence that
// says what to write.
func ParseRunBound(name, text string) (sluice.Limit, error) {
	l := sluice.Limit{Window: sluice.PerRun}
	known := false
	for _, b := range RunBounds {
		if b.Name == name {
			l.Dimension, known = b.Of, true
		}
	}
	if !known {
		return l, fmt.Errorf("%q is no bound of a run: use steps, input_tokens, output_tokens, tokens, spend or time", name)
	}
	ok := false
	switch l.Dimension {
	case sluice.Spend:
		n, err := sluice.ParseMoney(text)
		l.Amount, ok = int64(n), err == nil
	case sluice.RunTime:
		d, err := time.ParseDuration(text)
		l.Amount, ok = int64(d), err == nil
	default:
		l.Amount, ok = parseCount(text)
	}
	if !ok || l.Amount <= 0 {
		example := map[sluice.Dimension]string{sluice.Spend: "spend=$2", sluice.RunTime: "time=10m", sluice.Requests: "steps=50"}[l.Dimension]
		if example == "" {
			example = name + "=1M"
		}
		return l, fmt.Errorf("%s has %q: write a positive amount such as %s", name, text, example)
	}
	return l, nil
}

// parseCount reads a whole number, with at most three decimals before k, M or G.
func parseCount(s string) (int64, bool) {
	unit := int64(1)
	switch {
	case strings.HasSuffix(s, "k"), strings.HasSuffix(s, "K"):
		unit = 1e3
	case strings.HasSuffix(s, "M"):
		unit = 1e6
	case strings.HasSuffix(s, "G"):
		unit = 1e9
	}
	if unit > 1 {
		s = s[:len(s)-1]
	}
	whole, frac, _ := strings.Cut(s, ".")
	if whole == "" || len(frac) > 3 || strings.Trim(whole+frac, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(whole+frac+strings.Repeat("0", 3-len(frac)), 10, 64)
	if err != nil || n > math.MaxInt64/unit || n*unit%1000 != 0 {
		return 0, false
	}
	return n * unit / 1000, true
}
