package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"sluice"
	"sluice/internal/egress"
)

// Answer is what a backend answered. It belongs to one goroutine.
type Answer struct {
	Status  int
	Header  http.Header
	Events  bool   // the body is a stream of events
	Frames  bool   // they come in binary frames
	Refusal []byte // body of an answer of 400 or above, bounded; the answer is then over

	parent context.Context    // the caller's
	cancel context.CancelFunc // of the context of a request over TLS; nil for another
	cut    egress.Cut         // of one in the clear
	passed atomic.Pointer[expiry]
	watch  *watch
	body   io.ReadCloser
	length int64 // declared; -1 if not
	max    int64
	got    bool // a byte of the body has come
}

// Read reads the body of a stream and keeps its deadlines: it is on the
// backend's time while it blocks, and on nobody's when it has returned. Errors
// are io.EOF, an *Error, or the cause of the caller's context.
func (a *Answer) Read(p []byte) (int, error) {
	a.watch.wait()
	n, err := a.body.Read(p)
	a.watch.pause()
	a.got = a.got || n > 0
	if err != nil && err != io.EOF {
		err = a.failed(err)
	}
	return n, err
}

// Interrupt makes a Read that waits return, on any goroutine; nothing can be read any
// more.
func (a *Answer) Interrupt() {
	if a.cancel != nil {
		a.cancel()
	} else {
		a.cut.Now()
	}
}

// Came is when the last Read returned.
func (a *Answer) Came() time.Time { return a.watch.start.Add(a.watch.paused) }

// Progress notes that content has come: tokens is the sum of it so far. The
// first call ends the wait for the first token.
func (a *Answer) Progress(tokens sluice.Tokens) { a.watch.progress(tokens) }

// ReadAll reads an answer in one piece, within the total deadline. An answer
// beyond the bound is UpstreamTooLarge.
func (a *Answer) ReadAll() ([]byte, error) {
	if 0 < a.length && a.length <= wholeAtOnce {
		return a.readDeclared()
	}
	var buf bytes.Buffer
	if a.length > 0 {
		buf.Grow(wholeAtOnce + bytes.MinRead) // what was declared is not yet what is sent
	}
	n, err := buf.ReadFrom(io.LimitReader(a.body, a.max+1))
	a.got = a.got || n > 0
	if err != nil {
		return buf.Bytes(), a.failed(err)
	}
	if n > a.max {
		return buf.Bytes(), &Error{Reason: sluice.UpstreamTooLarge, Sent: true, Status: a.Status}
	}
	return buf.Bytes(), nil
}

// wholeAtOnce is the most that is allocated because it was declared, in bytes.
const wholeAtOnce = 1 << 20

// readDeclared reads an answer of a declared length, and its end.
func (a *Answer) readDeclared() ([]byte, error) {
	buf := make([]byte, a.length)
	n, err := io.ReadFull(a.body, buf)
	a.got = a.got || n > 0
	if err == nil {
		var more [1]byte
		if _, err = io.ReadFull(a.body, more[:]); err == io.EOF { // seen, so that the connection can serve again
			return buf, nil
		}
	}
	switch err {
	case nil:
		err = errors.New("more came than was declared")
	case io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return buf[:n], a.failed(err)
}

// Drain reads what follows the end of a stream, at most for d, so that the
// connection can serve another request.
func (a *Answer) Drain(d time.Duration) {
	a.watch.within(d)
	io.CopyN(io.Discard, a.body, maxRest)
}

// Close ends the attempt: a body that was not read to its end takes the
// connection with it, which is what cancels the work.
func (a *Answer) Close() {
	a.watch.stop()
	if c, ok := a.body.(*egress.ClearAnswer); ok {
		c.Close() // before the cancel, which would close a connection that can serve again
	}
	if a.cancel != nil {
		a.cancel()
	}
	if a.body != nil {
		a.body.Close()
	}
}

// expire ends an attempt whose deadline has passed, on any goroutine.
func (a *Answer) expire(e *expiry) {
	a.passed.CompareAndSwap(nil, e)
	a.Interrupt()
}

// failed says why reading or sending failed.
func (a *Answer) failed(err error) error {
	if a.parent.Err() != nil {
		return context.Cause(a.parent)
	}
	if e := a.passed.Load(); e != nil {
		if a.Status == 0 && isDial(err) {
			return &Error{Reason: sluice.UpstreamConnect, Err: err}
		}
		return &Error{Reason: e.reason(), Sent: true, Status: a.Status, What: e.Error(), Err: err}
	}
	return classify(err, a.Status)
}
