package admit

import (
	"time"

	"sluice"
	"sluice/internal/engine"
)

// Take charges a request that is answered without a place; see engine.Engine.Take. It
// does not wait, and there is no Grant: the request has ended. The hooks are told of a
// refusal alone.
func (g *Gate) Take(c engine.Call, cost sluice.Nano) (engine.Verdict, error) {
	g.mu.Lock()
	if g.draining || g.closed {
		g.mu.Unlock()
		return engine.Verdict{}, g.refuse(c, Refused{Err: shuttingDown()})
	}
	now := time.Now()
	v := g.eng.Take(now, c, cost)
	told := g.advance(now)
	g.mu.Unlock()
	g.tell(told)
	if v.Err != nil {
		return v, g.refuse(c, Refused{Err: v.Err, Limits: v.Limits, Policy: v.Policy})
	}
	return v, nil
}
