package proxy

import (
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"sluice"
)

// firstPart is how much of a body must have come before the rest of its
// declared size is allocated.
const firstPart = 1 << 20

// read reads the body whole, within the bound and at the least rate. After it
// net/http watches the connection, so that a client that leaves ends the
// request's context.
func (c *call) read() ([]byte, error) {
	if e := c.encoded(); e != nil {
		return nil, e
	}
	declared := c.r.ContentLength
	if declared > c.p.o.MaxBody {
		return nil, c.tooLarge()
	}
	var body []byte
	var err error
	if c.sink.conn != nil && c.sink.conn.Whole() { // nothing to wait for
		body, err = c.readWhole(c.r.Body, declared)
	} else {
		in := &paced{c: c, start: time.Now(), from: c.r.Body}
		body, err = c.readWhole(in, declared)
		in.end(err == nil)
	}
	switch {
	case err == nil:
		return body, nil
	case errors.Is(err, errTooLarge):
		return nil, c.tooLarge()
	}
	c.w.Header().Set("Connection", "close")
	return nil, c.unread(err)
}

// encoded refuses a body that is compressed; nil if it is as it is.
func (c *call) encoded() *sluice.Error {
	if e := c.r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return sluice.Invalid("content-encoding", "%q is not supported: send the body as it is", e)
	}
	return nil
}

// unread is why a body could not be read to its end.
func (c *call) unread(err error) *sluice.Error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &sluice.Error{Kind: sluice.KindInvalid, Reason: sluice.BodyTimeout, Msg: "the body came too slowly", Hint: "send it faster, or in smaller requests"}
	case c.r.Context().Err() != nil, errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return &sluice.Error{Kind: sluice.KindCancelled, Reason: sluice.ClientGone, Msg: "the client left in the middle of its body", Err: err}
	}
	e := sluice.Invalid("", "the body cannot be read")
	e.Err = err
	return e
}

func (c *call) tooLarge() error {
	c.w.Header().Set("Connection", "close")
	return tooLarge(c.p.o.MaxBody)
}

func tooLarge(most int64) *sluice.Error {
	e := &sluice.Error{Kind: sluice.KindTooLarge, Reason: sluice.BodyTooLarge, Msg: "the body is larger than the bound"}
	e.Hint = "send at most " + sizeText(most)
	return e
}

var errTooLarge = errors.New("body is larger than the bound")

// readWhole reads r, of which declared bytes are announced, -1 if none, into room
// that never doubles: the most that is held is the body and one part.
func (c *call) readWhole(r io.Reader, declared int64) ([]byte, error) {
	if declared < 0 {
		return readParts(r, c.p.o.MaxBody)
	}
	var buf []byte
	if c.space = c.p.bodies.take(declared); c.space != nil {
		buf = c.space.b[:declared:declared]
	} else {
		buf = make([]byte, min(declared, firstPart))
	}
	if _, err := io.ReadFull(r, buf); err != nil {
		return nil, err
	}
	if declared > firstPart {
		all := make([]byte, declared)
		n := copy(all, buf)
		buf = nil
		if _, err := io.ReadFull(r, all[n:]); err != nil {
			return nil, err
		}
		buf = all
	}
	// The end must be seen, for net/http to begin to watch the connection.
	if n, err := r.Read(c.probe[:]); n > 0 || err != io.EOF {
		return nil, errors.Join(errTooLarge, err)
	}
	return buf, nil
}

// readParts reads a body of unknown size in parts and joins them.
func readParts(r io.Reader, limit int64) ([]byte, error) {
	var parts [][]byte
	var total int64
	for size := 16 << 10; ; size = min(2*size, firstPart) {
		part := make([]byte, size)
		n, err := io.ReadFull(r, part)
		total += int64(n)
		if total > limit {
			return nil, errTooLarge
		}
		parts = append(parts, part[:n])
		if err == io.EOF || err == io.ErrUnexpectedEOF && n < size && atEnd(r) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	all := make([]byte, 0, total)
	for i, part := range parts {
		all = append(all, part...)
		parts[i] = nil
	}
	return all, nil
}

// atEnd tells a body that ended from one that was cut: both are a short read.
func atEnd(r io.Reader) bool {
	_, err := r.Read(make([]byte, 1))
	return err == io.EOF
}

// paced is a body under a read deadline that moves on with what has come.
type paced struct {
	c     *call
	from  io.Reader
	start time.Time
	n     int64
	until time.Time
}

func (p *paced) Read(b []byte) (int, error) {
	o := &p.c.p.o
	due := p.start.Add(o.BodyGrace + time.Duration(p.n/o.BodyRate)*time.Second)
	if due != p.until {
		p.until = due
		p.c.sink.rc.SetReadDeadline(due)
	}
	n, err := p.from.Read(b)
	p.n += int64(n)
	return n, err
}

// end lifts the deadline of a body that has been read, which would else end the watch on
// the connection. What is left of another net/http reads, and waits for: not for long.
func (p *paced) end(whole bool) {
	var until time.Time
	if !whole {
		until = time.Now().Add(p.c.p.o.BodyGrace)
		if !p.until.IsZero() && p.until.Before(until) {
			until = p.until
		}
	}
	p.c.sink.rc.SetReadDeadline(until)
}
