package proxy

import (
	"math/bits"
	"sync"
)

// Bodies of minKept to maxKept bytes are read into space that is used again. To make
// it for each request would have the collector run for one in a few hundred long
// prompts, and costs more than to read it.
const (
	minKept = 1 << 10
	maxKept = 256 << 10
)

// bodies is the space. Its sizes are a quarter of an octave apart, so that no body
// holds more than a fifth of its space for nothing. What is not in use the garbage
// collector takes.
type bodies struct {
	sizes [4 * 8]sync.Pool // of *space
}

// space is room for one body.
type space struct{ b []byte }

// take is room for a body of n bytes, nil if it is too short or too long to be kept.
// What is in it is another request's, until it is written over.
func (b *bodies) take(n int64) *space {
	if n <= minKept || n > maxKept {
		return nil
	}
	i, size := sizeOf(int(n))
	if s, ok := b.sizes[i].Get().(*space); ok {
		return s
	}
	return &space{make([]byte, size)}
}

// give takes room back that nobody reads or writes any more; nil is none.
func (b *bodies) give(s *space) {
	if s != nil {
		i, _ := sizeOf(len(s.b))
		b.sizes[i].Put(s)
	}
}

// sizeOf is the smallest size that n bytes fit into, and its place among sizes.
// REQUIRES: minKept < n <= maxKept.
func sizeOf(n int) (i, size int) {
	octave := bits.Len(uint(n-1)) - 1 // 2^octave < n <= 2^(octave+1)
	step := 1 << octave / 4
	quarter := (n - 1 - 1<<octave) / step
	return 4*(octave-bits.Len(minKept)+1) + quarter, 1<<octave + (quarter+1)*step
}
