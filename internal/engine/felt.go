package engine

import (
	"strings"
	"time"

	"sluice"
	"sluice/internal/ladder"
)

// Felt is what a request felt of a pool's ladder that was not on the ground, and why it
// stood where it did. Who has one may not change it.
type Felt struct {
	Pool   sluice.PoolID
	Tier   ladder.Tier
	Did    Effects
	Raised ladder.Raise // what put the ladder up there
	Since  time.Time    // it stood on its rung
}

// Effects is a set of what a ladder does to one request.
type Effects uint8

// Has reports whether an effect is one of them.
func (s Effects) Has(x Effect) bool { return s&(1<<x) != 0 }

// Words are those of the effects, in the order of the tiers.
func (s Effects) Words() (out []string) {
	for x := EffectNone + 1; x < numEffects; x++ {
		if s.Has(x) {
			out = append(out, x.String())
		}
	}
	return out
}

func (s Effects) String() string { return strings.Join(s.Words(), ", ") }

// stands is what a request feels of the pool's ladder as it stands; nil on the ground.
func (g *grade) stands(p *pool, did ...Effect) *Felt {
	if g.acts.Tier == ladder.None {
		return nil
	}
	f := &Felt{Pool: p.id, Tier: g.acts.Tier, Raised: g.Raised(), Since: g.Since()}
	for _, x := range did {
		f.Did |= 1 << x
	}
	return f
}

// deferral is the last time that a ladder let batch wait.
type deferral struct {
	felt  *Felt     // nil if it never did
	ended time.Time // zero while it does
}

// defers follows whether the ladder lets batch wait. REQUIRES: acts is in force.
func (g *grade) defers(now time.Time, p *pool) {
	d := &g.deferral
	switch {
	case g.acts.Defer:
		*d = deferral{felt: g.stands(p, EffectDefer)}
	case d.felt != nil && d.ended.IsZero():
		d.ended = now
	}
}

// waited adds what the ladder of its pool did to a request while it waited there: of batch
// it is that it did. To others, what it was when they came is all.
func (r *request) waited() {
	if r.call.Class != sluice.Batch || r.phase != waiting || r.pool == nil {
		return
	}
	g := r.pool.base().grade
	if g == nil || g.deferral.felt == nil || !r.pool.queue.Suspends(r.item.Flow.Tenant) {
		return
	}
	if d := &g.deferral; d.ended.IsZero() || r.item.Since.Before(d.ended) {
		felt := *d.felt
		if r.felt != nil {
			felt.Did |= r.felt.Did
		}
		r.felt = &felt
		r.tier = max(r.tier, felt.Tier)
	}
}

// Felt is what an open request has felt of its pool's ladder so far; nil of one that has
// felt nothing, and of one that is not open.
func (e *Engine) Felt(id sluice.RequestID) *Felt {
	r := e.requests.Find(id)
	if r == nil {
		return nil
	}
	r.waited()
	return r.felt
}
