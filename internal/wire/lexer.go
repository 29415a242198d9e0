package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Bounds of the JSON that is read. Both are far beyond what a provider takes and
// keep hostile input from costing more than its bytes.
const (
	MaxDepth  = 256     // nesting of a request
	maxNumber = 1024    // bytes of a number
	maxKeys   = 1 << 16 // keys of all objects that are open at a time
	maxKey    = 1 << 12 // bytes of a key
)

// lexer reads JSON in place by recursive descent. The first error sticks: after
// it every method does nothing and returns zero, so that callers check once.
//
// A strict lexer is for requests: it refuses what two parsers may read
// differently (duplicate keys, lone surrogates, bad UTF-8, numbers beyond
// float64). A lax one is for answers of upstreams, where those are bytes to be
// passed on: a provider that splits a surrogate pair over two deltas must not
// cost its client the stream.
type lexer struct {
	b      []byte
	i      int
	depth  int
	lax    bool
	values int // members and elements read so far
	err    *syntaxError

	keys    []keySpan // keys of the objects that are open, innermost last (strict only)
	unquote []byte    // backing of keys that were written with escapes
}

// keySpan is a key's text: in the body, or in unquote if it has escapes.
type keySpan struct {
	start, end int
	escaped    bool
}

// syntaxError is where and why the input is refused.
type syntaxError struct {
	at   int
	what string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.what, e.at) }

func (l *lexer) fail(at int, what string) {
	if l.err == nil {
		l.err = &syntaxError{at, what}
	}
	l.i = len(l.b)
}

// ws skips white space and returns the byte that follows, 0 at the end.
func (l *lexer) ws() byte {
	for l.i < len(l.b) {
		switch c := l.b[l.i]; c {
		case ' ', '\t', '\n', '\r':
			l.i++
		default:
			return c
		}
	}
	return 0
}

// object is an open object that is being read: for o := l.object(); l.member(&o); { … }.
type object struct {
	open   bool
	member bool // a member has been read
	base   int  // of its keys in lexer.keys
	text   int  // of its keys in lexer.unquote
	key    span // of the current member's key, quotes included
	comma  int  // offset of the comma before it, -1 if it is the first
}

// object enters an object.
func (l *lexer) object() object {
	if l.ws() != '{' {
		l.unexpected("an object")
		return object{}
	}
	if !l.enter() {
		return object{}
	}
	return object{open: true, base: len(l.keys), text: len(l.unquote)}
}

func (l *lexer) enter() bool {
	l.i++
	if l.depth++; l.depth > MaxDepth {
		l.fail(l.i-1, "nesting is too deep")
		return false
	}
	return true
}

// member advances to the next member's value and reports whether there is one.
// REQUIRES: the value of the member before has been read.
func (l *lexer) member(o *object) bool {
	if !o.open || l.err != nil {
		return false
	}
	o.comma = -1
	c := l.ws()
	if o.member {
		switch c {
		case ',':
			o.comma = l.i
			l.i++
			c = l.ws()
		case '}':
		default:
			l.unexpected("a comma or the end of the object")
			return false
		}
	}
	if c == '}' && (!o.member || o.comma < 0) {
		l.i++
		l.depth--
		o.open = false
		l.closeKeys(o)
		return false
	}
	if c != '"' {
		l.unexpected("a key")
		return false
	}
	o.member = true
	l.values++
	start := l.i
	s, escaped := l.str()
	if l.err != nil {
		return false
	}
	o.key = span{start, l.i}
	if !l.lax {
		l.pushKey(s, escaped)
	}
	if l.ws() != ':' || l.err != nil {
		l.unexpected("a colon")
		return false
	}
	l.i++
	return true
}

// key is the key of the current member with its escapes undone.
func (l *lexer) key(o *object) []byte {
	in := l.b[o.key.start+1 : o.key.end-1]
	if bytes.IndexByte(in, '\\') < 0 {
		return in
	}
	return appendUnquoted(nil, in)
}

func (l *lexer) pushKey(s span, escaped bool) {
	if len(l.keys) >= maxKeys || s.len() > maxKey {
		l.fail(s.start, "object has too many keys or too long a key")
		return
	}
	k := keySpan{s.start, s.end, escaped}
	if escaped {
		k.start = len(l.unquote)
		l.unquote = appendUnquoted(l.unquote, l.b[s.start:s.end])
		k.end = len(l.unquote)
	}
	l.keys = append(l.keys, k)
}

func (l *lexer) keyText(k keySpan) []byte {
	if k.escaped {
		return l.unquote[k.start:k.end]
	}
	return l.b[k.start:k.end]
}

// closeKeys refuses duplicates among the keys of an object that ends. Few keys
// are compared pairwise, many are sorted: a hash would be open to chosen
// collisions.
func (l *lexer) closeKeys(o *object) {
	if l.lax {
		return
	}
	keys := l.keys[o.base:]
	if len(keys) <= 12 {
		for i := 1; i < len(keys); i++ {
			for j := range i {
				if keys[i].end-keys[i].start == keys[j].end-keys[j].start && bytes.Equal(l.keyText(keys[i]), l.keyText(keys[j])) {
					l.duplicate(keys[i])
					return
				}
			}
		}
	} else {
		slices.SortFunc(keys, func(a, b keySpan) int { return bytes.Compare(l.keyText(a), l.keyText(b)) })
		for i := 1; i < len(keys); i++ {
			if bytes.Equal(l.keyText(keys[i-1]), l.keyText(keys[i])) {
				l.duplicate(keys[i])
				return
			}
		}
	}
	l.keys, l.unquote = l.keys[:o.base], l.unquote[:o.text]
}

func (l *lexer) duplicate(k keySpan) {
	at := l.i
	if !k.escaped {
		at = k.start - 1
	}
	l.fail(at, fmt.Sprintf("key %s stands twice in one object", clip(l.keyText(k), 64)))
}

// array is an open array: for a := l.array(); l.element(&a); { … }.
type array struct{ open, element bool }

// array enters an array.
func (l *lexer) array() array {
	if l.ws() != '[' {
		l.unexpected("an array")
		return array{}
	}
	return array{open: l.enter()}
}

// element advances to the next element and reports whether there is one.
func (l *lexer) element(a *array) bool {
	if !a.open || l.err != nil {
		return false
	}
	c := l.ws()
	if c == ']' {
		l.i++
		l.depth--
		a.open = false
		return false
	}
	if a.element {
		if c != ',' {
			l.unexpected("a comma or the end of the array")
			return false
		}
		l.i++
		if l.ws() == ']' {
			l.unexpected("a value")
			return false
		}
	}
	a.element = true
	l.values++
	return true
}

func (l *lexer) unexpected(want string) {
	if l.i >= len(l.b) {
		l.fail(len(l.b), "input ends where "+want+" is expected")
		return
	}
	r, _ := utf8.DecodeRune(l.b[l.i:])
	l.fail(l.i, strconv.QuoteRune(r)+" stands where "+want+" is expected")
}

// skip reads a value of any kind and returns where it stands.
func (l *lexer) skip() span {
	c := l.ws()
	start := l.i
	switch {
	case c == '"':
		l.str()
	case c == '{':
		for o := l.object(); l.member(&o); {
			l.skip()
		}
	case c == '[':
		for a := l.array(); l.element(&a); {
			l.skip()
		}
	case c == '-' || c >= '0' && c <= '9':
		l.number()
	default:
		l.literal()
	}
	if l.err != nil {
		return span{}
	}
	return span{start, l.i}
}

// literal reads true, false or null and returns its first letter.
func (l *lexer) literal() byte {
	c := l.ws()
	for _, w := range [...]string{"true", "false", "null"} {
		if c == w[0] && len(l.b)-l.i >= len(w) && string(l.b[l.i:l.i+len(w)]) == w {
			l.i += len(w)
			return c
		}
	}
	if l.lax && l.notFinite() {
		return 'n'
	}
	l.unexpected("a value")
	return 0
}

// notFinite reads NaN, Infinity and -Infinity, which Python writes into log
// probabilities.
func (l *lexer) notFinite() bool {
	for _, w := range [...]string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(l.b[l.i:], []byte(w)) {
			l.i += len(w)
			return true
		}
	}
	return false
}

// null reads a null if it stands next.
func (l *lexer) null() bool {
	if l.ws() != 'n' {
		return false
	}
	return l.literal() == 'n'
}

// number reads a number and returns where it stands.
func (l *lexer) number() span {
	start := l.i
	b, i := l.b, l.i
	digits := func() bool {
		from := i
		for i < len(b) && b[i]-'0' <= 9 {
			i++
		}
		return i > from
	}
	if i < len(b) && b[i] == '-' {
		i++
	}
	ok := true
	if i < len(b) && b[i] == '0' {
		i++
	} else {
		ok = digits()
	}
	wide := i-start > 300
	if ok && i < len(b) && b[i] == '.' {
		i++
		ok = digits()
	}
	if ok && i < len(b) && b[i]|0x20 == 'e' {
		wide = true
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		ok = digits()
	}
	switch {
	case !ok && l.lax && l.notFinite():
		return span{start, l.i}
	case !ok:
		l.i = i
		l.unexpected("a digit")
		return span{}
	case l.lax:
	case i-start > maxNumber:
		l.fail(start, "number is too long")
		return span{}
	case wide:
		if _, err := strconv.ParseFloat(string(b[start:i]), 64); err != nil {
			l.fail(start, "number is out of range")
			return span{}
		}
	}
	l.i = i
	return span{start, i}
}

// str reads a string and returns its inside and whether that has escapes.
func (l *lexer) str() (in span, escaped bool) {
	if l.ws() != '"' {
		l.unexpected("a string")
		return span{}, false
	}
	l.i++
	start := l.i
	b, i := l.b, l.i
	for {
		i = plain(b, i)
		if i >= len(b) {
			l.fail(len(b), "input ends inside a string")
			return span{}, false
		}
		switch c := b[i]; {
		case c == '"':
			l.i = i + 1
			return span{start, i}, escaped
		case c == '\\':
			escaped = true
			n := l.escape(i)
			if n == 0 {
				return span{}, false
			}
			i += n
		case c < 0x20:
			if !l.lax {
				l.fail(i, "control character in a string")
				return span{}, false
			}
			i++
		default:
			n := l.multibyte(i)
			if n == 0 {
				return span{}, false
			}
			i += n
		}
	}
}

// plain returns the offset of the first byte from i on that is not printable
// ASCII other than quote and backslash: eight bytes at a time, since nearly all
// of a body is such bytes.
func plain(b []byte, i int) int {
	const (
		lo = 0x0101010101010101
		hi = 0x8080808080808080
	)
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote := w ^ lo*'"'
		slash := w ^ lo*'\\'
		// Each term sets the high bit of the lowest byte that matches; higher ones
		// may be false, which the lowest hides.
		m := (w - lo*0x20 | w | (quote-lo)&^quote | (slash-lo)&^slash) & hi
		if m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < 0x20 || c >= 0x80 || c == '"' || c == '\\' {
			return i
		}
	}
	return i
}

// multibyte validates a run of bytes above ASCII at i and returns its length, 0 on
// failure.
func (l *lexer) multibyte(i int) int {
	from := i
	for i < len(l.b) && l.b[i] >= utf8.RuneSelf {
		r, n := utf8.DecodeRune(l.b[i:])
		if r == utf8.RuneError && n == 1 && !l.lax {
			l.fail(i, "invalid UTF-8 in a string")
			return 0
		}
		i += n
	}
	return i - from
}

// escape validates the escape at i and returns its length, 0 on failure.
func (l *lexer) escape(i int) int {
	b := l.b
	if i+1 >= len(b) {
		l.fail(len(b), "input ends inside a string")
		return 0
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		u, ok := hex4(b, i+2)
		if !ok {
			break
		}
		if u < 0xd800 || u >= 0xe000 {
			return 6
		}
		if u < 0xdc00 && i+7 < len(b) && b[i+6] == '\\' && b[i+7] == 'u' {
			if v, ok := hex4(b, i+8); ok && v >= 0xdc00 && v < 0xe000 {
				return 12
			}
		}
		if l.lax {
			return 6
		}
		l.fail(i, "lone surrogate in a string")
		return 0
	}
	l.fail(i, "unknown escape in a string")
	return 0
}

func hex4(b []byte, i int) (rune, bool) {
	if i+4 > len(b) {
		return 0, false
	}
	var r rune
	for _, c := range b[i : i+4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// end refuses anything but white space after the value.
func (l *lexer) end() {
	if l.ws(); l.err == nil && l.i < len(l.b) {
		l.fail(l.i, "more follows after the end of the value")
	}
}
