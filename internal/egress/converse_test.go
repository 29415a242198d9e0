package egress_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice/internal/egress"
)

const plainAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// socket is a backend on a real socket: each of its connections is given to serve.
// It returns its address, a client of it, and how many connections it has had.
func socket(t *testing.T, serve func(n int, c net.Conn)) (*egress.Clear, *egress.ClearRequest, func() int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	count, over := make(chan int, 1), make(chan struct{})
	count <- 0
	go func() {
		defer close(over)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n := <-count
			count <- n + 1
			serve(n, c)
			_ = c.Close()
		}
	}()
	c := egress.New(egress.Options{}).Clear(egress.TransportOptions{AllowPrivate: true})
	t.Cleanup(func() {
		_ = l.Close()
		c.CloseIdleConnections()
		<-over
	})
	r := &egress.ClearRequest{Method: "POST", Host: l.Addr().String(), Path: "/", Header: http.Header{"X-One": {"1"}}, Body: [][]byte{[]byte("{}")}}
	return c, r, func() int {
		n := <-count
		count <- n
		return n
	}
}

// answers reads n requests, each of which ends in {}, and answers them.
func answers(c net.Conn, n int) {
	var buf [4096]byte
	for range n {
		for have := 0; !strings.HasSuffix(string(buf[:have]), "{}"); {
			k, err := c.Read(buf[have:])
			if err != nil {
				return
			}
			have += k
		}
		_, _ = io.WriteString(c, plainAnswer)
	}
}

func ask(t *testing.T, c *egress.Clear, r *egress.ClearRequest) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	a, err := c.Do(ctx, r)
	if got := read(t, a, err); got != "ok" {
		t.Errorf("got %q", got)
	}
}

// A connection that its peer has closed, or on which it has spoken unasked, is not
// used again, and the request on it is not lost.
func TestSocketStale(t *testing.T) {
	for name, last := range map[string]string{"closed": "", "spoke": "HTTP/1.1 408 Request Timeout\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			left := make(chan struct{}, 8)
			c, r, dials := socket(t, func(_ int, c net.Conn) {
				answers(c, 2)
				_, _ = io.WriteString(c, last)
				_ = c.Close()
				left <- struct{}{}
			})
			for range 3 {
				ask(t, c, r)
				ask(t, c, r)
				<-left // on loopback it is here by now
			}
			if got := dials(); got != 3 {
				t.Errorf("got %d connections, want 3", got)
			}
		})
	}
}

// A peer that speaks before it is asked, on a connection that is new, is heard, and
// one that hangs up at once is found out.
func TestSocketUnasked(t *testing.T) {
	c, r, _ := socket(t, func(_ int, c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfull")
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c)
	})
	a, err := c.Do(t.Context(), r)
	if got := read(t, a, err); got != "full" || a.Status != 503 {
		t.Errorf("got %d, %q", a.Status, got)
	}
	c, r, _ = socket(t, func(int, net.Conn) {})
	if _, err := c.Do(t.Context(), r); err == nil {
		t.Error("a request that nobody read was answered")
	}
}

// A cut ends a request before its connection, and while it waits for the answer.
// What has been cut after its end does the next request no harm.
func TestCut(t *testing.T) {
	asked := make(chan struct{}, 1)
	c, r, dials := socket(t, func(n int, c net.Conn) {
		if n == 0 {
			var buf [1]byte
			_, _ = c.Read(buf[:])
			asked <- struct{}{}
			_, _ = io.Copy(io.Discard, c)
			return
		}
		answers(c, 3)
	})
	before := *r
	before.Cut = new(egress.Cut)
	before.Cut.Now()
	if _, err := c.Do(t.Context(), &before); !errors.Is(err, egress.ErrUnsent) || dials() != 0 {
		t.Errorf("got %v after %d dials", err, dials())
	}
	during := *r
	during.Cut = new(egress.Cut)
	go func() {
		<-asked
		during.Cut.Now()
	}()
	if _, err := c.Do(t.Context(), &during); err == nil || errors.Is(err, egress.ErrUnsent) {
		t.Errorf("got %v", err)
	}
	for range 3 {
		after := *r
		after.Cut = new(egress.Cut)
		ask(t, c, &after)
		after.Cut.Now()
	}
	if got := dials(); got != 2 {
		t.Errorf("got %d connections, want 2", got)
	}
}

// What a request on a connection that is there allocates: the answer, its headers
// and the watch on the context.
func TestSocketAllocations(t *testing.T) {
	c, r, _ := socket(t, func(_ int, c net.Conn) {
		buf := make([]byte, 4096)
		for {
			if _, err := c.Read(buf); err != nil {
				return
			}
			if _, err := io.WriteString(c, plainAnswer); err != nil {
				return
			}
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	buf := make([]byte, 16)
	got := testing.AllocsPerRun(200, func() {
		a, err := c.Do(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.ReadFull(a, buf[:2]); err != nil || string(buf[:n]) != "ok" {
			t.Fatal(n, err)
		}
		_ = a.Close()
	})
	if got > 9 {
		t.Errorf("%v allocations for each request", got)
	}
}
