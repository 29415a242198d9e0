package wire

import (
	"net/http"
	"strconv"
	"time"

	"sluice/internal/route"
)

// rateHeader names what a provider tells of one rate, in canonical form.
type rateHeader struct {
	rate                    route.Rate
	limit, remaining, reset string
}

var (
	openaiRates = [...]rateHeader{
		{route.RateRequests, "X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"},
		{route.RateTokens, "X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"},
	}
	anthropicRates = [...]rateHeader{
		{route.RateRequests, "Anthropic-Ratelimit-Requests-Limit", "Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset"},
		{route.RateInput, "Anthropic-Ratelimit-Input-Tokens-Limit", "Anthropic-Ratelimit-Input-Tokens-Remaining", "Anthropic-Ratelimit-Input-Tokens-Reset"},
		{route.RateOutput, "Anthropic-Ratelimit-Output-Tokens-Limit", "Anthropic-Ratelimit-Output-Tokens-Remaining", "Anthropic-Ratelimit-Output-Tokens-Reset"},
		{route.RateTokens, "Anthropic-Ratelimit-Tokens-Limit", "Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Tokens-Reset"},
	}
)

// RateHints reads what an answer's headers tell of the rates of the account; nil if
// nothing. sent is when the request was: the figures are no older. Where input
// and output tokens have figures of their own, the one for tokens repeats the
// stricter of them and is left out.
func RateHints(d Dialect, h http.Header, sent, now time.Time) (hints []route.Hint) {
	names := openaiRates[:]
	if d == Anthropic {
		names = anthropicRates[:]
	}
	for _, n := range names {
		v, ok := h[n.remaining]
		if !ok || len(v) == 0 || n.rate == route.RateTokens && len(hints) > 0 && hints[len(hints)-1].Rate != route.RateRequests {
			continue
		}
		left, err := strconv.ParseInt(v[0], 10, 64)
		if err != nil || left < 0 { // some write -1 for what they do not count
			continue
		}
		hint := route.Hint{Rate: n.rate, Remaining: left, At: sent}
		if v := h[n.limit]; len(v) > 0 {
			if limit, err := strconv.ParseInt(v[0], 10, 64); err == nil && limit > 0 {
				hint.Limit = limit
			}
		}
		if hint.Limit == 0 && left == 0 && len(h[n.limit]) > 0 { // "0 of 0": it does not count
			continue
		}
		if v := h[n.reset]; len(v) > 0 {
			hint.Reset = resetIn(v[0], now)
		}
		hints = append(hints, hint)
	}
	return hints
}

// maxReset bounds the time until a rate is whole again.
const maxReset = 31 * 24 * time.Hour

// resetIn reads "6m0s", seconds, or a time as of RFC 3339.
func resetIn(v string, now time.Time) time.Duration {
	d, err := time.ParseDuration(v)
	if err != nil {
		if s, numErr := strconv.ParseInt(v, 10, 32); numErr == nil {
			d = time.Duration(s) * time.Second
		} else if at, timeErr := time.Parse(time.RFC3339, v); timeErr == nil {
			d = at.Sub(now)
		}
	}
	return min(max(d, 0), maxReset)
}
