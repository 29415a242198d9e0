package front

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sluice/internal/wire"
)

// writeRoom is how much of an answer is collected before it is written, in bytes.
const writeRoom = 16 << 10

// keptRoom is the most of it that outlives an answer.
const keptRoom = 4 << 10

// Response is the answer to a request, an http.ResponseWriter that also flushes
// (FlushError) and sets deadlines, as http.NewResponseController asks for.
type Response struct {
	c      *conn
	header http.Header
	out    []byte // still to be written
	until  time.Time

	wrote  bool  // the head
	status int   //
	left   int64 // bytes that a declared length leaves to write; -1 if the answer is in chunks
	bare   bool  // it has no body
	close  bool  // the connection is closed after it
	err    error // of a write
}

var _ http.ResponseWriter = (*Response)(nil)

func (w *Response) start() {
	clear(w.header)
	if cap(w.out) > keptRoom || w.out == nil {
		w.out = make([]byte, 0, keptRoom/2)
	}
	w.out, w.wrote, w.bare, w.close, w.err = w.out[:0], false, false, false, nil
}

// Header is the answer's headers, until it has been begun.
func (w *Response) Header() http.Header { return w.header }

// Whole reports whether the request has come to its end, so that to read it cannot
// wait.
func (w *Response) Whole() bool { return w.c.body.ahead() }

// WriteUntil is the write deadline that is in force, zero for none: an earlier answer
// on this connection may have left it.
func (w *Response) WriteUntil() time.Time { return w.until }

// SetWriteDeadline sets the write deadline.
func (w *Response) SetWriteDeadline(t time.Time) error {
	w.until = t
	return w.c.Conn.SetWriteDeadline(t)
}

// SetReadDeadline sets the deadline for reads of the body.
func (w *Response) SetReadDeadline(t time.Time) error { return w.c.SetReadDeadline(t) }

// errLong is the error of an answer that is longer than it declares.
var errLong = http.ErrContentLength

// WriteHeader begins the answer. The first call counts.
func (w *Response) WriteHeader(status int) {
	if w.wrote {
		return
	}
	w.wrote, w.status, w.left = true, status, -1
	w.bare = status < 200 || status == http.StatusNoContent || status == http.StatusNotModified
	h := w.header
	if v := h["Content-Length"]; len(v) > 0 {
		if n, ok := plainLength(v[0]); ok && len(v) == 1 {
			w.left = n
		} else {
			delete(h, "Content-Length")
		}
	}
	w.close = w.c.s.lame.Load() || w.c.body.left > restRead || hasToken(h["Connection"], "close")
	b := append(w.out, "HTTP/1.1 "...)
	b = append(strconv.AppendInt(b, int64(status), 10), ' ')
	b = append(append(b, http.StatusText(status)...), "\r\n"...)
	for name, values := range h {
		if name == "Connection" || name == "Transfer-Encoding" || !wire.ValidName(name) {
			continue
		}
		for _, v := range values {
			b = append(append(append(b, name...), ": "...), v...)
			fold(b[len(b)-len(v):])
			b = append(b, "\r\n"...)
		}
	}
	if h["Date"] == nil {
		b = append(append(append(b, "Date: "...), w.c.s.date()...), "\r\n"...)
	}
	if w.close {
		b = append(b, "Connection: close\r\n"...)
	}
	if w.left < 0 && !w.bare {
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	w.out = append(b, "\r\n"...)
}

// fold makes spaces of what would end a line.
func fold(v []byte) {
	for i, c := range v {
		if c == '\r' || c == '\n' {
			v[i] = ' '
		}
	}
}

func hasToken(values []string, token string) bool {
	for _, v := range values {
		for t := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(t), token) {
				return true
			}
		}
	}
	return false
}

// Write writes a part of the body, in an answer without a length as one chunk.
func (w *Response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	switch {
	case w.err != nil:
		return 0, w.err
	case len(p) == 0:
		return 0, nil
	case w.bare:
		return 0, http.ErrBodyNotAllowed
	case w.left < 0:
		w.out = append(strconv.AppendUint(w.out, uint64(len(p)), 16), "\r\n"...)
	case int64(len(p)) > w.left:
		return 0, errLong
	default:
		w.left -= int64(len(p))
	}
	if err := w.put(p); err != nil {
		return 0, err
	}
	if w.left < 0 {
		w.out = append(w.out, "\r\n"...)
	}
	return len(p), nil
}

// put writes p behind what is collected, or collects it.
func (w *Response) put(p []byte) error {
	if len(w.out)+len(p) <= writeRoom {
		w.out = append(w.out, p...)
		return nil
	}
	if err := w.FlushError(); err != nil || len(p) == 0 {
		return err
	}
	return w.send(p)
}

// FlushError writes what is collected.
func (w *Response) FlushError() error {
	w.WriteHeader(http.StatusOK)
	if w.err != nil || len(w.out) == 0 {
		return w.err
	}
	err := w.send(w.out)
	w.out = w.out[:0]
	return err
}

// send writes to the connection. A client that cannot be written to has left.
func (w *Response) send(p []byte) error {
	if w.err != nil {
		return w.err
	}
	if _, w.err = w.c.Conn.Write(p); w.err != nil {
		w.c.leave()
	}
	return w.err
}

// errShort is the error of an answer that is shorter than it declares.
var errShort = errors.New("the answer is shorter than it declares")

// finish writes what ends the answer and reads what is left of the request. It reports
// whether the connection may serve another.
func (w *Response) finish() bool {
	if !w.wrote {
		if w.header["Content-Length"] == nil {
			w.header["Content-Length"] = []string{"0"}
		}
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case w.bare:
	case w.left < 0:
		w.out = append(w.out, "0\r\n\r\n"...)
	case w.left > 0 && w.err == nil:
		w.err = errShort
	}
	if err := w.FlushError(); err != nil {
		return false
	}
	w.c.hush()
	switch {
	case w.close && w.c.body.left == 0:
		return false
	case w.close || !w.c.body.skip():
		w.c.linger()
		return false
	}
	return true
}
