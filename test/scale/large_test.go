package scale

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/test/gateway"
)

// largeBound is what a prompt of 4 MB may add.
const largeBound = 15 * time.Millisecond

// TestLargePrompt: a prompt of 4 MB takes less than 15 ms longer through the
// gateway than without it, and does not disturb others.
func TestLargePrompt(t *testing.T) {
	const size = 4 << 20
	n := sized(t, 12, 50)
	u, alone := newUpstream(t), newUpstream(t)
	g := start(t, u.url, "")
	warm(t, g, 20)
	through, around := newAsker(t, g.Addr, g.Key(plain)), newAsker(t, strings.TrimPrefix(alone.url, "http://"), "")
	through.size, around.size = size, size
	for range 3 {
		through.ask(t)
		around.ask(t)
	}
	cpu := g.CPU()
	var with, without []time.Duration
	for range n { // by turns, so that both meet the same machine
		with = append(with, through.ask(t))
		without = append(without, around.ask(t))
	}
	work := (g.CPU() - cpu) / time.Duration(n)
	added := quantile(with, .5) - quantile(without, .5)
	t.Logf("a prompt of %d MB takes %v through the gateway and %v without it: %v are added, of %v on a processor",
		size>>20, quantile(with, .5), quantile(without, .5), added, work)
	if most := sized(t, 3*largeBound, largeBound); added > most && work > most {
		t.Errorf("a prompt of %d MB takes %v longer, and %v on a processor; want at most %v", size>>20, added, work, most)
	}
	undisturbed(t, g, alone, size)
	balanced(t, g, u)
}

// undisturbed compares small requests beside large prompts that come through the
// gateway with small requests beside large prompts that go to a provider directly,
// by turns: so that it is not the machine that is judged.
func undisturbed(t *testing.T, g *gateway.Gateway, alone *upstream, size int) {
	t.Helper()
	turns := sized(t, 2, 15)
	through, around := newAsker(t, g.Addr, g.Key(plain)), newAsker(t, strings.TrimPrefix(alone.url, "http://"), "")
	through.size, around.size = size, size
	small := newAsker(t, g.Addr, g.Key(plain))
	var with, without []time.Duration
	for range turns {
		without = append(without, beside(t, small, around)...)
		with = append(with, beside(t, small, through)...)
	}
	t.Logf("small requests beside ten large prompts per second: p50 %v, p95 %v, p99 %v; the same where those go around the gateway: p50 %v, p95 %v, p99 %v",
		quantile(with, .5), quantile(with, .95), quantile(with, .99), quantile(without, .5), quantile(without, .95), quantile(without, .99))
	// A large prompt keeps one of two processors busy for its 15 ms.
	busy := time.Duration(sized(t, 4, 1)) // other tests run beside
	for _, c := range []struct {
		q    float64
		more time.Duration
	}{{.5, 2 * time.Millisecond}, {.95, largeBound}} {
		if a, b := quantile(without, c.q), quantile(with, c.q); b > 2*a+busy*c.more {
			t.Errorf("%.0f %% of the small requests take up to %v beside large prompts, %v where those go elsewhere", 100*c.q, b, a)
		}
	}
}

// beside sends a hundred small requests per second, and ten large ones, for a
// second, and returns how long the small ones took, from when each was due.
func beside(t *testing.T, small, large *asker) (took []time.Duration) {
	t.Helper()
	const every, n = 10 * time.Millisecond, 100
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(10 * every)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				large.ask(t)
			}
		}
	})
	for due := time.Now(); len(took) < n; due = due.Add(every) {
		time.Sleep(time.Until(due))
		small.ask(t)
		took = append(took, time.Since(due))
	}
	close(stop)
	wg.Wait()
	return took
}

// asker sends one request after another on one connection.
type asker struct {
	c    *conn
	key  string
	n    int
	size int
}

var askers atomic.Int64

func newAsker(t *testing.T, address, key string) *asker {
	t.Helper()
	c, err := dialTo(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &asker{c: c, key: key, size: 100, n: int(askers.Add(1)) * 1_000_000}
}

// ask sends a request and returns how long its stream took.
func (a *asker) ask(t *testing.T) time.Duration {
	a.n++
	s := script{id: fmt.Sprint("ask", a.n), events: 3, input: 7, usage: true}
	took, err := timed(func() error {
		if err := a.c.send(a.key, s.request(a.size)); err != nil {
			return err
		}
		r, err := a.c.answer()
		if err != nil {
			return err
		}
		return a.c.read(r, s, nil)
	})
	if err != nil {
		t.Error(err)
	}
	return took
}

// TestLargeBody: a body of 20 MB costs at most twice itself in memory, while it is
// held up at the provider.
func TestLargeBody(t *testing.T) {
	const size = 20 << 20
	u := newUpstream(t)
	g := start(t, u.url, "")
	warm(t, g, 20)
	before := measure(g)
	allocated := g.Metrics()["go_memstats_alloc_bytes_total"]
	g.ResetPeak()
	resident, _ := g.RSS()
	s := script{id: "large", events: 1, gap: 2 * time.Second, input: 5}
	c, err := dial(g)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.send(g.Key(plain), s.request(size)); err != nil {
		t.Fatal(err)
	}
	for g.Status().Running == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	time.Sleep(500 * time.Millisecond) // until all of it is on its way to the provider
	during := measure(g)
	r, err := c.answer()
	if err == nil {
		err = c.read(r, s, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, peak := g.RSS()
	total := int64(g.Metrics()["go_memstats_alloc_bytes_total"] - allocated)
	per := func(n int64) float64 { return float64(n) / size }
	t.Logf("a body of %d MB: %.2f × itself on the heap while the provider works, %.2f × resident at the peak, %.2f × allocated in all",
		size>>20, per(during.heap-before.heap), per(peak-resident), per(total))
	if x := per(during.heap - before.heap); x > 2 {
		t.Errorf("a body of %d MB costs %.2f × itself", size>>20, x)
	}
	if x := per(peak - resident); x > 2.2 { // pages of what was made for it and given back
		t.Errorf("a body of %d MB takes %.2f × itself of memory at the peak", size>>20, x)
	}
	balanced(t, g, u)
}
