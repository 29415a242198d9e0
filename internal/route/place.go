package route

import (
	"math/bits"
	"time"

	"sluice"
	"sluice/internal/price"
)

// Row is what the backend is billed at: its price, else the configured ceiling,
// else nil.
func (b *Backend) Row() *price.Row {
	if b.Price != nil {
		return b.Price
	}
	return b.Ceiling
}

// Need is what one attempt takes of a backend.
type Need struct {
	KV      sluice.Tokens
	Prefill sluice.Tokens // until the first token
}

// NeedOf is the need of a request.
func NeedOf(w sluice.Work) Need {
	return Need{KV: w.KV(), Prefill: max(0, w.Input-w.CachedInput)}
}

// within clamps a need to a backend's capacity: what is larger runs alone.
func (n Need) within(c Capacity) Need {
	if c.KVTokens > 0 {
		n.KV = min(n.KV, c.KVTokens)
	}
	if c.PrefillTokens > 0 {
		n.Prefill = min(n.Prefill, c.PrefillTokens)
	}
	return n
}

// Place is one backend and what runs on it. Its identity outlives tables: a new
// table replaces Backend.
type Place struct {
	Backend *Backend
	Health  Health
	Retired bool // no longer in the table: it finishes what it runs

	running int64
	kv      sluice.Tokens
	prefill sluice.Tokens
	turn    uint64
}

// Running is how many attempts run there.
func (p *Place) Running() int64 { return p.running }

// KV is the memory that they are expected to need.
func (p *Place) KV() sluice.Tokens { return p.kv }

// Prefill is the uncached input of those that have not answered yet.
func (p *Place) Prefill() sluice.Tokens { return p.prefill }

// Slots is how many attempts the backend takes at a time.
func (p *Place) Slots() int64 {
	if c := p.Backend.Capacity.Concurrency; c > 0 {
		return c
	}
	return DefaultConcurrency
}

// Open reports whether the place has a slot and is fit to be used, whatever the
// request.
func (p *Place) Open(now time.Time) bool {
	return p.running < p.Slots() && p.Backend.Weight > 0 && p.Health.Usable(now)
}

// Usable tells why the place cannot take a request now, Chosen if it can.
func (p *Place) Usable(now time.Time, n Need) Left {
	if !p.Health.Usable(now) {
		return LeftUnhealthy
	}
	c := p.Backend.Capacity
	n = n.within(c)
	if p.running >= p.Slots() ||
		c.KVTokens > 0 && p.kv+n.KV > c.KVTokens ||
		c.PrefillTokens > 0 && p.prefill+n.Prefill > c.PrefillTokens {
		return LeftFull
	}
	return Chosen
}

// Take puts an attempt there and returns what it takes, to be given to Answered
// and Give.
func (p *Place) Take(now time.Time, n Need) Need {
	n = n.within(p.Backend.Capacity)
	p.running++
	p.kv += n.KV
	p.prefill += n.Prefill
	p.turn += stride / uint64(max(p.Backend.Weight, 1))
	p.Health.started(now)
	return n
}

// Answered frees the prefill of an attempt: its first token has come.
func (p *Place) Answered(n *Need) {
	p.prefill -= n.Prefill
	n.Prefill = 0
}

// Give takes an attempt away.
func (p *Place) Give(n Need) {
	p.running--
	p.kv -= n.KV
	p.prefill -= n.Prefill
}

// Join gives a new place the turn of those that it joins, so that it gets its
// share and not all that it missed.
func (p *Place) Join(others []*Place) {
	for i, o := range others {
		if i == 0 || o.turn < p.turn {
			p.turn = o.turn
		}
	}
}

const stride = 1 << 32

// Choose is the index of the best of places for which left is Chosen, -1 if
// there is none. left has one word for each place; those of the others that
// could have served become LeftOther.
func Choose(places []*Place, left []Left) int {
	best := -1
	for i, p := range places {
		if left[i] == Chosen && (best < 0 || p.less(places[best])) {
			best = i
		}
	}
	for i := range left {
		if i != best && left[i] == Chosen {
			left[i] = LeftOther
		}
	}
	return best
}

// less orders by running ÷ weight, then by turn.
func (p *Place) less(q *Place) bool {
	phi, plo := bits.Mul64(uint64(p.running), uint64(q.Backend.Weight))
	qhi, qlo := bits.Mul64(uint64(q.running), uint64(p.Backend.Weight))
	if phi != qhi || plo != qlo {
		return phi < qhi || phi == qhi && plo < qlo
	}
	return p.turn < q.turn
}
