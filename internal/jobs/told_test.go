package jobs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/jobs"
	"sluice/internal/ledger"
	"sluice/test/bubble"
)

// A line that is refused and runs later counts as one request, whatever it was refused for
// and however often; what a try has cost is its tenant's all the same.
func TestRetriedLineCountsOnce(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		tries := map[string]int{}
		o.answer = func(_ context.Context, r *exchange.Request) (sluice.Nano, *sluice.Error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			text := textOf(r.Body)
			tries[text]++
			switch {
			case tries[text] <= 2:
				return 0, &sluice.Error{Kind: sluice.KindRateLimited, Reason: sluice.RateLimited, Msg: "slower", RetryAfter: 2 * time.Second}
			case text == "t2" && tries[text] == 3: // a backend has billed it, and another was not to be had
				return 300, &sluice.Error{Kind: sluice.KindOverloaded, Reason: sluice.UpstreamLimited, Msg: "busy"}
			}
			return 1000, nil
		}
		c := o.start(jobs.Bounds{})
		j := o.until(o.batch(c, "acme", chatLines(2), time.Hour).ID, ended)
		synctest.Wait()
		if j.State != jobs.Completed || j.Counts.Succeeded != 2 || tries["t1"] != 3 || tries["t2"] != 4 {
			t.Fatalf("is %s with %+v after %v tries", j.State, j.Counts, tries)
		}
		if n, cost := o.charged("acme"); n != 3 || cost != 2300 {
			t.Errorf("charged %d for %d requests, want two lines and one try that was billed", cost, n)
		}
		if o.told != 3 {
			t.Errorf("%d requests are told as ended, want 3", o.told)
		}
		for claim, refused := range map[int64]bool{1: true, 2: true, 3: false} {
			es, err := o.db.Explain(t.Context(), ledger.Of("acme"), jobs.RequestOf(j.ID, 1, claim))
			o.must(err)
			if len(es) != 1 || es[0].Voided != refused || (es[0].Reason == sluice.RateLimited) != refused {
				t.Errorf("try %d is explained by %+v", claim, es)
			}
		}
		audited(o)
	})
}

// A result names the request that the ledger has, and what was told with it; a line that
// never ran names none.
func TestResultsNameWhatRan(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.head = exchange.Head{Dropped: "max_tokens=4", Cache: "miss", Tier: 1}
		o.answer = func(_ context.Context, r *exchange.Request) (sluice.Nano, *sluice.Error) {
			if textOf(r.Body) == "t2" {
				return 0, sluice.Invalid("messages", "are too rude")
			}
			return 1000, nil
		}
		o.took = 25 * time.Second // so that the third is ended, and most of the others never begin
		c := o.start(jobs.Bounds{Lines: 1})
		j := o.until(o.batch(c, "acme", chatLines(20), time.Minute).ID, ended)
		type line struct {
			ID       string
			CustomID string `json:"custom_id"`
			Sluice   *struct {
				Request sluice.RequestID `json:"request_id"`
				jobs.Told
			}
		}
		lines := map[string]line{}
		for s := range strings.Lines(o.content(c, "acme", j.Output) + o.content(c, "acme", j.Errors)) {
			var l line
			o.must(json.Unmarshal([]byte(s), &l))
			lines[l.CustomID] = l
		}
		if l := lines["c1"].Sluice; l == nil || l.Dropped != "max_tokens=4" || l.Cache != "miss" || l.Tier != 1 || l.Reason != "" {
			t.Errorf("c1 is told as %+v", l)
		}
		if l := lines["c2"].Sluice; l == nil || l.Reason != "invalid_request" {
			t.Errorf("c2 is told as %+v", l)
		}
		if l := lines["c3"]; l.Sluice == nil || l.ID != string(jobs.RequestOf(j.ID, 3, 1)) {
			t.Errorf("c3 was ended, and is %+v", l)
		}
		if l := lines["c20"]; l.Sluice != nil || !strings.HasPrefix(l.ID, "batch_line_") {
			t.Errorf("c20 never ran, and is %+v", l)
		}
		for id, l := range lines {
			if l.Sluice == nil {
				continue
			}
			if es, err := o.db.Explain(t.Context(), ledger.Of("acme"), l.Sluice.Request); err != nil || len(es) != 1 || string(l.Sluice.Request) != l.ID {
				t.Errorf("%s: %s is explained by %+v, %v", id, l.Sluice.Request, es, err)
			}
		}
		found, err := c.Unanswered(t.Context(), &j, 99)
		o.must(err)
		for _, r := range found {
			if fmt.Sprint("c", r.Line) != r.CustomID || (r.Request != "") != (lines[r.CustomID].Sluice != nil) {
				t.Errorf("without an answer: %+v", r)
			}
		}
	})
}

// A line whose caller may not call any more, or whose request cannot be one, is in the
// ledger though it is run nowhere.
func TestLinesThatAreNotRunAreRecorded(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.took = 10 * time.Second
		c := o.start(jobs.Bounds{})
		j := o.batch(c, "acme", chatLines(9), time.Hour)
		o.until(j.ID, func(j jobs.Job) bool { return j.Counts.Running > 0 })
		o.mu.Lock()
		o.revoked = &sluice.Error{Kind: sluice.KindUnauthenticated, Reason: sluice.KeyRevoked, Msg: "the API key has been revoked"}
		o.mu.Unlock()
		j = o.until(j.ID, ended)
		bad := outs(t, o.content(c, "acme", j.Errors))
		if len(bad) != 1 {
			t.Fatalf("%d lines are refused: %+v", len(bad), j.Counts)
		}
		es, err := o.db.Explain(t.Context(), ledger.Of("acme"), sluice.RequestID(bad["c9"].Response.RequestID))
		if err != nil || len(es) != 1 || es[0].Reason != sluice.KeyRevoked || es[0].Voided {
			t.Errorf("explained by %+v, %v", es, err)
		}
		if n, _ := o.charged("acme"); n != 9 || o.told != 9 {
			t.Errorf("%d requests in usage and %d told, want 9", n, o.told)
		}
	})
}
