package engine

import (
	"math"

	"sluice"
	"sluice/internal/price"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// usual is which of a pool's backends may serve the request that came last, and any
// that asks for the same: nearly all do, so that hardly one is held against every
// backend.
type usual struct {
	version uint64 // of the pool's places
	asks    usually
	set     sched.Set
	longest sluice.Tokens // input that all of set take
}

// usually is what requests that ask for the same have in common.
type usually struct {
	dialect       string
	needs         route.Needs
	risk, maxRisk sluice.Risk
	billing       price.Billing
	free          bool
}

// plain reports whether what serves the request depends on what usually has alone. One
// that is kept to regions or providers is held against every backend each time.
func (r *request) plain() bool {
	p := r.call.Policy
	return (p == nil || len(p.Regions)+len(p.Providers) == 0) && !r.call.Versed && r.call.Pin == nil && len(r.tried) == 0 && !r.avoid && r.maxSpend == 0 && r.roam
}

// serving brings the set up to what a plain request asks for; false if its input is too
// long for some of it.
func (u *usual) serving(p *pool, r *request) bool {
	c := &r.call
	asks := usually{c.Dialect, c.Needs, c.Risk, r.maxRisk(p), c.Billing, c.Free}
	if u.version != p.version || u.asks != asks {
		ask := r.ask(p)
		ask.Work.Input = 0
		*u = usual{version: p.version, asks: asks, longest: math.MaxInt64}
		for i, pl := range p.places {
			if route.Eligible(pl.Backend, &ask) == route.Chosen {
				u.set.Add(i)
				u.longest = min(u.longest, pl.Backend.LongestInput())
			}
		}
	}
	return c.Work.Input <= u.longest
}
