package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/route"
	"sluice/internal/upstream"
)

const fullUsage = `{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}`

// noting is a handler that returns as soon as its client has left, and notes when.
type noting struct {
	http.Handler
	mu   sync.Mutex
	left []time.Time
}

func (n *noting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.Handler.ServeHTTP(w, r)
	if r.Context().Err() != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.left = append(n.left, time.Now())
	}
}

// said is an entry as these tests look at it.
func said(r *rig, id sluice.RequestID) (out []string) {
	for _, e := range r.journal.of(id) {
		s := fmt.Sprintf("%d %s %v", e.Attempt, e.Backend, e.Outcome)
		if e.Reason != sluice.ReasonNone {
			s += " " + e.Reason.String()
		}
		if e.Final {
			s += ", final"
		}
		out = append(out, s)
	}
	return out
}

func TestHedge(t *testing.T) {
	after := &route.Hedging{After: time.Second, Classes: [sluice.NumClasses]bool{true}}
	quick := talk{chunks: 3, usage: fullUsage}
	slow := func(d time.Duration) talk { return talk{first: d, chunks: 3, usage: fullUsage, text: " slow"} }
	hung := talk{before: time.Hour}
	for _, tt := range []struct {
		name    string
		places  []http.Handler
		hedge   *route.Hedging
		retries route.RetryPolicy
		limit   *sluice.Limit // of the tenant
		ask     ask
		leaves  time.Duration // after that the client is gone

		content string
		took    time.Duration
		entries []string
		results []string // of the hook
		left    []int    // that were cancelled within 100 ms of the decision
	}{
		{
			name: "the hedge wins", places: []http.Handler{hung, quick},
			content: " tok tok tok", took: time.Second,
			entries: []string{"1 b0 cancelled lost_race", "2 b1 completed, final"}, results: []string{"b0 won"}, left: []int{0},
		},
		{
			name: "the first wins", places: []http.Handler{slow(3 * time.Second), slow(5 * time.Second)},
			content: " slow slow slow", took: 3 * time.Second,
			entries: []string{"2 b1 cancelled lost_race", "1 b0 completed, final"}, results: []string{"b0 lost"}, left: []int{1},
		},
		{
			name: "it is in time", places: []http.Handler{slow(900 * time.Millisecond), quick},
			content: " slow slow slow", took: 900 * time.Millisecond, entries: []string{"1 b0 completed, final"},
		},
		{
			name: "content came in time, and then nothing", places: []http.Handler{talk{chunks: 2, gap: 4 * time.Second, usage: fullUsage}, quick},
			content: " tok tok", took: 4 * time.Second, entries: []string{"1 b0 completed, final"},
		},
		{
			name: "an answer in one piece has no first content", places: []http.Handler{talk{before: 5 * time.Second, chunks: 3, usage: fullUsage}, quick},
			ask: ask{body: `{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":10}`}, took: 5 * time.Second, entries: []string{"1 b0 completed, final"},
		},
		{
			name: "tools that the provider runs", places: []http.Handler{slow(3 * time.Second), quick},
			ask:     ask{body: `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}],"max_tokens":10,"web_search_options":{}}`},
			content: " slow slow slow", took: 3 * time.Second, entries: []string{"1 b0 completed, final"},
		},
		{
			name: "a file that only one provider has", places: []http.Handler{slow(3 * time.Second), quick},
			ask:     ask{body: `{"model":"m","stream":true,"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"f1"}}]}],"max_tokens":10}`},
			content: " slow slow slow", took: 3 * time.Second, entries: []string{"1 b0 completed, final"},
		},
		{
			name: "another class", places: []http.Handler{slow(3 * time.Second), quick}, hedge: &route.Hedging{After: time.Second, Classes: [sluice.NumClasses]bool{sluice.Batch: true}},
			content: " slow slow slow", took: 3 * time.Second, entries: []string{"1 b0 completed, final"},
		},
		{
			name: "the first fails, the hedge answers", places: []http.Handler{failsAfter(2*time.Second, 500), slow(3 * time.Second)},
			content: " slow slow slow", took: 4 * time.Second,
			entries: []string{"1 b0 failed upstream_error", "2 b1 completed, final"}, results: []string{"b0 won"},
		},
		{
			name: "the hedge fails, the first answers", places: []http.Handler{slow(3 * time.Second), answers(503, `{}`)},
			content: " slow slow slow", took: 3 * time.Second,
			entries: []string{"2 b1 failed upstream_error", "1 b0 completed, final"}, results: []string{"b0 failed"},
		},
		{
			name: "both fail", places: []http.Handler{failsAfter(2*time.Second, 500), failsAfter(2*time.Second, 500)},
			took:    3 * time.Second,
			entries: []string{"1 b0 failed upstream_error", "2 b1 failed upstream_error, final"}, results: []string{"b0 failed"},
		},
		{
			name: "both fail, the first last", places: []http.Handler{failsAfter(2*time.Second, 500), answers(500, `{}`)},
			took:    2 * time.Second,
			entries: []string{"2 b1 failed upstream_error", "1 b0 failed upstream_error, final"}, results: []string{"b0 failed"},
		},
		{
			name: "both fail, a third answers", places: []http.Handler{failsAfter(2*time.Second, 500), failsAfter(2*time.Second, 500), quick},
			content: " tok tok tok", took: 3 * time.Second,
			entries: []string{"1 b0 failed upstream_error", "2 b1 failed upstream_error", "3 b2 completed, final"}, results: []string{"b0 failed"},
		},
		{
			name: "the first is refused for what it is", places: []http.Handler{failsAfter(2*time.Second, 400), hung},
			took:    2 * time.Second,
			entries: []string{"2 b1 cancelled lost_race", "1 b0 failed upstream_refused, final"}, results: []string{"b0 lost"}, left: []int{1},
		},
		{
			name: "the client leaves before it is late", places: []http.Handler{hung, quick}, leaves: 500 * time.Millisecond,
			took: 500 * time.Millisecond, entries: []string{"1 b0 cancelled client_gone, final"}, left: []int{0},
		},
		{
			name: "the client leaves while both run", places: []http.Handler{hung, hung}, leaves: 1500 * time.Millisecond,
			took:    1500 * time.Millisecond,
			entries: []string{"2 b1 cancelled client_gone", "1 b0 cancelled client_gone, final"}, results: []string{"b0 ended"}, left: []int{0, 1},
		},
		{
			name: "the client leaves while the hedge alone runs", places: []http.Handler{failsAfter(1200*time.Millisecond, 500), hung}, leaves: 1500 * time.Millisecond,
			took:    1500 * time.Millisecond,
			entries: []string{"1 b0 failed upstream_error", "2 b1 cancelled client_gone, final"}, results: []string{"b0 failed"}, left: []int{1},
		},
		{
			name: "the client leaves while the hedge answers", places: []http.Handler{hung, talk{chunks: 9, gap: time.Second}}, leaves: 2500 * time.Millisecond,
			content: " tok tok", took: 2500 * time.Millisecond,
			entries: []string{"1 b0 cancelled lost_race", "2 b1 cancelled client_gone, final"}, results: []string{"b0 won"}, left: []int{0, 1},
		},
		{
			name: "the budget of retries is empty", places: []http.Handler{slow(3 * time.Second), quick}, retries: route.RetryPolicy{Share: -1, Minimum: -1},
			content: " slow slow slow", took: 3 * time.Second,
			entries: []string{"1 b0 completed, final"}, results: []string{"b0 retry_budget_fleet"},
		},
		{
			name: "there is no place", places: []http.Handler{slow(3 * time.Second)},
			content: " slow slow slow", took: 3 * time.Second,
			entries: []string{"1 b0 completed, final"}, results: []string{"b0 no_backend"},
		},
		{
			name: "its tenant may have one at a time", places: []http.Handler{slow(3 * time.Second), quick}, limit: &sluice.Limit{Dimension: sluice.Concurrency, Amount: 1},
			content: " slow slow slow", took: 3 * time.Second,
			entries: []string{"1 b0 completed, final"}, results: []string{"b0 concurrency_limited"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var results []string
			s := setup{hedge: tt.hedge, retries: tt.retries, hooks: exchange.Hooks{Hedge: func(b sluice.BackendID, result string) {
				results = append(results, string(b)+" "+result)
			}}}
			if s.hedge == nil {
				s.hedge = after
			}
			s.policy.ForeignState = true // one refers to a file
			if tt.limit != nil {
				s.policy.Limits[sluice.ScopeTenant] = []sluice.Limit{*tt.limit}
			}
			handlers := make([]*noting, len(tt.places))
			for i, h := range tt.places {
				handlers[i] = &noting{Handler: h}
				s.places = append(s.places, place{handler: handlers[i], domain: fmt.Sprint("d", i)})
			}
			inBubble(t, s, func(t *testing.T, r *rig) {
				a := tt.ask
				a.stream = a.body == ""
				if tt.leaves > 0 {
					ctx, cancel := context.WithTimeout(t.Context(), tt.leaves)
					defer cancel()
					a.ctx = ctx
				}
				g := r.do(a)
				if got := content(g.body); got != tt.content || g.took != tt.took {
					t.Errorf("the client had %q in %v, want %q in %v: %d %s", got, g.took, tt.content, tt.took, g.status, g.body)
				}
				id := r.last().Final.Request
				if got := said(r, id); !slices.Equal(got, tt.entries) {
					t.Errorf("entries %q, want %q", got, tt.entries)
				}
				if !slices.Equal(results, tt.results) {
					t.Errorf("results %q, want %q", results, tt.results)
				}
				for i, h := range handlers {
					h.mu.Lock()
					if want := slices.Contains(tt.left, i); want != (len(h.left) > 0) {
						t.Errorf("b%d was left %d times", i, len(h.left))
					}
					h.mu.Unlock()
				}
			})
		})
	}
}

// failsAfter is a backend that answers an error after a while.
func failsAfter(d time.Duration, status int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(d):
			answers(status, `{"error":{"message":"boom","type":"invalid_request_error","code":null,"param":null}}`).ServeHTTP(w, r)
		}
	})
}

// The loser of a race is cancelled within 100 ms of the first content, and charged for
// what it may have done; the winner's answer is nobody else's.
func TestHedgeCancelsTheLoser(t *testing.T) {
	loser := &noting{Handler: talk{first: 4 * time.Second, chunks: 3}}
	s := setup{
		hedge:  &route.Hedging{After: time.Second, Classes: [sluice.NumClasses]bool{true}},
		places: []place{{handler: loser}, {handler: talk{first: 500 * time.Millisecond, chunks: 9, gap: time.Second, usage: fullUsage}}},
	}
	inBubble(t, s, func(t *testing.T, r *rig) {
		began := time.Now()
		g := r.do(ask{stream: true})
		loser.mu.Lock()
		defer loser.mu.Unlock()
		if len(loser.left) != 1 || loser.left[0].Sub(began) > 1600*time.Millisecond {
			t.Errorf("the loser was cancelled at %v, want within 100 ms of 1.5 s", loser.left)
		}
		rec := r.want(sluice.Completed, sluice.ReasonNone, 200)
		entries := r.journal.of(rec.Final.Request)
		if len(entries) != 2 || entries[0].Usage.Source != sluice.UsageEstimated || entries[0].Cost == 0 {
			t.Fatalf("%+v", entries)
		}
		if rec.Cost != entries[0].Cost+entries[1].Cost || entries[1].Cost != 9*1000+3*2000 {
			t.Errorf("the request cost %v, its attempts %v and %v", rec.Cost, entries[0].Cost, entries[1].Cost)
		}
		var first, second struct {
			Hedge  bool  `json:"hedge"`
			Hedged int64 `json:"hedged_after_ms"`
		}
		if json.Unmarshal(entries[0].Detail, &first) != nil || json.Unmarshal(entries[1].Detail, &second) != nil ||
			first.Hedge || first.Hedged != 1000 || !second.Hedge || second.Hedged != 0 {
			t.Errorf("%s\n%s", entries[0].Detail, entries[1].Detail)
		}
		if g.header.Get("Sluice-Backend") != "b1" {
			t.Errorf("answered by %s", g.header.Get("Sluice-Backend"))
		}
	})
}

// A hard budget holds both attempts and is never exceeded; one that has room for one
// gets one, and when both have ended nothing is held.
func TestHedgeHardSpend(t *testing.T) {
	const bound = 200 * 2000 // output of one attempt, in nano-dollars
	for _, tt := range []struct {
		name   string
		budget int64
		want   []string
	}{
		{"room for both", 2_000_000, []string{"1 b0 cancelled lost_race", "2 b1 completed, final"}},
		{"room for one", 600_000, []string{"1 b0 completed, final"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := setup{hedge: &route.Hedging{After: time.Second, Classes: [sluice.NumClasses]bool{true}}, policy: sluice.Policy{HardSpend: true}}
			s.policy.Limits[sluice.ScopeTenant] = []sluice.Limit{{Dimension: sluice.Spend, Window: sluice.PerMonth, Amount: tt.budget}}
			s.places = []place{
				{handler: talk{first: 3 * time.Second, chunks: 3, usage: fullUsage}},
				{handler: talk{first: time.Second, chunks: 3, usage: fullUsage}},
			}
			inBubble(t, s, func(t *testing.T, r *rig) {
				most := int64(0)
				go func() {
					for range 40 {
						time.Sleep(100 * time.Millisecond)
						for _, a := range r.gate.Dump(10).Top {
							for _, c := range a.Counters {
								most = max(most, c.Held+c.Used)
							}
						}
					}
				}()
				r.do(ask{stream: true, max: 200})
				id := r.last().Final.Request
				if got := said(r, id); !slices.Equal(got, tt.want) {
					t.Errorf("entries %q, want %q", got, tt.want)
				}
				if both := len(tt.want) == 2; most > tt.budget || both != (most > 2*bound) {
					t.Errorf("at most %d held and spent of %d", most, tt.budget)
				}
				var high sluice.Nano
				for _, e := range r.journal.of(id) {
					high += e.CostHigh
				}
				for _, l := range r.counters() {
					if l.Limit.Dimension == sluice.Spend && l.Limit.Amount-l.Remaining != int64(high) {
						t.Errorf("%d of the budget are gone, the entries say %d", l.Limit.Amount-l.Remaining, high)
					}
				}
			})
		})
	}
}

// A panic while two attempts run settles both and leaves others alone.
func TestHedgePanics(t *testing.T) {
	s := setup{
		hedge:  &route.Hedging{After: time.Second, Classes: [sluice.NumClasses]bool{true}},
		places: []place{{handler: talk{before: time.Hour}}, {handler: answers(429, `{}`)}},
		hooks:  exchange.Hooks{Retry: func(sluice.BackendID, string) {}, Hedge: func(sluice.BackendID, string) { panic("a hook") }, Panic: func(sluice.RequestID, any, []byte) {}},
	}
	inBubble(t, s, func(t *testing.T, r *rig) {
		if g := r.do(ask{stream: true}); g.status != 500 || !strings.Contains(g.body, "internal error") {
			t.Errorf("%d %s", g.status, g.body)
		}
		r.want(sluice.Failed, sluice.InternalError, 500)
	})
}

// A backend that only hangs is given no hedge of its own beside it, so that what it has
// is cut by its deadline, and both attempts are settled.
func TestHedgeTimesOut(t *testing.T) {
	hangs := place{handler: talk{before: time.Hour}, timeouts: upstream.Timeouts{FirstToken: 5 * time.Second}}
	s := setup{hedge: &route.Hedging{After: time.Second, Classes: [sluice.NumClasses]bool{true}}, places: []place{hangs, hangs}}
	inBubble(t, s, func(t *testing.T, r *rig) {
		g := r.do(ask{stream: true})
		if g.status != 504 || g.took != 6*time.Second {
			t.Errorf("%d after %v", g.status, g.took)
		}
		id := r.last().Final.Request
		want := []string{"1 b0 failed upstream_timeout", "2 b1 failed upstream_timeout, final"}
		if got := said(r, id); !slices.Equal(got, want) {
			t.Errorf("entries %q, want %q", got, want)
		}
	})
}
