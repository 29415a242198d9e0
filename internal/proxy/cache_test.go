package proxy

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
	"sluice/internal/cache"
	"sluice/internal/hook"
)

// counting is a backend that counts its calls, and keeps their bodies.
type counting struct {
	http.Handler
	mu    sync.Mutex
	calls int
}

func (b *counting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	b.calls++
	b.mu.Unlock()
	b.Handler.ServeHTTP(w, r)
}

func (b *counting) n() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

// cached is a gateway with an output cache.
type cached struct {
	*rig
	cache  *cache.Cache
	back   *counting
	mu     sync.Mutex
	events []cache.Event
}

// tenants are callers by credential: NAME@ is tenant NAME.
func withTenants(o *Options, p *sluice.Policy) {
	o.Identify = func(credential string) (sluice.Principal, error) {
		tenant := "acme"
		if credential != clientSecret {
			tenant = strings.TrimSuffix(credential, "@")
		}
		return sluice.Principal{Tenant: sluice.TenantID(tenant), Project: sluice.DefaultProject, Key: sluice.KeyID("k-" + tenant), Policy: p}, nil
	}
}

func as(tenant string) http.Header { return http.Header{"Authorization": {"Bearer " + tenant + "@"}} }

// inCache runs a test with an output cache in memory. The policy opts in by default.
func inCache(t *testing.T, s setup, f func(t *testing.T, c *cached)) {
	t.Helper()
	c := &cached{}
	if s.policy.CacheTTL == 0 {
		s.policy.CacheTTL = int64(time.Minute)
	}
	if len(s.places) == 0 {
		s.places = []place{{handler: talk{chunks: 3, usage: usage(10, 3), before: 100 * time.Millisecond, gap: 100 * time.Millisecond}}}
	}
	c.back = &counting{Handler: s.places[0].handler}
	s.places[0].handler = c.back
	s.front = func(r *rig, o *Options) {
		c.rig = r
		c.cache = cache.New(cache.Options{
			Next: o.Run, Exchange: r.x, Store: cache.NewMemory(cache.Bounds{}), Secret: []byte("0123456789abcdef"), Policy: func() string { return "t1" },
			Group: func(id sluice.TenantID) string {
				if strings.HasPrefix(string(id), "family-") {
					return "family"
				}
				return ""
			},
			Told: func(e cache.Event) {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.events = append(c.events, e)
			},
		})
		o.Run = c.cache.Run
		withTenants(o, r.policy)
	}
	inBubble(t, s, func(t *testing.T, _ *rig) { f(t, c) })
}

// wantCache checks what an answer says of the cache, up to its age.
func (c *cached) wantCache(g got, want string) {
	c.t.Helper()
	if is := g.header.Get("Sluice-Cache"); !strings.HasPrefix(is, want) || want == "" && is != "" {
		c.t.Errorf("sluice-cache is %q, want %q (status %d, %v)", is, want, g.status, g.err)
	}
}

func (c *cached) wantCalls(want int) {
	c.t.Helper()
	if n := c.back.n(); n != want {
		c.t.Errorf("the backend was called %d times, want %d", n, want)
	}
}

func TestCase_cW1_TheSamePromptOfAnotherTenantIsAMiss(t *testing.T) {
	inCache(t, setup{}, func(t *testing.T, c *cached) {
		first := c.do(ask{header: as("a")})
		c.wantCache(first, "miss")
		c.wantCache(c.do(ask{header: as("a")}), "hit; age=0")
		c.wantCalls(1)
		other := c.do(ask{header: as("b")})
		c.wantCache(other, "miss")
		c.wantCalls(2)
		c.wantCache(c.do(ask{header: as("b")}), "hit")
	})
}

func TestCacheReplaysStreamsByteForByte(t *testing.T) {
	inCache(t, setup{}, func(t *testing.T, c *cached) {
		first := c.do(ask{stream: true})
		c.wantCache(first, "miss")
		time.Sleep(7 * time.Second)
		again := c.do(ask{stream: true})
		c.wantCache(again, "hit; age=7")
		if again.body != first.body || again.header.Get("Content-Type") != first.header.Get("Content-Type") {
			t.Errorf("got %q\nwant %q", again.body, first.body)
		}
		if again.took > 0 {
			t.Errorf("a hit took %v of a bubble's time, want none", again.took)
		}
		for _, name := range []string{"Sluice-Backend", "Sluice-Policy", "X-Request-Id"} {
			if g, w := again.header.Get(name), first.header.Get(name); g != w || w == "" {
				t.Errorf("%s is %q, want %q", name, g, w)
			}
		}
		if again.header.Get("Sluice-Request-Id") == first.header.Get("Sluice-Request-Id") {
			t.Error("a hit has the request id of another request")
		}
		whole := c.do(ask{})
		c.wantCache(whole, "miss")
		if g := c.do(ask{}); g.body != whole.body {
			t.Errorf("got %q, want %q", g.body, whole.body)
		}
		c.wantCalls(2)
		time.Sleep(time.Minute)
		c.wantCache(c.do(ask{stream: true}), "miss")
		c.wantCalls(3)
	})
}

func TestCacheHitsAreLimitedPricedAndRecorded(t *testing.T) {
	policy := sluice.Policy{CachePercent: 25, HardSpend: true}
	policy.Limits[sluice.ScopeTenant] = []sluice.Limit{
		{Dimension: sluice.Requests, Window: sluice.PerMinute, Amount: 3},
		{Dimension: sluice.OutputTokens, Window: sluice.PerMinute, Amount: 1000},
		{Dimension: sluice.Spend, Window: sluice.PerMonth, Amount: 50_000_000},
	}
	inCache(t, setup{policy: policy}, func(t *testing.T, c *cached) {
		first := c.do(ask{max: 100})
		c.wantCache(first, "miss")
		full := c.last()
		second := c.do(ask{max: 100})
		c.wantCache(second, "hit")
		rec := c.want(sluice.Completed, sluice.ReasonNone, 200)
		if rec.Cost != full.Cost/4 || rec.Cost == 0 {
			t.Errorf("a hit costs %v of %v, want a quarter", rec.Cost, full.Cost)
		}
		e := c.journal.of(rec.Final.Request)
		if len(e) != 1 || e[0].Attempt != 0 || e[0].Usage.Total() != 0 || e[0].Usage.Source != sluice.UsageCached || e[0].Cost != rec.Cost || e[0].Backend != "" {
			t.Errorf("recorded as %+v", e)
		}
		var told struct {
			Cache struct {
				State, Request string
				Output         int
				Cost           int64
			}
		}
		if err := json.Unmarshal(e[0].Detail, &told); err != nil || told.Cache.State != "hit" || told.Cache.Request != string(full.Final.Request) || told.Cache.Output != 3 || told.Cache.Cost != int64(full.Cost) {
			t.Errorf("explained as %+v, %v: %s", told, err, e[0].Detail)
		}
		if g := second.header.Get("X-Ratelimit-Remaining-Requests"); g != "1" {
			t.Errorf("%s requests are left, want 1", g)
		}
		if g, w := second.header.Get("X-Ratelimit-Remaining-Tokens"), first.header.Get("X-Ratelimit-Remaining-Tokens"); g < w {
			t.Errorf("%s tokens are left after a hit, %s before", g, w)
		}
		c.do(ask{max: 100})
		refused := c.do(ask{max: 100})
		if refused.status != 429 {
			t.Errorf("a fourth request of three: %d", refused.status)
		}
		c.want(sluice.Rejected, sluice.RateLimited, 429)
		c.wantCalls(1)
	})
}

func TestCacheIsForThoseWhoseWishAndPlanSaySo(t *testing.T) {
	wish := func(w string) http.Header { return http.Header{"Sluice-Cache": {w}} }
	inCache(t, setup{policy: sluice.Policy{CacheAsked: true}}, func(t *testing.T, c *cached) {
		c.wantCache(c.do(ask{}), "")
		c.wantCache(c.do(ask{header: wish("use")}), "miss")
		c.wantCache(c.do(ask{header: wish("use")}), "hit")
		c.wantCache(c.do(ask{header: wish("bypass")}), "bypass; reason=request")
		c.wantCache(c.do(ask{header: wish("refresh")}), "miss; reason=refresh")
		c.wantCalls(4)
		if g := c.do(ask{header: wish("yes")}); g.status != 400 {
			t.Errorf("an unknown wish: %d", g.status)
		}
	})
	inCache(t, setup{policy: sluice.Policy{CacheTTL: -1}}, func(t *testing.T, c *cached) {
		c.wantCache(c.do(ask{header: wish("use")}), "bypass; reason=plan")
		c.wantCache(c.do(ask{header: wish("use")}), "bypass; reason=plan")
		c.wantCache(c.do(ask{}), "")
	})
}

func TestCacheGroupsShare(t *testing.T) {
	inCache(t, setup{}, func(t *testing.T, c *cached) {
		c.wantCache(c.do(ask{header: as("family-one")}), "miss")
		c.wantCache(c.do(ask{header: as("family-two")}), "hit")
		c.wantCache(c.do(ask{header: as("family")}), "miss") // of that name, and of no group
	})
}

// Nothing but a whole, unchanged answer is kept.
func TestCacheKeepsNothingThatIsNotWholeAndGood(t *testing.T) {
	chat := func(choice string) http.Handler {
		return answers(200, `{"id":"c","object":"chat.completion","created":1,"model":"up","choices":[`+choice+`],"usage":`+usage(10, 3)+`}`)
	}
	for name, handler := range map[string]http.Handler{
		"cS4 cut":         talk{chunks: 3, end: "cut"},
		"hangs":           talk{chunks: 3, end: "error"},
		"content filter":  chat(`{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"content_filter"}`),
		"one of two":      chat(`{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"content_filter"},{"index":1,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}`),
		"refusal":         chat(`{"index":0,"message":{"role":"assistant","content":null,"refusal":"no"},"finish_reason":"stop"}`),
		"unknown finish":  chat(`{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"weary"}`),
		"client's error":  answers(400, `{"error":{"message":"no","type":"invalid_request_error"}}`),
		"backend's error": answers(500, `{}`),
		"too large":       talk{chunks: 1, text: strings.Repeat("x", cache.DefaultMaxEntry)},
	} {
		t.Run(name, func(t *testing.T) {
			inCache(t, setup{places: []place{{handler: handler}}}, func(t *testing.T, c *cached) {
				stream := name == "cS4 cut" || name == "hangs"
				c.do(ask{stream: stream})
				n := c.back.n()
				g := c.do(ask{stream: stream})
				if c.back.n() == n {
					t.Errorf("the second was not run: %q", g.header.Get("Sluice-Cache"))
				}
			})
		})
	}
	good := chat(`{"index":0,"message":{"role":"assistant","content":"the word \"refusal\":\"no\", and \"finish_reason\":\"content_filter\"","refusal":null},"finish_reason":"stop"}`)
	inCache(t, setup{places: []place{{handler: good}}}, func(t *testing.T, c *cached) {
		c.do(ask{})
		c.wantCache(c.do(ask{}), "hit")
	})
}

func TestCacheAndHooks(t *testing.T) {
	allow := `{"verdict":"allow"}`
	g := &guardian{}
	verdicts := map[string]string{"request": allow, "commit": allow}
	g.say = func(q *hook.Question) string { return verdicts[q.Stage] }
	spec := hook.Spec{Name: "guard", URL: "http://hook/check", Secret: sluice.NewSecret(hookSecret), AllowPrivate: true}
	for _, stage := range []hook.Stage{hook.AtRequest, hook.AtCommit} {
		spec.At |= 1 << stage
	}
	inCache(t, setup{inspect: []hook.Spec{spec}, policy: sluice.Policy{Hooks: []string{"guard"}}, asked: g}, func(t *testing.T, c *cached) {
		c.wantCache(c.do(ask{}), "miss")
		c.wantCache(c.do(ask{}), "hit")
		if len(g.asked) != 4 {
			t.Errorf("the hook was asked %d times, want twice for each request", len(g.asked))
		}
		verdicts["request"] = `{"verdict":"refuse","reason":"policy"}`
		if got := c.do(ask{}); got.status != 400 || got.header.Get("Sluice-Reason") != "hook_refused" {
			t.Errorf("a request that a hook refuses: %d %s", got.status, got.body)
		}
		verdicts["request"], verdicts["commit"] = allow, `{"verdict":"refuse","reason":"policy"}`
		if got := c.do(ask{}); got.status != 400 || got.header.Get("Sluice-Reason") != "hook_refused" {
			t.Errorf("a kept answer that a hook refuses by now: %d %s", got.status, got.body)
		}
		c.wantCalls(1)
	})
	// The built-in redaction of answers: what it changes is not kept.
	redact := hook.Spec{Name: "redact", Redact: 1 << hook.Email, At: hook.AnswerStages}
	inCache(t, setup{
		places: []place{{handler: talk{chunks: 1, text: "write to a@example.com", usage: usage(1, 1)}}}, inspect: []hook.Spec{redact}, policy: sluice.Policy{Hooks: []string{"redact"}},
	}, func(t *testing.T, c *cached) {
		c.do(ask{})
		c.wantCache(c.do(ask{}), "miss")
		c.wantCalls(2)
	})
}

// many sends the same request at a time, each after the other by a step.
func (c *cached) many(n int, step time.Duration, a func(i int) ask) []got {
	out := make([]got, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			time.Sleep(time.Duration(i) * step)
			out[i] = c.do(a(i))
		})
	}
	wg.Wait()
	synctest.Wait()
	return out
}

func TestCoalescingMakesOneCallOfManyRequests(t *testing.T) {
	inCache(t, setup{}, func(t *testing.T, c *cached) {
		for i, g := range c.many(5, 60*time.Millisecond, func(int) ask { return ask{stream: true} }) {
			if g.err != nil || content(g.body) != " tok tok tok" || !strings.HasSuffix(g.body, "data: [DONE]\n\n") {
				t.Errorf("%d got %q, %v", i, g.body, g.err)
			}
			if want := []string{"miss", "coalesced"}[min(i, 1)]; g.header.Get("Sluice-Cache") != want {
				t.Errorf("%d is told %q, want %q", i, g.header.Get("Sluice-Cache"), want)
			}
		}
		c.wantCalls(1)
		entered, told := sluice.Nano(0), sluice.Nano(0)
		for _, e := range c.journal.entries {
			entered += e.Cost
		}
		for _, r := range c.records {
			told += r.Cost
		}
		if entered == 0 || told != entered {
			t.Errorf("all cost %v by the journal and %v by the records", entered, told)
		}
		sources := map[sluice.UsageSource]int{}
		for _, e := range c.journal.entries {
			sources[e.Usage.Source]++
		}
		if sources[sluice.UsageReported] != 1 || sources[sluice.UsageCached] != 4 {
			t.Errorf("recorded by source: %v", sources)
		}
		c.wantCache(c.do(ask{stream: true}), "hit")
	})
	inCache(t, setup{}, func(t *testing.T, c *cached) { // whole answers, and two tenants
		got := c.many(6, 10*time.Millisecond, func(i int) ask { return ask{header: as([]string{"a", "b"}[i%2])} })
		for i, g := range got {
			if g.status != 200 || g.body != got[0].body {
				t.Errorf("%d got %d %q", i, g.status, g.body)
			}
		}
		c.wantCalls(2)
	})
	inCache(t, setup{policy: sluice.Policy{CacheApart: true}}, func(t *testing.T, c *cached) {
		c.many(3, 0, func(int) ask { return ask{stream: true} })
		c.wantCalls(3)
	})
	inCache(t, setup{policy: sluice.Policy{CachePercent: 50}}, func(t *testing.T, c *cached) { // what costs is given when its cost is known
		got := c.many(2, 10*time.Millisecond, func(int) ask { return ask{stream: true} })
		if got[1].body != got[0].body {
			t.Errorf("got %q, want %q", got[1].body, got[0].body)
		}
		c.wantCache(got[1], "coalesced; age=0")
		c.wantCalls(1)
		all := c.journal.entries
		if len(all) != 2 || all[1].Cost*2 != all[0].Cost || all[1].Cost == 0 {
			t.Errorf("recorded %+v", all)
		}
	})
}

func TestCoalescingOutlivesThoseWhoLeave(t *testing.T) {
	leaves := func(t *testing.T, after time.Duration) context.Context {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(after, cancel)
		return ctx
	}
	for name, who := range map[string]int{"the leader": 0, "a waiter": 1} {
		t.Run(name, func(t *testing.T) {
			inCache(t, setup{}, func(t *testing.T, c *cached) {
				ctx := leaves(t, 250*time.Millisecond)
				got := c.many(3, 10*time.Millisecond, func(i int) ask {
					if i == who {
						return ask{stream: true, ctx: ctx}
					}
					return ask{stream: true}
				})
				for i, g := range got {
					if i != who && (g.err != nil || content(g.body) != " tok tok tok") {
						t.Errorf("%d got %q, %v", i, g.body, g.err)
					}
				}
				c.wantCalls(1)
				c.wantCache(c.do(ask{stream: true}), "hit")
			})
		})
	}
	inCache(t, setup{}, func(t *testing.T, c *cached) { // all: then the call ends
		ctx := leaves(t, 250*time.Millisecond)
		c.many(3, 10*time.Millisecond, func(int) ask { return ask{stream: true, ctx: ctx} })
		c.wantCalls(1)
		leader := c.journal.entries[0]
		for _, e := range c.journal.entries {
			if e.Reason != sluice.ClientGone {
				t.Errorf("one ended %v", e.Reason)
			}
			if e.Attempt > 0 {
				leader = e
			}
		}
		if leader.Usage.Output == 0 || leader.Usage.Output > 3 || leader.Duration > 300*time.Millisecond {
			t.Errorf("the leader's entry is %+v", leader)
		}
		c.wantCache(c.do(ask{stream: true}), "miss")
	})
}

func TestCoalescingAndFailures(t *testing.T) {
	// Before any content: what the backend says of one holds for all.
	inCache(t, setup{places: []place{{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		time.Sleep(time.Second)
		answers(400, `{"error":{"message":"not so","type":"invalid_request_error"}}`).ServeHTTP(w, r)
	})}}}, func(t *testing.T, c *cached) {
		for i, g := range c.many(3, time.Millisecond, func(int) ask { return ask{} }) {
			if g.status != 400 || !strings.Contains(g.body, "not so") {
				t.Errorf("%d got %d %q", i, g.status, g.body)
			}
		}
		c.wantCalls(1)
	})
	// In mid-stream: all get what there was and the error, none is tried again.
	inCache(t, setup{places: []place{{handler: talk{chunks: 3, gap: time.Second, end: "cut"}}}}, func(t *testing.T, c *cached) {
		for i, g := range c.many(3, time.Millisecond, func(int) ask { return ask{stream: true} }) {
			if content(g.body) != " tok tok tok" || !strings.Contains(g.body, `"error"`) {
				t.Errorf("%d got %q, %v", i, g.body, g.err)
			}
			wantCut(t, g)
		}
		c.wantCalls(1)
		for _, e := range c.journal.entries {
			if e.Outcome != sluice.Failed || e.Reason != sluice.UpstreamTruncated {
				t.Errorf("recorded as %v %v", e.Outcome, e.Reason)
			}
		}
	})
	// What is the leader's own, its limits, says nothing of the others.
	limited := setup{}
	limited.policy.Limits[sluice.ScopeKey] = []sluice.Limit{{Dimension: sluice.Concurrency, Amount: 1}}
	inCache(t, limited, func(t *testing.T, c *cached) {
		got := c.many(2, time.Millisecond, func(i int) ask { return ask{stream: true} })
		for _, g := range got {
			if g.status != 200 || content(g.body) != " tok tok tok" {
				t.Errorf("got %d %q", g.status, g.body)
			}
		}
		c.wantCalls(1) // a waiter takes no place
	})
}

// A tenant has many ways to say something; none of them makes it another's answer, or one
// to another question.
func TestCacheIsPoisonedByNothingThatATenantSends(t *testing.T) {
	base := `{"model":"m","messages":[{"role":"user","content":"é 1"}],"max_tokens":1000}`
	same := map[string]ask{
		"the same":       {body: base},
		"order, spacing": {body: "{ \"max_tokens\" : 1000,\n\"messages\":[{\"content\":\"\\u00e9 1\",\"role\":\"user\"}], \"model\":\"m\" }"},
		"user":           {body: strings.Replace(base, `{"model"`, `{"user":"u1","metadata":{"a":"b"},"model"`, 1)},
		"harmless":       {body: base, header: http.Header{"User-Agent": {"x"}, "X-Request-Id": {"7"}, "Sluice-Task": {"t"}, "Sluice-Labels": {"a=b"}}},
		"stream false":   {body: strings.Replace(base, `{"model"`, `{"stream":false,"model"`, 1)},
		"kept off":       {body: base, header: http.Header{"X-Forwarded-For": {"1.2.3.4"}, "X-Tenant-Token": {"b"}}},
	}
	inCache(t, setup{}, func(t *testing.T, c *cached) {
		c.wantCache(c.do(ask{body: base}), "miss")
		for name, a := range same {
			if g := c.do(a); !strings.HasPrefix(g.header.Get("Sluice-Cache"), "hit") {
				t.Errorf("%s: %q, want a hit (%d %s)", name, g.header.Get("Sluice-Cache"), g.status, g.body)
			}
		}
	})
	with := func(member string) ask { return ask{body: strings.Replace(base, `{"model"`, `{`+member+`,"model"`, 1)} }
	inCache(t, setup{policy: sluice.Policy{EngineFields: []string{"top_k"}}}, func(t *testing.T, c *cached) {
		c.do(ask{body: base})
		n := c.back.n()
		for name, a := range map[string]ask{
			"decomposed":     {body: strings.Replace(base, "é", "e\u0301", 1)},
			"number":         with(`"temperature":1`),
			"another number": with(`"temperature":1.0`),
			"header":         {body: base, header: http.Header{"Openai-Beta": {"x"}}},
			"two values":     {body: base, header: http.Header{"Openai-Beta": {"x", "y"}}},
			"joined":         {body: base, header: http.Header{"Openai-Beta": {"x,y"}}},
			"engine field":   with(`"top_k":1`),
			"unknown":        with(`"x":{"stream_options":1}`),
			"unknown, too":   with(`"x":{"stream_options":2}`),
			"a user inside":  {body: strings.Replace(base, `"role"`, `"user":"u","role"`, 1)},
			"another model":  {body: strings.Replace(base, `"m"`, `"m "`, 1)},
			"streamed":       with(`"stream":true`),
			"with usage":     with(`"stream":true,"stream_options":{"include_usage":true}`),
			"null":           with(`"temperature":null`),
		} {
			if g := c.do(a); strings.HasPrefix(g.header.Get("Sluice-Cache"), "hit") {
				t.Errorf("%s is a hit", name)
			}
		}
		if made := c.back.n() - n; made != 13 { // all but the model that there is not
			t.Errorf("%d of them were run, want 13", made)
		}
		if g := c.do(ask{body: strings.Replace(base, `{"model"`, `{"model":"m","model"`, 1)}); g.status != 400 {
			t.Errorf("a key twice: %d", g.status)
		}
		if g := c.do(ask{body: base, header: http.Header{"Sluice-Cache": {"use", "bypass"}}}); g.status != 400 {
			t.Errorf("a wish twice: %d", g.status)
		}
	})
	inCache(t, setup{}, func(t *testing.T, c *cached) {
		for _, tenant := range []string{"a", "a/b", "a:b", "a%00", "../a", "group:family", "A"} {
			c.wantCache(c.do(ask{header: as(tenant)}), "miss")
		}
	})
	inCache(t, setup{policy: sluice.Policy{CachePerUser: true}}, func(t *testing.T, c *cached) {
		for _, user := range []string{"u1", "u2"} {
			c.wantCache(c.do(with(`"user":"`+user+`"`)), "miss")
			c.wantCache(c.do(with(`"user":"`+user+`"`)), "hit")
		}
	})
	inCache(t, setup{}, func(t *testing.T, c *cached) { // what depends on more than its body
		for reason, a := range map[string]ask{
			"state":          with(`"store":true`),
			"provider_tools": with(`"web_search_options":{}`),
		} {
			c.wantCache(c.do(a), "bypass; reason="+reason)
		}
	})
}

func TestCachePurge(t *testing.T) {
	inCache(t, setup{}, func(t *testing.T, c *cached) {
		for _, tenant := range []string{"a", "b"} {
			c.do(ask{header: as(tenant)})
		}
		if n, err := c.cache.Purge(t.Context(), "a"); n != 1 || err != nil {
			t.Errorf("purged %d, %v", n, err)
		}
		c.wantCache(c.do(ask{header: as("a")}), "miss")
		c.wantCache(c.do(ask{header: as("b")}), "hit")
		status, err := c.cache.Status(t.Context())
		if err != nil || len(status) != 2 || status[1].Owner != "b" || status[1].Hits != 1 || status[1].Misses != 1 || status[1].Entries != 1 || status[1].Tokens != 13 {
			t.Errorf("status %+v, %v", status, err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { c.do(ask{header: as("c")}) })
		time.Sleep(50 * time.Millisecond)
		if _, err := c.cache.Purge(t.Context(), ""); err != nil {
			t.Error(err)
		}
		wg.Wait()
		c.wantCache(c.do(ask{header: as("c")}), "miss") // it was on its way
	})
}

// A reader that is slow holds nobody up as long as the answer fits into the bounds, and
// beyond them nobody's answer is cut short.
func TestCoalescingOfAnAnswerThatIsTooLarge(t *testing.T) {
	text := strings.Repeat("y", 64<<10)
	inCache(t, setup{places: []place{{handler: talk{chunks: 40, text: text, gap: time.Millisecond}}}}, func(t *testing.T, c *cached) {
		for i, g := range c.many(3, 0, func(int) ask { return ask{stream: true} }) {
			if g.err != nil || len(content(g.body)) != 40*len(text) {
				t.Errorf("%d got %d bytes, %v", i, len(content(g.body)), g.err)
			}
		}
		c.wantCalls(1)
		c.wantCache(c.do(ask{stream: true}), "miss")
	})
}
