package egresstest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sluice/test/bubble"
)

func connect(t *testing.T, n *Net) (client, server *Conn) {
	t.Helper()
	l := n.Listen("host:1")
	c, err := n.Dial(t.Context(), "tcp", "host:1")
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return c.(*Conn), s.(*Conn)
}

func TestBackPressureAndDeadlines(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c, s := connect(t, &Net{Buffer: 4})
		start := time.Now()
		c.SetWriteDeadline(start.Add(time.Second))
		n, err := c.Write([]byte("123456"))
		if n != 4 || !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("full pipe: wrote %d, %v after %v", n, err, time.Since(start))
		}
		c.SetWriteDeadline(time.Time{})
		go func() {
			time.Sleep(time.Second)
			c.Write([]byte("56"))
			c.CloseWrite()
		}()
		got, err := io.ReadAll(s)
		if err != nil || !bytes.Equal(got, []byte("123456")) {
			t.Errorf("got %q, %v", got, err)
		}
		if _, err := s.Write([]byte("back")); err != nil {
			t.Errorf("write after half-close: %v", err)
		}
		s.SetReadDeadline(time.Now().Add(time.Minute))
		s.Reset()
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("after reset: got %v", err)
		}
	})
}

func TestServesHTTP(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := &Net{}
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(3 * time.Second)
			io.Copy(w, r.Body)
		})}
		served := make(chan error)
		go func() { served <- srv.Serve(n.Listen("host:80")) }()
		synctest.Wait()
		tr := &http.Transport{DialContext: n.Dial}
		start := time.Now()
		resp, err := (&http.Client{Transport: tr}).Post("http://host/", "text/plain", strings.NewReader(strings.Repeat("x", 1<<20)))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || len(body) != 1<<20 || time.Since(start) != 3*time.Second {
			t.Errorf("got %d bytes, %v, after %v", len(body), err, time.Since(start))
		}
		resp.Body.Close()
		tr.CloseIdleConnections()
		srv.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
		if _, err := n.Dial(t.Context(), "tcp", "host:80"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("closed listener: got %v", err)
		}
		time.Sleep(time.Second) // net/http lingers for 0.5 s after a half-close
	})
}
