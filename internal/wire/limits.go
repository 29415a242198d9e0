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
// budgets have no headers.
func RateHeaders(h http.Header, d Dialect, s []engine.LimitState, now time.Time) {
	requests := tightest(s, sluice.Requests)
	input, output := tightest(s, sluice.InputTokens), tightest(s, sluice.OutputTokens)
	tokens := input
	if tokens == nil || output != nil && tighter(output, input) {
		tokens = output
	}
	if d == Anthropic {
		anthropicRate(h, "Requests", requests, now)
		anthropicRate(h, "Tokens", tokens, now)
		anthropicRate(h, "Input-Tokens", input, now)
		anthropicRate(h, "Output-Tokens", output, now)
		return
	}
	openaiRate(h, "Requests", requests)
	openaiRate(h, "Tokens", tokens)
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
// ones the tighter is the one that fills later.
func tighter(a, b *engine.LimitState) bool {
	ahi, alo := bits.Mul64(uint64(max(a.Remaining, 0)), uint64(max(b.Limit.Amount, 0)))
	bhi, blo := bits.Mul64(uint64(max(b.Remaining, 0)), uint64(max(a.Limit.Amount, 0)))
	switch {
	case ahi != bhi:
		return ahi < bhi
	case alo != blo:
		return alo < blo
	}
	return a.Reset > b.Reset
}

func openaiRate(h http.Header, what string, s *engine.LimitState) {
	if s == nil {
		return
	}
	h.Set("X-Ratelimit-Limit-"+what, strconv.FormatInt(s.Limit.Amount, 10))
	h.Set("X-Ratelimit-Remaining-"+what, strconv.FormatInt(max(s.Remaining, 0), 10))
	h.Set("X-Ratelimit-Reset-"+what, (time.Duration(retryMillis(max(s.Reset, 0))) * time.Millisecond).String())
}

func anthropicRate(h http.Header, what string, s *engine.LimitState, now time.Time) {
	if s == nil {
		return
	}
	prefix := "Anthropic-Ratelimit-" + what
	h.Set(prefix+"-Limit", strconv.FormatInt(s.Limit.Amount, 10))
	h.Set(prefix+"-Remaining", strconv.FormatInt(max(s.Remaining, 0), 10))
	// The header has whole seconds: rounded up, so that at that time it holds.
	at := now.Add(max(s.Reset, 0) + time.Second - 1).UTC().Truncate(time.Second)
	h.Set(prefix+"-Reset", at.Format(time.RFC3339))
}
