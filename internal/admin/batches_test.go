package admin

import (
	"context"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/jobs"
)

// fakeBatches is one batch, which is half done.
func fakeBatches(cancelled *[]string) Batches {
	at := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	j := jobs.Job{
		ID: "batch_1", Kind: jobs.OpenAIBatch, State: jobs.InProgress, Caller: sluice.Principal{Tenant: "acme", Project: "web", Key: "k1"}, Endpoint: "/v1/chat/completions", Model: "m",
		Input: "file-1", Created: at, Deadline: at.Add(24 * time.Hour), Started: at, Counts: jobs.Counts{Total: 73, Waiting: 1, Running: 1, Succeeded: 1, Failed: 70},
		Usage: sluice.Usage{Input: 10, Output: 4}, Cost: 2 * sluice.Dollar, Metadata: map[string]string{"k": "v"}, Terms: jobs.Terms{Task: "nightly"},
	}
	wrong := j
	wrong.ID, wrong.State, wrong.Ended = "batch_2", jobs.Failed, at
	wrong.Problems, wrong.Dropped = []jobs.Problem{{Line: 3, Code: "invalid_url", Param: "url", Message: "url is wrong"}}, 7
	return Batches{
		List: func(_ context.Context, q jobs.JobQuery) ([]jobs.Job, bool, error) {
			if q.Tenant != "" && q.Tenant != "acme" || !q.Any && q.Kind != jobs.OpenAIBatch {
				return nil, false, nil
			}
			return []jobs.Job{j}, q.Limit == 1, nil
		},
		Find: func(_ context.Context, id jobs.JobID) (jobs.Job, error) {
			switch id {
			case j.ID:
				return j, nil
			case wrong.ID:
				return wrong, nil
			}
			return jobs.Job{}, &sluice.Error{Kind: sluice.KindNotFound, Reason: sluice.NotFound, Msg: "none"}
		},
		Cancel: func(_ context.Context, t sluice.TenantID, id jobs.JobID) (jobs.Job, error) {
			*cancelled = append(*cancelled, string(t)+" "+string(id))
			c := j
			c.State = jobs.Cancelling
			return c, nil
		},
		Progress: func(*jobs.Job) jobs.Progress {
			return jobs.Progress{Done: .5, Rate: 2, Finish: at.Add(25 * time.Hour), Urgency: jobs.Pressed, Late: true, Held: &jobs.Hold{
				Since: at, Until: at.Add(10 * time.Hour), Reason: sluice.BudgetSpent, Scope: sluice.ScopeTenant, ID: "acme", Dimension: sluice.Spend, Window: sluice.PerDay,
			}}
		},
		Unanswered: func(_ context.Context, _ *jobs.Job, limit int) ([]jobs.Result, error) {
			all := make([]jobs.Result, 60)
			for i := range all {
				all[i] = jobs.Result{Line: i + 2, CustomID: "b", State: jobs.LineFailed, Status: 400, Request: "batch_req_1", Told: jobs.Told{Reason: "invalid_request"}}
			}
			return all[:min(limit, len(all))], nil
		},
	}
}

func TestBatches(t *testing.T) {
	var cancelled []string
	b := newBench(t, func(o *Options) { o.Batches = fakeBatches(&cancelled) })
	var list struct {
		Batches []BatchRow `json:"batches"`
		More    bool       `json:"has_more"`
	}
	b.do("GET", "/admin/v1/batches?limit=1&tenant=acme&kind=batch", "", 200, &list)
	if len(list.Batches) != 1 || !list.More {
		t.Fatalf("got %+v", list)
	}
	if r := list.Batches[0]; r.State != "in_progress" || r.Progress != .5 || r.Urgency != "pressed" || !r.Late || r.Expected == nil || r.Lines.Failed != 70 || r.Cost != "$2.00" && r.Cost != "$2" || r.Ended != nil {
		t.Errorf("got %+v", r)
	}
	if w := list.Batches[0].Waits; w == nil || w.Scope != "tenant" || w.ID != "acme" || w.Dimension != "spend" || w.Window != "day" || w.Reason != "budget_spent" || w.Resets.Hour() != 18 {
		t.Errorf("waits for %+v", w)
	}
	if text := b.do("GET", "/admin/v1/batches?kind=async", "", 200, nil); !strings.Contains(text, `"batches":[]`) {
		t.Errorf("another kind: %s", text)
	}
	b.do("GET", "/admin/v1/batches?kind=other", "", 422, nil)

	var d BatchDetail
	b.do("GET", "/admin/v1/batches/batch_1", "", 200, &d)
	if d.Task != "nightly" || d.Metadata["k"] != "v" || len(d.Unanswered) != 20 || d.Untold != 50 || d.Unanswered[0] != (BatchLine{Line: 2, CustomID: "b", State: "failed", Status: 400, Request: "batch_req_1", Reason: "invalid_request"}) {
		t.Errorf("got %+v", d)
	}
	d = BatchDetail{}
	if b.do("GET", "/admin/v1/batches/batch_1?lines=1000", "", 200, &d); len(d.Unanswered) != 60 || d.Untold != 10 {
		t.Errorf("%d lines are told, and %d are not", len(d.Unanswered), d.Untold)
	}
	b.do("GET", "/admin/v1/batches/batch_1?lines=1001", "", 422, nil)
	d = BatchDetail{}
	b.do("GET", "/admin/v1/batches/batch_2", "", 200, &d)
	if len(d.Problems) != 1 || d.Problems[0].Line != 3 || d.Unsaid != 7 || d.Progress != 1 || d.Expected != nil {
		t.Errorf("got %+v", d)
	}
	b.do("GET", "/admin/v1/batches/batch_9", "", 404, nil)
	b.do("GET", "/admin/v1/batches/batch_1?tenant=other", "", 404, nil)

	b.do("POST", "/admin/v1/batches/batch_1/cancel?dry_run=true", "", 200, nil)
	b.do("POST", "/admin/v1/batches/batch_1/cancel?tenant=other", "", 404, nil)
	if len(cancelled) != 0 {
		t.Errorf("cancelled %q", cancelled)
	}
	b.do("POST", "/admin/v1/batches/batch_1/cancel", "", 200, &d)
	if len(cancelled) != 1 || cancelled[0] != "acme batch_1" || d.State != "cancelling" || !strings.Contains(b.log.String(), "batch cancelled") {
		t.Errorf("cancelled %q as %s: %s", cancelled, d.State, b.log.String())
	}
}
