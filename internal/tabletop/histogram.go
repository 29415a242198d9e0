package tabletop

import (
	"math/bits"
	"time"
)

// A histogram is log-linear: subs buckets of equal width between any two powers of
// two, so that a bucket is at most 1/64 of its values wide, and what is read off
// its middle is within 1/128 of the sample's.
const (
	subBits = 6
	subs    = 1 << subBits
	octaves = 64 - subBits
)

// histogram counts durations. Its memory grows with the powers of two that occur,
// not with the samples.
type histogram struct {
	octave [octaves]*[subs]uint32
	count  int64
	sum    float64 // nanoseconds
	least  time.Duration
	most   time.Duration
}

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	o, s := bucketOf(uint64(d))
	if h.octave[o] == nil {
		h.octave[o] = new([subs]uint32)
	}
	h.octave[o][s]++
	if h.count == 0 || d < h.least {
		h.least = d
	}
	h.most = max(h.most, d)
	h.count++
	h.sum += float64(d)
}

// bucketOf is the power of two and the part of it that a value falls into: below
// subs every value is its own.
func bucketOf(v uint64) (octave, sub int) {
	o := max(bits.Len64(v)-subBits-1, 0)
	sub = int(v >> o)
	if sub >= subs {
		return o + 1, sub - subs
	}
	return o, sub
}

// valueOf is the middle of a bucket.
func valueOf(octave, sub int) time.Duration {
	if octave == 0 {
		return time.Duration(sub)
	}
	shift := octave - 1
	return time.Duration(uint64(sub+subs)<<shift + uint64(1)<<shift>>1)
}

// merge adds another's samples.
func (h *histogram) merge(o *histogram) {
	if o.count == 0 {
		return
	}
	for i, from := range &o.octave {
		if from == nil {
			continue
		}
		if h.octave[i] == nil {
			h.octave[i] = new([subs]uint32)
		}
		for s, n := range from {
			h.octave[i][s] += n
		}
	}
	if h.count == 0 || o.least < h.least {
		h.least = o.least
	}
	h.most = max(h.most, o.most)
	h.count += o.count
	h.sum += o.sum
}

// quantile is the value that a part of the samples, in hundred-thousandths, does not
// exceed: the nearest rank. It is -1 without any.
func (h *histogram) quantile(part int64) time.Duration {
	if h.count == 0 {
		return -1
	}
	const whole = 100_000
	hi, lo := bits.Mul64(uint64(h.count), uint64(part))
	rank, rest := bits.Div64(hi, lo, whole)
	if rest > 0 {
		rank++
	}
	rank = max(rank, 1)
	var seen uint64
	for o, row := range &h.octave {
		if row == nil {
			continue
		}
		for s, n := range row {
			if seen += uint64(n); seen >= rank {
				return min(max(valueOf(o, s), h.least), h.most)
			}
		}
	}
	return h.most
}

// percentiles is what a Result shows of it.
func (h *histogram) percentiles() Percentiles {
	if h.count == 0 {
		return Percentiles{}
	}
	return Percentiles{
		Count: h.count, Mean: time.Duration(h.sum / float64(h.count)), Max: h.most,
		P50: h.quantile(50_000), P90: h.quantile(90_000), P99: h.quantile(99_000), P999: h.quantile(99_900),
	}
}
