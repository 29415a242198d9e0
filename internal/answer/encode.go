package answer

import (
	"encoding/binary"
	"errors"
	"maps"
	"net/http"
	"slices"

	"sluice"
)

// version begins every encoding. One that Parse does not know is not read.
const version = 1

// The bounds of an encoding, beside its body.
const (
	maxStatus  = 999
	maxHeaders = 1 << 10 // values of all headers
)

// ErrFormat is the error of bytes that are no encoding of an answer.
var ErrFormat = errors.New("not an answer in a format that is known")

// Append appends the encoding of the answer to dst.
func (a *Answer) Append(dst []byte) []byte {
	dst = append(dst, version)
	dst = binary.AppendUvarint(dst, uint64(a.Status))
	stream := byte(0)
	if a.Stream {
		stream = 1
	}
	dst = append(dst, stream)
	for _, s := range [...]string{a.Type, string(a.Backend), a.Policy, a.Dropped} {
		dst = appendText(dst, s)
	}
	names := slices.Sorted(maps.Keys(a.Header))
	dst = binary.AppendUvarint(dst, uint64(len(names)))
	for _, name := range names {
		dst = appendText(dst, name)
		dst = binary.AppendUvarint(dst, uint64(len(a.Header[name])))
		for _, v := range a.Header[name] {
			dst = appendText(dst, v)
		}
	}
	return append(appendLen(dst, len(a.Body)), a.Body...)
}

func appendLen(dst []byte, n int) []byte { return binary.AppendUvarint(dst, uint64(n)) }

func appendText(dst []byte, s string) []byte { return append(appendLen(dst, len(s)), s...) }

// Parse reads an encoding, all of b. The answer's body is in b, which is the answer's
// from then on. The error is ErrFormat.
func Parse(b []byte) (*Answer, error) {
	p := parser{b: b}
	if p.byte() != version {
		return nil, ErrFormat
	}
	a := &Answer{Status: int(p.number(maxStatus))}
	switch p.byte() {
	case 0:
	case 1:
		a.Stream = true
	default:
		p.bad = true
	}
	a.Type, a.Backend, a.Policy, a.Dropped = p.text(), sluice.BackendID(p.text()), p.text(), p.text()
	a.Header = p.header()
	body := p.bytes()
	if p.bad || len(p.b) > 0 {
		return nil, ErrFormat
	}
	a.Body = body
	return a, nil
}

// parser reads from the front of b. Once something is wrong, bad stays set and all that
// is read is zero.
type parser struct {
	b   []byte
	bad bool
}

func (p *parser) byte() byte {
	if p.bad || len(p.b) == 0 {
		p.bad = true
		return 0
	}
	c := p.b[0]
	p.b = p.b[1:]
	return c
}

// number reads one of at most most, in its shortest form.
func (p *parser) number(most int) uint64 {
	v, n := binary.Uvarint(p.b)
	if p.bad || n <= 0 || v > uint64(most) || n > 1 && p.b[n-1] == 0 {
		p.bad = true
		return 0
	}
	p.b = p.b[n:]
	return v
}

func (p *parser) bytes() []byte {
	n := int(p.number(len(p.b))) // the length itself takes a byte at least, so that what is left is less
	if p.bad || n > len(p.b) {
		p.bad = true
		return nil
	}
	out := p.b[:n:n]
	p.b = p.b[n:]
	return out
}

func (p *parser) text() string { return string(p.bytes()) }

// header reads headers, which stand in order and none twice.
func (p *parser) header() http.Header {
	n := int(p.number(maxHeaders))
	if n == 0 {
		return nil
	}
	h, last, all := make(http.Header), "", 0
	for i := range n {
		name := p.text()
		if p.bad || i > 0 && name <= last {
			p.bad = true
			return nil
		}
		last = name
		values := int(p.number(maxHeaders))
		if all += values; values == 0 || all > maxHeaders {
			p.bad = true
			return nil
		}
		for range values {
			h[name] = append(h[name], p.text())
		}
	}
	return h
}
