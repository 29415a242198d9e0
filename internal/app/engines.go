package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/scrape"
	"sluice/internal/telemetry"
	"sluice/internal/upstream"
)

// readEngines starts to read what engines tell of their load.
func (a *App) readEngines(client *upstream.Client) {
	poller := scrape.Start(scrape.Options{
		Engines: a.engines, Observe: a.gate.Observe,
		Fetch: func(ctx context.Context, b sluice.BackendID) ([]byte, error) {
			t, ok := a.snapshot.Load().Targets[b]
			if !ok {
				return nil, errors.New("it is not configured any more")
			}
			return client.Metrics(ctx, t, scrape.MaxBody)
		},
		Failed: func(b sluice.BackendID, err error, heard time.Time) {
			a.log.Debug("an engine told nothing of its load", slog.String("backend", string(b)), slog.Time("heard", heard), slog.Any("error", err))
		},
	})
	a.cleanup.push("stop reading engines' metrics", func(context.Context) error { poller.Close(); return nil })
}

// engines are the backends in force that are asked for their load.
func (a *App) engines() (out []scrape.Engine) {
	s := a.snapshot.Load()
	for _, p := range s.Table.Pools {
		for _, b := range p.Backends {
			if t := s.Targets[b.ID]; t != nil && t.MetricsEvery > 0 {
				out = append(out, scrape.Engine{Backend: b.ID, Model: b.Model, Every: t.MetricsEvery})
			}
		}
	}
	return out
}

// takesWork reports whether a backend in such a state is given requests.
func takesWork(health string) bool {
	return health == "healthy" || health == "ramping" || health == "held"
}

// backendLevel is what the metrics show of a backend.
func backendLevel(b *engine.BackendView) telemetry.BackendLevel {
	l := telemetry.BackendLevel{
		Backend: b.ID, Inflight: b.Running, KVTokens: b.KVTokens, Healthy: takesWork(b.Health), Limit: b.Concurrency,
		Share: float64(b.Share) / 1000, Held: b.Health == "held",
		Retries: b.Retries, Bounded: b.RetriesBounded,
		KVUsage: float64(max(b.KVPermille, 0)) / 1000, KVUsageTold: b.KVPermille >= 0,
	}
	for _, r := range b.Rates {
		if l.RatesLeft == nil {
			l.RatesLeft = make(map[string]int64, len(b.Rates))
		}
		l.RatesLeft[r.Rate.String()] = r.Left
	}
	return l
}
