package batch

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/jobs"
	"sluice/internal/wire"
)

// later takes a chat that is answered later and returns where its answer will be.
func (r *rig) later(text string) string {
	r.t.Helper()
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"` + text + `"}]}`)
	head, err := wire.Scan(wire.Chat, body)
	if err != nil {
		r.t.Fatal(err)
	}
	d, err := r.face.Defer(r.t.Context(), &exchange.Request{
		Principal: sluice.Principal{Tenant: "acme", Project: "web", Key: "k"}, Head: head, Body: body, Header: http.Header{"Prefer": {"respond-async"}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	if !strings.HasPrefix(d.Location, "/v1/sluice/answers/async_") || d.RetryAfter != pollAfter || !strings.Contains(string(d.Body), `"url":"`+d.Location+`"`) {
		r.t.Errorf("got %+v %s", d, d.Body)
	}
	return d.Location
}

// An answer that comes later is what it would have been, its status included.
func TestAnswerComesLater(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobs.Bounds{})
	for text, want := range map[string]struct {
		status int
		body   string
		header map[string]string
	}{
		"hi": {200, `{"id":"x","model":"m","usage":{"total":11}}`, map[string]string{
			"Sluice-Backend": "b1", "Sluice-Policy": "v1", "Sluice-Queue-Ms": "0", "Sluice-Dropped": "max_tokens=9", "X-Request-Id": "theirs", "Sluice-Reason": "",
		}},
		"fail": {400, "messages are wrong", map[string]string{"Sluice-Backend": "", "Sluice-Policy": "", "Sluice-Reason": "invalid_request"}},
	} {
		at := r.later(text)
		var g got
		r.until("it is answered", func() bool {
			g = r.do(acme, "GET", at, nil)
			return g.status != 202
		})
		if g.status != want.status || !strings.Contains(g.body, want.body) || !strings.HasPrefix(g.header.Get("Sluice-Answers"), "batch_req_") {
			t.Errorf("%s: got %+v", text, g)
		}
		for name, value := range want.header {
			if g.header.Get(name) != value {
				t.Errorf("%s: %s is %q, want %q", text, name, g.header.Get(name), value)
			}
		}
		if g := r.do(acme, "DELETE", at, nil); g.status != 200 || !strings.Contains(g.body, `"deleted":true`) {
			t.Errorf("%s: deleted %+v", text, g)
		}
		if g := r.do(acme, "GET", at, nil); g.status != 404 {
			t.Errorf("%s: after that %+v", text, g)
		}
	}
}

func TestAnswerIsCancelled(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobs.Bounds{CancelGrace: 100 * time.Millisecond})
	at := r.later("wait")
	if g := as[pending](t, r.do(acme, "GET", at, nil), 202); g.Object != "sluice.answer" || g.Location != at || g.Model != "m" {
		t.Errorf("got %+v", g)
	}
	if g := r.do(acme, "DELETE", at, nil); g.status != 200 || !strings.Contains(g.body, `"deleted":false`) {
		t.Errorf("got %+v", g)
	}
	var g got
	r.until("it has ended", func() bool {
		g = r.do(acme, "GET", at, nil)
		return g.status != 202
	})
	if g.status != 404 || !strings.Contains(g.body, "was cancelled before it was answered") {
		t.Errorf("got %+v", g)
	}
}

// What cannot be answered later is refused before anything is kept.
func TestLaterIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobs.Bounds{LineBytes: 2000})
	for _, tt := range []struct{ body, want string }{
		{`{"model":"none","messages":[]}`, "is no model here"},
		{`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("x", 3000) + `"}]}`, "the bound is 2000"},
	} {
		head, err := wire.Scan(wire.Chat, []byte(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.face.Defer(t.Context(), &exchange.Request{Principal: sluice.Principal{Tenant: "acme", Project: "web"}, Head: head, Body: []byte(tt.body)})
		if tt.want == "is no model here" && (sluice.AsError(err).Reason != sluice.ModelNotFound || strings.Contains(err.Error(), "model model")) {
			t.Errorf("got %v, want model_not_found, as at once", err)
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || sluice.AsError(err).Kind == sluice.KindInternal {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
	if page := as[list[any]](t, r.do(acme, "GET", "/v1/batches", nil), 200); len(page.Data) != 0 {
		t.Errorf("left over: %+v", page)
	}
}
