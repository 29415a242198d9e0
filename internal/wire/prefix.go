package wire

import (
	"encoding/binary"
	"math/bits"
)

// promptPart is a part of a body that an engine's prompt is made of.
type promptPart uint8

// The sections, in the order in which prompts are made of them.
const (
	notPrompt promptPart = iota
	systemSection
	toolsSection
	functionsSection
	textSection // messages, or a prompt
	numPromptParts
)

// promptPartOf is the part that a top-level member is.
func promptPartOf(key []byte) promptPart {
	switch string(key) {
	case "system", "instructions":
		return systemSection
	case "tools":
		return toolsSection
	case "functions":
		return functionsSection
	case "messages", "prompt", "input":
		return textSection
	}
	return notPrompt
}

// Prefix appends the chained hashes of the prompt's whole blocks, of so many bytes
// each and at most most: two prompts of one key have as many of them in common as they
// begin with the same blocks. bytes is how long the prompt is in all.
//
// The prompt is taken as the client wrote it: system, tools and messages, in this
// order wherever they stand. What is the same to an engine and written in another way
// has nothing in common here; that costs a cache hit and nothing else.
func (h *Head) Prefix(body []byte, key uint64, size, most int, to []uint64) (blocks []uint64, bytes int) {
	c := chain{h: key, size: size, most: most, left: size, out: to}
	for _, at := range h.prompt {
		bytes += at.len()
		if at.ok() && len(c.out) < most {
			c.write(body[at.start:at.end])
		}
	}
	return c.out, bytes
}

// chain hashes blocks of bytes.
type chain struct {
	h          uint64
	size, left int // bytes of a block, and until the next is whole
	most       int
	out        []uint64
}

const (
	chainA = 0x9e3779b97f4a7c15
	chainB = 0xd6e8feb86659fd93
)

// write takes bytes on. What a block is cut into is the same for the same sections.
func (c *chain) write(b []byte) {
	for len(b) > 0 && len(c.out) < c.most {
		n := min(c.left, len(b))
		c.sum(b[:n])
		b = b[n:]
		if c.left -= n; c.left == 0 {
			c.left = c.size
			c.out = append(c.out, c.h)
		}
	}
}

// sum takes bytes into the hash, sixteen at a time.
func (c *chain) sum(b []byte) {
	h := c.h
	for ; len(b) >= 16; b = b[16:] {
		hi, lo := bits.Mul64(binary.LittleEndian.Uint64(b)^h, binary.LittleEndian.Uint64(b[8:])^chainA)
		h = bits.RotateLeft64(h, 23) ^ hi ^ lo ^ chainB
	}
	if len(b) > 0 {
		var last [16]byte
		n := copy(last[:], b)
		hi, lo := bits.Mul64(binary.LittleEndian.Uint64(last[:])^h, binary.LittleEndian.Uint64(last[8:])^chainA)
		h = bits.RotateLeft64(h, 29) ^ hi ^ lo ^ uint64(n)
	}
	hi, lo := bits.Mul64(h^chainB, chainA)
	c.h = hi ^ lo ^ c.h
}
