package replay

import (
	"math/bits"
	"time"
)

// histogram counts durations in buckets whose width is at most 1/128 of their
// value: every quantile is right within 0.8 %, in 37 KB whatever is recorded.
type histogram struct {
	counts [(64 - subBits) << subBits]int64
	total  int64
	most   time.Duration
}

const subBits = 7

// bucket is the index of a value in nanoseconds.
func bucket(v uint64) int {
	if v < 1<<subBits {
		return int(v)
	}
	exp := bits.Len64(v) - 1 - subBits // so that v>>exp has subBits+1 bits
	return (exp+1)<<subBits + int(v>>exp) - 1<<subBits
}

// ceiling is the largest value of a bucket.
func ceiling(i int) uint64 {
	if i < 1<<subBits {
		return uint64(i)
	}
	exp := i>>subBits - 1
	return (uint64(i&(1<<subBits-1)|1<<subBits)+1)<<exp - 1
}

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	h.counts[bucket(uint64(d))]++
	h.total++
	h.most = max(h.most, d)
}

// quantile is the value that a share q of what was recorded does not exceed.
func (h *histogram) quantile(q float64) time.Duration {
	if h.total == 0 {
		return 0
	}
	rank := max(int64(q*float64(h.total)+0.5), 1)
	seen := int64(0)
	for i, n := range h.counts {
		if seen += n; seen >= rank {
			return min(time.Duration(ceiling(i)), h.most)
		}
	}
	return h.most
}

// Quantiles sum up durations, in milliseconds.
type Quantiles struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50_ms"`
	P90   float64 `json:"p90_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

func (h *histogram) quantiles() Quantiles {
	return Quantiles{h.total, millis(h.quantile(0.5)), millis(h.quantile(0.9)), millis(h.quantile(0.99)), millis(h.most)}
}

// millis rounds to a microsecond.
func millis(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}
