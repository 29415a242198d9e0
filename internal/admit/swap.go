package admit

import (
	"time"

	"sluice"
	"sluice/internal/route"
)

// Swap puts a routing table into force, or changes nothing and says why.
func (g *Gate) Swap(t *route.Table) error {
	plan, err := g.eng.Prepare(t) // reads nothing that mu guards
	if err != nil {
		return err
	}
	g.change(func(now time.Time) { g.eng.Swap(now, plan) })
	return nil
}

// Revise takes up policies that have changed, for what waits; see engine.Engine.Revise.
func (g *Gate) Revise(policyOf func(sluice.Principal) *sluice.Policy) {
	g.change(func(now time.Time) { g.eng.Revise(now, policyOf) })
}

// change has something done to the engine, and grants what has room by it.
func (g *Gate) change(do func(now time.Time)) {
	g.mu.Lock()
	now := time.Now()
	do(now)
	told := g.advance(now)
	g.mu.Unlock()
	g.tell(told)
}
