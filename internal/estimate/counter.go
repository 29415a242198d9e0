package estimate

import (
	"unicode/utf8"

	"sluice"
)

// unit is the fixed point of weights: 1/unit of a token.
const unit = 1024

// Counter estimates how many tokens a text has, as a byte-pair vocabulary of
// today would split it. The zero value is ready. It allocates nothing, and how
// the text is cut into writes makes no difference. It is a plain value: a copy
// goes on by itself.
type Counter struct {
	sum   int64  // weights passed, in 1/unit token
	bytes int64  // of whole characters of text
	state uint16 // where the state's transitions start

	need    uint8 // continuation bytes that the character lacks
	have    uint8 // bytes of it seen
	partial rune
	least   rune // smallest rune that this many bytes may encode

	escape escape
}

// Write counts a piece of UTF-8 text. A byte that is no UTF-8 counts as a
// character of its own.
func (c *Counter) Write(p []byte) {
	t := transitions
	sum, state, ascii := c.sum, c.state, int64(0)
	for i := 0; i < len(p); i++ {
		b := p[i]
		if b < 0x80 && c.need == 0 {
			e := t[(state+uint16(asciiClass[b]))&(tableSize-1)]
			sum += int64(e.weight)
			state = e.next
			ascii++
			continue
		}
		if c.need == 0 {
			if r, n := utf8.DecodeRune(p[i:]); n > 1 {
				e := t[(state+uint16(classOf(r)))&(tableSize-1)]
				sum += int64(e.weight)
				state = e.next
				c.bytes += int64(n)
				i += n - 1
				continue
			}
		}
		c.sum, c.state = sum, state
		c.multibyte(b)
		sum, state = c.sum, c.state
	}
	c.sum, c.state = sum, state
	c.bytes += ascii
}

// Break ends the text: what follows is another one. A character that was left
// unfinished counts as bytes that are no UTF-8.
func (c *Counter) Break() {
	c.flushEscape()
	c.flushPartial()
	c.state = stStart
}

// Tokens is the estimate so far, rounded up: never negative, never falling as
// text is added, never more than Bytes. A character that has not arrived in
// full is not in it.
func (c *Counter) Tokens() sluice.Tokens {
	n := (c.sum + unit - 1) / unit
	if n == 0 && c.bytes > 1 { // the fit gives some shortest words nothing
		n = 1
	}
	return sluice.Tokens(min(n, c.bytes))
}

// Bytes is the length of the text so far in UTF-8, after JSON escapes are
// undone. No byte-level vocabulary makes more tokens of it.
func (c *Counter) Bytes() int64 { return c.bytes }

// Text estimates the tokens of one UTF-8 text.
func Text(b []byte) sluice.Tokens {
	var c Counter
	c.Write(b)
	c.Break()
	return c.Tokens()
}

// take moves the automaton by one character of n bytes.
func (c *Counter) take(k class, n int64) {
	e := transitions[(c.state+uint16(k))&(tableSize-1)]
	c.sum += int64(e.weight)
	c.state = e.next
	c.bytes += n
}

// multibyte takes a byte that is not ASCII, or any byte within a character.
func (c *Counter) multibyte(b byte) {
	if c.need > 0 {
		if b&0xc0 == 0x80 {
			c.partial = c.partial<<6 | rune(b&0x3f)
			c.have++
			c.need--
			if c.need == 0 {
				c.finish()
			}
			return
		}
		c.flushPartial()
	}
	switch {
	case b < 0x80:
		c.take(asciiClass[b], 1)
	case b >= 0xc2 && b < 0xe0:
		c.need, c.have, c.partial, c.least = 1, 1, rune(b&0x1f), 0x80
	case b >= 0xe0 && b < 0xf0:
		c.need, c.have, c.partial, c.least = 2, 1, rune(b&0x0f), 0x800
	case b >= 0xf0 && b < 0xf5:
		c.need, c.have, c.partial, c.least = 3, 1, rune(b&0x07), 0x10000
	default:
		c.take(invalid, 1)
	}
}

// finish takes the character whose bytes have all arrived.
func (c *Counter) finish() {
	if c.partial < c.least || c.partial > 0x10ffff || c.partial >= 0xd800 && c.partial < 0xe000 {
		c.flushBytes()
		return
	}
	k, n := classOf(c.partial), int64(c.have)
	c.have, c.partial, c.least = 0, 0, 0
	c.take(k, n)
}

// flushPartial counts an unfinished character as bytes that are no UTF-8.
func (c *Counter) flushPartial() {
	if c.need > 0 {
		c.flushBytes()
	}
}

func (c *Counter) flushBytes() {
	for ; c.have > 0; c.have-- {
		c.take(invalid, 1)
	}
	c.need, c.partial, c.least = 0, 0, 0
}
