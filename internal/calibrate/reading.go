package calibrate

import (
	"context"
	"io"
	"net/http"
	"time"

	"sluice/internal/fleet"
	"sluice/internal/route"
	"sluice/internal/scrape"
)

// often is how long it is between two readings of an engine's metrics.
const often = 100 * time.Millisecond

const (
	maxMetrics  = 8 << 20 // bytes
	readingTime = 5 * time.Second
)

// findMetrics looks whether the backend tells of itself, and how much memory it
// says that it has.
func (r *runner) findMetrics(ctx context.Context) {
	r.metrics = r.base.JoinPath("/metrics").String()
	l, ok := r.read(ctx)
	if !ok || l.KVPermille < 0 {
		r.metrics = ""
		return
	}
	r.result.Readings, r.result.Profile.KVCapacity = true, l.KVCapacity
}

// read asks once.
func (r *runner) read(ctx context.Context) (l route.Load, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, readingTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.metrics, nil)
	if err != nil {
		return l, false
	}
	if key := r.o.Key.Reveal(); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := r.o.Transport.RoundTrip(req)
	if err != nil {
		return l, false
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return l, false
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxMetrics))
	if err != nil {
		return l, false
	}
	return scrape.Parse(text, r.o.Model)
}

// watch reads until the context ends.
func (r *runner) watch(ctx context.Context) (out []fleet.Reading) {
	tick := time.NewTicker(often)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return out
		case <-tick.C:
		}
		before := time.Now()
		l, ok := r.read(ctx)
		if !ok {
			continue
		}
		out = append(out, fleet.Reading{
			At: before.Add(time.Since(before) / 2), Running: int(l.Running), Waiting: int(l.Waiting), KVMillionths: max(l.KVPermille, 0) * 1000,
		})
	}
}
