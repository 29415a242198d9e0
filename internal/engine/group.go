package engine

import (
	"math"
	"slices"

	"sluice/internal/price"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// group is backends of a pool and what they have together. It is kept of those that were
// asked for last: nearly all requests are for the same.
type group struct {
	version uint64 // of the pool's places
	set     sched.Set
	rows    []*price.Row // that they bill by, each once; nil of one without a price

	// The most memory and prefill that any of them has. A request that needs more has one
	// to itself, which is all that it takes of the pool.
	kv, prefill int64
}

// group is what a set of the pool's backends has together. It is valid until the next call.
func (p *pool) group(set *sched.Set) *group {
	g := &p.alike
	if g.version == p.version && g.set == *set {
		return g
	}
	*g = group{version: p.version, set: *set, rows: g.rows[:0]}
	for i, pl := range p.places {
		if !set.Has(i) {
			continue
		}
		if row := pl.Backend.Row(); !slices.Contains(g.rows, row) {
			g.rows = append(g.rows, row)
		}
		c := &pl.Backend.Capacity
		g.kv, g.prefill = max(g.kv, whole(int64(c.KVTokens))), max(g.prefill, whole(int64(c.PrefillTokens)))
	}
	return g
}

// need is what a request for the group takes of the pool that needs so much of a backend.
func (g *group) need(n *route.Need) sched.Amounts {
	return sched.Amounts{sched.Slots: 1, sched.KV: min(int64(n.KV), g.kv), sched.Prefill: min(int64(n.Prefill), g.prefill)}
}

// whole is a capacity, of which 0 is no bound.
func whole(n int64) int64 {
	if n == 0 {
		return math.MaxInt64
	}
	return n
}
