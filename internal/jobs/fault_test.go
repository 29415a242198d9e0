package jobs_test

import (
	"context"
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

// A worker that is paused until its lease is gone, and then goes on, posts nothing: there
// is one result, it is billed once, and what the second attempt cost is to be seen.
func TestFault_L4_a_line_that_two_workers_answer(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.took = 5 * time.Second
		b := jobs.Bounds{Lines: 1, Lease: 10 * time.Second}
		paused := o.start(b)
		j := o.batch(paused, "acme", chatLines(1), time.Hour)
		o.until(j.ID, func(j jobs.Job) bool { return j.Counts.Running == 1 })
		gate := make(chan struct{})
		paused.see.paused.Store(&gate) // it answers, and cannot say so
		o.start(b)
		j = o.until(j.ID, ended)
		if j.State != jobs.Completed || j.Counts.Succeeded != 1 || o.ran["t1"] != 2 {
			t.Fatalf("is %s with %+v, run %d times", j.State, j.Counts, o.ran["t1"])
		}
		paused.see.paused.Store(nil)
		close(gate)
		synctest.Wait()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		text := o.content(paused, "acme", j.Output)
		if got := outs(t, text); len(got) != 1 || strings.Count(text, "\n") != 1 || got["c1"].Response.RequestID != string(jobs.RequestOf(j.ID, 1, 2)) {
			t.Errorf("results\n%s", text)
		}
		if n, cost := o.charged("acme"); n != 1 || cost != 1000 {
			t.Errorf("charged %d for %d requests", cost, n)
		}
		for claim, void := range map[int64]bool{1: true, 2: false} {
			found, err := o.db.Explain(t.Context(), ledger.Of("acme"), jobs.RequestOf(j.ID, 1, claim))
			o.must(err)
			if len(found) != 1 || found[0].Voided != void || found[0].Cost != 1000 {
				t.Errorf("the entry of claim %d is %+v", claim, found)
			}
		}
		audited(o)
	})
}

// audited checks that all sums are those of the entries.
func audited(o *office) {
	o.t.Helper()
	a, err := o.db.Verify(o.t.Context())
	o.must(err)
	if !a.OK() {
		o.t.Errorf("sums differ: %q", a.Differences)
	}
}

// cC3: of 100 lines 10 fail, two workers share them, and one dies in the middle: 90 are
// billed, once each.
func TestCase_cC3_two_workers_and_a_crash(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.answer = func(_ context.Context, r *exchange.Request) (sluice.Nano, *sluice.Error) {
			if strings.HasSuffix(textOf(r.Body), "0") {
				return 0, &sluice.Error{Kind: sluice.KindUpstream, Reason: sluice.UpstreamError, Msg: "the backend failed"}
			}
			return 1000, nil
		}
		b := jobs.Bounds{Lines: 5, Lease: 10 * time.Second}
		first := o.start(b)
		j := o.batch(first, "acme", chatLines(100), time.Hour)
		second := o.start(b)
		o.until(j.ID, func(j jobs.Job) bool { return j.Counts.Succeeded >= 30 })
		o.kill(first)
		j = o.until(j.ID, ended)
		if want := (jobs.Counts{Total: 100, Succeeded: 90, Failed: 10}); j.State != jobs.Completed || j.Counts != want || j.Cost != 90_000 {
			t.Errorf("is %s with %+v at %d", j.State, j.Counts, j.Cost)
		}
		again := 0
		for _, n := range o.ran {
			again += n - 1
		}
		if again == 0 {
			t.Error("no line ran twice: nothing was in flight when the worker died")
		}
		if n, cost := o.charged("acme"); n != 100 || cost != 90_000 {
			t.Errorf("charged %d for %d requests", cost, n)
		}
		good, bad := outs(t, o.content(second, "acme", j.Output)), outs(t, o.content(second, "acme", j.Errors))
		if len(good) != 90 || len(bad) != 10 {
			t.Errorf("%d answers, %d errors", len(good), len(bad))
		}
		audited(o)
	})
}
