package proxy

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
	"sluice/internal/exchange"
)

func limits(l ...sluice.Limit) (out [sluice.NumScopes][]sluice.Limit) {
	out[sluice.ScopeKey] = l
	return out
}

func TestCL1EstimatesNeverExceedALimit(t *testing.T) {
	inBubble(t, setup{
		places: []place{{handler: talk{before: 2 * time.Second, chunks: 130, usage: usage(9, 130)}}},
		policy: sluice.Policy{Limits: limits(sluice.Limit{Dimension: sluice.OutputTokens, Window: sluice.PerMinute, Amount: 100})},
	}, func(t *testing.T, r *rig) {
		var wg sync.WaitGroup
		results := make([]got, 5)
		for i := range results {
			wg.Go(func() { results[i] = r.do(ask{max: 100}) })
		}
		wg.Wait()
		admitted := 0
		for _, g := range results {
			if g.status == 200 {
				admitted++
				continue
			}
			_, _, msg := errorOf(t, g.body)
			if g.status != 429 || !strings.Contains(msg, "limit of key ci: 100 output") || g.header.Get("Retry-After") == "" || g.header.Get("Sluice-Reason") != "rate_limited" {
				t.Errorf("got %d %q %v", g.status, g.body, g.header)
			}
		}
		if admitted != 1 {
			t.Errorf("%d admitted, want 1", admitted)
		}
	})
}

func TestCL6HeadersComeFromTheCounterThatDecides(t *testing.T) {
	inBubble(t, setup{
		places: []place{{handler: talk{chunks: 1, usage: usage(400, 100)}}},
		policy: sluice.Policy{Limits: limits(
			sluice.Limit{Dimension: sluice.InputTokens, Window: sluice.PerDay, Amount: 100_000},
			sluice.Limit{Dimension: sluice.OutputTokens, Window: sluice.PerDay, Amount: 100_000},
			sluice.Limit{Dimension: sluice.Requests, Window: sluice.PerDay, Amount: 100},
		)},
	}, func(t *testing.T, r *rig) {
		remaining := func() (requests, in, out int64) {
			for _, l := range r.counters() {
				switch l.Limit.Dimension {
				case sluice.Requests:
					requests = l.Remaining
				case sluice.InputTokens:
					in = l.Remaining
				case sluice.OutputTokens:
					out = l.Remaining
				}
			}
			return requests, in, out
		}
		q0, i0, o0 := remaining()
		var before, after got
		for i := range 10 {
			g := r.do(ask{max: 100})
			if g.status != 200 {
				t.Fatalf("got %d %s", g.status, g.body)
			}
			if i == 0 {
				before = g
			}
			after = g
		}
		q1, i1, o1 := remaining()
		if q0-q1 != 10 || i0-i1 != 4000 || o0-o1 != 1000 {
			t.Errorf("counters fell by %d requests, %d input and %d output tokens", q0-q1, i0-i1, o0-o1)
		}
		h := func(g got, name string) int {
			n, err := strconv.Atoi(g.header.Get(name))
			if err != nil {
				t.Errorf("%s: %v in %v", name, err, g.header)
			}
			return n
		}
		if d := h(before, "X-Ratelimit-Remaining-Requests") - h(after, "X-Ratelimit-Remaining-Requests"); d != 9 {
			t.Errorf("remaining requests fell by %d over 9 calls", d)
		}
		h(after, "X-Ratelimit-Remaining-Tokens")
	})
}

func TestCD1ClientLeavesInMidStream(t *testing.T) {
	inBubble(t, setup{places: []place{{handler: talk{chunks: 200, gap: 50 * time.Millisecond}}}}, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := r.client.Do(r.request(ask{stream: true, ctx: ctx}))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(19*50*time.Millisecond + time.Millisecond) // 20 chunks
		cancel()
		resp.Body.Close()
		rec := r.want(sluice.Cancelled, sluice.ClientGone, 499)
		if rec.Usage.Output < 20 || rec.Usage.Input == 0 || rec.Cost == 0 || rec.Usage.Source != sluice.UsageEstimated {
			t.Errorf("took %+v", rec.Usage)
		}
		if n := len(r.journal.of(rec.Final.Request)); n != 1 {
			t.Errorf("%d entries, want 1", n)
		}
	})
}

func TestCD2AbortedStreamsFreeTheirPlaces(t *testing.T) {
	inBubble(t, setup{
		places: []place{{handler: talk{chunks: 1000, gap: time.Second}}},
		policy: sluice.Policy{Limits: limits(sluice.Limit{Dimension: sluice.Concurrency, Amount: 3})},
	}, func(t *testing.T, r *rig) {
		for range 10 {
			ctx, cancel := context.WithCancel(t.Context())
			resp, err := r.client.Do(r.request(ask{stream: true, ctx: ctx}))
			if err != nil {
				t.Fatal(err)
			}
			cancel()
			resp.Body.Close()
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		resp, err := r.client.Do(r.request(ask{stream: true, ctx: ctx}))
		if err != nil || resp.StatusCode != 200 || time.Since(start) != 0 {
			t.Fatalf("got %v after %v", err, time.Since(start))
		}
		resp.Body.Close()
	})
}

// cD3, C2: the cancel reaches the backend within 100 ms, streaming or not.
func TestCD3ClientLeavesBeforeTheAnswer(t *testing.T) {
	for _, stream := range []bool{false, true} {
		up := newSilent()
		inBubble(t, setup{places: []place{{handler: up}}}, func(t *testing.T, r *rig) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			if g := r.do(ask{stream: stream, ctx: ctx}); !errors.Is(g.err, context.DeadlineExceeded) {
				t.Errorf("got %v", g.err)
			}
			if d := (<-up.gone).Sub(start); d > 1100*time.Millisecond {
				t.Errorf("stream %v: the backend saw the cancel after %v", stream, d)
			}
			rec := r.want(sluice.Cancelled, sluice.ClientGone, 499)
			if n := len(r.journal.of(rec.Final.Request)); n != 1 || rec.Usage.Input == 0 || rec.Usage.Source != sluice.UsageEstimated {
				t.Errorf("%d entries, %+v", n, rec.Usage)
			}
			if !stream && rec.Usage.Output == 0 {
				t.Error("an answer in one piece is generated before it shows, and was taken as nothing")
			}
		})
	}
}

// C1: a client that leaves the queue leaves it at once and used nothing.
func TestC1ClientLeavesTheQueue(t *testing.T) {
	inBubble(t, setup{
		places: []place{{handler: talk{chunks: 2, gap: 10 * time.Second, usage: usage(9, 2)}}},
		policy: sluice.Policy{Limits: limits(sluice.Limit{Dimension: sluice.Concurrency, Amount: 1})},
	}, func(t *testing.T, r *rig) {
		var wg sync.WaitGroup
		wg.Go(func() { r.do(ask{stream: true}) })
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() { r.do(ask{ctx: ctx}) })
		time.Sleep(time.Second)
		if v := r.gate.Dump(10); v.Open != 2 {
			t.Errorf("%d open, want 2", v.Open)
		}
		cancel()
		synctest.Wait()
		if v := r.gate.Dump(10); v.Open != 1 {
			t.Errorf("%d open after it left, want 1", v.Open)
		}
		rec := r.want(sluice.Cancelled, sluice.ClientGone, 499)
		if rec.Final.Attempt != 0 || rec.Usage != (sluice.Usage{}) || rec.Cost != 0 {
			t.Errorf("took %+v", rec.Final)
		}
		wg.Wait()
	})
}

func TestC3GoroutinesReturn(t *testing.T) {
	// The bubble itself fails when a goroutine of a stream outlives it, and
	// goleak when one outlives the tests.
	inBubble(t, setup{places: []place{{handler: talk{chunks: 50, gap: time.Second}}}}, func(t *testing.T, r *rig) {
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			r.do(ask{stream: true, ctx: ctx})
			cancel()
		}
	})
}

func TestC4ClientLeavesAfterTheEnd(t *testing.T) {
	inBubble(t, setup{places: []place{{handler: talk{chunks: 2, usage: usage(9, 2)}}}}, func(t *testing.T, r *rig) {
		resp, err := r.client.Do(r.request(ask{stream: true}))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		resp.Body.Close()
		rec := r.want(sluice.Completed, sluice.ReasonNone, 200)
		if rec.Usage.Source != sluice.UsageReported {
			t.Errorf("took %+v", rec.Usage)
		}
	})
}

func TestCD6AbortsReturnWhatTheyDidNotUse(t *testing.T) {
	inBubble(t, setup{
		places: []place{{handler: talk{chunks: 3, gap: time.Second}}},
		policy: sluice.Policy{Limits: limits(
			sluice.Limit{Dimension: sluice.InputTokens, Window: sluice.PerDay, Amount: 1_000_000},
			sluice.Limit{Dimension: sluice.OutputTokens, Window: sluice.PerDay, Amount: 1_000_000},
			sluice.Limit{Dimension: sluice.Spend, Window: sluice.PerDay, Amount: int64(100 * sluice.Dollar)},
		)},
	}, func(t *testing.T, r *rig) {
		var used sluice.Usage
		var cost sluice.Nano
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			r.do(ask{stream: true, ctx: ctx})
			cancel()
			rec := r.last()
			used.Input += rec.Usage.Input
			used.Output += rec.Usage.Output
			cost += rec.Cost
		}
		for _, s := range r.counters() {
			want := map[sluice.Dimension]int64{sluice.InputTokens: int64(used.Input), sluice.OutputTokens: int64(used.Output), sluice.Spend: int64(cost)}[s.Limit.Dimension]
			if got := s.Limit.Amount - s.Remaining; got != want {
				t.Errorf("%v: %d gone from the limit, %d used", s.Limit.Dimension, got, want)
			}
		}
	})
}

// cC2: a retry bills the attempt that answered and not the one that was refused.
func TestCC2RetryBillsOnce(t *testing.T) {
	inBubble(t, setup{places: []place{{handler: answers(503, `{"error":{"message":"busy"}}`)}, {handler: talk{chunks: 5, usage: usage(50, 5)}}}}, func(t *testing.T, r *rig) {
		if g := r.do(ask{}); g.status != 200 {
			t.Fatalf("got %d %s", g.status, g.body)
		}
		rec := r.want(sluice.Completed, sluice.ReasonNone, 200)
		var billed, zero int
		for _, e := range r.journal.of(rec.Final.Request) {
			if e.Cost > 0 {
				billed++
			} else if e.Usage.Source == sluice.UsageNone {
				zero++
			}
		}
		if rec.Final.Attempt == 2 && (billed != 1 || zero != 1) || billed != 1 {
			t.Errorf("%d billed and %d zero entries", billed, zero)
		}
		if rec.Cost != 50*1000+5*2000 {
			t.Errorf("cost %v", rec.Cost)
		}
	})
}

// What refuses the first request for a minute tells it so, as it tells those that
// follow.
func TestParkIsToldAtOnce(t *testing.T) {
	for name, refusal := range map[string]http.Handler{
		"credential": answers(401, `{"error":{"message":"bad key","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`),
		"account":    answers(429, `{"error":{"message":"spent","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`),
	} {
		inBubble(t, one(refusal), func(t *testing.T, r *rig) {
			for i := range 2 {
				g := r.do(ask{header: http.Header{"Sluice-Max-Wait": {"0"}}})
				if g.status != 503 || g.header.Get("Retry-After") != "60" || g.header.Get("Retry-After-Ms") != "60000" || !strings.Contains(g.body, "expected in about 1m0s") {
					t.Errorf("%s, request %d: got %d %q %s", name, i, g.status, g.header.Get("Retry-After-Ms"), g.body)
				}
			}
		})
	}
}

// A request that waited for its own concurrency in vain is not told to come back
// sooner than that.
func TestConcurrencyRefusalIsAnEstimate(t *testing.T) {
	inBubble(t, gauge(one(talk{chunks: 100, gap: time.Second})), func(t *testing.T, r *rig) {
		e := exit{ask: ask{header: http.Header{"Sluice-Max-Wait": {"7s"}}}}
		g := behindAnother(t, r, &e)
		if ms, err := strconv.Atoi(g.header.Get("Retry-After-Ms")); err != nil || ms < 7000 || !strings.Contains(g.body, "expected in about 7s") {
			t.Errorf("got %d %v %s", g.status, g.header, g.body)
		}
	})
}

// U5, U8: a backend whose credential is refused, or whose account is spent, is
// left alone for an hour; the request goes elsewhere.
func TestParkedBackend(t *testing.T) {
	for name, refusal := range map[string]http.Handler{
		"credential": answers(401, `{"error":{"message":"bad key","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`),
		"account":    answers(429, `{"error":{"message":"spent","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`),
	} {
		var parked []string
		inBubble(t, setup{
			places: []place{{handler: refusal}, {handler: talk{chunks: 1, usage: usage(9, 1)}, fallback: true}},
			hooks:  exchange.Hooks{Parked: func(b sluice.BackendID, key, code string) { parked = append(parked, string(b)+" "+key+" "+code) }},
		}, func(t *testing.T, r *rig) {
			attempts := func() int {
				if g := r.do(ask{}); g.status != 200 || g.header.Get("Sluice-Backend") != "b1" {
					t.Errorf("%s: got %d %s", name, g.status, g.body)
				}
				return r.last().Final.Attempt
			}
			got := []int{attempts(), attempts()}
			time.Sleep(time.Hour)
			if got = append(got, attempts()); !slices.Equal(got, []int{2, 1, 2}) || len(parked) != 2 {
				t.Errorf("%s: took %v attempts, parked %q", name, got, parked)
			}
		})
	}
}
