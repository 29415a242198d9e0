package batch

import (
	"strings"
	"testing"

	"sluice/internal/jobs"
)

// What a batch waits for is named in each dialect, and of a single request too; the time at
// which it is expected is no sooner.
func TestWhatIsWaitedForIsNamed(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobs.Bounds{})
	chats := as[batch](t, r.do(acme, "POST", "/v1/batches", create(r.upload(acme, chat("a", "spend")).ID, "")), 200)
	messages := as[messageBatch](t, r.do(acme, "POST", "/v1/messages/batches", strings.NewReader(`{"requests":[{"custom_id":"a","params":{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"spend"}]}}]}`)), 200)
	answer := r.later("spend")
	for _, look := range []func() (*waits, *int64){
		func() (*waits, *int64) {
			b := as[batch](t, r.do(acme, "GET", "/v1/batches/"+string(chats.ID), nil), 200)
			return b.Sluice.Waits, b.Sluice.Finish
		},
		func() (*waits, *int64) {
			b := as[messageBatch](t, r.do(acme, "GET", "/v1/messages/batches/"+string(messages.ID), nil), 200)
			return b.Sluice.Waits, b.Sluice.Finish
		},
		func() (*waits, *int64) {
			p := as[pending](t, r.do(acme, "GET", answer, nil), 202)
			return p.Waits, p.Finish
		},
	} {
		var w *waits
		var expected *int64
		r.until("it says what it waits for", func() bool {
			w, expected = look()
			return w != nil
		})
		if text := w.Reason.String() + " " + w.Scope.String() + " " + w.ID + " " + w.Dimension.String() + " " + w.Window.String(); text != "budget_spent key k spend day" || w.Resets != resets.Unix() {
			t.Errorf("waits for %s until %d", text, w.Resets)
		}
		if expected != nil && *expected < resets.Unix() {
			t.Errorf("expected at %d, before %d", *expected, resets.Unix())
		}
	}
}

// A tenant that has as many batches as it may is not told a time, since none is known.
func TestFullTenantIsToldNoTime(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobs.Bounds{TenantJobs: 1})
	r.later("wait")
	g := r.do(acme, "POST", "/v1/batches", create(r.upload(acme, chat("a", "hi")).ID, ""))
	if g.status != 429 || g.header.Get("Retry-After") != "" || g.header.Get("Retry-After-Ms") != "" || g.header.Get("X-Should-Retry") != "false" || strings.Contains(g.body, "expected in") {
		t.Errorf("got %+v", g)
	}
	if !strings.Contains(g.body, "wait until one has ended, or cancel one") {
		t.Errorf("it says %s", g.body)
	}
}
