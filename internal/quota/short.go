package quota

import (
	"errors"
	"strconv"
	"strings"

	"sluice"
)

// An entry of the ledger tells a dozen counters or more, and is written several
// times on its way to the store: so it tells them in short. Each is three capital
// letters, for scope, dimension and window, what it has in all, and what of that was
// taken, in base 32: "TRMv8-v" is a tenant that has taken 31 of 1,000 requests of its
// minute. A letter keeps its meaning for good.
const (
	scopeLetters     = "KURPTQMFS" // key, user, run, project, tenant, tenant × model, model, fleet, shadow
	dimensionLetters = "RIOCKSAT"  // requests, input, output, concurrency, KV, spend, all tokens, time
	windowLetters    = "NSMHDYR"   // none, second, minute, hour, day, month, run
)

// As many letters as there are values, or this does not compile.
var (
	_ = [1]struct{}{}[len(scopeLetters)-sluice.NumScopes]
	_ = [1]struct{}{}[len(dimensionLetters)-sluice.NumDimensions]
	_ = [1]struct{}{}[len(windowLetters)-sluice.NumWindows]
)

// AppendShort appends counters in short, without Reset. What it appends needs no
// escapes in JSON.
func AppendShort(b []byte, states []LimitState) []byte {
	for i := range states {
		s := &states[i]
		b = append(b, scopeLetters[s.Scope], dimensionLetters[s.Limit.Dimension], windowLetters[s.Limit.Window])
		b = append(strconv.AppendInt(b, s.Limit.Amount, 32), '-')
		b = strconv.AppendInt(b, s.Limit.Amount-s.Remaining, 32)
	}
	return b
}

var errShort = errors.New("counters that are not as they are written")

// ParseShort reads what AppendShort has written.
func ParseShort(text string) (states []LimitState, err error) {
	for text != "" {
		end := 3
		for end < len(text) && (text[end] < 'A' || text[end] > 'Z') {
			end++
		}
		if end > len(text) {
			return nil, errShort
		}
		amount, taken, _ := strings.Cut(text[3:end], "-")
		all, err := strconv.ParseInt(amount, 32, 64)
		less, wrong := strconv.ParseInt(taken, 32, 64)
		s := LimitState{
			Scope: sluice.Scope(strings.IndexByte(scopeLetters, text[0])),
			Limit: sluice.Limit{
				Dimension: sluice.Dimension(strings.IndexByte(dimensionLetters, text[1])),
				Window:    sluice.Window(strings.IndexByte(windowLetters, text[2])),
				Amount:    all,
			},
			Remaining: all - less,
		}
		if err != nil || wrong != nil || s.Scope >= sluice.NumScopes || s.Limit.Dimension >= sluice.NumDimensions || s.Limit.Window >= sluice.NumWindows {
			return nil, errShort
		}
		states, text = append(states, s), text[end:]
	}
	return states, nil
}
