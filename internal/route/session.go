package route

import (
	"fmt"
	"math/bits"
	"strconv"

	"sluice"
)

// Session is a conversation of a tenant's: its id, hashed with the tenant, so that two
// tenants with the same id have nothing in common. Zero is none.
type Session uint64

// SessionOf is a tenant's session of that id, zero if the id is empty.
func SessionOf(t sluice.TenantID, id string) Session {
	if id == "" {
		return 0
	}
	return Session(max(1, mix(hash(hash(14695981039346656037, string(t)), id))))
}

// String is how records tell it, empty for none. It does not give the id away.
func (s Session) String() string {
	if s == 0 {
		return ""
	}
	return fmt.Sprintf("%016x", uint64(s))
}

// ParseSession reads what String wrote.
func ParseSession(s string) (id Session, ok bool) {
	if s == "" {
		return 0, true
	}
	n, err := strconv.ParseUint(s, 16, 64)
	return Session(n), err == nil
}

// Stay is what became of a request's session where its place was chosen.
type Stay uint8

// What may have become of it.
const (
	StayNone Stay = iota // it has none that the choice looks at, or the first of it that is known
	StayKept             // it is where it was
	StayLeft             // where it was there is no room, or too much to do
)

// String is the word in records, empty for StayNone.
func (s Stay) String() string { return [...]string{"", "kept", "left"}[s] }

// hashed reports whether the choice goes by a hash of the session. Rules that follow
// prefixes remember where a session was, and those that are there to compare with
// know none.
func (c *Chooser) hashed(a *Asking) bool {
	return a.Sticky && a.Session != 0 && (c.rule == ByLoad || c.rule == ByCost)
}

// home is the place that a session keeps to without anything being remembered: the
// first by a draw of the session's own, by weight, that has less to do than is good
// for it. A place that comes or goes moves only the sessions that it gets or had.
// Bounds make it the first of them that is not beyond its share of the load by a
// quarter, unless half of its slots are free; there is always one within its share.
// It is -1 if no place can take the request.
//
// Rendezvous hashing: Thaler, Ravishankar (1998), with weights as exponential draws;
// bounded loads: Mirrokni, Thorup, Zadimoghaddam (2018).
func (c *Chooser) home(left []Left, a *Asking) int {
	var running, weights int64
	for i, p := range c.places {
		if left[i] == Chosen {
			running += p.running
			weights += p.Backend.Weight
		}
	}
	first, best := -1, -1
	var least, least1 uint64 // the draws of best and first
	for i, p := range c.places {
		w := p.Backend.Weight
		if w <= 0 {
			continue
		}
		d := negLog2(mix(hash(uint64(a.Session), string(p.Backend.ID))))
		if first < 0 || sooner(d, w, least1, c.places[first].Backend.Weight) {
			first, least1 = i, d
		}
		if left[i] != Chosen || 2*p.running >= p.Slots() && p.running > spread(5*(running+1), w, 4*max(weights, 1)) {
			continue
		}
		if best < 0 || sooner(d, w, least, c.places[best].Backend.Weight) {
			best, least = i, d
		}
	}
	c.stay = StayLeft
	if best == first {
		c.stay = StayKept
	}
	return best
}

// sooner reports whether a ÷ w is less than b ÷ v.
func sooner(a uint64, w int64, b uint64, v int64) bool {
	ahi, alo := bits.Mul64(a, uint64(v))
	bhi, blo := bits.Mul64(b, uint64(w))
	return ahi < bhi || ahi == bhi && alo < blo
}

// negLog2 is −log₂(x ÷ 2⁶⁴) in units of 2⁻³²: an exponential draw where x is an even
// one. Its bits come by squaring, so that every machine has the same.
func negLog2(x uint64) uint64 {
	lead := bits.LeadingZeros64(x | 1)
	m, fraction := (x|1)<<lead, uint64(0)
	for range 32 {
		m, _ = bits.Mul64(m, m)
		fraction <<= 1
		if m >= 1<<63 {
			fraction |= 1
		} else {
			m <<= 1
		}
	}
	return uint64(lead+1)<<32 - fraction
}
