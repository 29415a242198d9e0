package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// ErrFrame is a frame of a binary stream that is not as it was written: a checksum
// or a length is wrong, or its headers cannot be read. Nothing after it can be
// trusted.
var ErrFrame = errors.New("frame is corrupt")

// Source is the events of one stream, however its provider frames them.
type Source interface {
	// Next returns the next event, io.EOF after the last, or an error of this
	// package, see Framing, or of the reader.
	Next() (Event, error)
	// Buffered is how many bytes have been read beyond the last event.
	Buffered() int
}

// NewSource reads the events of an answer to op from r, which come in binary frames or
// as server-sent events; limit bounds one event in bytes, 0 takes DefaultEventLimit.
func NewSource(op Operation, framed bool, r io.Reader, limit int) Source {
	if framed {
		return NewFrames(op, r, limit)
	}
	return NewEvents(r, limit)
}

// Framing reports whether an error of a Source says something of the stream itself,
// its end included, and not of what it is read through. Tap.End knows what it means.
func Framing(err error) bool {
	return err == io.EOF || errors.Is(err, ErrUnterminated) || errors.Is(err, ErrEventTooLarge) || errors.Is(err, ErrFrame)
}

// Sizes of a frame (application/vnd.amazon.eventstream): a prelude of two lengths and
// the checksum of both, headers, a payload, and the checksum of all before it.
// Checksums are CRC-32 (IEEE), numbers are big-endian.
const (
	prelude         = 12
	checksum        = 4
	leastFrame      = prelude + checksum
	maxFrameHeaders = 128 << 10 // the format's own bound, in bytes
)

// Frames reads a stream of binary frames. Each becomes an event whose name is the
// frame's event type and whose data is its payload; Raw is the same as a server-sent
// event, so that what follows need not know how it came. A frame that tells an
// exception becomes an event of the name "error", and one that holds an event of the
// model's own dialect becomes that event.
type Frames struct {
	op    Operation
	r     io.Reader
	limit int
	err   error // of r

	buf        []byte
	start, end int // the unread part of buf
	out        []byte
}

// NewFrames reads an answer to op from r; limit bounds one frame in bytes, 0 takes
// DefaultEventLimit.
func NewFrames(op Operation, r io.Reader, limit int) *Frames {
	if limit <= 0 {
		limit = DefaultEventLimit
	}
	return &Frames{op: op, r: r, limit: max(limit, leastFrame), buf: make([]byte, max(min(firstBuffer, limit), leastFrame))}
}

// Next returns the event of the next frame, io.EOF after the last, ErrUnterminated
// where the stream ends inside of one, ErrEventTooLarge, ErrFrame, or the reader's
// error. The event's slices are valid until the next call.
func (f *Frames) Next() (Event, error) {
	f.shrink()
	head, err := f.want(prelude)
	if err != nil {
		return Event{}, err
	}
	total, headers := int(binary.BigEndian.Uint32(head)), int(binary.BigEndian.Uint32(head[4:]))
	switch {
	case crc32.ChecksumIEEE(head[:8]) != binary.BigEndian.Uint32(head[8:]):
		return Event{}, f.corrupt("the checksum of its lengths differs")
	case total < leastFrame || headers > total-leastFrame || headers > maxFrameHeaders:
		return Event{}, f.corrupt("its lengths cannot be")
	case total > f.limit:
		f.err = ErrEventTooLarge
		return Event{}, f.err
	}
	frame, err := f.want(total)
	if err != nil {
		return Event{}, err
	}
	at := total - checksum
	if crc32.ChecksumIEEE(frame[:at]) != binary.BigEndian.Uint32(frame[at:]) {
		return Event{}, f.corrupt("its checksum differs")
	}
	h, err := readFrameHeaders(frame[prelude : prelude+headers])
	if err != nil {
		return Event{}, f.corrupt(err.Error())
	}
	f.start += total
	return f.event(&h, frame[prelude+headers:at])
}

// Buffered is how many bytes have been read beyond the last frame.
func (f *Frames) Buffered() int { return f.end - f.start }

func (f *Frames) corrupt(why string) error {
	f.err = fmt.Errorf("%w: %s", ErrFrame, why)
	return f.err
}

// want is the next n bytes. REQUIRES: n is within the bound.
func (f *Frames) want(n int) ([]byte, error) {
	for idle := 0; f.end-f.start < n; {
		switch {
		case f.err == nil:
		case f.err == io.EOF && f.end > f.start:
			return nil, ErrUnterminated
		default:
			return nil, f.err
		}
		f.room()
		got, err := f.r.Read(f.buf[f.end:])
		f.end += got
		f.err = err
		if got == 0 && err == nil {
			if idle++; idle == 100 {
				f.err = io.ErrNoProgress
			}
		}
	}
	return f.buf[f.start : f.start+n], nil
}

// shrink gives up what an earlier frame needed and others do not.
func (f *Frames) shrink() {
	if n := f.end - f.start; len(f.buf) > keptBuffer && n <= firstBuffer {
		f.buf = append(make([]byte, 0, firstBuffer), f.buf[f.start:f.end]...)[:firstBuffer]
		f.start, f.end = 0, n
	}
	if cap(f.out) > keptBuffer {
		f.out = nil
	}
}

// room makes room for more of a frame. The buffer grows by doubling as they come,
// not because a length says so.
func (f *Frames) room() {
	if f.start > 0 && (f.start == f.end || f.end == len(f.buf)) {
		f.end = copy(f.buf, f.buf[f.start:f.end])
		f.start = 0
	}
	if f.end == len(f.buf) {
		grown := make([]byte, min(2*len(f.buf), f.limit))
		copy(grown, f.buf[:f.end])
		f.buf = grown
	}
}

// event is what a frame tells.
func (f *Frames) event(h *frameHeaders, payload []byte) (Event, error) {
	switch string(h.message) {
	case "event":
		if string(h.event) == "chunk" {
			return f.chunk(payload)
		}
		return f.framed(h.event, unpadded(payload)), nil
	case "exception":
		l := lexer{b: payload, lax: true}
		var message string
		if l.ws() == '{' {
			_, _, message = l.readError()
		}
		return f.failure(string(h.exception), message), nil
	case "error":
		return f.failure(string(h.code), string(h.text)), nil
	}
	return Event{}, f.corrupt("it is no event and no exception")
}

// failure is the event of an exception.
func (f *Frames) failure(kind, message string) Event {
	type told struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	if f.op.Dialect() == Anthropic {
		return f.framed([]byte("error"), encode(struct {
			Type  string `json:"type"`
			Error told   `json:"error"`
		}{"error", told{bedrockInAnthropic(kind), message}}))
	}
	return f.framed([]byte("error"), encode(struct {
		Error told `json:"error"`
	}{told{kind, message}}))
}

// chunk is the event of the model's own dialect that a frame holds, in base64.
func (f *Frames) chunk(payload []byte) (Event, error) {
	l := lexer{b: payload, lax: true}
	var data []byte
	err := errChunk
	if l.ws() == '{' {
		for o := l.object(); l.member(&o); {
			if string(l.key(&o)) != "bytes" {
				l.skip()
				continue
			}
			b := l.bytesOf()
			data = make([]byte, base64.StdEncoding.DecodedLen(len(b)))
			var n int
			n, err = base64.StdEncoding.Decode(data, b)
			data = data[:n]
		}
	}
	if l.err != nil || err != nil {
		return Event{}, f.corrupt("it holds no event")
	}
	return f.framed(typeOf(data), data), nil
}

var errChunk = errors.New("no bytes")

// typeOf is an event's own word for what it is, which is its name.
func typeOf(data []byte) (name []byte) {
	l := lexer{b: data, lax: true}
	if l.ws() != '{' {
		return nil
	}
	for o := l.object(); l.member(&o); {
		if string(l.key(&o)) == "type" {
			return l.bytesOf()
		}
		l.skip()
	}
	return nil
}

// framed is an event of a name. A payload of several lines stands in Raw by lines.
func (f *Frames) framed(name, data []byte) Event {
	if lineEnd(data) >= 0 || lineEnd(name) >= 0 {
		f.out = AppendEvent(f.out[:0], string(name), data)
		return Event{Raw: f.out, Name: name, Data: data, dataAt: -1}
	}
	b := append(f.out[:0], "event: "...)
	b = append(b, name...)
	b = append(b, "\ndata: "...)
	at := len(b)
	b = append(b, data...)
	to := len(b)
	f.out = append(b, "\n\n"...)
	return Event{Raw: f.out, Name: f.out[len("event: ") : len("event: ")+len(name)], Data: f.out[at:to:to], dataAt: at}
}

// padding is the member by which the service makes payloads differ in length, so that
// their sizes tell nothing.
var padding = []byte(`,"p":"`)

// unpadded is a payload without its padding, where that is its last member and of
// letters and digits alone: then nothing else can end so.
func unpadded(payload []byte) []byte {
	p, ok := bytes.CutSuffix(payload, []byte(`"}`))
	if !ok {
		return payload
	}
	n := len(p)
	for n > 0 && alphanumeric(p[n-1]) {
		n--
	}
	if !bytes.HasSuffix(p[:n], padding) {
		return payload
	}
	n -= len(padding)
	payload[n] = '}' // the frame has been checked, and is not read again
	return payload[: n+1 : n+1]
}

func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// FrameHeader is one header of a frame, a text. Both are at most 255 bytes long.
type FrameHeader struct{ Name, Value string }

// AppendFrame appends one frame to dst.
func AppendFrame(dst []byte, headers []FrameHeader, payload []byte) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, prelude)...)
	for _, h := range headers {
		dst = append(dst, byte(len(h.Name)))
		dst = append(append(dst, h.Name...), headerString)
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(h.Value)))
		dst = append(dst, h.Value...)
	}
	size := len(dst) - at - prelude
	dst = append(dst, payload...)
	head := dst[at:]
	binary.BigEndian.PutUint32(head, uint32(len(head)+checksum))
	binary.BigEndian.PutUint32(head[4:], uint32(size))
	binary.BigEndian.PutUint32(head[8:], crc32.ChecksumIEEE(head[:8]))
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(head))
}
