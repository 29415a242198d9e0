package scale

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// upstream is a provider that does as labels say, over raw connections.
type upstream struct {
	url string

	// early answers before the body of a request is read, with this script.
	early *script
	// step, where it is set, is waited for before each event with content and told
	// after: the stream goes in lockstep with its client.
	step *lockstep

	mu     sync.Mutex
	conns  map[net.Conn]bool // guarded by mu
	served []served          // guarded by mu
	closed bool              // guarded by mu
	wg     sync.WaitGroup
}

// served is one stream, or as much of one as was written.
type served struct {
	script
	sent  int  // events with content that were written
	whole bool // to its end
}

func newUpstream(t *testing.T) *upstream {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &upstream{url: "http://" + l.Addr().String(), conns: map[net.Conn]bool{}}
	u.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			u.mu.Lock()
			ok := !u.closed
			u.conns[c] = ok
			u.mu.Unlock()
			if ok {
				u.wg.Go(func() { u.serve(c) })
			}
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		u.mu.Lock()
		u.closed = true
		u.mu.Unlock()
		u.hangUp()
		u.wg.Wait()
	})
	return u
}

// hangUp closes all connections.
func (u *upstream) hangUp() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for c := range u.conns {
		_ = c.Close()
	}
}

// took is what was served so far.
func (u *upstream) took() []served {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]served(nil), u.served...)
}

func (u *upstream) serve(c net.Conn) {
	defer func() {
		_ = c.Close()
		u.mu.Lock()
		delete(u.conns, c)
		u.mu.Unlock()
	}()
	in := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		s, err := u.script(r)
		if err != nil {
			_, _ = fmt.Fprintf(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n%v", len(err.Error()), err)
			return
		}
		done := served{script: s}
		done.sent, err = u.stream(c, s)
		done.whole = err == nil
		u.mu.Lock()
		u.served = append(u.served, done)
		u.mu.Unlock()
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
	}
}

// script reads a request as far as it must: its label stands near the start.
func (u *upstream) script(r *http.Request) (script, error) {
	if u.early != nil {
		return *u.early, nil
	}
	start := make([]byte, 1<<10)
	n, err := io.ReadFull(r.Body, start)
	if err != nil && err != io.ErrUnexpectedEOF {
		return script{}, err
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return script{}, err
	}
	_, rest, _ := bytes.Cut(start[:n], []byte(`"user":"`))
	label, _, _ := bytes.Cut(rest, []byte(`"`))
	return parseScript(string(label))
}

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nX-Request-Id: %s\r\n\r\n"

// stream writes a stream and returns how many events with content it has written.
func (u *upstream) stream(w io.Writer, s script) (sent int, err error) {
	var event, chunk []byte
	chunk = fmt.Appendf(chunk, streamHead, s.id)
	put := func(event []byte) error {
		chunk = fmt.Appendf(chunk, "%x\r\n%s\r\n", len(event), event)
		if s.gap == 0 && u.step == nil && len(chunk) < 16<<10 {
			return nil
		}
		_, err := w.Write(chunk)
		chunk = chunk[:0]
		return err
	}
	for i := range s.events {
		if s.gap > 0 {
			time.Sleep(s.gap)
		}
		if u.step != nil && !u.step.wait(i) {
			return i, errLockstep
		}
		event = s.event(event[:0], i)
		if err := put(event); err != nil {
			return i, err
		}
		if u.step != nil {
			u.step.wrote()
		}
	}
	event = s.last(event[:0], true)
	chunk = fmt.Appendf(chunk, "%x\r\n%s\r\n0\r\n\r\n", len(event), event)
	_, err = w.Write(chunk)
	return s.events, err
}
