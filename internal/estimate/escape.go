package estimate

import (
	"bytes"
	"unicode/utf8"
)

// escape is how far WriteJSON is in an escape sequence.
type escape struct {
	digits uint8 // 0: none; 1: after the backslash; 2–5: hex digits lacking + 1
	code   rune
	high   rune // a high surrogate that waits for its other half
}

// WriteJSON counts a piece of the inside of a JSON string literal, without its
// quotes: the text that it stands for is what counts. A surrogate that stands
// alone counts as U+FFFD, an unknown escape as the character itself.
func (c *Counter) WriteJSON(p []byte) {
	for len(p) > 0 {
		if c.escape.digits == 0 {
			n := plain(p)
			if n > 0 {
				c.flushHigh()
				c.Write(p[:n])
				p = p[n:]
				continue
			}
			c.flushPartial()
			c.escape.digits = 1
			p = p[1:]
			continue
		}
		c.escaped(p[0])
		p = p[1:]
	}
}

// plain is the length of p up to its first backslash.
func plain(p []byte) int {
	if i := bytes.IndexByte(p, '\\'); i >= 0 {
		return i
	}
	return len(p)
}

// escaped takes one byte after a backslash.
func (c *Counter) escaped(b byte) {
	e := &c.escape
	if e.digits == 1 {
		if b == 'u' {
			e.digits, e.code = 5, 0
			return
		}
		e.digits = 0
		c.flushHigh()
		c.multibyte(unescape(b))
		return
	}
	v, ok := hex(b)
	if !ok { // broken: what has been read, this byte too, counts as U+FFFD
		e.digits, e.code = 0, 0
		c.flushHigh()
		c.rune(utf8.RuneError)
		return
	}
	e.code = e.code<<4 | v
	e.digits--
	if e.digits == 1 {
		u := e.code
		e.digits, e.code = 0, 0
		c.unit16(u)
	}
}

// unit16 takes one UTF-16 unit of a \u escape.
func (c *Counter) unit16(u rune) {
	e := &c.escape
	switch {
	case u >= 0xd800 && u < 0xdc00:
		c.flushHigh()
		e.high = u
	case u >= 0xdc00 && u < 0xe000:
		if e.high == 0 {
			c.rune(utf8.RuneError)
			return
		}
		r := (e.high-0xd800)<<10 | (u - 0xdc00) + 0x10000
		e.high = 0
		c.rune(r)
	default:
		c.flushHigh()
		c.rune(u)
	}
}

// rune takes one decoded character.
func (c *Counter) rune(r rune) {
	if r < 0x80 {
		c.take(asciiClass[r], 1)
		return
	}
	c.take(classOf(r), int64(utf8.RuneLen(r)))
}

// flushHigh counts a high surrogate whose other half did not come.
func (c *Counter) flushHigh() {
	if c.escape.high != 0 {
		c.escape.high = 0
		c.rune(utf8.RuneError)
	}
}

// flushEscape counts an escape that was cut off.
func (c *Counter) flushEscape() {
	if c.escape.digits > 1 {
		c.rune(utf8.RuneError)
	}
	c.escape.digits, c.escape.code = 0, 0
	c.flushHigh()
}

func unescape(b byte) byte {
	switch b {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	}
	return b
}

func hex(b byte) (rune, bool) {
	switch {
	case b >= '0' && b <= '9':
		return rune(b - '0'), true
	case b >= 'a' && b <= 'f':
		return rune(b-'a') + 10, true
	case b >= 'A' && b <= 'F':
		return rune(b-'A') + 10, true
	}
	return 0, false
}
