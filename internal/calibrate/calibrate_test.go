package calibrate

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice"
	"sluice/internal/egress"
	"sluice/internal/egress/egresstest"
	"sluice/internal/fakellm"
	"sluice/internal/fleet"
	"sluice/test/bubble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// backend runs f beside a scripted provider with a hidden engine, on a network in
// memory, in a bubble.
func backend(t *testing.T, p fleet.Profile, front func(http.Handler) http.Handler, f func(t *testing.T, o Options)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		provider, err := fakellm.New(fakellm.Options{Models: []fakellm.Model{{Name: "m", Engine: &p, MaxEvent: 1, Context: 200_000, Ratio: 1130}}})
		if err != nil {
			t.Fatal(err)
		}
		var handler http.Handler = provider
		if front != nil {
			handler = front(provider)
		}
		var network egresstest.Net
		server := &http.Server{Handler: handler}
		served := make(chan error, 1)
		listener := network.Listen("engine:8000")
		go func() { served <- server.Serve(listener) }()
		transport := egress.New(egress.Options{Dial: network.Dial}).Transport(egress.TransportOptions{AllowPrivate: true})
		defer func() {
			transport.CloseIdleConnections()
			_ = server.Close()
			if err := <-served; !errors.Is(err, http.ErrServerClosed) {
				t.Error(err)
			}
			provider.Close()
		}()
		f(t, Options{Target: "http://engine:8000/v1", Model: "m", Transport: transport, Seed: 7})
	})
}

// near compares a fitted figure with the hidden one.
func near(t *testing.T, what string, got, want int64) {
	t.Helper()
	if off := got - want; off*10 > want || -off*10 > want {
		t.Errorf("%s: fitted %d, hidden %d: %+.1f %%", what, got, want, float64(off)*100/float64(want))
	}
}

// TestRecoversHiddenEngine finds what a backend does not tell, over HTTP, within a
// tenth: with an engine's metrics and without.
func TestRecoversHiddenEngine(t *testing.T) {
	if racing {
		t.Skip("a hundred thousand events are too many for the race detector; the other tests show it the same goroutines")
	}
	small := fleet.Profile{
		PrefillRate: 21_000, KVCapacity: 60_000, Slots: 72, ChunkTokens: 4096,
		StepBase: 11 * time.Millisecond, StepPerJob: 30 * time.Microsecond, StepPerToken: 120_000,
	}
	blind := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/metrics" {
				http.NotFound(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	large := fleet.Llama70BOn4H100()
	large.Slots = 64
	for _, tc := range []struct {
		name   string
		want   fleet.Profile
		front  func(http.Handler) http.Handler
		budget sluice.Tokens
	}{
		{"an engine with metrics", small, nil, 200_000},
		{"without", small, blind, 300_000}, // its memory has to be filled
		{"of several GPUs", large, nil, 200_000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			backend(t, tc.want, tc.front, func(t *testing.T, o Options) {
				o.Plan.Budget, o.Plan.MaxConcurrency = tc.budget, 100
				got, err := Run(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				p, want := got.Profile, tc.want
				near(t, "PrefillRate", p.PrefillRate, want.PrefillRate)
				near(t, "StepBase", int64(p.StepBase), int64(want.StepBase))
				near(t, "StepPerJob", int64(p.StepPerJob), int64(want.StepPerJob))
				near(t, "StepPerToken", p.StepPerToken, want.StepPerToken)
				near(t, "KVCapacity", int64(p.KVCapacity), int64(want.KVCapacity))
				near(t, "Slots", int64(p.Slots), int64(want.Slots))
				if got.Readings != (tc.front == nil) || got.Refused != 0 || got.Stopped != "" || got.Tokens > tc.budget*11/10 {
					t.Errorf("got %+v", got)
				}
				if t.Failed() {
					t.Logf("%+v", got)
				}
			})
		})
	}
}

// TestInterrupted keeps what was learned.
func TestInterrupted(t *testing.T) {
	backend(t, fleet.Llama8BOnH100(), nil, func(t *testing.T, o Options) {
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		var said bytes.Buffer
		o.Progress = &said
		got, err := Run(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		if got.Stopped != "interrupted" || got.Profile.PrefillRate == 0 || len(got.Quality.Missing) == 0 || !strings.Contains(said.String(), "round 3 of") {
			t.Errorf("got %+v, said %s", got, said.String())
		}
	})
}

// TestPlainBackend refuses the parameters that only engines know.
func TestPlainBackend(t *testing.T) {
	strict := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var b bytes.Buffer
			_, _ = b.ReadFrom(r.Body)
			if strings.Contains(b.String(), "ignore_eos") {
				http.Error(w, `{"error":{"message":"unknown parameter ignore_eos"}}`, http.StatusBadRequest)
				return
			}
			r = r.Clone(r.Context())
			r.Body = http.NoBody
			next.ServeHTTP(w, withBody(r, b.Bytes()))
		})
	}
	backend(t, fleet.Llama8BOnH100(), strict, func(t *testing.T, o Options) {
		o.Plan.Budget, o.Plan.MaxConcurrency = 40_000, 8
		got, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "PrefillRate", got.Profile.PrefillRate, 30_000)
		near(t, "StepBase", int64(got.Profile.StepBase), int64(7860*time.Microsecond))
	})
}

func TestRefusals(t *testing.T) {
	refuse := func(status int) func(http.Handler) http.Handler {
		return func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"error": "no\n such key"}`, status) })
		}
	}
	backend(t, fleet.Llama8BOnH100(), refuse(401), func(t *testing.T, o Options) {
		if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "answers 401") {
			t.Errorf("got %v", err)
		}
		o.Target = "engine"
		if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "http://HOST:PORT") {
			t.Errorf("got %v", err)
		}
		o.Target = "http://nobody:1"
		if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "does not answer") {
			t.Errorf("got %v", err)
		}
	})
	// A backend whose limit is used up on the way is left, with what it gave.
	limited := func(next http.Handler) http.Handler {
		n := 0
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n++; n > 12 && r.URL.Path != "/metrics" {
				http.Error(w, "slow down", http.StatusTooManyRequests)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	backend(t, fleet.Llama8BOnH100(), limited, func(t *testing.T, o Options) {
		got, err := Run(t.Context(), o)
		if err != nil || !strings.Contains(got.Stopped, "429: slow down") || got.Profile.PrefillRate == 0 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

func withBody(r *http.Request, body []byte) *http.Request {
	out, err := http.NewRequestWithContext(r.Context(), r.Method, r.URL.String(), bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	out.Header = r.Header
	return out
}

// TestSpreadOverEvents has events of several tokens and no running usage.
func TestSpreadOverEvents(t *testing.T) {
	stream := `data: {"choices":[{"delta":{"role":"assistant"}}]}

data: {"choices":[{"delta":{"content":"a b"}}]}

data: {"choices":[{"delta":{"content":"c d"}}]}

data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5}}

data: [DONE]

`
	var run fleet.Run
	if err := read(strings.NewReader(stream), &run); err != nil {
		t.Fatal(err)
	}
	if run.Input != 9 || len(run.Arrivals) != 2 || run.Arrivals[0].Tokens != sluice.Tokens(3) || run.Arrivals[1].Tokens != 5 {
		t.Errorf("got %+v", run)
	}
	for _, bad := range []string{"data: {\n\n", "data: {\"error\":{\"message\":\"x\"}}\n\n"} {
		if err := read(strings.NewReader(bad), &fleet.Run{}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
