package admit

import (
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
