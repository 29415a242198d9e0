package scale

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestDrain is D1: told to stop with 1,000 streams running, the gateway says that
// it is not ready, still takes what comes until its lame duck ends, and then lets
// every stream come to its end. None is lost, all are settled, and it exits with 0.
func TestDrain(t *testing.T) {
	n := sized(t, 200, 1000)
	lameDuck := sized(t, time.Second, 5*time.Second)
	u := newUpstream(t)
	g := start(t, u.url, fmt.Sprintf("lame_duck: %v\ndrain: 1m\n", lameDuck))
	gap := lameDuck / 5
	var open, done sync.WaitGroup
	var lost atomic.Int64
	open.Add(n)
	for i := range n {
		s := script{id: fmt.Sprintf("d%d", i), events: 10 + i%10, gap: gap, input: 4} // the shortest end after the lame duck
		done.Go(func() {
			began := sync.OnceFunc(open.Done)
			defer began()
			c, err := dial(g)
			if err == nil {
				defer c.Close()
				err = c.stream(g.Key(plain), s, 500, began)
			}
			if err != nil && lost.Add(1) <= 5 {
				t.Error(err)
			}
		})
	}
	open.Wait()
	g.Signal(syscall.SIGTERM)
	told := time.Now()
	for g.Ready() != http.StatusServiceUnavailable {
		if time.Since(told) > lameDuck {
			t.Fatalf("it never said that it is not ready, but %d", g.Ready())
		}
	}
	arrived, refusedAfter := arrivals(t, g.Addr, g.Key(plain), told, lameDuck)
	done.Wait()
	took := time.Since(told)
	err := g.Wait(time.Minute)
	if err != nil {
		t.Errorf("the gateway ended with %v", err)
	}
	t.Logf("told to stop with %d streams running: %d lost; %d requests came in the %v of the lame duck and were served, the first refused after %v; the last stream ended after %v, the process after %v",
		n, lost.Load(), arrived, lameDuck, refusedAfter.Round(time.Millisecond), took.Round(time.Millisecond), time.Since(told).Round(time.Millisecond))
	if lost.Load() > 0 {
		t.Errorf("%d of %d streams were lost", lost.Load(), n)
	}
	entries := map[string]string{}
	for _, e := range g.Entries() {
		entries[e.User] = e.Outcome
	}
	for _, s := range u.took() {
		if entries[s.label()] != "completed" {
			t.Errorf("stream %s was served and the ledger says %q", s.id, entries[s.label()])
		}
	}
}

// arrivals sends short requests, one after another and each over a connection of
// its own, until the gateway does not listen any more. Each that it took must be
// served, and told to go elsewhere afterwards.
func arrivals(t *testing.T, address, key string, told time.Time, lameDuck time.Duration) (served int, refused time.Duration) {
	t.Helper()
	for i := 0; ; i++ {
		if time.Since(told) > lameDuck+20*time.Second {
			t.Fatal("it listens for ever")
		}
		c, err := dialTo(address)
		if err != nil {
			return served, time.Since(told)
		}
		err = oneArrival(c, key, i)
		c.Close()
		switch {
		case err == nil:
			served++
		case time.Since(told) < lameDuck:
			t.Errorf("a request in the lame duck's time: %v", err)
		case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, net.ErrClosed):
			return served, time.Since(told) // it waited to be accepted when the listener closed
		default:
			t.Errorf("a request at the end of the lame duck: %v", err)
		}
	}
}

func oneArrival(c *conn, key string, i int) error {
	s := script{id: fmt.Sprintf("a%d", i), events: 2, input: 1}
	if err := c.send(key, s.request(100)); err != nil {
		return err
	}
	r, err := c.answer()
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF // what an end before the head of an answer reads as
	}
	if err != nil {
		return err
	}
	if !r.Close {
		return errors.New("the answer does not say Connection: close")
	}
	return c.read(r, s, nil)
}
