package fleet

import (
	"math/bits"
	"time"
)

// What is drawn for one call; each is a stream of its own.
const (
	drawLatency uint64 = iota + 1
	drawOverload
	drawError
	drawBreak
	drawBreakAt
)

// draw is a uniform 64-bit value that depends on its arguments alone: the
// finaliser of splitmix64 over the seed, the call and the stream.
func draw(seed, call, stream uint64) uint64 {
	x := seed + 0x9e3779b97f4a7c15*(call<<3+stream)
	for range 2 { // the second round parts seeds that differ in few bits
		x ^= x >> 30
		x *= 0xbf58476d1ce4e5b9
		x ^= x >> 27
		x *= 0x94d049bb133111eb
		x ^= x >> 31
	}
	return x
}

// below is draw scaled to 0 … n−1.
func below(u uint64, n int64) int64 {
	hi, _ := bits.Mul64(u, uint64(max(n, 1)))
	return int64(hi)
}

// exponential turns a uniform value into one of an exponential distribution with
// the given mean: −ln(u/2⁶⁴)·mean, in integers so that every machine agrees.
func exponential(u uint64, mean time.Duration) time.Duration {
	u |= 1
	const fraction = 20 // bits of the logarithm's fraction
	lead := bits.LeadingZeros64(u)
	// u = 2^(63−lead) × m with 1 ≤ m < 2: log₂ m by repeated squaring, m in Q1.63.
	m := u << lead
	log := uint64(0)
	for range fraction {
		hi, lo := bits.Mul64(m, m) // Q2.126
		log <<= 1
		if hi>>63 == 1 {
			log |= 1
			m = hi
		} else {
			m = hi<<1 | lo>>63
		}
	}
	minusLog2 := uint64(lead+1)<<fraction - log
	const ln2 = 744_261_118 // ln 2 × 2³⁰
	hi, lo := bits.Mul64(minusLog2*ln2>>fraction, uint64(max(mean, 0)))
	return time.Duration(hi<<34 | lo>>30)
}
