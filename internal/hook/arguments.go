package hook

import (
	"unicode/utf16"
	"unicode/utf8"
)

// ArgumentsRedactor redacts a JSON document that comes in parts, as the arguments of a
// tool call do, and lets out a document that is as much JSON as what came. It redacts
// within strings, and writes 0 in the place of a number; member names are left alone.
// The text of strings may be escaped in another way than it came.
type ArgumentsRedactor struct {
	text  Redactor // of the string that is read
	state argState
	key   bool   // that string is a member's name
	stack []bool // open objects (true) and arrays
	names bool   // a member's name is next
	token []byte // of a number, or an escape, that is not whole
	high  rune   // half of a pair, whose other half may follow; 0 is none
	buf   []byte
	out   []byte
}

type argState uint8

const (
	argOutside argState = iota
	argString
	argEscape // behind the backslash
	argUnit   // in the four digits behind \u
	argNumber
)

const (
	maxArgDepth = 1 << 10 // beyond it, names are taken for values
	maxNumber   = 64      // bytes; no identifier is longer
)

// NewArgumentsRedactor redacts the kinds.
func NewArgumentsRedactor(kinds Kinds) *ArgumentsRedactor {
	return &ArgumentsRedactor{text: *NewRedactor(kinds)}
}

// Counts is what has been redacted.
func (a *ArgumentsRedactor) Counts() *Counts { return &a.text.Counts }

// Push takes the next part and appends what is decided to dst.
func (a *ArgumentsRedactor) Push(dst, part []byte) []byte {
	for i := 0; i < len(part); {
		c := part[i]
		switch a.state {
		case argOutside:
			n := a.outside(c)
			if n > 0 {
				dst = append(dst, c)
			}
			i += n
		case argNumber:
			if !numeric[c] || len(a.token) == maxNumber {
				dst = a.number(dst)
				continue
			}
			a.token = append(a.token, c)
			i++
		case argString:
			n := i
			for n < len(part) && part[n] != '"' && part[n] != '\\' {
				n++
			}
			if n > i {
				a.flushHalf()
				a.buf = append(a.buf, part[i:n]...)
				i = n
				continue
			}
			i++
			if c == '\\' {
				a.state = argEscape
				continue
			}
			a.flushHalf()
			dst = append(a.drain(dst, true), '"')
			a.state = argOutside
		case argEscape:
			a.escape(c)
			i++
		case argUnit:
			a.unit(c)
			i++
		}
	}
	return a.drain(dst, false)
}

// End appends what was held: the document is over, whole or not.
func (a *ArgumentsRedactor) End(dst []byte) []byte {
	switch a.state {
	case argNumber:
		dst = a.number(dst)
	case argOutside:
	case argString:
		a.flushHalf()
		dst = a.drain(dst, true)
	default: // in the middle of an escape
		a.flushHalf()
		dst = a.drain(dst, true)
		if dst = append(dst, '\\'); a.state == argUnit {
			dst = append(append(dst, 'u'), a.token...)
		}
	}
	*a = ArgumentsRedactor{text: a.text, buf: a.buf[:0], out: a.out[:0]}
	return dst
}

var numeric = classOf("09", "+-.eE")

// outside reads a byte between strings and numbers; 0 is one to be read again.
func (a *ArgumentsRedactor) outside(c byte) int {
	switch c {
	case '"':
		a.state, a.key = argString, a.names
		a.names = false
	case '{', '[':
		if len(a.stack) < maxArgDepth {
			a.stack = append(a.stack, c == '{')
		}
		a.names = c == '{'
	case '}', ']':
		if len(a.stack) > 0 {
			a.stack = a.stack[:len(a.stack)-1]
		}
		a.names = false
	case ',':
		a.names = len(a.stack) > 0 && a.stack[len(a.stack)-1]
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		a.state, a.token = argNumber, a.token[:0]
		return 0
	}
	return 1
}

func (a *ArgumentsRedactor) number(dst []byte) []byte {
	a.state = argOutside
	m, _, ok := a.text.f.next(a.token, 0, true)
	if ok {
		a.text.Counts[m.kind]++
		return append(dst, '0')
	}
	return append(dst, a.token...)
}

func (a *ArgumentsRedactor) escape(c byte) {
	a.state = argString
	if c == 'u' {
		a.state, a.token = argUnit, a.token[:0]
		return
	}
	a.flushHalf()
	a.buf, _ = unescape(a.buf, []byte{'\\', c})
}

func (a *ArgumentsRedactor) unit(c byte) {
	if !hexes[c] { // no escape that JSON has: it stays as it is
		a.flushHalf()
		a.buf = append(append(append(a.buf, '\\', 'u'), a.token...), c)
		a.state = argString
		return
	}
	if a.token = append(a.token, c); len(a.token) < 4 {
		return
	}
	a.state = argString
	r, _ := hex4(a.token)
	if a.high != 0 {
		if p := utf16.DecodeRune(a.high, r); p != utf8.RuneError {
			a.high = 0
			a.buf = utf8.AppendRune(a.buf, p)
			return
		}
	}
	a.flushHalf()
	switch {
	case r >= 0xd800 && r < 0xdc00:
		a.high = r
	case utf16.IsSurrogate(r):
		a.buf = appendHalf(a.buf, r)
	default:
		a.buf = utf8.AppendRune(a.buf, r)
	}
}

// flushHalf gives up the wait for the other half of a pair.
func (a *ArgumentsRedactor) flushHalf() {
	if a.high != 0 {
		a.buf, a.high = appendHalf(a.buf, a.high), 0
	}
}

// drain hands the text of the string that is read on.
func (a *ArgumentsRedactor) drain(dst []byte, over bool) []byte {
	switch {
	case a.key || !over && len(a.buf) == 0:
		a.out = append(a.out[:0], a.buf...)
	default:
		a.out = a.text.Push(a.out[:0], a.buf)
		if over {
			a.out = a.text.End(a.out)
		}
	}
	a.buf = a.buf[:0]
	if over {
		a.key = false
	}
	return escape(dst, a.out)
}
