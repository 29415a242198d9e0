package telemetry

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/engine"
	"sluice/internal/ladder"
)

// ladderDescs describe what is read of pools' degradation ladders.
type ladderDescs struct{ tier, would, pinned, effects, tokens, deferred *prometheus.Desc }

func newLadderDescs(m *Metrics) ladderDescs {
	return ladderDescs{
		tier:     m.desc("sluice_pool_tier", "gauge", "Tier of the pool's degradation ladder as requests feel it: 0 none, 1 clamp, 2 context, 3 defer, 4 smaller, 5 shed. 0 in shadow.", "pool"),
		would:    m.desc("sluice_pool_tier_would", "gauge", "Tier on which the pool's ladder stands, felt or, in shadow, not.", "pool"),
		pinned:   m.desc("sluice_pool_tier_pinned", "gauge", "1 while an operator's pin keeps the pool's ladder where it is.", "pool"),
		effects:  m.desc("sluice_pool_degraded_total", "counter", "What the pool's ladder did to requests, or in shadow would have done: clamp (an answer was bounded), context (too long for it), smaller (another model served), offer (refused with the asynchronous path offered), shed (refused).", "pool", "effect"),
		tokens:   m.desc("sluice_pool_clamped_tokens_total", "counter", "By how much the pool's ladder has lowered output bounds.", "pool"),
		deferred: m.desc("sluice_pool_deferred", "gauge", "Requests of batch that wait for the pool's ladder to come down.", "pool"),
	}
}

func (d *ladderDescs) describe(ch chan<- *prometheus.Desc) {
	for _, x := range []*prometheus.Desc{d.tier, d.would, d.pinned, d.effects, d.tokens, d.deferred} {
		ch <- x
	}
}

// graded is what pools that share a label have in common: the highest tiers, and sums.
type graded struct {
	tier, would ladder.Tier
	pinned      bool
	effects     map[string]int64
	tokens      int64
	deferred    int
}

// ladders tells of ladders that are not off.
func (l *levels) ladders(all []PoolLevel, ch chan<- prometheus.Metric) {
	sum := make(map[string]*graded)
	for i := range all {
		v := all[i].Ladder
		if v == nil {
			continue
		}
		name := l.m.pools.label(string(all[i].Pool))
		s := sum[name]
		if s == nil {
			s = &graded{effects: make(map[string]int64)}
			sum[name] = s
		}
		s.tier, s.would, s.pinned = max(s.tier, v.Acting.Tier()), max(s.would, v.Rung.Tier()), s.pinned || v.Pin != nil
		s.tokens, s.deferred = s.tokens+int64(v.Counts.ClampedTokens), s.deferred+v.Deferred
		for effect, n := range v.Counts.Effects() {
			s.effects[effect] += n
		}
	}
	d := &l.ladder
	for name, s := range sum {
		gauge := func(d *prometheus.Desc, n float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n, name)
		}
		gauge(d.tier, float64(s.tier))
		gauge(d.would, float64(s.would))
		gauge(d.pinned, oneIf(s.pinned))
		gauge(d.deferred, float64(s.deferred))
		ch <- prometheus.MustNewConstMetric(d.tokens, prometheus.CounterValue, float64(s.tokens), name)
		for effect, n := range s.effects {
			ch <- prometheus.MustNewConstMetric(d.effects, prometheus.CounterValue, float64(n), name, effect)
		}
	}
}

// tierChanged counts and logs a move of a pool's ladder. What requests feel more of is a
// warning.
func (h Hooks) tierChanged(c engine.TierChange) {
	to := strconv.Itoa(int(c.To.Tier()))
	if c.Acts {
		h.Metrics.tierChanges.WithLabelValues(h.Metrics.pools.label(string(c.Pool)), to, c.Cause.String()).Inc()
	}
	level, what := slog.LevelInfo, "the ladder of a pool has moved"
	switch {
	case !c.Acts:
		what = "the ladder of a pool would have moved"
	case c.To > c.From || c.Cause == ladder.CausePin:
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{
		slog.String("pool", Clean(string(c.Pool))), slog.Int("from", int(c.From.Tier())), slog.Int("tier", int(c.To.Tier())), slog.String("name", c.To.String()), slog.String("why", c.Cause.String()),
		seconds("oldest_s", c.Signal.Age), slog.Int64("kv_permille", c.Signal.KV), slog.Int64("refused_permille", c.Signal.Refused),
	}
	if p := c.Pin; p != nil {
		attrs = append(attrs, slog.String("by", Clean(p.Author)), slog.String("reason", Clean(p.Reason)), slog.Time("until", p.Expires.UTC().Truncate(time.Second)))
	}
	h.Log.LogAttrs(context.Background(), level, what, attrs...)
}
