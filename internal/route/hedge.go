package route

import (
	"math/bits"
	"time"

	"sluice"
)

// Hedging says when a request of a model, whose first content is late, gets a second
// attempt beside the first.
type Hedging struct {
	// After is how long the first content may take from the dispatch on. Where it is 0
	// that is the time within which Permille thousandths of the first contents of the
	// attempt's pool have come of late.
	After    time.Duration
	Permille int64

	Classes [sluice.NumClasses]bool // that are hedged
}

// Bounds of Hedging.
const (
	MinHedgeAfter    = time.Millisecond
	MaxHedgeAfter    = 10 * time.Minute
	MinHedgePermille = 500
	MaxHedgePermille = 999
)

// Delay is after what time an attempt in a pool with such latencies is late; false
// where nothing is known of them yet.
func (h *Hedging) Delay(l *Latency) (time.Duration, bool) {
	if h.After > 0 {
		return h.After, true
	}
	return l.Within(h.Permille)
}

func (h *Hedging) valid() bool {
	if h.After != 0 {
		return h.After >= MinHedgeAfter && h.After <= MaxHedgeAfter && h.Permille == 0
	}
	return h.Permille >= MinHedgePermille && h.Permille <= MaxHedgePermille
}

// Latency is how long first contents took of late: a histogram whose buckets are an
// eighth of an octave wide. At [latencyWindow] samples all of it counts half, so that
// what is old is forgotten. The zero value knows nothing.
type Latency struct {
	counts [latencyBuckets]uint16
	all    uint32
}

const (
	latencyUnit    = 17 // bits: 131 µs
	latencyBuckets = 192
	latencyWindow  = 2048
	// LatencySamples is how many first contents have to be known before anything is
	// said of them.
	LatencySamples = 100
)

// Observe takes a first content, or, of an attempt that was given up before it, how
// long there had been none: without those the slowest would not be known of, and
// each hedge would bring the next one sooner.
func (l *Latency) Observe(d time.Duration) {
	u := uint64(max(d, 0)) >> latencyUnit
	i := u
	if u >= 8 {
		e := bits.Len64(u) - 4
		i = min(uint64(8*(e+1))+u>>e&7, latencyBuckets-1)
	}
	l.counts[i]++
	if l.all++; l.all < latencyWindow {
		return
	}
	l.all = 0
	for i := range l.counts {
		l.counts[i] /= 2
		l.all += uint32(l.counts[i])
	}
}

// Within is the time within which so many thousandths of the first contents came, at
// most an eighth too long; false while fewer than LatencySamples are known.
func (l *Latency) Within(permille int64) (time.Duration, bool) {
	if l.all < LatencySamples {
		return 0, false
	}
	need := (int64(l.all)*permille + 999) / 1000
	for i := range l.counts {
		if need -= int64(l.counts[i]); need <= 0 {
			return latencyEnd(uint64(i)), true
		}
	}
	return latencyEnd(latencyBuckets - 1), true
}

// latencyEnd is where a bucket ends.
func latencyEnd(i uint64) time.Duration {
	u := i + 1
	if i >= 8 {
		u = (9 + i%8) << (i/8 - 1)
	}
	return time.Duration(u) << latencyUnit
}
