package proxy

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice"
	"sluice/internal/route"
	"sluice/internal/upstream"
)

// switched is a backend that counts what it is sent and answers as it is told to.
type switched struct {
	calls atomic.Int64
	as    atomic.Pointer[http.Handler]

	mu   sync.Mutex
	keys []string // that came, without the secret's stem
	at   []time.Time
}

func newSwitched(h http.Handler) *switched {
	s := &switched{}
	s.to(h)
	return s
}

func (s *switched) to(h http.Handler) { s.as.Store(&h) }

func (s *switched) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.calls.Add(1)
	s.mu.Lock()
	s.keys = append(s.keys, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "+upstreamSecret+"-"))
	s.at = append(s.at, time.Now())
	s.mu.Unlock()
	(*s.as.Load()).ServeHTTP(w, r)
}

// took is what has come since the last call, in all and by key.
func (s *switched) took() (n int, keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys, s.keys = s.keys, nil
	return len(keys), keys
}

func works() http.Handler { return talk{chunks: 1, usage: usage(9, 1)} }

// U4: a 429 pauses the credential for which it came and not its backend: the request
// goes on with another, and so do those that follow.
func TestFault_U4_PacesTheCredential(t *testing.T) {
	b := newSwitched(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("Authorization"), "-x") {
			limited("7").ServeHTTP(w, r)
			return
		}
		works().ServeHTTP(w, r)
	}))
	inBubble(t, setup{places: []place{{handler: b, keys: []string{"x", "y"}}}}, func(t *testing.T, r *rig) {
		for range 3 {
			if g := r.do(ask{}); g.status != 200 {
				t.Fatalf("got %d %s", g.status, g.body)
			}
		}
		if _, keys := b.took(); !slices.Equal(keys, []string{"x", "y", "y", "y"}) {
			t.Errorf("sent with %v", keys)
		}
		time.Sleep(7 * time.Second)
		r.do(ask{})
		if _, keys := b.took(); keys[0] != "x" {
			t.Errorf("after its pause: sent with %v", keys)
		}
	})
}

// U5, U8: a credential whose account is spent is parked for an hour, one that is
// refused is out as long; another of the same backend serves meanwhile.
func TestFault_U8_DisablesTheCredential(t *testing.T) {
	for name, refusal := range map[string]http.Handler{
		"refused": answers(401, `{"error":{"message":"bad key","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`),
		"denied":  answers(403, `{"error":{"message":"no","type":"permission_error","param":null,"code":null}}`),
		"spent":   answers(429, `{"error":{"message":"spent","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`),
	} {
		b := newSwitched(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.Header.Get("Authorization"), "-x") {
				refusal.ServeHTTP(w, r)
				return
			}
			works().ServeHTTP(w, r)
		}))
		inBubble(t, setup{places: []place{{handler: b, keys: []string{"x", "y"}}}}, func(t *testing.T, r *rig) {
			for range 4 {
				if g := r.do(ask{}); g.status != 200 {
					t.Fatalf("%s: got %d %s", name, g.status, g.body)
				}
				time.Sleep(10 * time.Minute)
			}
			if _, keys := b.took(); !slices.Equal(keys, []string{"x", "y", "y", "y", "y"}) {
				t.Errorf("%s: sent with %v", name, keys)
			}
			time.Sleep(time.Hour)
			r.do(ask{})
			r.do(ask{})
			if _, keys := b.took(); !slices.Equal(keys, []string{"x", "y", "y"}) {
				t.Errorf("%s, after an hour: sent with %v, want one trial", name, keys)
			}
		})
	}
}

// O4: with every breaker open a request is refused at once, and told when the first
// backend is probed; nothing is sent but the probe.
func TestFault_O4_AllBackendsOpen(t *testing.T) {
	a, b := newSwitched(answers(500, `x`)), newSwitched(answers(500, `x`))
	inBubble(t, setup{places: []place{{handler: a}, {handler: b, fallback: true}}}, func(t *testing.T, r *rig) {
		now := ask{header: http.Header{"Sluice-Max-Wait": {"0"}}}
		for range 2 * route.DefaultFailures {
			r.do(now)
		}
		before := a.calls.Load() + b.calls.Load()
		time.Sleep(4 * time.Second)
		g := r.do(now)
		if g.status != 503 || g.header.Get("Retry-After") != "6" || !strings.Contains(g.body, "no_backend") || g.took != 0 {
			t.Errorf("got %d, Retry-After %q after %v: %s", g.status, g.header.Get("Retry-After"), g.took, g.body)
		}
		r.want(sluice.Rejected, sluice.NoBackend, 503)
		if n := a.calls.Load() + b.calls.Load() - before; n != 0 {
			t.Errorf("%d calls with all breakers open", n)
		}
		a.to(works())
		time.Sleep(6 * time.Second)
		if g := r.do(now); g.status != 200 {
			t.Errorf("the probe: got %d %s", g.status, g.body)
		}
	})
}

// U31: a backend that comes back is not buried: it is probed by one request, and while
// its ramp lasts runs no more than its part of its slots; the others take the rest.
func TestFault_U31_ComesBackByARamp(t *testing.T) {
	var running, most atomic.Int64
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		talk{chunks: 5, gap: 200 * time.Millisecond, usage: usage(9, 5)}.ServeHTTP(w, r)
	})
	a := newSwitched(slow)
	inBubble(t, setup{places: []place{{handler: a, slots: 20}, {handler: slow, slots: 20}}}, func(t *testing.T, r *rig) {
		var wg sync.WaitGroup
		load := func(n int) {
			for range n {
				wg.Go(func() {
					if g := r.do(streamed); g.status != 200 {
						t.Errorf("got %d %s", g.status, g.body)
					}
				})
			}
			wg.Wait()
		}
		a.to(answers(503, `down`))
		load(8)
		for range route.DefaultFailures {
			load(2)
		}
		a.to(slow)
		a.took()
		time.Sleep(route.Cooldown)
		load(1) // the probe
		if n, _ := a.took(); n != 1 {
			t.Fatalf("%d requests as a probe", n)
		}
		for i, share := range []int64{100, 220, 340, 460, 580, 700, 820, 940} {
			began := time.Now()
			load(20)
			if n, _ := a.took(); int64(n) > 20*(share+60)/1000+1 {
				t.Errorf("batch %d, with %d ‰ of its share: %d of 20", i, share, n)
			}
			time.Sleep(4*time.Second - time.Since(began))
		}
		load(40)
		if n, _ := a.took(); n < 19 || n > 21 {
			t.Errorf("after the ramp: %d of 40", n)
		}
	})
}

// cO1: a backend that answers 503 to everything, a hundred calls, two retries allowed.
func TestCase_cO1_OnlyRefusals(t *testing.T) {
	for _, backends := range []int{1, 3} {
		var places []place
		var all []*switched
		for range backends {
			b := newSwitched(answers(503, `{"error":{"message":"busy","type":"server_error"}}`))
			all = append(all, b)
			places = append(places, place{handler: b})
		}
		inBubble(t, setup{places: places, retries: route.RetryPolicy{Attempts: 3}}, func(t *testing.T, r *rig) {
			told := map[string]int{}
			for range 100 {
				g := r.do(ask{header: http.Header{"Sluice-Max-Wait": {"0"}}})
				rec := r.last()
				told[fmt.Sprint(g.status, " ", rec.Final.Reason)]++
				if strings.Count(g.body, `"error":{`) != 1 || !strings.Contains(g.body, rec.Final.Reason.String()) {
					t.Errorf("told %s", g.body)
				}
				time.Sleep(50 * time.Millisecond)
			}
			calls := int64(0)
			for _, b := range all {
				calls += b.calls.Load()
			}
			t.Logf("%d backends: %d upstream calls, told %v", backends, calls, told)
			if calls > 110 || told["503 upstream_error"]+told["503 no_backend"] != 100 {
				t.Errorf("%d backends: %d upstream calls for 100 requests, told %v", backends, calls, told)
			}
		})
	}
}

// cO6: one of eight backends takes requests and says nothing. The others answer as
// fast as without it, and once its breaker is open nobody waits for it.
func TestCase_cO6_BlackHole(t *testing.T) {
	silent := newSwitched(newSilent())
	places := []place{{handler: silent, timeouts: upstream.Timeouts{Headers: 5 * time.Second}, slots: 4}}
	for range 7 {
		places = append(places, place{handler: talk{chunks: 5, gap: 20 * time.Millisecond, usage: usage(9, 5)}, slots: 4})
	}
	inBubble(t, setup{places: places}, func(t *testing.T, r *rig) {
		var wg sync.WaitGroup
		var slow atomic.Int64
		ask := func() {
			g := r.do(streamed)
			switch {
			case g.status != 200:
				t.Errorf("got %d %s", g.status, g.body)
			case g.header.Get("Sluice-Attempt") == "" && g.took > 100*time.Millisecond && g.took < 5*time.Second:
				t.Errorf("a request that did not meet it took %v", g.took)
			case g.took >= 5*time.Second:
				slow.Add(1)
			}
		}
		for range 400 {
			wg.Go(ask)
			time.Sleep(25 * time.Millisecond)
		}
		wg.Wait()
		if n := slow.Load(); n < 1 || n > route.DefaultFailures {
			t.Errorf("%d requests waited for it", n)
		}
		before := silent.calls.Load()
		time.Sleep(5 * time.Second)
		for range 100 {
			wg.Go(ask)
			time.Sleep(25 * time.Millisecond)
		}
		wg.Wait()
		if n := silent.calls.Load() - before; n > 2 {
			t.Errorf("%d more calls", n)
		}
	})
}

// cS8: ten errors inside streams, and the eleventh call goes elsewhere.
func TestCase_cS8_ErrorsInStreams(t *testing.T) {
	a := newSwitched(talk{chunks: 3, end: "error"})
	inBubble(t, setup{places: []place{{handler: a}, {handler: works(), fallback: true}}}, func(t *testing.T, r *rig) {
		for range 10 {
			r.do(streamed)
		}
		before := a.calls.Load()
		if g := r.do(streamed); g.status != 200 || a.calls.Load() != before || before > 10 {
			t.Errorf("got %d; %d calls of it, %d before", g.status, a.calls.Load(), before)
		}
	})
}
