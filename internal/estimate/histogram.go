package estimate

import (
	"math/bits"

	"sluice"
)

const (
	steps       = 8  // buckets in an octave
	octaves     = 21 // up to 2²⁴ tokens
	numBuckets  = steps * (octaves + 1)
	grain       = 8   // what one observation adds, so that it can be halved three times
	fullCounts  = 256 // observations after which all counts are halved
	warmOutputs = 20  // observations that a 95th percentile takes
)

// histogram remembers how large outputs were, in buckets whose width is an
// eighth of their octave: exact below 16 tokens, within 12.5 % above. Old
// observations fade by halves, so that it looks back on the last 128 to 256 and,
// more faintly, on those before: a habit that has changed is out of the 95th
// percentile after 640.
type histogram struct {
	counts [numBuckets]uint16 // in 1/grain
	total  int64
	seen   int64 // observations ever, up to warmOutputs
	drawn  uint8 // draws ever, modulo 256
}

func (h *histogram) add(n sluice.Tokens) {
	h.counts[bucket(n)] += grain
	h.total += grain
	h.seen = min(h.seen+1, warmOutputs)
	if h.total < fullCounts*grain {
		return
	}
	h.total = 0
	for i := range h.counts {
		h.counts[i] /= 2
		h.total += int64(h.counts[i])
	}
}

// quantile is the upper edge of the bucket that holds the given percentile: at
// least the true one of what the histogram remembers, at most an eighth above.
func (h *histogram) quantile(percent int64) sluice.Tokens {
	need, sum := (h.total*percent+99)/100, int64(0)
	for i := range h.counts {
		sum += int64(h.counts[i])
		if sum >= need {
			return upperEdge(i)
		}
	}
	return upperEdge(numBuckets - 1)
}

// mean is the mean with every bucket at its middle: within 6.25 %, rounded up.
func (h *histogram) mean() sluice.Tokens { return h.meanFrom(0) }

// meanFrom is the mean of what is at least n, 0 if there is none.
func (h *histogram) meanFrom(n sluice.Tokens) sluice.Tokens {
	sum, count := int64(0), int64(0)
	for i := bucket(n); i < numBuckets; i++ {
		if c := h.countFrom(i, n); c > 0 {
			sum += c * int64(max(lowerEdge(i), n)+upperEdge(i))
			count += c
		}
	}
	if count == 0 {
		return 0
	}
	return sluice.Tokens((sum + 2*count - 1) / (2 * count))
}

// drawFrom is one of what is at least n, n if there is none: each time at another
// of 16 places, from the smallest to the largest, in an order in which any few that
// follow each other are spread over all.
func (h *histogram) drawFrom(n sluice.Tokens) sluice.Tokens {
	count := int64(0)
	for i := bucket(n); i < numBuckets; i++ {
		count += h.countFrom(i, n)
	}
	place := 2*int64(bits.Reverse8(h.drawn)>>4) + 1 // of 32
	h.drawn++
	sum := int64(0)
	for i := bucket(n); i < numBuckets; i++ {
		if sum += h.countFrom(i, n); sum*32 > count*place {
			return (max(lowerEdge(i), n) + upperEdge(i) + 1) / 2
		}
	}
	return max(n, 0)
}

// countFrom is how much of a bucket is at least n, in 1/256 of its unit: a bucket
// that n is in is taken to be evenly filled.
func (h *histogram) countFrom(i int, n sluice.Tokens) int64 {
	c := int64(h.counts[i]) << 8
	low, high := lowerEdge(i), upperEdge(i)
	if n <= low || c == 0 {
		return c
	}
	return c * int64(high-min(n, high)+1) / int64(high-low+1)
}

// bucket is where n belongs: 0 to 15 by themselves, then steps to the octave.
func bucket(n sluice.Tokens) int {
	if n < 2*steps {
		return int(max(n, 0))
	}
	octave := bits.Len64(uint64(n)) - 5 // 0 for 16 to 31
	i := (octave+1)*steps + int(uint64(n)>>(octave+1))
	return min(i, numBuckets-1)
}

func lowerEdge(i int) sluice.Tokens {
	if i < 2*steps {
		return sluice.Tokens(i)
	}
	octave := i/steps - 2
	return sluice.Tokens(steps+i%steps) << (octave + 1)
}

// upperEdge is the largest value of a bucket.
func upperEdge(i int) sluice.Tokens { return lowerEdge(i+1) - 1 }
