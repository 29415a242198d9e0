package wire

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

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
	text := inside{-1}
	for {
		i = text.plain(b, i)
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

// plain returns the offset of the first byte from i on that is not printable ASCII
// other than quote and backslash: many bytes at a time, since nearly all of a text is
// such bytes.
func plain(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		if m := special(binary.LittleEndian.Uint64(b[i:])); m != 0 {
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

// inside reads the inside of one string.
type inside struct {
	quote int // where the next one is, that ends the string or is escaped; unknown if before what is read
}

// plain is plain for who goes on from there. Short strings are looked at as they come.
// In long ones bytes.IndexByte finds the quote, since it looks at more bytes at a time
// than this can, and what is before it need not be compared with one.
func (s *inside) plain(b []byte, i int) int {
	if s.quote < i {
		for end := min(i+32, len(b)-7); i < end; i += 8 {
			if m := special(binary.LittleEndian.Uint64(b[i:])); m != 0 {
				return i + bits.TrailingZeros64(m)/8
			}
		}
		s.quote = len(b)
		if n := bytes.IndexByte(b[i:], '"'); n >= 0 {
			s.quote = i + n
		}
	}
	b = b[:s.quote]
	for ; len(b)-i >= 32; i += 32 {
		p := b[i : i+32 : i+32]
		if (odd(binary.LittleEndian.Uint64(p))|odd(binary.LittleEndian.Uint64(p[8:]))|
			odd(binary.LittleEndian.Uint64(p[16:]))|odd(binary.LittleEndian.Uint64(p[24:])))&highBits != 0 {
			break
		}
	}
	for ; len(b)-i >= 8; i += 8 {
		if m := odd(binary.LittleEndian.Uint64(b[i:])) & highBits; m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	if n := len(b) - i; n > 0 && len(b) >= 8 { // the last eight, less those that have been looked at
		m := odd(binary.LittleEndian.Uint64(b[len(b)-8:])>>(8*(8-n))) & (highBits >> (8 * (8 - n)))
		return i + min(n, bits.TrailingZeros64(m)/8)
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < 0x20 || c >= 0x80 || c == '\\' {
			return i
		}
	}
	return i
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// odd is special without quotes, and with bits that mean nothing.
func odd(w uint64) uint64 {
	return (w - lowBits*0x20) | w | ((w ^ lowBits*'\\') - lowBits)
}

// special sets the high bit of the lowest of eight bytes that plain looks for, none
// if there is none. Higher bits may be false: of a byte that is above ASCII, or by
// the borrow of one below that matches, and either is hidden by that byte's own.
func special(w uint64) uint64 {
	quote, slash := w^lowBits*'"', w^lowBits*'\\'
	return ((w - lowBits*0x20) | w | (quote - lowBits) | (slash - lowBits)) & highBits
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
