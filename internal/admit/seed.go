package admit

import (
	"slices"
	"time"

	"sluice/internal/engine"
)

// Seed adds what fixed windows had taken before this process started. Call it
// once, before the first Admit: a caller that is admitted earlier is judged
// without it.
func (g *Gate) Seed(spent []engine.Spent) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.eng.Seed(time.Now(), spent)
}

// atATime bounds the counters that are made while all callers wait.
const atATime = 256

// Introduce gives limits that are about to come into force what their windows have taken,
// one figure for each counter. Counters that are there are left as they are. It returns how
// many it made; requests are admitted in between.
func (g *Gate) Introduce(spent []engine.Spent) (made int) {
	for some := range slices.Chunk(spent, atATime) {
		g.mu.Lock()
		made += g.eng.Introduce(time.Now(), some)
		g.mu.Unlock()
	}
	return made
}
