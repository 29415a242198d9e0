package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// The bounds of a connection in the clear.
const (
	clearBuffer = 4 << 10  // bytes that are read at a time
	clearInline = 16 << 10 // bytes of a request that a peer's buffers surely take
	maxInterim  = 8        // 1xx answers before the answer
	maxSpace    = 64       // buffers that are kept for requests to be written in
	writeEnd    = 50 * time.Millisecond
)

// Clear speaks HTTP/1.1 in the clear, to backends that the operator runs beside the
// gateway. It does what net/http's transport does, on the caller's goroutine: that
// one hands each request to two goroutines of the connection and back, which takes
// more time than the request itself and 30 KB more for each open stream.
type Clear struct {
	d *Dialer
	o TransportOptions

	mu    sync.Mutex         // guards what follows
	idle  map[string][]*link // by address, the last used last
	count int                // of all idle
	sweep *time.Timer        // closes those that are idle for too long; nil while there are none
	space [][]byte           // to write requests in, at most maxSpace
}

// Clear makes a Clear over d. Close its idle connections at the end.
func (d *Dialer) Clear(o TransportOptions) *Clear {
	return &Clear{d: d, o: o, idle: make(map[string][]*link)}
}

// ErrUnsent is wrapped by the error of a request of which nothing can have reached
// the peer.
var ErrUnsent = errors.New("nothing was sent")

// ErrHeaderBound is the error of an answer whose headers are too long.
var ErrHeaderBound = errors.New("the answer's headers exceed the bound")

// Do sends a request and waits for the answer's headers. Ending ctx closes the
// connection, until the answer is closed. The caller closes the answer.
func (t *Clear) Do(ctx context.Context, r *ClearRequest) (*ClearAnswer, error) {
	address := r.address()
	for fresh := false; ; {
		l, used, err := t.link(ctx, address, fresh, r.Cut)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnsent, err)
		}
		a := &ClearAnswer{t: t, link: l, address: address, cut: r.Cut, stop: context.AfterFunc(ctx, l.end)}
		if !r.Cut.by(l.end) {
			err = fmt.Errorf("%w: %w", ErrUnsent, errCut)
		} else {
			err = a.do(r, used)
		}
		if err == nil {
			return a, nil
		}
		_ = a.Close()
		switch {
		case !errors.Is(err, ErrUnsent), !used, ctx.Err() != nil, errors.Is(err, errCut):
			return nil, err
		case !errors.Is(err, errStale):
			fresh = true
		}
	}
}

// errCut is the error of a request that was cut before it was sent.
var errCut = errors.New("the request was cut")

// link takes an idle connection, or dials.
func (t *Clear) link(ctx context.Context, address string, fresh bool, cut *Cut) (l *link, used bool, err error) {
	if !fresh {
		if l := t.take(address); l != nil {
			return l, true, nil
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer cut.by(nil)
	if !cut.by(cancel) {
		return nil, false, errCut
	}
	c, err := t.d.dial(ctx, "tcp", address, t.o)
	if err != nil {
		return nil, false, err
	}
	return newLink(c), false, nil
}

func (t *Clear) take(address string) *link {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.idle[address]
	n := len(all) - 1
	if n < 0 {
		return nil
	}
	l := all[n]
	all[n] = nil
	t.idle[address] = all[:n]
	t.count--
	return l
}

// put keeps a connection for the next request.
func (t *Clear) put(address string, l *link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count >= maxIdleConns || len(t.idle[address]) >= maxIdlePerHost {
		l.abort()
		return
	}
	l.since = time.Now()
	t.idle[address] = append(t.idle[address], l)
	t.count++
	if t.sweep == nil {
		t.sweep = time.AfterFunc(idleConnTimeout, t.close)
	}
}

// close runs on the timer: it closes what has been idle for too long.
func (t *Clear) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sweep == nil {
		return
	}
	old := time.Now().Add(-idleConnTimeout)
	t.drop(func(l *link) bool { return !l.since.After(old) })
	t.sweep = nil
	if t.count > 0 {
		t.sweep = time.AfterFunc(idleConnTimeout/2, t.close)
	}
}

// drop closes idle connections. mu is held.
func (t *Clear) drop(which func(*link) bool) {
	for address, all := range t.idle {
		kept := all[:0]
		for _, l := range all {
			if which(l) {
				l.abort()
				t.count--
			} else {
				kept = append(kept, l)
			}
		}
		clear(all[len(kept):])
		t.idle[address] = kept
		if len(kept) == 0 {
			delete(t.idle, address)
		}
	}
}

// CloseIdleConnections closes the connections that wait for a request.
func (t *Clear) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(func(*link) bool { return true })
	if t.sweep != nil {
		t.sweep.Stop()
		t.sweep = nil
	}
}

// buffer is empty space to write a request in; release takes it back.
func (t *Clear) buffer() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.space) - 1
	if n < 0 {
		return make([]byte, 0, 4<<10)
	}
	b := t.space[n]
	t.space = t.space[:n]
	return b[:0]
}

func (t *Clear) release(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.space) < maxSpace && cap(b) <= 2*clearInline {
		t.space = append(t.space, b)
	}
}

// ClearAnswer is an answer. It belongs to one goroutine.
type ClearAnswer struct {
	Status int
	Header http.Header
	Length int64 // declared; -1 if not

	t       *Clear
	link    *link
	address string
	cut     *Cut
	stop    func() bool // ends the watch on the context; false if it has closed the connection
	body    body
	last    bool         // the peer closes the connection after it
	writing chan written // nil unless a write goes on beside the reading
}

// written is how a write ended.
type written struct {
	n   int64
	err error
}

// do sends and reads the head.
func (a *ClearAnswer) do(r *ClearRequest, used bool) error {
	l, size := a.link, r.size()
	if r.Sent != nil {
		r.Sent.Store(true)
	}
	b, err := appendHead(a.t.buffer(), r, size)
	switch {
	case err != nil:
		a.t.release(b)
		return fmt.Errorf("%w: %w", ErrUnsent, err)
	case l.raw != nil && l.r.Buffered() == 0 && len(b)+size <= clearInline:
		return a.atOnce(r, b, used)
	case used && !l.quiet():
		a.t.release(b)
		return fmt.Errorf("%w: %w", ErrUnsent, errStale)
	}
	if err = a.send(r, b, size); err == nil {
		err = a.head()
	}
	if err == nil || a.writing == nil {
		return err
	}
	l.abort()
	w := <-a.writing
	a.writing = nil
	if w.n == 0 {
		return fmt.Errorf("%w: %w", ErrUnsent, err)
	}
	return err
}

// atOnce sends a short request whose head is in b, and reads the head of its answer.
func (a *ClearAnswer) atOnce(r *ClearRequest, b []byte, used bool) error {
	for _, p := range r.Body {
		b = append(b, p...)
	}
	l := a.link
	l.ask(b, used)
	err := a.head()
	l.out = nil
	a.t.release(b)
	switch {
	case err == nil:
		return nil
	case l.stale:
		return fmt.Errorf("%w: %w", ErrUnsent, errStale)
	case l.wrote == 0:
		return fmt.Errorf("%w: %w", ErrUnsent, err)
	}
	return err
}

// send writes the request: at once as far as the buffers in between take it, and the
// rest beside the reading of the answer, since a peer may refuse what it has not read.
func (a *ClearAnswer) send(r *ClearRequest, b []byte, size int) error {
	if len(b)+size <= clearInline {
		for _, p := range r.Body {
			b = append(b, p...)
		}
		n, err := a.link.Write(b)
		a.t.release(b)
		if err != nil && n == 0 {
			return fmt.Errorf("%w: %w", ErrUnsent, err)
		}
		return err
	}
	pieces := append(append(make(net.Buffers, 0, 1+len(r.Body)), b), r.Body...)
	n := a.link.writeNow(pieces)
	if n == len(b)+size {
		a.t.release(b)
		return nil
	}
	pieces = rest(pieces, n)
	a.writing = make(chan written, 1)
	go func() {
		more, err := pieces.WriteTo(a.link.Conn)
		a.writing <- written{int64(n) + more, err}
	}()
	return nil
}

// rest is what of the pieces comes after the first n bytes.
func rest(pieces net.Buffers, n int) net.Buffers {
	for n > 0 && n >= len(pieces[0]) {
		n -= len(pieces[0])
		pieces = pieces[1:]
	}
	if n > 0 {
		pieces[0] = pieces[0][n:]
	}
	return pieces
}

// head reads the answer's head.
func (a *ClearAnswer) head() error {
	l := a.link
	l.left = maxResponseHeader
	for range maxInterim {
		h, err := readHead(l.r)
		switch {
		case err != nil && l.left <= 0:
			return ErrHeaderBound
		case err != nil:
			return err
		case h.status == http.StatusSwitchingProtocols:
			return errors.New("the peer wants another protocol")
		case h.status >= 200:
			l.left = noBound
			a.body, a.last = newBody(l.r, &h), h.last
			a.Status, a.Header, a.Length = h.status, h.header, h.length
			return nil
		}
	}
	return errors.New("the peer sends only interim answers")
}

// Read reads the body.
func (a *ClearAnswer) Read(p []byte) (int, error) { return a.body.Read(p) }

// Close ends the answer. The connection serves another request if this one is over
// on both sides, else it is closed.
func (a *ClearAnswer) Close() error {
	l := a.link
	if l == nil {
		return nil
	}
	uncut, stopped := a.cut.by(nil), a.stop()
	open := uncut && stopped && a.body.whole() && !a.last && l.r.Buffered() == 0
	if a.writing != nil {
		open = open && a.wrote()
		if !open {
			l.abort()
			<-a.writing
		}
	}
	a.link, a.writing = nil, nil
	if open {
		a.t.put(a.address, l)
	} else {
		l.abort()
	}
	return nil
}

// wrote reports whether the request has been written to its end. A peer that has
// answered it must have read it, and who wrote is about to say so; one that has
// refused it may never read it.
func (a *ClearAnswer) wrote() bool {
	wait := writeEnd
	if a.Status >= 300 {
		wait = 0
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case w := <-a.writing:
		a.writing <- w // for who joins
		return w.err == nil
	case <-timer.C:
		return false
	}
}
