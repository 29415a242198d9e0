package wire

import (
	"bytes"
	"fmt"
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

// objectIfAny enters an object; what is none is skipped and has no members.
func (l *lexer) objectIfAny() object {
	if l.ws() != '{' {
		l.skip()
		return object{}
	}
	return l.object()
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

// arrayIfAny enters an array; what is none is skipped and has no elements.
func (l *lexer) arrayIfAny() array {
	if l.ws() != '[' {
		l.skip()
		return array{}
	}
	return l.array()
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

// end refuses anything but white space after the value.
func (l *lexer) end() {
	if l.ws(); l.err == nil && l.i < len(l.b) {
		l.fail(l.i, "more follows after the end of the value")
	}
}
