package proxy

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/route"
)

// A request whose retry is denied ends with the error of its last attempt, as if
// there had been nowhere to go; why it was denied is in the ledger's detail, in the
// record for the log, and in the hook for metrics.
func TestDeniedRetry(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy route.RetryPolicy
		status int // that the backends answer
		want   string
		reason sluice.Reason
		got    int
	}{
		{"budget", route.RetryPolicy{Share: -1, Minimum: -1}, 500, "retry_budget_fleet", sluice.UpstreamError, 502},
		{"limited", route.RetryPolicy{Share: -1, Minimum: -1}, 429, "retry_budget_fleet", sluice.UpstreamLimited, 503},
		{"attempts", route.RetryPolicy{Attempts: 1}, 500, "attempts", sluice.UpstreamError, 502},
		{"nowhere else", route.RetryPolicy{}, 500, "no_backend", sluice.UpstreamError, 502},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var decisions []string
			failing := place{handler: answers(tt.status, `{"error":{"message":"boom"}}`)}
			s := setup{places: []place{failing, failing}, retries: tt.policy, hooks: exchange.Hooks{
				Retry: func(b sluice.BackendID, denied string) { decisions = append(decisions, string(b)+" "+denied) },
			}}
			inBubble(t, s, func(t *testing.T, r *rig) {
				if g := r.do(ask{}); g.status != tt.got || g.header.Get("Sluice-Reason") != tt.reason.String() {
					t.Errorf("the client is told %d %s: %s", g.status, g.header.Get("Sluice-Reason"), g.body)
				}
				rec := r.want(sluice.Failed, tt.reason, tt.got)
				if rec.Denied != tt.want {
					t.Errorf("the record says %q, want %q", rec.Denied, tt.want)
				}
				entries := r.journal.of(rec.Final.Request)
				want := []string{"b0 " + tt.want}
				if tt.want == "no_backend" {
					want = []string{"b0 ", "b1 " + tt.want}
				}
				if len(entries) != len(want) || !slices.Equal(decisions, want) {
					t.Fatalf("%d attempts, decisions %q, want %q", len(entries), decisions, want)
				}
				for i := range entries {
					var detail struct {
						Denied string `json:"retry_denied"`
					}
					if err := json.Unmarshal(entries[i].Detail, &detail); err != nil {
						t.Fatal(err)
					}
					told := ""
					if i == len(entries)-1 {
						told = tt.want
					}
					if detail.Denied != told || entries[i].Attempt != i+1 {
						t.Errorf("attempt %d tells of %q, want %q", entries[i].Attempt, detail.Denied, told)
					}
				}
			})
		})
	}
}

// A mistake of the client's is nobody's to repeat, and no decision.
func TestNoDecisionOnARefusal(t *testing.T) {
	s := setup{
		places: []place{{handler: answers(http.StatusBadRequest, `{"error":{"message":"bad","type":"invalid_request_error"}}`)}, {handler: talk{chunks: 1}}},
		hooks:  exchange.Hooks{Retry: func(b sluice.BackendID, denied string) { t.Errorf("%s: %s", b, denied) }},
	}
	inBubble(t, s, func(t *testing.T, r *rig) {
		r.do(ask{})
		if rec := r.want(sluice.Failed, sluice.UpstreamRefused, 400); rec.Denied != "" {
			t.Errorf("the record says %q", rec.Denied)
		}
	})
}
