package fakellm

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"io"
	"net/http"
	"strings"

	"sluice/internal/wire"
)

// sink writes server-sent events, with the framing faults of a behaviour.
type sink struct {
	w       io.Writer
	gz      *gzip.Writer
	rc      *http.ResponseController
	b       *Behaviour
	framed  bool  // events are binary frames
	corrupt bool  // the next frame has a wrong checksum
	sent    int64 // bytes before compression
	err     error // the first write error; later writes are dropped
}

func newSink(w http.ResponseWriter, b *Behaviour) *sink {
	s := &sink{w: w, rc: http.NewResponseController(w), b: b}
	if b.Gzip {
		s.gz = gzip.NewWriter(w)
		s.w = s.gz
	}
	return s
}

// event sends one event; name is empty for those that have none.
func (s *sink) event(name string, data []byte) {
	if s.framed {
		s.frame([]wire.FrameHeader{{Name: ":event-type", Value: cmp.Or(name, "contentBlockDelta")}, {Name: ":content-type", Value: "application/json"}, {Name: ":message-type", Value: "event"}}, data)
		return
	}
	var b bytes.Buffer
	colon := ": "
	if s.b.NoSpace {
		colon = ":"
	}
	if s.sent == 0 && s.b.BOM {
		b.WriteString("\ufeff")
	}
	if s.b.Comments {
		b.WriteString(": keep-alive\n\n")
	}
	if name != "" {
		b.WriteString("event" + colon + name + "\n")
	}
	b.WriteString("data" + colon)
	if s.b.BadUTF8 {
		data = bytes.ReplaceAll(data, []byte(`\u0000`), []byte{0xff})
	}
	b.Write(data)
	b.WriteString("\n\n")
	out := b.Bytes()
	if s.b.CRLF {
		out = []byte(strings.ReplaceAll(b.String(), "\n", "\r\n"))
	}
	s.raw(out)
}

// exception sends a frame that ends the stream with an exception.
func (s *sink) exception(kind, msg string) {
	s.frame([]wire.FrameHeader{{Name: ":exception-type", Value: kind}, {Name: ":content-type", Value: "application/json"}, {Name: ":message-type", Value: "exception"}}, marshal(obj{"message": msg}))
}

func (s *sink) frame(h []wire.FrameHeader, payload []byte) {
	b := wire.AppendFrame(nil, h, payload)
	if s.corrupt {
		s.corrupt = false
		b[len(b)-1] ^= 1
	}
	s.raw(b)
}

// raw sends bytes as they are and flushes them.
func (s *sink) raw(p []byte) {
	if !s.b.ByteByByte {
		s.write(p)
		return
	}
	for i := range p {
		s.write(p[i : i+1])
	}
}

func (s *sink) write(p []byte) {
	if s.err != nil {
		return
	}
	n, err := s.w.Write(p)
	s.sent += int64(n)
	s.err = err
	if s.gz != nil {
		_ = s.gz.Flush()
	}
	_ = s.rc.Flush()
}

func (s *sink) close() {
	if s.gz != nil {
		_ = s.gz.Close()
		_ = s.rc.Flush()
	}
}
