package proxy

import (
	"errors"
	"maps"
	"math"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/wire"
)

// writePart is how much of an answer is written under one deadline.
const writePart = 64 << 10

var keepAlive = []byte(": keep-alive\n\n")

// sink writes one answer. Its mutex keeps the keep-alive timer and the handler
// apart.
type sink struct {
	c       *call
	rc      *http.ResponseController
	conn    ownLine                         // the connection, if this answer has it for itself
	flusher interface{ FlushError() error } // nil if rc has to find it
	id      sluice.RequestID

	mu        sync.Mutex
	committed bool // the client has a status
	bare      bool // by a keep-alive, so without what was decided later
	closed    bool // nothing more is written
	wrote     time.Time
	until     time.Time // write deadline in force
	timer     *time.Timer
	aborted   bool // the connection must not end cleanly
	list      list // the stream, where the client has it as one
}

var _ exchange.Client = (*sink)(nil)

func (s *sink) init(c *call) {
	s.c, s.rc, s.id, s.wrote = c, http.NewResponseController(c.w), c.p.o.NewID(), c.arrived
	s.flusher, _ = c.w.(interface{ FlushError() error })
	// The last answer on this connection may have left a deadline. One that is far
	// off is as good as none until the next write, which moves it on; to lift it and
	// set it again would be done for each request.
	if s.conn = lineOf(c.w, c.r); s.conn == nil || s.conn.WriteUntil().Sub(c.arrived) < c.p.o.WriteStall/2 {
		s.deadline(time.Time{})
		return
	}
	s.until = s.conn.WriteUntil()
}

// deadline sets the write deadline.
func (s *sink) deadline(t time.Time) {
	s.until = t
	s.rc.SetWriteDeadline(t)
}

// watch begins to send keep-alive comments into a stream's silence.
func (s *sink) watch(stream bool) {
	if !stream {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(math.MaxInt64, s.idle) // set before it can fire
	s.timer.Reset(max(s.c.p.o.KeepAliveAfter-time.Since(s.wrote), 0))
}

// idle runs on the timer.
func (s *sink) idle() {
	after := s.c.p.o.KeepAliveAfter
	if !s.mu.TryLock() { // a write is under way: there is no silence
		s.timer.Reset(after / 4)
		return
	}
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if left := after - time.Since(s.wrote); left > 0 {
		s.timer.Reset(left)
		return
	}
	if !s.committed {
		s.committed, s.bare = true, true
		h := s.c.w.Header()
		h[hRequestID] = []string{string(s.id)}
		s.streamHeader(h)
		s.c.w.WriteHeader(http.StatusOK)
	}
	if s.write(keepAlive) != nil {
		s.closed = true // net/http has ended the request's context
		return
	}
	s.timer.Reset(after)
}

func (s *sink) streamHeader(h http.Header) {
	h["Content-Type"] = typeEvents
	if s.c.array {
		h["Content-Type"] = typeJSON
	}
	h["Cache-Control"] = noCache
	h["X-Accel-Buffering"] = noBuffer
}

// Committed reports whether the client has a status.
func (s *sink) Committed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.committed
}

// Events delivers whole events at once.
func (s *sink) Events(head *exchange.Head, p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.committed:
		s.committed = true
		h := s.c.w.Header()
		s.c.answerHeader(h, head)
		s.streamHeader(h)
		s.c.w.WriteHeader(head.Status)
	case s.bare && s.c.array: // a list has no comments
		s.bare = false
	case s.bare:
		s.bare = false
		if _, err := s.c.w.Write(s.c.late(head)); err != nil {
			return s.stalled(err)
		}
	}
	return s.write(p)
}

// write sends p, which is whole events, and flushes. mu is held.
func (s *sink) write(p []byte) error {
	if s.c.array {
		p = s.list.add(nil, p)
	}
	s.slide()
	_, err := s.c.w.Write(p)
	if err == nil {
		err = s.flush()
	}
	return s.stalled(err)
}

// flush sends what has been written.
func (s *sink) flush() error {
	if s.flusher != nil {
		return s.flusher.FlushError()
	}
	return s.rc.Flush()
}

// slide moves the write deadline on, at most once a second: to set one costs
// more than to write an event.
func (s *sink) slide() {
	s.wrote = time.Now() // or is about to
	until := s.wrote.Add(s.c.p.o.WriteStall)
	if until.Sub(s.until) >= time.Second {
		s.deadline(until)
	}
}

// stalled names the error of a write that the client did not take in time.
func (s *sink) stalled(err error) error {
	if err == nil {
		return nil
	}
	s.aborted = true
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &sluice.Error{Kind: sluice.KindCancelled, Reason: sluice.ClientStalled, Msg: "the client reads too slowly", Err: err}
	}
	return err
}

// Answer delivers an answer in one piece.
func (s *sink) Answer(head *exchange.Head, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c.answerHeader(s.c.w.Header(), head)
	return s.sendAs(head.Type, head.Status, body)
}

// own delivers an answer of the gateway's own.
func (s *sink) own(status int, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c.answerHeader(s.c.w.Header(), nil)
	s.send(status, body)
}

// pass delivers a backend's refusal as it is; false if it is too late for that.
func (s *sink) pass(head *exchange.Head, p *exchange.Passed) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.committed {
		return false
	}
	h := s.c.w.Header()
	s.c.answerHeader(h, head)
	h[hReason] = []string{s.c.record.Final.Reason.String()}
	s.send(p.Status, p.Body)
	return true
}

// fail tells the client of an error: as an answer while it has none, else as an
// event, after which the connection is aborted. A client that has left is told
// nothing.
func (s *sink) fail(e *sluice.Error, head *exchange.Head) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e.Reason == sluice.ClientGone || e.Reason == sluice.ClientStalled:
		s.aborted = true
	case !s.committed:
		s.failWhole(e, head)
	default:
		s.aborted = true
		if s.c.streams() && !s.closed {
			if s.bare && !s.c.array {
				s.write(s.c.lateError(e, head))
			}
			s.write(s.errorEvent(e, head))
		}
	}
}

// errorEvent is how the client of a stream is told of an error.
func (s *sink) errorEvent(e *sluice.Error, head *exchange.Head) []byte {
	if s.c.op != wire.Responses && s.c.op != wire.ResponseGet {
		return wire.ErrorEvent(s.c.dialect, e, s.id)
	}
	next := int64(0)
	if head != nil {
		next = head.Sequence
	}
	return wire.ResponsesErrorEvent(e, s.id, next)
}

// failWhole answers with an error. mu is held.
func (s *sink) failWhole(e *sluice.Error, head *exchange.Head) {
	c := s.c
	status, header, body := wire.Error(c.dialect, e, s.id, c.errorOptions())
	h := c.w.Header()
	c.answerHeader(h, head)
	if head == nil {
		c.tellLimits(h, c.limits)
	}
	maps.Copy(h, header)
	h[hReason] = []string{e.Reason.String()}
	s.send(status, body)
}

// send writes a whole JSON answer. mu is held.
func (s *sink) send(status int, body []byte) error { return s.sendAs("", status, body) }

// sendAs writes a whole answer of a type, each part under its own deadline. An empty
// one is JSON. mu is held.
func (s *sink) sendAs(kind string, status int, body []byte) error {
	s.committed = true
	h := s.c.w.Header()
	if h["Content-Type"] = typeJSON; kind != "" {
		h["Content-Type"] = []string{kind}
	}
	s.c.values.set(h, "Content-Length", strconv.Itoa(len(body)))
	s.c.w.WriteHeader(status)
	for {
		part := body[:min(len(body), writePart)]
		body = body[len(part):]
		s.slide()
		if _, err := s.c.w.Write(part); err != nil {
			return s.stalled(err)
		}
		if len(body) == 0 { // what is logged and counted of it the client need not wait for
			return s.stalled(s.flush())
		}
	}
}

func (c *call) streams() bool { return c.head != nil && c.head.Stream }

// close ends the keep-alive and reports whether the connection must be aborted.
func (s *sink) close() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list.begun && !s.aborted && !s.closed {
		s.slide()
		if _, err := s.c.w.Write(endOfList); err != nil {
			s.aborted = true
		}
	}
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	return s.aborted
}
