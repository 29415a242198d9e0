package front

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice/test/bubble"
)

// What an answer has left of its deadlines is not in force for net/http.
func TestHandedOverWithoutDeadlines(t *testing.T) {
	onBoth(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "3")
		io.WriteString(w, "one")
		to := http.NewResponseController(w)
		_ = to.Flush()
		_ = to.SetWriteDeadline(aloud)
		_ = to.SetReadDeadline(time.Now().Add(time.Minute))
	}, func(t *testing.T, s *stand) {
		c := s.dial()
		c.send(post("")).wants("one")
		c.send("GET /here HTTP/1.1\r\nHost: x\r\n\r\n").wants(`net/http: GET /here ""`)
	})
}

// Empty lines behind a body are no part of the next request, as few as net/http takes.
func TestEmptyLines(t *testing.T) {
	onBoth(t, echo, func(t *testing.T, s *stand) {
		c := s.dial()
		c.send(post("one") + "\r\n" + post("two") + "\r\n\r\n" + post("three")).wants("one")
		c.wants("two")
		c.wants("three")
		for _, part := range []string{"\r", "\n", "\r", "\n" + post("four")} {
			c.send(part)
			time.Sleep(time.Millisecond) // likely to be read by itself; right in any case
		}
		c.wants("four")
		c.send("\r\nGET /here HTTP/1.1\r\nHost: x\r\n\r\n").wants(`net/http: GET /here ""`)
		for _, lines := range []string{"\r\n\r\n\r\n", "\r\r\n", "\n\r\n\r\n"} {
			c := s.dial()
			c.send(post("one") + lines + post("two")).wants("one")
			if resp, _ := c.answer(); resp.StatusCode != http.StatusBadRequest && lines[0] == '\r' {
				t.Errorf("%q: got %s", lines, resp.Status)
			}
		}
		c = s.dial().send("\r\n" + post("one")) // behind nothing
		if resp, _ := c.answer(); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("got %s", resp.Status)
		}
	})
}

// single is a listener of one connection.
type single struct{ conns chan net.Conn }

func (l single) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (l single) Close() error   { close(l.conns); return nil }
func (l single) Addr() net.Addr { return &net.TCPAddr{} }

// A connection whose request is on its way to net/http is no idle one.
func TestHandedOverInShutdown(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		goOn := make(chan bool)
		to := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "late") })}
		s := New(Options{
			Base: context.WithoutCancel(t.Context()), Idle: time.Minute, Find: func(string) http.Handler { return nil },
			Rest: func(l net.Listener) error { <-goOn; return to.Serve(l) },
		})
		here, there := net.Pipe()
		l := single{make(chan net.Conn, 1)}
		l.conns <- there
		served := make(chan error)
		go func() { served <- s.Serve(l) }()
		time.Sleep(2 * newGrace)
		_, _ = io.WriteString(here, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		synctest.Wait()
		s.LameDuck()
		close(goOn)
		if got, _ := io.ReadAll(here); !strings.HasSuffix(string(got), "late") {
			t.Errorf("got %q", got)
		}
		here.Close()
		if err := errors.Join(s.Shutdown(t.Context()), to.Shutdown(t.Context()), <-served); err != nil {
			t.Error(err)
		}
	})
}
