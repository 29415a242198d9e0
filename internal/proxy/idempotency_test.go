package proxy

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
	"sluice/internal/idempotency"
	"sluice/internal/idempotency/idempotencytest"
	"sluice/internal/wire"
)

// asked counts what reaches a backend.
type asked struct {
	http.Handler
	n atomic.Int64
}

func (c *asked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.n.Add(1)
	c.Handler.ServeHTTP(w, r)
}

// keyed is a gateway of one backend that obeys idempotency keys.
func keyed(h http.Handler, limits idempotency.Limits) (setup, *idempotencytest.Store) {
	store := &idempotencytest.Store{}
	s := one(h)
	s.keys = &idempotency.Options{Store: store, Limits: limits}
	return s, store
}

func withKey(a ask, key string) ask {
	a.header = maps.Clone(a.header)
	if a.header == nil {
		a.header = http.Header{}
	}
	a.header["Idempotency-Key"] = []string{key}
	return a
}

// sameAnswer wants a replay of first.
func sameAnswer(t *testing.T, first, g got) {
	t.Helper()
	if g.status != first.status || g.body != first.body || g.err != nil {
		t.Errorf("got %d %q (%v), want %d %q", g.status, g.body, g.err, first.status, first.body)
	}
	if g.header.Get("Idempotent-Replayed") != "true" || g.header.Get("Sluice-Original-Request") != first.header.Get("Sluice-Request-Id") ||
		g.header.Get("Sluice-Request-Id") == first.header.Get("Sluice-Request-Id") {
		t.Errorf("headers %v, want a replay of %s", g.header, first.header.Get("Sluice-Request-Id"))
	}
	for _, name := range []string{"Content-Type", "Sluice-Backend", "Sluice-Policy", "X-Request-Id"} {
		if g.header.Get(name) != first.header.Get(name) {
			t.Errorf("%s is %q, want %q", name, g.header.Get(name), first.header.Get(name))
		}
	}
}

// C11, and cC2 as far as it is a repeated request: one runs, another at the same time is
// 409, with another body 422, and later ones get the same answer for nothing.
func TestFault_C11_IdempotencyKey(t *testing.T) {
	for name, a := range map[string]ask{
		"whole":     {},
		"stream":    {stream: true},
		"Anthropic": {path: "/v1/messages", stream: true},
	} {
		t.Run(name, func(t *testing.T) {
			var h http.Handler = talk{before: 3 * time.Second, chunks: 4, usage: usage(10, 4)}
			if name == "Anthropic" {
				h = claude{start: `{"input_tokens":10,"output_tokens":1}`, texts: 4, gap: time.Second, delta: `{"output_tokens":4}`}
			}
			back := &asked{Handler: h}
			s, _ := keyed(back, idempotency.Limits{})
			if name == "Anthropic" {
				s.places[0].dialect = wire.Anthropic
			}
			inBubble(t, s, func(t *testing.T, r *rig) {
				a := withKey(a, "k1")
				var first got
				var wg sync.WaitGroup
				wg.Go(func() { first = r.do(a) })
				time.Sleep(2 * time.Second)
				busy := r.do(a)
				if busy.status != http.StatusConflict || busy.header.Get("Sluice-Reason") != "idempotency_in_flight" || busy.header.Get("Retry-After") != "2" {
					t.Errorf("in flight: got %d %v %s", busy.status, busy.header, busy.body)
				}
				r.want(sluice.Rejected, sluice.IdempotencyInFlight, 409)
				other := a
				other.max = 7
				if g := r.do(other); g.status != http.StatusUnprocessableEntity || g.header.Get("Sluice-Reason") != "idempotency_mismatch" || g.header.Get("Retry-After") != "" {
					t.Errorf("another body: got %d %v %s", g.status, g.header, g.body)
				}
				r.want(sluice.Rejected, sluice.IdempotencyMismatch, 422)
				wg.Wait()
				if first.status != 200 || first.header.Get("Idempotent-Replayed") != "" {
					t.Fatalf("got %d %v %s", first.status, first.header, first.body)
				}
				billed := r.last()
				if billed.Cost == 0 {
					t.Error("the first costs nothing")
				}
				for range 3 {
					g := r.do(a)
					sameAnswer(t, first, g)
					free := r.want(sluice.Completed, sluice.ReasonNone, 200)
					entries := r.journal.of(free.Final.Request)
					if len(entries) != 1 || entries[0].Attempt != 0 || entries[0].Cost != 0 || entries[0].CostHigh != 0 || entries[0].Usage != (sluice.Usage{}) ||
						!strings.Contains(string(entries[0].Detail), `"replayed":"`+string(billed.Final.Request)+`"`) {
						t.Errorf("a replay is recorded as %+v %s", entries, entries[0].Detail)
					}
				}
				if g := r.do(other); g.status != http.StatusUnprocessableEntity {
					t.Errorf("another body, afterwards: got %d", g.status)
				}
				if n := back.n.Load(); n != 1 {
					t.Errorf("%d calls upstream, want 1", n)
				}
				// After its time the key is free, with any body.
				time.Sleep(idempotency.DefaultKeep)
				if g := r.do(other); g.status != 200 || g.header.Get("Idempotent-Replayed") != "" {
					t.Errorf("after a day: got %d %v", g.status, g.header)
				}
			})
		})
	}
}

// Only what came whole is kept, and refusals that are the client's own mistake.
func TestIdempotencyKeepsWhatIsWorthIt(t *testing.T) {
	mistake := `{"error":{"message":"bad","type":"invalid_request_error","param":null,"code":null}}`
	for _, tc := range []struct {
		name string
		h    http.Handler
		a    ask
		kept bool
	}{
		{"500", answers(500, mistake), ask{}, false},
		{"429", answers(429, mistake), ask{}, false},
		{"529", answers(529, mistake), ask{}, false},
		{"401", answers(401, mistake), ask{}, false},
		{"400", answers(400, mistake), ask{}, true},
		{"400 of a stream", answers(400, mistake), ask{stream: true}, true},
		{"422", answers(422, mistake), ask{}, true},
		{"cut", talk{chunks: 3, end: "cut"}, ask{stream: true}, false},
		{"error in the stream", talk{chunks: 3, end: "error"}, ask{stream: true}, false},
		{"whole stream", talk{chunks: 3, usage: usage(9, 3)}, ask{stream: true}, true},
		{"not JSON", answers(200, "<html>"), ask{}, false},
		{"refused here", talk{}, ask{header: http.Header{"Sluice-Class": {"interactive"}}}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, store := keyed(tc.h, idempotency.Limits{})
			s.policy.Class = sluice.Standard
			inBubble(t, s, func(t *testing.T, r *rig) {
				first := r.do(withKey(tc.a, "stainless-node-retry-1"))
				synctest.Wait()
				all, done := store.Rows()
				if want := map[bool]int{true: 1}[tc.kept]; done != want || all != done {
					t.Errorf("%d keys, %d answers, want %d of each, after %d %s", all, done, want, first.status, first.body)
				}
				time.Sleep(time.Hour) // breakers close
				g := r.do(withKey(tc.a, "stainless-node-retry-1"))
				if tc.kept {
					sameAnswer(t, first, g)
					if g.header.Get("Sluice-Reason") != first.header.Get("Sluice-Reason") {
						t.Errorf("reason %q, want %q", g.header.Get("Sluice-Reason"), first.header.Get("Sluice-Reason"))
					}
				} else if g.header.Get("Idempotent-Replayed") != "" {
					t.Errorf("replayed %d %s", g.status, g.body)
				}
			})
		})
	}
}

// A library's retry of a request whose first try failed runs again, under the same key.
func TestIdempotencyOfALibrarysRetry(t *testing.T) {
	var tries atomic.Int64
	back := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tries.Add(1) == 1 {
			answers(500, `{"error":{"message":"boom","type":"server_error","param":null,"code":null}}`).ServeHTTP(w, r)
			return
		}
		talk{chunks: 2, usage: usage(9, 2)}.ServeHTTP(w, r)
	})
	s, _ := keyed(back, idempotency.Limits{})
	inBubble(t, s, func(t *testing.T, r *rig) {
		a := withKey(ask{}, "stainless-node-retry-2f1c")
		if g := r.do(a); g.status != http.StatusBadGateway && g.status != http.StatusServiceUnavailable {
			t.Fatalf("got %d %s", g.status, g.body)
		}
		time.Sleep(time.Minute)
		second := r.do(a)
		if second.status != 200 || second.header.Get("Idempotent-Replayed") != "" {
			t.Fatalf("the retry got %d %v", second.status, second.header)
		}
		sameAnswer(t, second, r.do(a))
	})
}

// A client that leaves before the end frees its key; one that leaves with the answer on
// its way finds it.
func TestIdempotencyOfAClientThatLeft(t *testing.T) {
	back := &asked{Handler: talk{before: time.Second, chunks: 3, gap: time.Second, usage: usage(9, 3)}}
	s, store := keyed(back, idempotency.Limits{})
	inBubble(t, s, func(t *testing.T, r *rig) {
		for _, stream := range []bool{false, true} {
			a := withKey(ask{stream: stream}, map[bool]string{false: "whole", true: "stream"}[stream])
			var leave context.CancelFunc
			a.ctx, leave = context.WithTimeout(t.Context(), map[bool]time.Duration{false: 500 * time.Millisecond, true: 2500 * time.Millisecond}[stream])
			r.do(a)
			leave()
			time.Sleep(100 * time.Millisecond)
			if all, _ := store.Rows(); all != 0 {
				t.Errorf("stream %v: the key is not free", stream)
			}
			a.ctx = nil
			if g := r.do(a); g.status != 200 || g.header.Get("Idempotent-Replayed") != "" {
				t.Errorf("stream %v: then %d %v", stream, g.status, g.header)
			}
			store.Fail(nil)
			time.Sleep(2 * idempotency.DefaultKeep)
		}
	})
}

// What is too large, or finds no room, is delivered and not kept, and says so.
func TestIdempotencyBounds(t *testing.T) {
	for _, tc := range []struct {
		name   string
		limits idempotency.Limits
		a      ask
		header bool // else a comment in the stream
	}{
		{"whole", idempotency.Limits{MaxBytes: 100}, ask{}, true},
		{"stream", idempotency.Limits{MaxBytes: 400}, ask{stream: true}, false},
		{"first event", idempotency.Limits{MaxBytes: 10}, ask{stream: true}, true},
		{"tenant", idempotency.Limits{PerTenant: 600}, ask{}, true},
		{"all", idempotency.Limits{Total: 600}, ask{}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			back := &asked{Handler: talk{chunks: 10, gap: time.Millisecond, usage: usage(9, 10)}}
			s, store := keyed(back, tc.limits)
			inBubble(t, s, func(t *testing.T, r *rig) {
				plain := r.do(tc.a)
				g := r.do(withKey(tc.a, "k"))
				if told := g.header.Get("Sluice-Dropped") == "idempotency-key"; told != tc.header {
					t.Errorf("sluice-dropped is %q", g.header.Get("Sluice-Dropped"))
				}
				const comment = `: sluice {"dropped":"idempotency-key"}` + "\n\n"
				if told := strings.Contains(g.body, comment); told == tc.header {
					t.Errorf("the stream is %q", g.body)
				}
				if strings.Replace(g.body, comment, "", 1) != plain.body {
					t.Errorf("got %q, want %q", g.body, plain.body)
				}
				if all, _ := store.Rows(); all != 0 {
					t.Errorf("%d keys are held", all)
				}
				if g := r.do(withKey(tc.a, "k")); g.status != 200 || back.n.Load() != 3 {
					t.Errorf("the next got %d after %d calls", g.status, back.n.Load())
				}
			})
		})
	}
}

// Without its store a key cannot be kept: 503, but for keys that a library made up, which
// run and are told.
func TestIdempotencyWithoutAStore(t *testing.T) {
	s, store := keyed(talk{chunks: 2, usage: usage(9, 2)}, idempotency.Limits{})
	inBubble(t, s, func(t *testing.T, r *rig) {
		store.Fail(errors.New("down"))
		if g := r.do(withKey(ask{}, "order-17")); g.status != http.StatusServiceUnavailable || g.header.Get("Sluice-Reason") != "not_ready" || g.header.Get("Retry-After") != "1" {
			t.Errorf("got %d %v %s", g.status, g.header, g.body)
		}
		for _, a := range []ask{{}, {stream: true}} {
			if g := r.do(withKey(a, "stainless-go-retry-1")); g.status != 200 || g.header.Get("Sluice-Dropped") != "idempotency-key" {
				t.Errorf("got %d %v %s", g.status, g.header, g.body)
			}
		}
		if g := r.do(ask{}); g.status != 200 || g.header.Get("Sluice-Dropped") != "" {
			t.Errorf("without a key: got %d %v", g.status, g.header)
		}
		store.Fail(nil)
		calls := store.Calls()
		r.do(ask{})
		r.do(ask{stream: true})
		if n := store.Calls() - calls; n != 0 {
			t.Errorf("%d calls of the store for requests without a key", n)
		}
	})
}

// A key is its tenant's, for one operation, and forms are alike whatever their boundary.
func TestIdempotencyScope(t *testing.T) {
	back := &asked{Handler: talk{chunks: 2, usage: usage(9, 2)}}
	s, _ := keyed(back, idempotency.Limits{})
	tenant := sluice.TenantID("acme")
	s.options = func(o *Options) {
		identify := o.Identify
		o.Identify = func(c string) (sluice.Principal, error) {
			p, err := identify(c)
			p.Tenant = tenant
			return p, err
		}
	}
	inBubble(t, s, func(t *testing.T, r *rig) {
		first := r.do(withKey(ask{}, "k"))
		sameAnswer(t, first, r.do(withKey(ask{}, "k")))
		if g := r.do(withKey(ask{path: "/v1/completions", body: `{"model":"m","prompt":"x","max_tokens":3}`}, "k")); g.status != 200 || g.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("another operation: got %d %v %s", g.status, g.header, g.body)
		}
		tenant = "globex"
		if g := r.do(withKey(ask{}, "k")); g.status != 200 || g.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("another tenant: got %d %v", g.status, g.header)
		}
		form := func(boundary, model string) ask {
			part := func(name, value string) string {
				return "--" + boundary + "\r\nContent-Disposition: form-data; name=\"" + name + "\"" + value
			}
			return ask{
				path: "/v1/audio/transcriptions", header: http.Header{"Content-Type": {"multipart/form-data; boundary=" + boundary}},
				body: part("model", "\r\n\r\n"+model+"\r\n") + part("file", "; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\nRIFF\r\n") + "--" + boundary + "--\r\n",
			}
		}
		one := r.do(withKey(form("xx1", "m"), "f"))
		sameAnswer(t, one, r.do(withKey(form("yyy2", "m"), "f")))
		if g := r.do(withKey(form("yyy2", "m2"), "f")); g.status == 200 {
			t.Errorf("another model of a form: got %d", g.status)
		}
	})
}

// A handler that panics frees its key.
func TestIdempotencyOfAPanic(t *testing.T) {
	s, store := keyed(talk{chunks: 1}, idempotency.Limits{})
	s.keys.Told = func(e idempotency.Event) {
		if e == idempotency.Stored {
			panic("told")
		}
	}
	inBubble(t, s, func(t *testing.T, r *rig) {
		r.do(withKey(ask{stream: true}, "k"))
		if all, done := store.Rows(); all != done {
			t.Errorf("%d keys, %d answers", all, done)
		}
	})
}
