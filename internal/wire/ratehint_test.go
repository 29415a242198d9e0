package wire

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/route"
)

func TestRateHints(t *testing.T) {
	now := time.Unix(1_800_000_000, 0).UTC()
	sent := now.Add(-time.Second)
	for _, c := range []struct {
		name    string
		dialect Dialect
		header  map[string]string
		want    []route.Hint
	}{
		{"nothing", OpenAI, map[string]string{"content-type": "application/json"}, nil},
		{
			"openai", OpenAI,
			map[string]string{
				"x-ratelimit-limit-requests": "10000", "x-ratelimit-remaining-requests": "9999", "x-ratelimit-reset-requests": "6ms",
				"x-ratelimit-limit-tokens": "200000", "x-ratelimit-remaining-tokens": "150000", "x-ratelimit-reset-tokens": "15s",
			},
			[]route.Hint{
				{Rate: route.RateRequests, Limit: 10000, Remaining: 9999, Reset: 6 * time.Millisecond, At: sent},
				{Rate: route.RateTokens, Limit: 200_000, Remaining: 150_000, Reset: 15 * time.Second, At: sent},
			},
		},
		{
			"seconds, and no limit", OpenAI,
			map[string]string{"x-ratelimit-remaining-tokens": "7", "x-ratelimit-reset-tokens": "30"},
			[]route.Hint{{Rate: route.RateTokens, Remaining: 7, Reset: 30 * time.Second, At: sent}},
		},
		{"not counted", OpenAI, map[string]string{"x-ratelimit-limit-requests": "0", "x-ratelimit-remaining-requests": "0", "x-ratelimit-remaining-tokens": "-1"}, nil},
		{"not a number", OpenAI, map[string]string{"x-ratelimit-remaining-requests": "many", "x-ratelimit-remaining-tokens": "99999999999999999999"}, nil},
		{
			"anthropic, each by itself", Anthropic,
			map[string]string{
				"anthropic-ratelimit-requests-limit": "50", "anthropic-ratelimit-requests-remaining": "49",
				"anthropic-ratelimit-requests-reset":         now.Add(2 * time.Second).Format(time.RFC3339),
				"anthropic-ratelimit-input-tokens-remaining": "40000", "anthropic-ratelimit-output-tokens-remaining": "8000",
				"anthropic-ratelimit-tokens-remaining": "8000",
			},
			[]route.Hint{
				{Rate: route.RateRequests, Limit: 50, Remaining: 49, Reset: 2 * time.Second, At: sent},
				{Rate: route.RateInput, Remaining: 40_000, At: sent},
				{Rate: route.RateOutput, Remaining: 8000, At: sent},
			},
		},
		{
			"anthropic, together", Anthropic,
			map[string]string{"anthropic-ratelimit-tokens-limit": "80000", "anthropic-ratelimit-tokens-remaining": "79000"},
			[]route.Hint{{Rate: route.RateTokens, Limit: 80_000, Remaining: 79_000, At: sent}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := http.Header{}
			for k, v := range c.header {
				h.Set(k, v)
			}
			if diff := cmp.Diff(c.want, RateHints(c.dialect, h, sent, now)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
