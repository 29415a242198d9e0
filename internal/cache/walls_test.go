package cache_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice"
	"sluice/internal/cache"
	"sluice/internal/engine"
	"sluice/internal/exchange"
	"sluice/internal/ledger"
	"sluice/internal/route"
	"sluice/internal/wire"
)

// stage is an exchange that answers with who asked what.
type stage struct {
	mu   sync.Mutex
	runs int
}

func (*stage) Inspect(_ context.Context, r *exchange.Request) *exchange.Request { return r }

func (*stage) Serve(_ context.Context, r *exchange.Request, c exchange.Client, s *exchange.Served) exchange.Result {
	res := exchange.Result{Head: s.Head, Final: ledger.Entry{Request: r.ID, Outcome: sluice.Completed, FirstToken: 1}}
	switch {
	case s.Failed != nil:
		res.Err = s.Failed
	case s.Follow != nil:
		_, _ = s.Follow(s.Head, c)
	default:
		_ = s.Deliver(s.Head, c, s.Answer)
	}
	return res
}

func (x *stage) run(_ context.Context, r *exchange.Request, c exchange.Client) exchange.Result {
	x.mu.Lock()
	x.runs++
	x.mu.Unlock()
	h := &exchange.Head{Status: 200, Grant: engine.Grant{Policy: "v1", Backend: &route.Backend{ID: "b"}}}
	text := fmt.Sprintf("data: %q %s\n\n", r.Principal.Tenant, r.Task) // the task is the question, in the words of the test
	if r.Head.Stream {
		_ = c.Events(h, []byte(text))
	} else {
		_ = c.Answer(h, []byte(text))
	}
	return exchange.Result{Head: h, Final: ledger.Entry{Request: r.ID, Finish: "stop", Outcome: sluice.Completed}}
}

// heard is a client that keeps what it gets.
type heard struct {
	b    []byte
	told string
}

func (h *heard) Events(head *exchange.Head, p []byte) error {
	h.b, h.told = append(h.b, p...), head.Cache
	return nil
}
func (h *heard) Answer(head *exchange.Head, p []byte) error { return h.Events(head, p) }
func (h *heard) Committed() bool                            { return len(h.b) > 0 }

func newCache(x *stage, store cache.Store, told func(cache.Event)) *cache.Cache {
	return cache.New(cache.Options{
		Next: x.run, Exchange: x, Store: store, Secret: []byte("0123456789abcdef"), Policy: func() string { return "v1" }, Told: told,
		Group: func(t sluice.TenantID) string {
			if strings.HasPrefix(string(t), "shared-") {
				return "family"
			}
			return ""
		},
	})
}

// lookups is how many the walls are tried with: SLUICE_CACHE_LOOKUPS, a million where
// that is asked for.
func lookups(t *testing.T) int {
	if s := os.Getenv("SLUICE_CACHE_LOOKUPS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return 50_000
}

// No answer of one tenant ever reaches another, nor an answer to another question,
// whatever they are called and however they ask.
func TestNoHitCrossesAWall(t *testing.T) {
	names := []string{"a", "b", "a:b", "a/b", "a/", "../a", "a\x00", "\x00a", "group:family", "family", "ab", "A", "shared-1", "shared-2", "shared-3", "é", "e\u0301", "tenant", "a,b", "1", "11"}
	for i := range 40 {
		names = append(names, fmt.Sprint("t", i))
	}
	type question struct {
		head *wire.Head
		body []byte
		said string // all that the answer may depend on
	}
	var questions []question
	for i := range 40 {
		for _, content := range []string{"%d", " %d", "%d ", "é%d", "e\u0301%d"} {
			for _, stream := range []bool{false, true} {
				said := fmt.Sprintf(content, i)
				for _, form := range []string{
					`{"model":"m","messages":[{"role":"user","content":%q}],"stream":%t}`,
					`{"stream":%[2]t,"user":"u","messages":[ {"content":%[1]q,"role":"user"}],"model":"m"}`,
				} {
					body := fmt.Appendf(nil, form, said, stream)
					h, err := wire.Scan(wire.Chat, body)
					if err != nil {
						t.Fatal(err)
					}
					questions = append(questions, question{h, body, fmt.Sprintf("%q %t", said, stream)})
				}
			}
		}
	}
	x, hits := &stage{}, 0
	var mu sync.Mutex
	c := newCache(x, cache.NewMemory(cache.Bounds{PerOwner: 800 << 10, Total: 24 << 20}), func(e cache.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Result == cache.Hit || e.Result == cache.Coalesced {
			hits++
		}
	})
	n := lookups(t)
	policy := &sluice.Policy{CacheTTL: int64(time.Hour)}
	var wg sync.WaitGroup
	for lane := range 2 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(7, uint64(lane)))
			headers := []http.Header{{}, {"Openai-Beta": {"x"}}, {"User-Agent": {"y"}}}
			for i := range n / 2 {
				tenant, q, k := names[r.IntN(len(names))], &questions[int(r.ExpFloat64()*60)%len(questions)], r.IntN(len(headers))
				said := q.said + fmt.Sprint(" ", k == 1)
				client := &heard{}
				c.Run(context.Background(), &exchange.Request{
					ID: sluice.RequestID(fmt.Sprint(lane, "-", i)), Principal: sluice.Principal{Tenant: sluice.TenantID(tenant), Policy: policy}, Head: q.head, Body: q.body,
					Header: headers[k], MaxWait: -1, Task: said,
				}, client)
				got := string(client.b)
				mine := got == fmt.Sprintf("data: %q %s\n\n", tenant, said)
				for _, other := range names {
					mine = mine || strings.HasPrefix(tenant, "shared-") && strings.HasPrefix(other, "shared-") && got == fmt.Sprintf("data: %q %s\n\n", other, said)
				}
				if !mine {
					t.Errorf("%q asked %s and got %q (%s)", tenant, said, got, client.told)
					return
				}
			}
		})
	}
	wg.Wait()
	if hits+x.runs != n/2*2 || hits < n/4 || x.runs < 1000 && n >= 50_000 {
		t.Errorf("of %d lookups %d were hits and %d were run: the walls were not tried", n, hits, x.runs)
	}
	t.Logf("%d lookups: %d hits, %d runs", n, hits, x.runs)
}

// A hit is quick: it reads the body once, and allocates little.
func TestAHitIsQuick(t *testing.T) {
	x := &stage{}
	c := newCache(x, cache.NewMemory(cache.Bounds{}), nil)
	r := asking(t, 4<<10)
	ask := func() *heard {
		client := &heard{b: make([]byte, 0, 1<<10)}
		c.Run(context.Background(), r, client)
		return client
	}
	ask()
	allocs := testing.AllocsPerRun(200, func() {
		if !strings.HasPrefix(ask().told, "hit") {
			t.Fatal("no hit")
		}
	})
	if allocs > 70 {
		t.Errorf("a hit makes %.0f allocations, want at most 70", allocs)
	}
	begun := time.Now()
	for range 100 {
		ask()
	}
	if each := time.Since(begun) / 100; each > 5*time.Millisecond { // about 20 µs where nothing else runs
		t.Errorf("a hit takes %v, want at most 5 ms", each)
	}
}

func asking(t testing.TB, size int) *exchange.Request {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("word ", size/5) + `"}],"stream":true}`)
	h, err := wire.Scan(wire.Chat, body)
	if err != nil {
		t.Fatal(err)
	}
	return &exchange.Request{ID: "r", Principal: sluice.Principal{Tenant: "a", Policy: &sluice.Policy{CacheTTL: int64(time.Hour)}}, Head: h, Body: body, Header: http.Header{}, MaxWait: -1}
}

func BenchmarkHit(b *testing.B) {
	for _, size := range []int{4 << 10, 256 << 10, 4 << 20} {
		disk, err := cache.OpenDisk(b.TempDir(), cache.Bounds{})
		if err != nil {
			b.Fatal(err)
		}
		for name, store := range map[string]cache.Store{"memory": cache.NewMemory(cache.Bounds{}), "disk": disk} {
			b.Run(fmt.Sprintf("%s/prompt=%dKiB", name, size>>10), func(b *testing.B) {
				x := &stage{}
				c, r := newCache(x, store, nil), asking(b, size)
				b.ReportAllocs()
				for b.Loop() {
					c.Run(context.Background(), r, &heard{})
				}
				if x.runs != 1 {
					b.Fatalf("%d were run", x.runs)
				}
			})
		}
	}
}
