package telemetry

import (
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/ledger"
	"sluice/internal/route"
)

// Copies count beside their requests, under names that the configuration declares, and
// nowhere else.
func TestShadows(t *testing.T) {
	m := New(Options{})
	table := &route.Table{Models: map[sluice.ModelID]*route.Model{"fast": {ID: "fast", Shadows: []route.Shadow{{Pool: "next"}}}}}
	m.Declare(table)
	e := ledger.Entry{
		Request: "r.next", ShadowOf: "r", Model: "fast", Pool: "next", Attempt: 1, Tenant: "acme", Final: true,
		FirstToken: 300 * time.Millisecond, Duration: 2 * time.Second, Usage: sluice.Usage{Output: 7, Source: sluice.UsageReported}, Cost: 40,
	}
	m.Copied(&e)
	request := e
	request.Queued, request.FirstToken = time.Second, 1100*time.Millisecond
	m.Beside("next", &exchange.Result{Final: request, Usage: sluice.Usage{Output: 5}, Cost: 10})
	m.Skipped("fast", "next", "spend")
	m.Skipped("fast", "unknown", "spend")
	_, text := series(t, m)
	for _, want := range []string{
		`sluice_shadow_ended_total{model="fast",outcome="completed",pool="next",reason="",side="shadow"} 1`,
		`sluice_shadow_ended_total{model="fast",outcome="completed",pool="next",reason="",side="request"} 1`,
		`sluice_shadow_first_token_seconds_sum{model="fast",pool="next",side="request"} 0.1`,
		`sluice_shadow_first_token_seconds_sum{model="fast",pool="next",side="shadow"} 0.3`,
		`sluice_shadow_output_tokens_total{model="fast",pool="next",side="shadow"} 7`,
		`sluice_shadow_cost_nanodollars_total{model="fast",pool="next",side="request"} 10`,
		`sluice_shadow_skipped_total{model="fast",pool="next",why="spend"} 1`,
		`sluice_shadow_skipped_total{model="other",pool="other",why="spend"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("there is no %s", want)
		}
	}
	for _, not := range []string{"sluice_tokens_total{", "sluice_requests_total{", "sluice_tenant_tokens_total{tenant=\"acme\"}"} {
		if strings.Contains(text, not) {
			t.Errorf("copies are in %s}", not)
		}
	}
}
