package scale

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/test/gateway"
)

// TestStreams runs 2,000 streams at once through one process: every event of each
// arrives, to the byte, and what a stream costs in memory is told.
func TestStreams(t *testing.T) {
	n := sized(t, 300, 2000)
	events, gap := sized(t, 30, 60), sized(t, 100*time.Millisecond, 400*time.Millisecond)
	u := newUpstream(t)
	g := start(t, u.url, "")
	warm(t, g, 50)
	before := measure(g)
	var open, done sync.WaitGroup
	var broken atomic.Int64
	open.Add(n)
	for i := range n {
		s := script{id: fmt.Sprintf("s%d", i), events: events, gap: gap, input: 10 + i%7, usage: i%2 == 0}
		done.Go(func() {
			began := sync.OnceFunc(open.Done)
			defer began()
			c, err := dial(g)
			if err == nil {
				defer c.Close()
				err = c.stream(g.Key(plain), s, 2<<10, began)
			}
			if err != nil && broken.Add(1) <= 5 {
				t.Error(err)
			}
		})
	}
	open.Wait()
	during := measure(g)
	done.Wait()
	if b := broken.Load(); b > 0 {
		t.Errorf("%d of %d streams did not arrive as they were sent", b, n)
	}
	t.Logf("%d streams of %d events each: every event arrived", n, events)
	each := func(after, before int64) int64 { return (after - before) / int64(n) >> 10 }
	t.Logf("memory per open stream: %d KB resident (%d MB in all, %d MB without streams), %d KB of heap and stacks in use",
		each(during.rss, before.rss), during.rss>>20, before.rss>>20, each(during.inUse, before.inUse))
	// docs/bench.md has the target, beside a plain reverse proxy; this is a bound
	// that a leak would break.
	if per := each(during.rss, before.rss); per > 120 {
		t.Errorf("%d KB per open stream", per)
	}
	balanced(t, g, u)
	after := measure(g)
	for deadline := time.Now().Add(gateway.Patience); after.goroutines > before.goroutines+10 && time.Now().Before(deadline); after = measure(g) {
		time.Sleep(20 * time.Millisecond)
	}
	t.Logf("without streams again: %d goroutines (%d before), %d descriptors (%d), %d KB of heap (%d)",
		after.goroutines, before.goroutines, after.descriptors, before.descriptors, after.heap>>10, before.heap>>10)
	if after.goroutines > before.goroutines+10 {
		t.Errorf("after all streams have ended %d goroutines are left, of %d before", after.goroutines, before.goroutines)
	}
	if after.descriptors > before.descriptors+n+10 { // connections to the provider wait for another request for 90 s
		t.Errorf("after all streams have ended %d descriptors are left, of %d before", after.descriptors, before.descriptors)
	}
}

// warm sends a few requests, so that what is made once is made.
func warm(t *testing.T, g *gateway.Gateway, n int) {
	t.Helper()
	for i := range n {
		c, err := dial(g)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.stream(g.Key(plain), script{id: fmt.Sprintf("warm%d", i), events: 3, input: 1}, 100, nil); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
}

// picture is what the gateway's process takes.
type picture struct {
	rss, inUse, heap        int64 // bytes; inUse is heap and stacks after a collection
	goroutines, descriptors int
	journal, requests       int64
}

// measure looks at the process after two collections: what is pooled outlives one.
func measure(g *gateway.Gateway) picture {
	for range 2 {
		g.Admin("/debug/pprof/heap?gc=1", nil)
	}
	m := g.Metrics()
	p := picture{
		heap: int64(m["go_memstats_heap_alloc_bytes"]), inUse: int64(m["go_memstats_heap_alloc_bytes"] + m["go_memstats_stack_inuse_bytes"]),
		goroutines: int(m["go_goroutines"]), descriptors: int(m["process_open_fds"]),
	}
	p.rss, _ = g.RSS()
	return p
}

var errLockstep = errors.New("the client did not get the event before")

// lockstep lets a provider write an event only when its client has had the one
// before.
type lockstep struct {
	had     chan time.Time // the client has had an event, at
	written chan time.Time
}

// wait waits until the client has had all events before the i-th.
func (l *lockstep) wait(i int) bool {
	if i == 0 {
		return true
	}
	select {
	case <-l.had:
		return true
	case <-time.After(gateway.Patience):
		return false
	}
}

func (l *lockstep) wrote() { l.written <- time.Now() }

// TestEachChunkAtOnce is cS9: a chunk leaves when it arrives. The provider writes
// none before the client has had the last one, so that a gateway that keeps one
// back until the next would keep it for ever.
func TestEachChunkAtOnce(t *testing.T) {
	u := newUpstream(t)
	u.step = &lockstep{had: make(chan time.Time), written: make(chan time.Time, 1)}
	g := start(t, u.url, "")
	const n = 200
	s := script{id: "step", events: n, input: 5}
	c, err := dial(g)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sent := time.Now()
	if err := c.send(g.Key(plain), s.request(100)); err != nil {
		t.Fatal(err)
	}
	r, err := c.answer()
	if err != nil {
		t.Fatal(err)
	}
	total := newTally()
	var first time.Duration
	var late []time.Duration
	for i := range n {
		for total.events <= i {
			k, err := r.Body.Read(c.buf)
			_, _ = total.Write(c.buf[:k])
			if err != nil && (err != io.EOF || i < n-1) {
				t.Fatalf("after %d events: %v", total.events, err)
			}
		}
		if i == 0 {
			first = time.Since(sent)
		}
		late = append(late, time.Since(<-u.step.written))
		if i%40 == 0 { // cS9's own pause, so that nothing else moves the event on
			time.Sleep(500 * time.Millisecond / 5)
		}
		if i < n-1 {
			u.step.had <- time.Now()
		}
	}
	if _, err := io.Copy(total, r.Body); err != nil {
		t.Error(err)
	}
	if err := total.judge(s); err != nil {
		t.Error(err)
	}
	t.Logf("%d events in lockstep: half within %v of the provider's write, the slowest %v; the first %v after the request", n, quantile(late, .5), quantile(late, 1), first)
	if half, slowest := quantile(late, .5), quantile(late, 1); half > 20*time.Millisecond || slowest > 2*time.Second {
		t.Errorf("half of the events take %v, one %v", half, slowest)
	}
}

// TestEarlyAnswers is cS10: of 100,000 streams from a provider that answers before
// it has read the body none is cut.
func TestEarlyAnswers(t *testing.T) {
	n := int64(sized(t, 5000, 100_000))
	u := newUpstream(t)
	u.early = &script{id: "early", events: 5, input: 9}
	g := start(t, u.url, "")
	s := *u.early
	s.usage = true
	var next, cut atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range 64 {
		wg.Go(func() {
			var c *conn
			for i := next.Add(1); i <= n; i = next.Add(1) {
				size := []int{200, 4 << 10, 70 << 10}[i%3] // below, at and above what fits into socket buffers at once
				if i%500 == 0 {
					size = 3 << 20
				}
				var err error
				if c == nil {
					c, err = dial(g)
				}
				if err == nil {
					err = c.stream(g.Key(plain), s, size, nil)
				}
				if err != nil {
					if cut.Add(1) <= 5 {
						t.Errorf("stream %d: %v", i, err)
					}
					if c != nil {
						c.Close()
						c = nil
					}
				}
			}
			if c != nil {
				c.Close()
			}
		})
	}
	wg.Wait()
	t.Logf("%d streams from a provider that answers early, %d cut; %v", n, cut.Load(), time.Since(began).Round(time.Millisecond))
	balanced(t, g, u)
}

// TestRequestsPerHour is cL13: of many calls, 64 at a time, exactly as many pass as
// the limit says, and the counter is what was served.
func TestRequestsPerHour(t *testing.T) {
	const limit = 1000
	u := newUpstream(t)
	g := start(t, u.url, "")
	if time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)) < 20*time.Second {
		t.Skip("the hour is about to end, and with it the window")
	}
	var next, passed, refused atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for i := next.Add(1); i <= limit+500; i = next.Add(1) {
				c, err := dial(g)
				if err != nil {
					t.Error(err)
					return
				}
				s := script{id: fmt.Sprintf("h%d", i), events: 2, input: 3}
				switch err := c.stream(g.Key(hourly), s, 100, nil); {
				case err == nil:
					passed.Add(1)
				case len(err.Error()) > 3 && err.Error()[:3] == "429":
					refused.Add(1)
				default:
					t.Error(err)
				}
				c.Close()
			}
		})
	}
	wg.Wait()
	if got := passed.Load(); got != limit || refused.Load() != 500 {
		t.Errorf("%d passed and %d were refused, want %d and 500", got, refused.Load(), limit)
	}
	if got := len(u.took()); got != limit {
		t.Errorf("the provider served %d", got)
	}
	balanced(t, g, u)
	if got := counter(t, g, "requests_per_hour"); got != limit {
		t.Errorf("the counter says %d", got)
	}
	g.Kill()
	g.Start()
	if got := counter(t, g, "requests_per_hour"); got != limit {
		t.Errorf("after a kill and a restart the counter says %d", got)
	}
}

// counter is what the tenant's limit says to a request that it refuses.
func counter(t *testing.T, g *gateway.Gateway, limit string) int64 {
	t.Helper()
	c, err := dial(g)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.send(g.Key(hourly), script{id: "counter", events: 1}.request(10)); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(c.in, nil)
	if err != nil || r.StatusCode != http.StatusTooManyRequests {
		t.Fatalf("a request above the limit got %v, %v", r, err)
	}
	var x struct {
		Refusal *struct {
			Limit string
			Used  int64
		}
	}
	g.Admin("/admin/v1/requests/"+r.Header.Get("Sluice-Request-Id"), &x)
	if x.Refusal == nil || x.Refusal.Limit != limit {
		t.Fatalf("the request was refused by %+v", x.Refusal)
	}
	return x.Refusal.Used
}
