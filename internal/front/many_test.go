package front

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// Of many clients that come and go at once, each tells of itself alone: descriptors
// are used again at once.
func TestManyLeave(t *testing.T) {
	const clients, rounds = 16, 40
	var mu sync.Mutex
	gone := map[string]chan error{} // what waits for its client to leave
	handler := func(w http.ResponseWriter, r *http.Request) {
		name, _ := io.ReadAll(r.Body)
		if err := r.Context().Err(); err != nil && strings.HasPrefix(string(name), "stays") {
			t.Errorf("%s: %v", name, err)
		}
		mu.Lock()
		told := gone[string(name)]
		mu.Unlock()
		if told != nil {
			w.Header().Set("Content-Length", "1000000")
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
			told <- context.Cause(r.Context())
		}
		w.Write(name)
		if err := r.Context().Err(); err != nil && strings.HasPrefix(string(name), "stays") {
			t.Errorf("%s: %v", name, err)
		}
	}
	onBoth(t, handler, func(t *testing.T, s *stand) {
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() {
				for j := range rounds {
					switch name := fmt.Sprint(i, "-", j); j % 4 {
					case 0:
						stays := s.dial()
						for range 3 {
							stays.send(post("stays" + name)).wants("stays" + name)
						}
						stays.Close()
					case 1: // no request
						s.dial().Close()
					case 2: // another server's
						c := s.dial().send("GET /here HTTP/1.1\r\nHost: x\r\n\r\n")
						c.wants(`net/http: GET /here ""`)
						c.Close()
					default:
						told := make(chan error, 1)
						mu.Lock()
						gone[name] = told
						mu.Unlock()
						c := s.dial().send(post(name))
						if _, err := http.ReadResponse(c.r, nil); err != nil {
							t.Errorf("%s: %v", name, err)
						}
						if j%8 == 3 {
							_ = c.SetLinger(0)
						}
						c.Close()
						if err := <-told; err != context.Canceled {
							t.Errorf("%s: %v", name, err)
						}
					}
				}
			})
		}
		all.Wait()
	})
}

// A client that has said all and closes its side still hears each answer that does not
// mind, as by net/http.
func TestHalfClosed(t *testing.T) {
	onBoth(t, echo, func(t *testing.T, s *stand) {
		for range 50 {
			c := s.dial().send(post("one") + post("two") + "GET /here HTTP/1.1\r\nHost: x\r\n\r\n" + post("three"))
			_ = c.CloseWrite()
			c.wants("one")
			c.wants("two")
			c.wants(`net/http: GET /here ""`)
			c.wants(`net/http: POST /here "three"`)
			c.ends()
		}
	})
}

// nobody is a connection that was reset before it was accepted, as some systems show it.
type nobody struct{ net.Conn }

func (nobody) RemoteAddr() net.Addr { return nil }

// A connection without a far end is served, or ends, like any.
func TestNobody(t *testing.T) {
	here, there := net.Pipe()
	l := single{make(chan net.Conn, 1)}
	l.conns <- nobody{there}
	s := New(Options{
		Base: t.Context(), Idle: time.Minute, Find: func(string) http.Handler { return http.HandlerFunc(echo) },
		Rest: func(l net.Listener) error { _, err := l.Accept(); return err },
	})
	served := make(chan error)
	go func() { served <- s.Serve(l) }()
	go io.WriteString(here, post("x"))
	if resp, err := http.ReadResponse(bufio.NewReader(here), nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("got %v, %v", resp, err)
	}
	here.Close()
	if err := errors.Join(s.Shutdown(t.Context()), <-served); err != nil {
		t.Error(err)
	}
}
