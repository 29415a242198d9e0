package admit

import (
	"context"
	"slices"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/route"
)

// Copy asks for a place for a copy of a request: see engine.Engine.Copy. It does not
// wait. lost is called, outside of the lock and at most once, when the copy loses its
// place to a request, or its hold runs out: it must not block, and the owner of the
// Grant still settles it. The hooks are told nothing of copies.
func (g *Gate) Copy(c engine.Call, lost context.CancelCauseFunc) (*Grant, route.Skip) {
	g.mu.Lock()
	if g.draining || g.closed {
		g.mu.Unlock()
		return nil, route.SkipShutdown
	}
	now := time.Now()
	place, skip := g.eng.Copy(now, c)
	if skip == route.Sent {
		place.Candidates, place.Limits = slices.Clone(place.Candidates), place.Limits.Clone() // the engine's memory
		g.copies[c.ID] = lost
	}
	told := g.advance(now)
	g.mu.Unlock()
	g.tell(told)
	if skip != route.Sent {
		return nil, skip
	}
	return &Grant{gate: g, call: c, place: place}, route.Sent
}

// lostPlace is a copy that has lost its place.
type lostPlace struct {
	lost context.CancelCauseFunc
	why  *sluice.Error
}
