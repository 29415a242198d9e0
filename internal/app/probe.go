package app

import (
	"context"
	"log/slog"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/probe"
	"sluice/internal/upstream"
)

// probeBackends starts to ask backends how they are.
func (a *App) probeBackends(client *upstream.Client) {
	prober := probe.Start(probe.Options{
		Targets: a.probed,
		Ask: func(ctx context.Context, p probe.Target) (int, error) {
			t, ok := a.snapshot.Load().Targets[p.Backend]
			if !ok {
				return 0, probe.ErrUnasked
			}
			return client.Ask(ctx, t, p.Path)
		},
		Observe: func(b sluice.BackendID, up bool) {
			a.gate.Observe(engine.Signal{Backend: b, Probed: true, Healthy: up})
		},
		Odd: func(b sluice.BackendID, path string, status int) {
			a.log.Warn("a probe's answer says nothing of its backend: mend its path", slog.String("backend", string(b)), slog.String("path", path), slog.Int("status", status))
		},
	})
	a.cleanup.push("stop probing backends", func(context.Context) error { prober.Close(); return nil })
}

// probed are the backends in force that are probed.
func (a *App) probed() (out []probe.Target) {
	s := a.snapshot.Load()
	for _, p := range s.Table.Pools {
		for _, b := range p.Backends {
			if t := s.Targets[b.ID]; t != nil && t.Probe.Path != "" {
				out = append(out, probe.Target{Backend: b.ID, Path: t.Probe.Path, Every: t.Probe.Every})
			}
		}
	}
	return out
}
