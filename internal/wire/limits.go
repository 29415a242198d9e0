package wire

import (
	"math/bits"
	"net/http"
	"strconv"
	"time"

	"sluice"
	"sluice/internal/engine"
)

// RateHeaders sets the dialect's rate-limit headers from the caller's counters.
// now is for resets that are told as a time. Of several counters of one thing the
// most restrictive is told: the one with the least of its amount left. Gauges and
// budgets have no headers. A bound of a run has no reset: it gets nothing back, and a
// client that paces itself would be told to come at once.
func RateHeaders(h http.Header, d Dialect, s []engine.LimitState, now time.Time) {
	requests := tightest(s, sluice.Requests)
	input, output := tightest(s, sluice.InputTokens), tightest(s, sluice.OutputTokens)
	tokens := input
	if tokens == nil || output != nil && tighter(output, input) {
		tokens = output
	}
	if d == Anthropic {
		anthropicRate(h, &anthropicRequests, requests, now)
		anthropicRate(h, &anthropicTokens, tokens, now)
		anthropicRate(h, &anthropicInput, input, now)
		anthropicRate(h, &anthropicOutput, output, now)
		return
	}
	openaiRate(h, &openaiRequests, requests)
	openaiRate(h, &openaiTokens, tokens)
}

// tightest is the counter of a dimension with the least left, nil if there is none.
func tightest(s []engine.LimitState, dim sluice.Dimension) *engine.LimitState {
	var best *engine.LimitState
	for i := range s {
		if s[i].Limit.Dimension == dim && (best == nil || tighter(&s[i], best)) {
			best = &s[i]
		}
	}
	return best
}

// tighter reports whether a has a smaller share of its amount left than b; of equal
// ones the tighter is the one that fills later, or never.
func tighter(a, b *engine.LimitState) bool {
	ahi, alo := bits.Mul64(uint64(max(a.Remaining, 0)), uint64(max(b.Limit.Amount, 0)))
	bhi, blo := bits.Mul64(uint64(max(b.Remaining, 0)), uint64(max(a.Limit.Amount, 0)))
	switch {
	case ahi != bhi:
		return ahi < bhi
	case alo != blo:
		return alo < blo
	}
	return resets(b) && (!resets(a) || a.Reset > b.Reset)
}

// resets reports whether a counter fills again.
func resets(s *engine.LimitState) bool { return s.Limit.Window != sluice.PerRun }

// rateNames are the headers of one thing that is counted: its limit, what remains,
// and when that is whole again.
type rateNames [3]string

// The headers of each dialect, in canonical form.
var (
	openaiRequests                     = rateNames{"X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"}
	openaiTokens                       = rateNames{"X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"}
	anthropicRequests, anthropicTokens = anthropicOf("Requests"), anthropicOf("Tokens")
	anthropicInput, anthropicOutput    = anthropicOf("Input-Tokens"), anthropicOf("Output-Tokens")
)

func anthropicOf(what string) rateNames {
	prefix := "Anthropic-Ratelimit-" + what
	return rateNames{prefix + "-Limit", prefix + "-Remaining", prefix + "-Reset"}
}

// set sets the three headers, whose values share one array and one text; without a
// reset two.
func (n *rateNames) set(h http.Header, s *engine.LimitState, reset string) {
	var room [64]byte
	b := strconv.AppendInt(room[:0], s.Limit.Amount, 10)
	first := len(b)
	b = strconv.AppendInt(b, max(s.Remaining, 0), 10)
	second := len(b)
	text := string(append(b, reset...))
	v := &[3]string{text[:first], text[first:second], text[second:]}
	h[n[0]], h[n[1]] = v[0:1:1], v[1:2:2]
	if reset != "" {
		h[n[2]] = v[2:3:3]
	}
}

func openaiRate(h http.Header, names *rateNames, s *engine.LimitState) {
	switch {
	case s == nil:
	case !resets(s):
		names.set(h, s, "")
	default:
		names.set(h, s, (time.Duration(retryMillis(max(s.Reset, 0))) * time.Millisecond).String())
	}
}

func anthropicRate(h http.Header, names *rateNames, s *engine.LimitState, now time.Time) {
	switch {
	case s == nil:
	case !resets(s):
		names.set(h, s, "")
	default:
		// The header has whole seconds: rounded up, so that at that time it holds.
		at := now.Add(max(s.Reset, 0) + time.Second - 1).UTC().Truncate(time.Second)
		names.set(h, s, at.Format(time.RFC3339))
	}
}
