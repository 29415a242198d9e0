package cache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// The bounds of a body that a key is made of. What is beyond them is neither kept nor
// looked for.
const (
	MaxBody   = 8 << 20 // bytes
	maxValues = 1 << 18 // values of any kind, 24 bytes of memory each
)

// errCanon is the error of a body that no key is made of: too large, or no JSON. Bodies
// have been scanned before (wire.Scan), so that the latter does not happen.
var errCanon = errors.New("body has no canonical form here")

// value is one JSON value of a body, behind it those inside of it.
type value struct {
	key        span // of a member: its name, without quotes
	at         span
	next       int32 // index behind the last value inside
	escapedKey bool
}

type span struct{ start, end int32 }

// canon writes the canonical form of one body into a hash: two bodies have the same form
// exactly if they are the same JSON value, but for top-level members that are left out.
//
// Members are in the order of their names, strings are what they say and not how they are
// escaped, white space is gone. Strings are equal if their bytes are: no Unicode
// normalisation. Numbers are equal if they are exactly the same decimal and both, or
// neither, are written as a whole number: 0.50 is 0.5 and 5e-1, but 1.0 is not 1, which
// backends may read as another type. Every part stands behind its kind and length, so
// that no two values run into one.
type canon struct {
	b      []byte
	i      int
	values []value
	h      hash.Hash
	out    []byte // not written yet
	name   []byte // scratch
}

// hashJSON writes the form of a body into h, without the top-level members that skip
// names.
func hashJSON(h hash.Hash, body []byte, skip func(name string) bool) error {
	if len(body) > MaxBody {
		return errCanon
	}
	c := canon{b: body, h: h, values: make([]value, 0, 64), out: make([]byte, 0, 4<<10)}
	if err := c.value(value{}); err != nil {
		return err
	}
	if c.ws(); c.i != len(c.b) {
		return errCanon
	}
	c.emit(0, skip)
	c.flush()
	return nil
}

func (c *canon) ws() byte {
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case ' ', '\t', '\n', '\r':
			c.i++
		default:
			return c.b[c.i]
		}
	}
	return 0
}

// value reads one value, and those inside of it, into values. Nesting is bounded by the
// scan of requests.
func (c *canon) value(v value) error {
	first := c.ws()
	at := len(c.values)
	if at >= maxValues {
		return errCanon
	}
	v.at.start = int32(c.i)
	c.values = append(c.values, v)
	var err error
	switch first {
	case '{':
		err = c.inside('}', c.member)
	case '[':
		err = c.inside(']', func() error { return c.value(value{}) })
	case '"':
		_, _, err = c.str()
	case 0:
		err = errCanon
	default:
		c.literal()
	}
	if c.values[at].at.start == int32(c.i) {
		return errCanon
	}
	c.values[at].at.end, c.values[at].next = int32(c.i), int32(len(c.values))
	return err
}

func (c *canon) inside(end byte, one func() error) error {
	c.i++
	if c.ws() == end {
		c.i++
		return nil
	}
	for {
		if err := one(); err != nil {
			return err
		}
		switch c.ws() {
		case ',':
			c.i++
		case end:
			c.i++
			return nil
		default:
			return errCanon
		}
	}
}

func (c *canon) member() error {
	if c.ws() != '"' {
		return errCanon
	}
	in, escaped, err := c.str()
	if err != nil || c.ws() != ':' {
		return errCanon
	}
	c.i++
	return c.value(value{key: in, escapedKey: escaped})
}

// str reads a string; in is between its quotes.
func (c *canon) str() (in span, escaped bool, err error) {
	c.i++
	in.start = int32(c.i)
	for {
		n := bytes.IndexByte(c.b[c.i:], '"')
		if n < 0 {
			return in, false, errCanon
		}
		part := c.b[c.i : c.i+n]
		back := bytes.IndexByte(part, '\\')
		if back < 0 {
			c.i += n
			break
		}
		escaped = true
		if c.i += back + 2; c.i > len(c.b) {
			return in, false, errCanon
		}
	}
	in.end = int32(c.i)
	c.i++
	return in, escaped, nil
}

func (c *canon) literal() {
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case ',', '}', ']', ':', '"', '{', '[', ' ', '\t', '\n', '\r':
			return
		}
		c.i++
	}
}

// emit writes the value at i.
func (c *canon) emit(i int32, skip func(string) bool) {
	v := &c.values[i]
	switch text := c.b[v.at.start:v.at.end]; text[0] {
	case '{':
		c.object(i, skip)
	case '[':
		c.put('[')
		for j := i + 1; j < v.next; j = c.values[j].next {
			c.emit(j, nil)
		}
		c.put(']')
	case '"':
		c.put('"')
		c.text(text[1:len(text)-1], bytes.IndexByte(text, '\\') >= 0)
	case 't', 'f', 'n':
		c.put(text[0])
	default:
		c.number(text)
	}
}

func (c *canon) object(i int32, skip func(string) bool) {
	var members []int32
	for j := i + 1; j < c.values[i].next; j = c.values[j].next {
		if skip == nil || !skip(string(c.nameOf(j))) {
			members = append(members, j)
		}
	}
	slices.SortFunc(members, c.compare)
	c.put('{')
	for _, j := range members {
		v := &c.values[j]
		c.text(c.b[v.key.start:v.key.end], v.escapedKey)
		c.emit(j, nil)
	}
	c.put('}')
}

// nameOf is the name of a member, as it reads. It is valid until the next call.
func (c *canon) nameOf(i int32) []byte {
	v := &c.values[i]
	raw := c.b[v.key.start:v.key.end]
	if !v.escapedKey {
		return raw
	}
	c.name = appendUnquoted(c.name[:0], raw)
	return c.name
}

func (c *canon) compare(i, j int32) int {
	a := c.nameOf(i)
	if c.values[i].escapedKey && c.values[j].escapedKey {
		a = bytes.Clone(a)
	}
	return bytes.Compare(a, c.nameOf(j))
}

func (c *canon) put(kind byte) {
	if c.out = append(c.out, kind); len(c.out) > 3<<10 {
		c.flush()
	}
}

func (c *canon) flush() {
	c.h.Write(c.out)
	c.out = c.out[:0]
}

// text writes a string behind its length. A long one without escapes, such as an image,
// is not copied.
func (c *canon) text(raw []byte, escaped bool) {
	if escaped {
		raw = appendUnquoted(make([]byte, 0, len(raw)), raw)
	}
	c.out = binary.AppendUvarint(c.out, uint64(len(raw)))
	if len(raw) < 1<<10 {
		c.out = append(c.out, raw...)
		if len(c.out) > 3<<10 {
			c.flush()
		}
		return
	}
	c.flush()
	c.h.Write(raw)
}

// number writes a number as the decimal that it is: its digits without zeros at either
// end, its exponent, and whether it was written as a whole number.
func (c *canon) number(text []byte) {
	whole := !bytes.ContainsAny(text, ".eE")
	digits, exponent, ok := decimal(text)
	if !ok { // no float64, and not accepted by any scan: it is equal to itself
		c.put('?')
		c.text(text, false)
		return
	}
	kind := byte('.')
	if whole {
		kind = '#'
	}
	c.put(kind)
	if text[0] == '-' {
		c.put('-')
	} else {
		c.put('+')
	}
	c.text(digits, false)
	c.out = binary.AppendVarint(c.out, exponent)
}

// decimal is the digits and the exponent of a number: digits · 10^exponent. Those of zero
// are empty and 0.
func decimal(text []byte) (digits []byte, exponent int64, ok bool) {
	mantissa := bytes.TrimPrefix(text, []byte("-"))
	if i := bytes.IndexAny(mantissa, "eE"); i >= 0 {
		e, err := strconv.ParseInt(string(bytes.TrimPrefix(mantissa[i+1:], []byte("+"))), 10, 32)
		if err != nil {
			return nil, 0, false
		}
		exponent, mantissa = e, mantissa[:i]
	}
	before, after, _ := bytes.Cut(mantissa, []byte("."))
	digits = append(append(make([]byte, 0, len(mantissa)), before...), after...)
	exponent -= int64(len(after))
	for _, d := range digits {
		if d < '0' || d > '9' {
			return nil, 0, false
		}
	}
	digits = bytes.TrimLeft(digits, "0")
	short := bytes.TrimRight(digits, "0")
	exponent += int64(len(digits) - len(short))
	if len(short) == 0 {
		exponent = 0
	}
	return short, exponent, true
}

// appendUnquoted appends what is between the quotes of a JSON string as it reads.
// Requests have no lone surrogates.
func appendUnquoted(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		if raw[i] != '\\' || i+1 >= len(raw) {
			dst = append(dst, raw[i])
			i++
			continue
		}
		c := raw[i+1]
		i += 2
		switch c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r := hex4(raw[i:])
			i += 4
			if utf16.IsSurrogate(r) && i+1 < len(raw) {
				r = utf16.DecodeRune(r, hex4(raw[i+2:]))
				i += 6
			}
			dst = utf8.AppendRune(dst, r)
		default: // quote, backslash, slash
			dst = append(dst, c)
		}
	}
	return dst
}

func hex4(b []byte) rune {
	if len(b) < 4 {
		return utf8.RuneError
	}
	v, err := strconv.ParseUint(string(b[:4]), 16, 16)
	if err != nil {
		return utf8.RuneError
	}
	return rune(v)
}
