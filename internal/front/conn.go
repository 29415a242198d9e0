package front

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// The bounds of a connection.
const (
	readRoom  = 4 << 10   // bytes of a request that are read ahead, and so of a plain head
	restRead  = 256 << 10 // bytes of a body that are read when its handler has not
	restWait  = 10 * time.Second
	maxBlank  = 2                      // empty lines behind a body that are passed over, as net/http does
	lastWords = 500 * time.Millisecond // that a client has to read the answer after which its connection is closed
)

// conn is a connection. What is not said to be guarded is its goroutine's.
type conn struct {
	net.Conn
	s     *Server
	since time.Time // accepted
	armed time.Time // the read deadline in force; zero is none
	buf   []byte    // buf[r:w] has been read and not taken
	r, w  int
	half  bool         // that is not all that is needed to judge it
	blank int          // empty lines that may stand before the next request
	req   http.Request // what all requests on it have in common
	body  body
	resp  Response

	watched uint64    // by the kernel's watch, as that knows it; 0 is not
	ears    *listener // reads beside the handler; nil while nothing does

	mu     sync.Mutex
	cancel context.CancelFunc // guarded by mu: of the request that is served; nil while none is
	busy   bool               // guarded by mu: something of a request has come, and it is not over
	gone   bool               // guarded by mu: the client has closed its side
	closed bool               // guarded by mu: no further request is served
	seen   bool               // guarded by mu: it has served a request
}

func newConn(s *Server, c net.Conn) *conn {
	k := &conn{Conn: c, s: s, buf: make([]byte, readRoom), since: time.Now()}
	k.resp.c, k.resp.header = k, make(http.Header)
	k.body.c = k
	k.req = http.Request{Method: method, Proto: version[1:], ProtoMajor: 1, ProtoMinor: 1, Body: &k.body}
	if far := c.RemoteAddr(); far != nil { // else it was reset before it was accepted
		k.req.RemoteAddr = far.String()
	}
	return k
}

// serve serves requests until the connection ends or goes to net/http.
func (c *conn) serve() {
	handed := false
	defer func() {
		c.s.forget(c)
		if !handed {
			_ = c.Close()
		}
	}()
	for c.w > c.r && !c.half || c.fill() {
		if c.empty() {
			continue
		}
		if !c.begin() {
			return
		}
		h, n, ok := parse(c.buf[c.r:c.w])
		if !ok || c.s.o.Find(h.path) == nil {
			handed = true
			c.hand()
			return
		}
		c.r += n
		if !c.answer(&h) {
			return
		}
	}
}

// hand gives the connection to net/http, as it was before any answer.
func (c *conn) hand() {
	c.s.unwatch(c) // before another has the descriptor
	_ = c.SetReadDeadline(time.Time{})
	if !c.resp.until.IsZero() { // net/http lifts no deadline that it has not set
		_ = c.resp.SetWriteDeadline(time.Time{})
	}
	c.s.rest.give(c.Conn, c.buf[c.r:c.w])
}

// empty passes over an empty line that a client has put behind a body (RFC 9112 §2.2).
// It reports whether there is more to wait for, or to look at, before a request.
func (c *conn) empty() bool {
	switch {
	case c.blank == 0 || c.buf[c.r] != '\r':
		return false
	case c.w-c.r == 1:
		c.half = true
	case c.buf[c.r+1] != '\n':
		return false
	default:
		c.blank--
		c.r += 2
	}
	return true
}

// fill waits for a request, or for the rest of it where a listener has heard a byte.
func (c *conn) fill() bool {
	c.w, c.r = copy(c.buf, c.buf[c.r:c.w]), 0
	c.half = false
	switch now := time.Now(); {
	case c.armed.IsZero():
		_ = c.SetReadDeadline(now.Add(c.s.o.Idle))
	case c.armed.Sub(now) < c.s.o.Idle:
		_ = c.SetReadDeadline(now.Add(c.s.o.Idle + c.s.o.Idle/4))
	}
	n, err := c.Read(c.buf[c.w : readRoom-1]) // a listener may hear another byte
	c.w += n
	return n > 0 && (err == nil || err == io.EOF)
}

// SetReadDeadline sets the read deadline.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.armed = t
	return c.Conn.SetReadDeadline(t)
}

// answer serves a request whose head has been read. It reports whether another may
// follow.
func (c *conn) answer(h *head) (again bool) {
	ctx, cancel := context.WithCancel(c.s.o.Base)
	defer cancel()
	c.serves(cancel)
	defer c.end(&again)
	if c.req.RequestURI != h.path {
		c.req.URL, c.req.RequestURI = &url.URL{Path: h.path}, h.path
	}
	c.req.Host, c.req.Header, c.req.ContentLength = h.host, h.header, h.length
	c.body.start(h.length)
	c.resp.start()
	c.s.o.Find(h.path).ServeHTTP(&c.resp, c.req.WithContext(ctx))
	cancel() // what outlives the handler does not wait for its answer to be read
	return c.resp.finish()
}

// begin notes that something of a request has come; false if none is served any more.
func (c *conn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = !c.closed
	return c.busy
}

// serves notes how the request that is served is ended.
func (c *conn) serves(cancel context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel = cancel; c.gone {
		cancel()
	}
}

// end notes that a request is over, by a panic too: then nothing more is said, and the
// client sees that its answer was cut.
func (c *conn) end(again *bool) {
	panicked := recover()
	c.hush()
	if panicked != nil {
		*again = false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel, c.busy, c.seen = nil, false, true
	c.blank = maxBlank
	*again = *again && !c.closed && !c.s.lame.Load()
}

// leave ends the request that is served: its client has left. It may be called on any
// goroutine.
func (c *conn) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	if c.cancel != nil {
		c.cancel()
	}
}

// stop closes the connection if nothing of a request has come, and lets none begin. It
// reports whether it did. One that has only just been made is left alone, as
// what its client sends may be under way.
func (c *conn) stop() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy || !c.seen && time.Since(c.since) < newGrace {
		return false
	}
	c.closed = true
	_ = c.Conn.Close()
	return true
}

// linger closes the connection so that the client can still read what was written:
// closed with something unread, the kernel would reset it.
func (c *conn) linger() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(lastWords))
	for {
		if _, err := c.Read(c.buf); err != nil {
			return
		}
	}
}
