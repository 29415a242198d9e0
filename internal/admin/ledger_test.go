package admin

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/ledger"
)

// fill puts entries into the ledger: n requests of acme, one of other with a
// failed first attempt.
func (b *bench) fill(n int) {
	b.t.Helper()
	var entries []ledger.Entry
	for i := range n {
		entries = append(entries, ledger.Entry{
			Request: sluice.RequestID(fmt.Sprintf("r%03d", i)), Attempt: 1, At: b.now.Add(time.Duration(i-n) * time.Second), Ended: b.now,
			Tenant: "acme", Project: "web", Key: "k1", Task: "sum", Model: "fast", Pool: "chat", Backend: "gpu-a", Provider: "gpus",
			Final: true, Outcome: sluice.Completed, Status: 200, Operation: "chat", Dialect: "openai", UpstreamRequestID: "up",
			Usage: sluice.Usage{Input: 100, CacheRead: 20, Output: 10, Source: sluice.UsageReported}, Cost: 1_000, CostHigh: 1_000, Duration: time.Second,
		})
	}
	first := ledger.Entry{
		Request: "rx", Attempt: 1, At: b.now.Add(-time.Hour), Ended: b.now, Tenant: "other", Model: "fast", Pool: "chat", Backend: "gpu-a", Provider: "gpus",
		Outcome: sluice.Failed, Reason: sluice.UpstreamError, Usage: sluice.Usage{Input: 5, Source: sluice.UsageEstimated}, Cost: 7, CostHigh: 9,
		Detail: []byte(`{"estimate":{"raw_input":4,"input":5},"fallback":false,"candidates":[{"pool":"chat","backend":"gpu-a"},{"pool":"chat","backend":"gpu-b","left":"unhealthy"}],"limits":[["tenant","spend","month",100000000000,90000000000]]}`),
	}
	second := first
	second.Attempt, second.Final, second.Outcome, second.Reason, second.Status, second.Backend = 2, true, sluice.Completed, sluice.ReasonNone, 200, "oai"
	second.Usage, second.Cost, second.CostHigh = sluice.Usage{Input: 6, Output: 3, Source: sluice.UsageReported}, 11, 11
	second.Detail = []byte(`{"fallback":true,"candidates":[{"pool":"hosted","backend":"oai"}],"rates":{"input":250000000,"output":0}}`)
	refused := ledger.Entry{
		Request: "rr", At: b.now.Add(-2 * time.Hour), Ended: b.now, Tenant: "other", Model: "fast", Final: true, Outcome: sluice.Rejected, Reason: sluice.RateLimited, Status: 429,
		Detail: []byte(`{"message":"too many input tokens","refusal":{"scope":"tenant","id":"other","dimension":"input_tokens","window":"minute","amount":1000,"requested":900,"used":300,"held":50}}`),
	}
	if err := b.db.Append(b.t.Context(), append(entries, first, second, refused)); err != nil {
		b.t.Fatal(err)
	}
}

func TestUsage(t *testing.T) {
	b := newBench(t)
	b.fill(10)
	var u Usage
	b.do("GET", "/admin/v1/usage?by=tenant,model&since=48h", "", 200, &u)
	if len(u.Rows) != 2 || u.Rows[0].Group["tenant"] != "acme" || u.Rows[0].Input != 1000 || u.Rows[0].CostNanodollars != 10_000 || u.Rows[0].Cost != "$0.00001" {
		t.Errorf("got %+v", u.Rows)
	}
	if u.Total.Requests != 12 || u.Total.Attempts != 12 || u.Total.CostNanodollars != 10_018 {
		t.Errorf("total: %+v", u.Total)
	}
	b.do("GET", "/admin/v1/usage?tenant=other&outcome=rejected&since=48h", "", 200, &u)
	if u.Total.Requests != 1 || u.Total.Attempts != 0 {
		t.Errorf("rejected: %+v", u.Total)
	}
	for _, q := range []string{"by=nonsense", "by=label", "since=yesterday", "since=1h&until=2h", "limit=-1", "class=fast", "nosuch=1"} {
		if text := b.do("GET", "/admin/v1/usage?"+q, "", 422, nil); !strings.Contains(text, `"kind":"invalid"`) {
			t.Errorf("%s: %s", q, text)
		}
	}
}

func TestExplain(t *testing.T) {
	b := newBench(t)
	b.fill(1)
	var x Explanation
	b.do("GET", "/admin/v1/requests/rx", "", 200, &x)
	if len(x.Steps) != 2 || x.Outcome != "completed" || x.Total.Tokens["input"] != 11 || x.Total.CostNanodollars != 18 || x.Total.Source != "estimated" || x.Total.BudgetCost == "" {
		t.Errorf("got %+v", x)
	}
	whole(t, "explain", &x.Request)
	if r := x.Steps[1].Charge.Rates; len(r) != 2 || r["input"] != "$0.25" || r["output"] != "$0.00" || x.Steps[1].Facts != nil {
		t.Errorf("rates: %+v", x.Steps[1])
	}
	if !x.Steps[1].Fallback || len(x.Steps[0].Candidates) != 2 || x.Steps[0].Candidates[1].Left != "unhealthy" {
		t.Errorf("decisions: %+v", x.Steps)
	}
	if len(x.Limits) != 1 || x.Limits[0].Limit != "spend_per_month" || x.Limits[0].Remaining.String() != "$90.00" {
		t.Errorf("limits: %+v", x.Limits)
	}
	b.do("GET", "/admin/v1/requests/rx?tenant=other", "", 200, nil)
	b.do("GET", "/admin/v1/requests/rx?tenant=acme", "", 404, nil)
	b.do("GET", "/admin/v1/requests/nosuch", "", 404, nil)

	x = Explanation{}
	b.do("GET", "/admin/v1/requests/rr", "", 200, &x)
	if x.Refusal == nil || x.Refusal.Limit != "input_tokens_per_minute" || x.Refusal.Used.String() != "300" || x.Steps[0].Attempt != 0 || x.Steps[0].Message != "too many input tokens" {
		t.Errorf("refusal: %+v", x.Refusal)
	}
}

// Limits are read as entries tell them, and as those of versions before do.
func TestLimitStates(t *testing.T) {
	want := limitStates{
		{Scope: sluice.ScopeTenant, Limit: sluice.Limit{Dimension: sluice.Requests, Window: sluice.PerMinute, Amount: 1000}, Remaining: 969},
		{Scope: sluice.ScopeKey, Limit: sluice.Limit{Dimension: sluice.Concurrency, Amount: 8}, Remaining: 8},
	}
	for _, text := range []string{`"TRMv8-vKCN8-0"`, `[["tenant","requests","minute",1000,969],["key","concurrency","none",8,8]]`} {
		var got limitStates
		if err := json.Unmarshal([]byte(text), &got); err != nil || !slices.Equal(got, want) {
			t.Errorf("got %v, %v of %s", got, err, text)
		}
	}
	for _, text := range []string{`7`, `"TRM"`, `[["tenant"]]`, `[["x","requests","minute",1,1]]`} {
		var got limitStates
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("got %v of %s", got, text)
		}
	}
}

// whole wants the figures of rx, which took two attempts.
func whole(t *testing.T, what string, r *Request) {
	t.Helper()
	if r.Input != 11 || r.Output != 3 || r.CostNanodollars != 18 || r.UsageSource != "estimated" || r.Backend != "oai" {
		t.Errorf("%s tells %+v", what, r)
	}
}

// TestRecentPages walks the pages: every request once, newest first.
func TestRecentPages(t *testing.T) {
	b := newBench(t)
	b.fill(25)
	seen := map[string]bool{}
	last := b.now.Add(time.Hour)
	after := ""
	for range 10 {
		var page struct {
			Requests []Request
			Next     string
		}
		b.do("GET", "/admin/v1/requests?limit=7&after="+url.QueryEscape(after), "", 200, &page)
		for _, r := range page.Requests {
			if seen[r.ID] || r.At.After(last) {
				t.Errorf("%s came twice or out of order", r.ID)
			}
			seen[r.ID], last = true, r.At
			if r.ID == "rx" {
				whole(t, "the list", &r)
			}
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if len(seen) != 27 {
		t.Errorf("saw %d requests, want 27", len(seen))
	}
	b.do("GET", "/admin/v1/requests?after=nonsense", "", 422, nil)
}

func TestVerify(t *testing.T) {
	b := newBench(t)
	b.fill(5)
	var v Verification
	b.do("POST", "/admin/v1/ledger/verify", "", 200, &v)
	if !v.OK || v.Entries != 8 || len(v.Differences) != 0 {
		t.Errorf("got %+v", v)
	}
}
