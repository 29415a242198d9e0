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
	g.mu.Lock()
	now := time.Now()
	g.eng.Swap(now, plan)
	told := g.advance(now)
	g.mu.Unlock()
	g.tell(told)
	return nil
}

// Revise takes up policies that have changed, for what waits; see engine.Engine.Revise.
func (g *Gate) Revise(policyOf func(sluice.Principal) *sluice.Policy) {
	g.mu.Lock()
	now := time.Now()
	g.eng.Revise(now, policyOf)
	told := g.advance(now)
	g.mu.Unlock()
	g.tell(told)
}
