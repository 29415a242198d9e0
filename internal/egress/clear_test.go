package egress_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/egress"
	"sluice/internal/egress/egresstest"
	"sluice/test/bubble"
)

// peer is a backend that is written by hand: each connection is given to serve.
func peer(t *testing.T, serve func(n int, c net.Conn, r *bufio.Reader), f func(t *testing.T, n *egresstest.Net, c *egress.Clear)) {
	bubble.Test(t, func(t *testing.T) {
		n := &egresstest.Net{}
		l := n.Listen("peer:80")
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; ; i++ {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					serve(i, c, bufio.NewReader(c))
				}()
			}
		}()
		c := egress.New(egress.Options{Dial: n.Dial}).Clear(egress.TransportOptions{AllowPrivate: true})
		f(t, n, c)
		c.CloseIdleConnections()
		_ = l.Close()
		<-done
		time.Sleep(3 * time.Hour) // peers that sleep end
	})
}

// echo answers each request of a connection with its body.
func echo(_ int, c net.Conn, r *bufio.Reader) {
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, _ := io.ReadAll(req.Body)
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-Host: %s\r\nX-Path: %s\r\nX-Header: %s\r\n\r\n%s", len(body), req.Host, req.RequestURI, req.Header.Get("X-One"), body)
	}
}

func readRequest(r *bufio.Reader) {
	if req, err := http.ReadRequest(r); err == nil {
		_, _ = io.Copy(io.Discard, req.Body)
	}
}

func call(ctx context.Context, c *egress.Clear, body ...string) (*egress.ClearAnswer, error) {
	r := &egress.ClearRequest{Method: "POST", Host: "peer", Path: "/v1/x%20y?z", Header: http.Header{"X-One": {"1"}}}
	for _, p := range body {
		r.Body = append(r.Body, []byte(p))
	}
	return c.Do(ctx, r)
}

func read(t *testing.T, a *egress.ClearAnswer, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	body, err := io.ReadAll(a)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// Requests of every size arrive as they are, on one connection.
func TestClearReuse(t *testing.T) {
	peer(t, echo, func(t *testing.T, n *egresstest.Net, c *egress.Clear) {
		for _, size := range []int{0, 1, 1000, 16 << 10, 80 << 10, 3 << 20} {
			big := strings.Repeat("x", size)
			a, err := call(t.Context(), c, "a", big, "b")
			if err == nil && (a.Header.Get("X-Host") != "peer" || a.Header.Get("X-Path") != "/v1/x%20y?z" || a.Header.Get("X-Header") != "1") {
				t.Errorf("got %v", a.Header)
			}
			if got := read(t, a, err); got != "a"+big+"b" {
				t.Errorf("of %d bytes: got %d", size+2, len(got))
			}
		}
		if got := n.Dials("peer:80"); got != 1 {
			t.Errorf("got %d dials, want 1", got)
		}
		time.Sleep(10 * time.Minute)
		a, err := call(t.Context(), c)
		read(t, a, err)
		if got := n.Dials("peer:80"); got != 2 {
			t.Errorf("after a long pause: got %d dials, want 2", got)
		}
	})
}

// A connection that the peer has left, or said that it would, is not used again.
func TestClearStale(t *testing.T) {
	for name, last := range map[string]string{
		"left":      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"announced": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
		"old":       "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"chattered": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 408 Request Timeout\r\n\r\n",
		"to the end": "HTTP/1.1 200 OK\r\n\r\n" +
			"ok",
	} {
		t.Run(name, func(t *testing.T) {
			peer(t, func(_ int, c net.Conn, r *bufio.Reader) {
				http.ReadRequest(r)
				io.WriteString(c, last)
			}, func(t *testing.T, n *egresstest.Net, c *egress.Clear) {
				for i := range 3 {
					a, err := call(t.Context(), c)
					if got := read(t, a, err); got != "ok" {
						t.Errorf("got %q", got)
					}
					synctest.Wait()
					if got := n.Dials("peer:80"); got != i+1 {
						t.Errorf("got %d dials, want %d", got, i+1)
					}
				}
			})
		})
	}
}

// An answer that was not read to its end takes its connection with it.
func TestClearUnread(t *testing.T) {
	closed := make(chan struct{}, 2)
	peer(t, func(_ int, c net.Conn, r *bufio.Reader) {
		http.ReadRequest(r)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
		r.ReadByte() // until the client closes
		closed <- struct{}{}
	}, func(t *testing.T, n *egresstest.Net, c *egress.Clear) {
		a, err := call(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 8)
		if n, err := a.Read(buf); n != 2 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
		a.Close()
		a.Close()
		<-closed
	})
}

// What the peer says before it has read a large body is heard.
func TestClearEarlyAnswer(t *testing.T) {
	peer(t, func(_ int, c net.Conn, r *bufio.Reader) {
		r.ReadString('\n')
		io.WriteString(c, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno")
		time.Sleep(time.Hour)
	}, func(t *testing.T, _ *egresstest.Net, c *egress.Clear) {
		a, err := call(t.Context(), c, strings.Repeat("x", 1<<20))
		if got := read(t, a, err); got != "no" || a.Status != 413 {
			t.Errorf("got %d %q", a.Status, got)
		}
	})
}

func TestClearCancel(t *testing.T) {
	cause := errors.New("left")
	for name, serve := range map[string]func(int, net.Conn, *bufio.Reader){
		"before the head": func(_ int, _ net.Conn, r *bufio.Reader) {
			readRequest(r)
			r.ReadByte()
		},
		"in the body": func(_ int, c net.Conn, r *bufio.Reader) {
			readRequest(r)
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")
			r.ReadByte()
		},
		"in the request": func(int, net.Conn, *bufio.Reader) { time.Sleep(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			peer(t, serve, func(t *testing.T, _ *egresstest.Net, c *egress.Clear) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(cause) })
				start := time.Now()
				a, err := call(ctx, c, strings.Repeat("x", 1<<20))
				if err == nil {
					_, err = io.ReadAll(a)
					a.Close()
				}
				if err == nil || time.Since(start) != time.Second || errors.Is(err, egress.ErrUnsent) {
					t.Errorf("got %v after %v", err, time.Since(start))
				}
				if _, err := call(ctx, c); !errors.Is(err, egress.ErrUnsent) {
					t.Errorf("of a context that has ended: got %v", err)
				}
			})
		})
	}
}

func TestClearWrongAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		answer, want string
	}{
		"nonsense":         {"SSH-2.0-x\r\n\r\n", "malformed"},
		"nothing":          {"", "unexpected EOF"},
		"half a head":      {"HTTP/1.1 200 OK\r\nContent-Le", "malformed"},
		"two lengths":      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", "Content-Length"},
		"endless head":     {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 70<<10) + "\r\n\r\n", "exceed"},
		"interim for ever": {strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 100), "interim"},
		"another protocol": {"HTTP/1.1 101 Switching Protocols\r\n\r\n", "protocol"},
	} {
		t.Run(name, func(t *testing.T) {
			peer(t, func(_ int, c net.Conn, r *bufio.Reader) {
				http.ReadRequest(r)
				io.WriteString(c, tt.answer)
			}, func(t *testing.T, _ *egresstest.Net, c *egress.Clear) {
				_, err := call(t.Context(), c)
				if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, egress.ErrUnsent) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
			})
		})
	}
}

func TestClearInterim(t *testing.T) {
	peer(t, func(_ int, c net.Conn, r *bufio.Reader) {
		http.ReadRequest(r)
		io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")
	}, func(t *testing.T, _ *egresstest.Net, c *egress.Clear) {
		a, err := call(t.Context(), c)
		if got := read(t, a, err); got != "" || a.Status != 204 || a.Header.Get("Link") != "" {
			t.Errorf("got %d %q %v", a.Status, got, a.Header)
		}
	})
}

// A header that could be read as two is not sent.
func TestClearBadHeaders(t *testing.T) {
	peer(t, echo, func(t *testing.T, n *egresstest.Net, c *egress.Clear) {
		for _, h := range []http.Header{{"X": {"a\r\nY: b"}}, {"X Y": {"a"}}, {"X:": {"a"}}, {"": {"a"}}, {"X": {"\x00"}}, {"X\n": {"a"}}} {
			_, err := c.Do(t.Context(), &egress.ClearRequest{Method: "GET", Host: "peer", Path: "/", Header: h})
			if !errors.Is(err, egress.ErrUnsent) {
				t.Errorf("%q: got %v", h, err)
			}
		}
	})
}

// Over real sockets: what stays in a kernel's buffer is seen before a connection is
// used again.
func TestClearSockets(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns := make(chan net.Conn, 8)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				close(conns)
				return
			}
			conns <- c
			go echo(0, c, bufio.NewReader(c))
		}
	}()
	c := egress.New(egress.Options{}).Clear(egress.TransportOptions{AllowPrivate: true})
	ask := func(size int) {
		t.Helper()
		body := bytes.Repeat([]byte("0123456"), size/7)
		a, err := c.Do(t.Context(), &egress.ClearRequest{Method: "POST", Host: l.Addr().String(), Path: "/", Body: [][]byte{body[:100], nil, body[100:]}})
		if got := read(t, a, err); got != string(body) {
			t.Errorf("got %d bytes of %d, or others", len(got), len(body))
		}
	}
	for _, size := range []int{1 << 10, 20 << 10, 200 << 10, 16 << 20} { // inline, at once, and more than buffers take
		ask(size)
	}
	first := <-conns
	if len(conns) != 0 {
		t.Error("the connection was not used again")
	}
	first.Close()
	for deadline := time.Now().Add(10 * time.Second); len(conns) == 0 && time.Now().Before(deadline); {
		ask(1 << 10) // the close is on its way; none of these may fail for it
	}
	c.CloseIdleConnections()
	l.Close()
	for c := range conns {
		c.Close()
	}
}
