package fakellm

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/fleet"
	"sluice/test/bubble"
)

// clocked is a response writer that remembers when it was written to.
type clocked struct {
	*httptest.ResponseRecorder
	at []time.Duration
	t0 time.Time
}

func (c *clocked) Write(p []byte) (int, error) {
	c.at = append(c.at, time.Since(c.t0))
	return c.ResponseRecorder.Write(p)
}

func call(ctx context.Context, s *Server, body string) *clocked {
	w := &clocked{ResponseRecorder: httptest.NewRecorder(), t0: time.Now()}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
	s.ServeHTTP(w, r)
	return w
}

func timed(t *testing.T, p fleet.Profile) *Server {
	t.Helper()
	s, err := New(Options{Models: []Model{{Name: "m", Engine: &p, MaxEvent: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Answers come at the fleet's pace, on the bubble's clock.
func TestPaceIsTheFleets(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := timed(t, fleet.Profile{PrefillRate: 100, ChunkTokens: 1000, StepBase: 10 * time.Millisecond})
		got := call(t.Context(), s, chat("m", "word word", `,"stream":true,"max_tokens":5`+""))
		e := s.Account(Filter{}).Served[0]
		first := time.Duration(e.Input) * 10 * time.Millisecond // 100 tokens/s
		if got.at[0] != first {
			t.Errorf("the first byte comes after %s, want %s", got.at[0], first)
		}
		if want := first + 40*time.Millisecond; got.at[len(got.at)-1] != want {
			t.Errorf("the last byte comes after %s, want %s", got.at[len(got.at)-1], want)
		}
	})
}

func TestGapIsExact(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := timed(t, fleet.Llama8BOnH100())
		got := call(t.Context(), s, chat("m!gap=1.2s!tokens=5", "x", `,"stream":true`))
		for i := range 5 {
			if want := time.Duration(i+1) * 1200 * time.Millisecond; got.at[i+1] != want {
				t.Errorf("event %d comes after %s, want %s", i, got.at[i+1], want)
			}
		}
	})
}

// One slot: the second request waits for the first; a cancel makes room at once.
func TestQueueAndCancel(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := timed(t, fleet.Profile{PrefillRate: 1_000_000, StepBase: 10 * time.Millisecond, Slots: 1, Queue: 1})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { call(ctx, s, chat("m!tokens=1000", "x", `,"stream":true`)) })
		synctest.Wait()
		var second *clocked
		wg.Go(func() { second = call(t.Context(), s, chat("m!tokens=2", "x", "")) })
		synctest.Wait()
		if l := s.Load("m"); l.Running != 1 || l.Waiting != 1 {
			t.Errorf("load %+v", l)
		}
		if third := call(t.Context(), s, chat("m", "x", "")); third.Code != http.StatusServiceUnavailable {
			t.Errorf("got %d beyond the queue, want 503", third.Code)
		}
		time.Sleep(505 * time.Millisecond)
		cancel()
		wg.Wait()
		if got := second.at[0]; got < 505*time.Millisecond || got > 530*time.Millisecond {
			t.Errorf("the second answer comes after %s", got)
		}
		a := s.Account(Filter{End: EndCancelled})
		if len(a.Served) != 1 || a.Served[0].Output < 48 || a.Served[0].Output > 51 || a.Served[0].Output < a.Served[0].Sent {
			t.Errorf("book: %+v", a.Served)
		}
	})
}

func TestHostedRatesOnTheWire(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, err := New(Options{Models: []Model{{Name: "h", Hosted: &fleet.Service{PrefillRate: 1000, RequestsPerMinute: 2, TokensPerMinute: 10_000}}}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for i := range 2 {
			got := call(t.Context(), s, chat("h!tokens=5", "x", ""))
			if want := []string{"1", "0"}[i]; got.Header().Get("x-ratelimit-remaining-requests") != want {
				t.Errorf("remaining %q, want %s", got.Header().Get("x-ratelimit-remaining-requests"), want)
			}
		}
		got := call(t.Context(), s, chat("h!tokens=5", "x", ""))
		if got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") != "30" {
			t.Errorf("got %d, Retry-After %q, want 429 and 30", got.Code, got.Header().Get("Retry-After"))
		}
	})
}

// A model that runs on bills a cancelled request in full.
func TestRunsOn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := fleet.Llama8BOnH100()
		s, err := New(Options{Models: []Model{{Name: "m", Engine: &p, RunsOn: true}}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		call(ctx, s, chat("m!tokens=1000", "x", ""))
		if e := s.Account(Filter{}).Served[0]; e.End != EndCancelled || e.Output != 1000 {
			t.Errorf("book: %+v", e)
		}
	})
}

// A server that closes tears what waits for its clock; it does not answer it
// in a hurry.
func TestCloseTears(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := timed(t, fleet.Llama8BOnH100())
		var wg sync.WaitGroup
		wg.Go(func() {
			defer func() {
				if recover() != http.ErrAbortHandler {
					t.Error("the connection is not aborted")
				}
			}()
			call(t.Context(), s, chat("m!tokens=1000", "x", `,"stream":true`))
		})
		time.Sleep(time.Second)
		s.Close()
		wg.Wait()
		if e := s.Account(Filter{}).Served[0]; e.End != EndFailed || e.Output == 0 || e.Output >= 1000 {
			t.Errorf("book: %+v", e)
		}
	})
}

// After any mix of ends the machine is empty and the book adds up.
func TestNothingIsLeftBehind(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := fleet.Llama8BOnH100()
		p.Slots, p.KVCapacity = 8, 4000
		s := timed(t, p)
		var wg sync.WaitGroup
		const n = 200
		for i := range n {
			faults := []string{"", "!die-after=2", "!truncate", "!usage=none", "!error-event"}[i%5]
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			if i%3 == 0 {
				ctx, cancel = context.WithTimeout(ctx, time.Duration(mix(uint64(i))%uint64(5*time.Second)))
			}
			wg.Go(func() {
				defer cancel()
				defer func() { _ = recover() }() // a torn connection
				call(ctx, s, chat("m!tokens=60"+faults, "x", `,"stream":true`))
			})
			time.Sleep(20 * time.Millisecond)
		}
		wg.Wait()
		if l := s.Load("m"); l.Running != 0 || l.Waiting != 0 || l.KVUsed != 0 || l.KVReserved != 0 {
			t.Errorf("load %+v", l)
		}
		a := s.Account(Filter{})
		all := a.Total
		if all.Requests != n || all.Completed+all.Cancelled+all.Failed+all.Refused != n || all.Running != 0 || all.Cancelled == 0 || all.Failed == 0 {
			t.Errorf("book: %+v", all)
		}
		sum := Total{}
		for i := range a.Served {
			e := &a.Served[i]
			sum.add(e)
			if e.Sent > e.Generated || e.Output > e.Generated {
				t.Errorf("book: %+v", e)
			}
		}
		if sum != all {
			t.Errorf("the requests add up to %+v, the total is %+v", sum, all)
		}
	})
}
