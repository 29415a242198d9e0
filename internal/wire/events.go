package wire

import (
	"bytes"
	"errors"
	"io"
)

// DefaultEventLimit bounds one event in bytes. A picture of a million pixels takes two or
// three million in base64, and an event of Responses may repeat several.
const DefaultEventLimit = 16 << 20

// keptBuffer is the largest buffer, in bytes, that outlives the event it was needed for:
// streams last, and have few large events.
const keptBuffer = 1 << 20

// Errors of Events.Next. The stream cannot be read further after any error.
var (
	ErrEventTooLarge = errors.New("event is larger than the bound")
	ErrUnterminated  = errors.New("stream ends inside an event")
)

// Event is one event of a stream. Its slices are valid until the next call of
// Next.
type Event struct {
	Raw          []byte // the event as it came, its blank line included
	Name         []byte // the event field, nil if there is none
	Data         []byte // the data lines joined by \n; nil if the event has none, as a comment or a blank line does
	Unterminated bool   // the stream ended before its blank line; comes with ErrUnterminated

	dataAt int // offset of Data in Raw, -1 if Data was joined from several lines
}

// Events reads a stream of server-sent events. An event is returned as soon as
// its blank line has arrived; the concatenation of all Raw is the stream, and how
// the stream is cut into reads makes no difference. Lines end in LF, CRLF or CR.
//
// A CR that might be the first half of CRLF is the one difficulty: waiting for
// the next byte would hold back an event of a stream that uses CR alone. The line
// before tells which of the two the stream uses.
type Events struct {
	r     io.Reader
	limit int
	err   error // of r, told once the buffer holds no event

	buf        []byte
	start, end int // the unread part of buf
	pos        int // up to where it has been looked at, relative to start
	line       int // where the line that is looked at begins, relative to start
	begun      bool
	crlf       bool // the line before ended in CRLF
	swallow    bool // an LF that comes next belongs to the CR before it

	name     span
	data     span
	lines    int // data lines of the event
	joined   []byte
	nameSeen bool
}

// firstBuffer is the size of the buffer before an event needs more.
const firstBuffer = 4 << 10

// NewEvents reads from r; limit bounds one event in bytes, 0 takes
// DefaultEventLimit.
func NewEvents(r io.Reader, limit int) *Events {
	if limit <= 0 {
		limit = DefaultEventLimit
	}
	return &Events{r: r, limit: limit, buf: make([]byte, min(firstBuffer, limit))}
}

// Next returns the next event, io.EOF after the last, ErrEventTooLarge,
// ErrUnterminated together with what came, or the reader's error.
func (e *Events) Next() (Event, error) {
	e.reset()
	for {
		if size, ok := e.scan(); ok {
			return e.take(size), nil
		}
		if e.err != nil {
			return e.last()
		}
		if e.end-e.start >= e.limit {
			e.err = ErrEventTooLarge
			return Event{}, e.err
		}
		e.fill()
	}
}

// Buffered is how many bytes have been read beyond the last event.
func (e *Events) Buffered() int { return e.end - e.start }

func (e *Events) reset() {
	e.pos, e.line, e.lines = 0, 0, 0
	e.name, e.data, e.nameSeen = span{}, span{}, false
	if e.joined = e.joined[:0]; cap(e.joined) > keptBuffer {
		e.joined = nil
	}
	if n := e.end - e.start; len(e.buf) > keptBuffer && n <= firstBuffer {
		e.buf = append(make([]byte, 0, firstBuffer), e.buf[e.start:e.end]...)[:firstBuffer]
		e.start, e.end = 0, n
	}
}

// fill reads once, making room first. The buffer grows by doubling, up to the
// limit.
func (e *Events) fill() {
	if e.start == e.end {
		e.start, e.end = 0, 0
	}
	if e.end == len(e.buf) {
		if e.start > 0 {
			e.end = copy(e.buf, e.buf[e.start:e.end])
			e.start = 0
		} else {
			grown := make([]byte, min(2*len(e.buf), e.limit))
			copy(grown, e.buf)
			e.buf = grown
		}
	}
	for range 100 {
		n, err := e.r.Read(e.buf[e.end:])
		e.end += n
		e.err = err
		if n > 0 || err != nil {
			return
		}
	}
	e.err = io.ErrNoProgress
}

// scan goes over the lines that have arrived and returns the size of the event if
// it is complete.
func (e *Events) scan() (size int, complete bool) {
	b := e.buf[e.start:e.end]
	for e.pos < len(b) {
		if e.swallow && e.pos == 0 {
			e.swallow = false
			if b[0] == '\n' {
				e.pos, e.line = 1, 1
				continue
			}
		}
		i := lineEnd(b[e.pos:])
		if i < 0 {
			e.pos = len(b)
			return 0, false
		}
		i += e.pos
		n, ok := e.terminator(b, i)
		if !ok {
			e.pos = i
			return 0, false
		}
		line := e.line
		e.pos, e.line = i+n, i+n
		if !e.begun {
			e.begun = true
			if bytes.HasPrefix(b[line:i], bom) {
				line += len(bom)
			}
		}
		if i == line {
			return e.pos, true
		}
		e.crlf = n == 2
		e.field(b, line, i)
	}
	return 0, false
}

var bom = []byte("\ufeff")

// lineEnd finds the first CR or LF, -1 if there is none. It looks through windows,
// so that a byte that is far away is not sought again for every line.
func lineEnd(b []byte) int {
	const window = 512
	for from := 0; from < len(b); from += window {
		w := b[from:min(from+window, len(b))]
		lf := bytes.IndexByte(w, '\n')
		if lf >= 0 {
			w = w[:lf]
		}
		if cr := bytes.IndexByte(w, '\r'); cr >= 0 {
			return from + cr
		}
		if lf >= 0 {
			return from + lf
		}
	}
	return -1
}

// terminator is the length of the line end at i; not ok if only the next byte can
// tell.
func (e *Events) terminator(b []byte, i int) (n int, ok bool) {
	if b[i] == '\n' {
		return 1, true
	}
	if i == e.line && !e.crlf {
		// A blank line of a stream that uses CR: complete now, whatever follows.
		e.swallow = true
		return 1, true
	}
	switch {
	case i+1 < len(b) && b[i+1] == '\n':
		return 2, true
	case i+1 < len(b), e.err != nil:
		return 1, true
	default:
		return 0, false
	}
}

// field takes one line that is not blank.
func (e *Events) field(b []byte, from, to int) {
	colon := bytes.IndexByte(b[from:to], ':')
	value := to
	name := b[from:to]
	if colon >= 0 {
		name = b[from : from+colon]
		value = from + colon + 1
		if value < to && b[value] == ' ' {
			value++
		}
	}
	switch string(name) {
	case "data":
		if e.lines == 1 {
			e.joined = append(e.joined, b[e.data.start:e.data.end]...)
		}
		if e.lines > 0 {
			e.joined = append(e.joined, '\n')
			e.joined = append(e.joined, b[value:to]...)
		}
		e.data = span{value, to}
		e.lines++
	case "event":
		e.name, e.nameSeen = span{value, to}, true
	}
}

// take hands out the event that is the first size bytes.
func (e *Events) take(size int) Event {
	raw := e.buf[e.start : e.start+size : e.start+size]
	e.start += size
	ev := Event{Raw: raw, dataAt: -1}
	if e.nameSeen {
		ev.Name = raw[e.name.start:e.name.end:e.name.end]
	}
	switch {
	case e.lines == 1:
		ev.Data, ev.dataAt = raw[e.data.start:e.data.end:e.data.end], e.data.start
	case e.lines > 1:
		ev.Data = e.joined
	}
	return ev
}

// last is called when the reader has ended and no event is complete.
func (e *Events) last() (Event, error) {
	b := e.buf[e.start:e.end]
	if len(b) == 0 {
		return Event{}, e.err
	}
	if string(b) == "\n" { // the second half of a CRLF: else it were a blank line
		e.swallow = false
		return e.take(len(b)), nil
	}
	if e.err != io.EOF {
		return Event{}, e.err
	}
	if e.line < len(b) {
		e.field(b, e.line, len(b))
	}
	ev := e.take(len(b))
	ev.Unterminated = true
	return ev, ErrUnterminated
}

// AppendEvent appends one event to dst; name may be empty. Data must not be empty
// of meaning: each of its lines becomes a data line, so that no content can
// forge a field or end the event.
func AppendEvent(dst []byte, name string, data []byte) []byte {
	if name != "" {
		dst = append(dst, "event: "...)
		dst = append(dst, oneLine(name)...)
		dst = append(dst, '\n')
	}
	for {
		i := lineEnd(data)
		line := data
		if i >= 0 {
			line = data[:i]
		}
		dst = append(dst, "data: "...)
		dst = append(dst, line...)
		dst = append(dst, '\n')
		if i < 0 {
			return append(dst, '\n')
		}
		if data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n' {
			i++
		}
		data = data[i+1:]
	}
}

// AppendComment appends a comment event, which clients ignore: a keep-alive.
func AppendComment(dst []byte, text string) []byte {
	dst = append(dst, ": "...)
	dst = append(dst, oneLine(text)...)
	return append(dst, "\n\n"...)
}

// oneLine cuts text at its first line end.
func oneLine(text string) string {
	if i := lineEnd([]byte(text)); i >= 0 {
		return text[:i]
	}
	return text
}
