package tabletop

import (
	"math/rand/v2"
)

// What is drawn for a request, each from a stream of its own: a law that takes more
// draws than another does not shift what follows.
const (
	drawArrivals uint64 = iota // of the source, not of one request
	drawInput
	drawOutput
	drawPrefix
	drawCounted
	drawLeave
	drawClient // of each resubmission
	drawFail   // of each attempt, from here on
)

// dice draws for requests. What it draws depends on the seed, the source's name,
// the request's number within it and the purpose, and on nothing else: the same
// request has the same lengths under every policy, and whatever other sources do.
type dice struct {
	seed uint64
	pcg  rand.PCG
	rand *rand.Rand
}

func newDice(seed uint64) *dice {
	d := &dice{seed: mix(seed)}
	d.rand = rand.New(&d.pcg)
	return d
}

// of is valid until the next call.
func (d *dice) of(source uint64, n int64, purpose uint64) *rand.Rand {
	d.pcg.Seed(mix(mix(d.seed^source)+purpose), mix(uint64(n)))
	return d.rand
}

// stream is a source's own, for what comes one after another.
func (d *dice) stream(source, purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(mix(mix(d.seed^source)+purpose), 0))
}

// mix is the finaliser of SplitMix64: neighbouring numbers become unlike ones.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// hashName is FNV-1a.
func hashName(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
