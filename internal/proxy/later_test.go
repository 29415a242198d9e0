package proxy

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/wire"
)

// A client that prefers it has its answer later, where there can be one later; where not,
// it has it at once and is told.
func TestRespondAsync(t *testing.T) {
	for _, tt := range []struct {
		name    string
		prefer  string
		ask     ask
		refuse  error
		status  int
		taken   bool
		dropped string
		run     sluice.RunID
		wish    exchange.Wish
		again   sluice.RequestID
	}{
		{name: "taken", prefer: "respond-async", status: 202, taken: true},
		{name: "among others, in another case", prefer: "wait=10; foo, Respond-Async", status: 202, taken: true},
		{name: "in the other dialect", prefer: "respond-async", ask: ask{path: "/v1/messages"}, status: 202, taken: true},
		{name: "what has no effect then is told", prefer: "respond-async", ask: ask{header: http.Header{"Sluice-Max-Wait": {"1s"}}}, status: 202, taken: true, dropped: "sluice-max-wait"},
		{name: "a class has none", prefer: "respond-async", ask: ask{header: http.Header{"Sluice-Class": {"batch"}}}, status: 202, taken: true, dropped: "sluice-class"},
		{name: "a run and a wish go with it", prefer: "respond-async", ask: ask{header: http.Header{"Sluice-Run": {"r7"}, "Sluice-Cache": {"bypass"}}}, status: 202, taken: true, run: "r7", wish: "bypass"},
		{name: "an idempotency key has an effect", prefer: "respond-async", ask: ask{header: http.Header{"Idempotency-Key": {"k"}}}, status: 202, taken: true, again: "req_before"},
		{name: "another preference", prefer: "return=minimal", status: 200},
		{name: "a stream", prefer: "respond-async", ask: ask{stream: true}, status: 200, dropped: "prefer"},
		{name: "bounds of a run", prefer: "respond-async", ask: ask{header: http.Header{"Sluice-Run": {"r"}, "Sluice-Run-Limits": {"steps=1"}}}, status: 400},
		{name: "refused", prefer: "respond-async", refuse: &sluice.Error{Kind: sluice.KindRateLimited, Reason: sluice.RateLimited, Msg: "too many"}, status: 429, taken: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got *exchange.Request
			inBubble(t, setup{
				places: []place{{handler: talk{chunks: 1, usage: usage(9, 1)}}, {handler: claude{}, dialect: wire.Anthropic}},
				options: func(o *Options) {
					o.Later = func(_ context.Context, r *exchange.Request) (Deferred, error) {
						got = r
						return Deferred{Location: "/v1/sluice/answers/async_1", RetryAfter: 2, Body: []byte(`{"object":"sluice.answer"}`), Replayed: tt.again}, tt.refuse
					}
				},
			}, func(t *testing.T, r *rig) {
				a := tt.ask
				if a.header == nil {
					a.header = http.Header{}
				}
				a.header.Set("Prefer", tt.prefer)
				g := r.do(a)
				if g.status != tt.status || (got != nil) != tt.taken {
					t.Fatalf("got %d %s, taken %v; want %d, %v", g.status, g.body, got != nil, tt.status, tt.taken)
				}
				if got != nil && (tt.run != "" && got.Principal.Run != tt.run || got.Cache != tt.wish) {
					t.Errorf("taken with the run %q and the wish %q", got.Principal.Run, got.Cache)
				}
				if d := g.header.Get("Sluice-Dropped"); d != tt.dropped {
					t.Errorf("dropped %q, want %q", d, tt.dropped)
				}
				if tt.status == 202 && (g.header.Get("Location") != "/v1/sluice/answers/async_1" || g.header.Get("Preference-Applied") != "respond-async" || g.header.Get("Retry-After") != "2" || !strings.Contains(g.body, "sluice.answer")) {
					t.Errorf("got %v %s", g.header, g.body)
				}
				if g.header.Get("Sluice-Original-Request") != string(tt.again) || (g.header.Get("Idempotent-Replayed") == "true") != (tt.again != "") {
					t.Errorf("told %v of what %q has made", g.header, tt.again)
				}
				if synctest.Wait(); tt.taken && r.last().Final.Operation != "answers" {
					t.Errorf("recorded as %q", r.last().Final.Operation)
				}
			})
		})
	}
}
