package proxy

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/ledger"
	"sluice/internal/route"
)

// shadowOf is a shadow of all requests, with what a day may cost.
func shadowOf(pool sluice.PoolID, day sluice.Nano) []route.Shadow {
	return []route.Shadow{{Pool: pool, Share: route.CanaryParts, Limits: []sluice.Limit{
		{Dimension: sluice.Concurrency, Amount: 2}, {Dimension: sluice.Spend, Window: sluice.PerDay, Amount: int64(day)},
	}}}
}

// copies are the journal's entries of shadows, and of all else.
func (r *rig) copies() (shadows, others []ledger.Entry) {
	synctest.Wait()
	r.journal.mu.Lock()
	defer r.journal.mu.Unlock()
	for _, e := range r.journal.entries {
		if e.ShadowOf != "" {
			shadows = append(shadows, e)
		} else {
			others = append(others, e)
		}
	}
	return shadows, others
}

// requestIDs differ from run to run.
var requestIDs = regexp.MustCompile(`req_[0-9a-f-]+`)

// seenByClient is all that a client sees of a few requests, to the nanosecond, and what
// its limits are then.
func seenByClient(t *testing.T, s setup) (seen []string, copies int) {
	s.policy = sluice.Policy{HardSpend: true}
	s.policy.Limits[sluice.ScopeTenant] = []sluice.Limit{
		{Dimension: sluice.Requests, Window: sluice.PerHour, Amount: 100},
		{Dimension: sluice.InputTokens, Window: sluice.PerHour, Amount: 1_000_000},
		{Dimension: sluice.Spend, Window: sluice.PerDay, Amount: int64(sluice.Dollar)},
		{Dimension: sluice.Concurrency, Amount: 4},
	}
	inBubble(t, s, func(t *testing.T, r *rig) {
		say := func(format string, args ...any) {
			seen = append(seen, requestIDs.ReplaceAllString(fmt.Sprintf(format, args...), "req"))
		}
		for range 3 {
			start := time.Now()
			resp, err := r.client.Do(r.request(ask{stream: true}))
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(resp.Body)
			for lines.Scan() {
				say("%v %s", time.Since(start).Nanoseconds(), lines.Text())
			}
			resp.Body.Close()
			resp.Header.Del("Date")
			say("%v %v", resp.Header, time.Since(start).Nanoseconds())
			g := r.do(ask{})
			g.header.Del("Date")
			say("%d %v %s %d", g.status, g.header, g.body, g.took.Nanoseconds())
			say("%+v", r.counters())
		}
		rec := r.last()
		say("%v %v %v %v", rec.Cost, rec.Usage, rec.Final.HeldSpend, rec.Final.EstimatedInput)
		r.x.Close()
		shadows, _ := r.copies()
		copies = len(shadows)
	})
	return seen, copies
}

// A client sees the same, at the same nanosecond, and has the same left of its limits,
// whether or not its requests are copied, and whatever becomes of the copies.
func TestCopiesAreNotSeen(t *testing.T) {
	main := place{handler: talk{before: 300 * time.Millisecond, first: time.Second, gap: 20 * time.Millisecond, chunks: 40, usage: usage(10, 40)}}
	plain, _ := seenByClient(t, setup{places: []place{main}})
	for name, next := range map[string]place{
		"fast":     {handler: talk{chunks: 3, usage: usage(9, 3)}},
		"slow":     {handler: talk{first: time.Minute, gap: time.Second, chunks: 30, usage: usage(9, 30)}},
		"hanging":  {handler: newSilent()},
		"refusing": {handler: answers(500, `{"error":{"message":"no"}}`)},
		"limited":  {handler: answers(429, `{"error":{"message":"slow down"}}`)},
		"breaking": {handler: talk{chunks: 2, end: "cut"}},
		"nobody":   {nobody: true},
	} {
		t.Run(name, func(t *testing.T) {
			next.next = true
			got, copies := seenByClient(t, setup{places: []place{main, next}, shadows: shadowOf("next", 100*sluice.Dollar)})
			if d := cmp.Diff(plain, got); d != "" {
				t.Errorf("(-without +with copies):\n%s", d)
			}
			if copies == 0 {
				t.Error("nothing was copied")
			}
		})
	}
}

// A copy is on record as one, apart from its request: with an entry of its own, marked,
// of which no hook of requests is told.
func TestCopyIsAccountedApart(t *testing.T) {
	var mu sync.Mutex
	var told []string
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, fmt.Sprintf(format, args...))
	}
	hooks := exchange.Hooks{
		Attempt: func(e *ledger.Entry) { note("attempt %s", e.Backend) },
		Output:  func(m sluice.ModelID, _, _ sluice.Tokens) { note("output %s", m) },
		Copied:  func(e *ledger.Entry) { note("copied %s %v %v", e.Backend, e.Outcome, e.Usage.Output) },
		Beside:  func(p sluice.PoolID, r *exchange.Result) { note("beside %s %v %v", p, r.Final.Outcome, r.Usage.Output) },
		Skipped: func(m sluice.ModelID, p sluice.PoolID, why route.Skip) { note("skipped %s %s", p, why) },
	}
	inBubble(t, setup{hooks: hooks, shadows: shadowOf("next", sluice.Dollar), places: []place{
		{handler: talk{before: time.Second, chunks: 1, usage: usage(10, 40)}}, {next: true, handler: talk{first: 5 * time.Second, chunks: 2, usage: usage(9, 7)}},
	}}, func(t *testing.T, r *rig) {
		r.do(ask{stream: true})
		request := r.last().Final
		if d := string(request.Detail); !strings.Contains(d, `"shadows":[{"pool":"next"}]`) {
			t.Errorf("the request does not say that it was copied: %s", d)
		}
		time.Sleep(time.Minute)
		shadows, others := r.copies()
		if len(shadows) != 1 || len(others) != 1 {
			t.Fatalf("%d entries of shadows and %d of requests", len(shadows), len(others))
		}
		e := shadows[0]
		if e.Request != request.Request+".next" || e.ShadowOf != request.Request || !e.Final || e.Outcome != sluice.Completed || e.Pool != "next" ||
			e.Class != sluice.Batch || e.Tenant != "acme" || e.Finish != "stop" || e.FirstToken != 5*time.Second || e.Usage.Output != 7 || e.Cost != 9*1000+7*2000 || e.Status != 0 {
			t.Errorf("got %+v", e)
		}
		want := []string{"attempt b0", "beside next completed 40", "output m", "copied b1 completed 7"}
		if d := cmp.Diff(want, told); d != "" {
			t.Errorf("told (-want +got):\n%s", d)
		}
	})
}

// What a shadow may cost is never exceeded; when it is spent, requests go on without
// copies, and say why.
func TestShadowBudget(t *testing.T) {
	one := sluice.Nano(1000*2000 + 200_000) // 1000 output tokens, and the input's bound
	inBubble(t, setup{shadows: shadowOf("next", one), places: []place{
		{handler: talk{chunks: 1, usage: usage(10, 40)}}, {next: true, handler: talk{chunks: 2, usage: usage(9, 900)}},
	}}, func(t *testing.T, r *rig) {
		for i, want := range []string{`"shadows":[{"pool":"next"}]`, `"shadows":[{"pool":"next","skipped":"spend"}]`} {
			if g := r.do(ask{}); g.status != 200 {
				t.Errorf("got %d", g.status)
			}
			if d := string(r.last().Final.Detail); !strings.Contains(d, want) {
				t.Errorf("request %d: %s", i, d)
			}
		}
		time.Sleep(24 * time.Hour) // another day, another budget
		r.do(ask{})
		if shadows, _ := r.copies(); len(shadows) != 2 {
			t.Errorf("%d copies, want one on each day", len(shadows))
		}
	})
}

// A copy outlives its client, whose leaving would else leave slow answers out of what
// is compared; and ends at once when the gateway does.
func TestCopyOutlivesItsClientAndNotTheDrain(t *testing.T) {
	hangs := newSilent()
	inBubble(t, setup{shadows: shadowOf("next", sluice.Dollar), places: []place{{handler: newSilent()}, {next: true, handler: hangs}}}, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r.do(ask{stream: true, ctx: ctx})
		time.Sleep(10 * time.Second)
		if shadows, others := r.copies(); len(shadows) != 0 || len(others) != 1 || others[0].Reason != sluice.ClientGone {
			t.Errorf("after the client has left: %+v, %+v", shadows, others)
		}
		drained := time.Now()
		r.x.Close()
		if d := time.Since(drained); d != 0 {
			t.Errorf("the drain waited %v for a copy", d)
		}
		if gone := <-hangs.gone; !gone.Equal(drained) {
			t.Errorf("its backend was left %v after the drain began", gone.Sub(drained))
		}
		shadows, _ := r.copies()
		if len(shadows) != 1 || shadows[0].Outcome != sluice.Cancelled || shadows[0].Reason != sluice.ShuttingDown || shadows[0].Cost == 0 {
			t.Errorf("got %+v", shadows)
		}
		again, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		r.do(ask{stream: true, ctx: again})
		if d := string(r.last().Final.Detail); !strings.Contains(d, `"skipped":"shutting_down"`) {
			t.Errorf("copied during the drain: %s", d)
		}
	})
}

// A request that waits for the place on which a copy runs has it at once.
func TestCopyYields(t *testing.T) {
	var calls atomic.Int32 // of the fallback's backend
	inBubble(t, setup{shadows: shadowOf("spare", sluice.Dollar), places: []place{
		{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(2 * time.Second)
			answers(503, `{"error":{"message":"no"}}`).ServeHTTP(w, r)
		})},
		{fallback: true, slots: 1, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if calls.Add(1) == 1 { // the copy
				newSilent().ServeHTTP(w, r)
				return
			}
			talk{before: time.Second, chunks: 1, usage: usage(3, 1)}.ServeHTTP(w, r)
		})},
	}}, func(t *testing.T, r *rig) {
		g := r.do(ask{stream: true})
		if g.status != 200 || g.took != 3*time.Second {
			t.Errorf("got %d after %v, want the fallback's answer after 3s", g.status, g.took)
		}
		rec := r.last()
		if rec.Final.Pool != "spare" || rec.Final.Queued != 0 {
			t.Errorf("served by %s after %v in queues", rec.Final.Pool, rec.Final.Queued)
		}
		shadows, _ := r.copies()
		if len(shadows) != 1 || shadows[0].Outcome != sluice.Cancelled || shadows[0].Reason != sluice.Displaced {
			t.Errorf("got %+v", shadows)
		}
	})
}

// What a caller's requests may not do, their copies may not either; and what would be
// done twice is not.
func TestNotCopied(t *testing.T) {
	for name, tt := range map[string]struct {
		policy sluice.Policy
		next   place
		pool   sluice.PoolID
		body   string
		want   string
	}{
		"residency":    {policy: sluice.Policy{Regions: []string{"eu"}}, next: place{region: "us"}, want: "region"},
		"capability":   {body: `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}]}`, next: place{lacks: route.NeedTools}, want: "capability"},
		"another pool": {pool: "main", want: "same_pool"},
		"effects":      {body: `{"model":"m","messages":[{"role":"user","content":"x"}],"web_search_options":{},"max_tokens":9}`, want: "effects"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.next.next, tt.next.handler = true, talk{chunks: 1}
			if tt.pool == "" {
				tt.pool = "next"
			}
			main := place{handler: talk{chunks: 1, usage: usage(3, 1)}, region: "eu"}
			inBubble(t, setup{policy: tt.policy, shadows: shadowOf(tt.pool, sluice.Dollar), places: []place{main, tt.next}}, func(t *testing.T, r *rig) {
				if g := r.do(ask{body: tt.body}); g.status != 200 {
					t.Errorf("got %d %s", g.status, g.body)
				}
				if d := string(r.last().Final.Detail); !strings.Contains(d, `"skipped":"`+tt.want+`"`) {
					t.Errorf("want %s: %s", tt.want, d)
				}
				if shadows, _ := r.copies(); len(shadows) > 0 {
					t.Errorf("copied: %+v", shadows)
				}
			})
		})
	}
}
