package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/ledger"
	"sluice/internal/route"
)

// MaxShadows bounds the pairs of model and shadow pool that have series of their own.
const MaxShadows = 32

// The sides of what is compared, as label values.
const (
	sideRequest = "request"
	sideShadow  = "shadow"
)

// shadowMetrics are what shadows came to, beside the requests that they are copies of.
// Nothing else counts copies.
type shadowMetrics struct {
	names    *names // "model/pool"
	ended    *prometheus.CounterVec
	skipped  *prometheus.CounterVec
	first    *prometheus.HistogramVec
	duration *prometheus.HistogramVec
	output   *prometheus.CounterVec
	cost     *prometheus.CounterVec
}

func newShadowMetrics(m *Metrics) shadowMetrics {
	return shadowMetrics{
		names:    newNames(MaxShadows),
		ended:    m.counter("sluice_shadow_ended_total", "Copies that shadows were sent, and the requests that were copied to them (side shadow and request), by how and why they ended.", "model", "pool", "side", "outcome", "reason"),
		skipped:  m.counter("sluice_shadow_skipped_total", "Requests whose turn a shadow was and that were not copied to it, by why: see docs/routing.md.", "model", "pool", "why"),
		first:    m.histogram("sluice_shadow_first_token_seconds", "Time to the first content without the time in queues, of copies and of the requests that were copied.", firstBuckets, "model", "pool", "side"),
		duration: m.histogram("sluice_shadow_duration_seconds", "Time to the end without the time in queues, of copies and of requests that were copied, where they completed.", durationBuckets, "model", "pool", "side"),
		output:   m.counter("sluice_shadow_output_tokens_total", "Output tokens of copies and of the requests that were copied.", "model", "pool", "side"),
		cost:     m.counter("sluice_shadow_cost_nanodollars_total", "Cost of copies and of the requests that were copied, in nano-dollars.", "model", "pool", "side"),
	}
}

func (s *shadowMetrics) declare(t *route.Table) {
	for _, id := range sorted(t.Models) {
		for i := range t.Models[id].Shadows {
			s.names.declare(string(id) + "/" + string(t.Models[id].Shadows[i].Pool))
		}
	}
}

// labels are the label values of a model's shadow.
func (s *shadowMetrics) labels(m sluice.ModelID, p sluice.PoolID) (model, pool string) {
	if s.names.label(string(m)+"/"+string(p)) == Other {
		return Other, Other
	}
	return string(m), string(p)
}

// Skipped counts a request whose turn a shadow was and that was not copied to it.
func (m *Metrics) Skipped(id sluice.ModelID, pool sluice.PoolID, why route.Skip) {
	model, name := m.copies.labels(id, pool)
	m.copies.skipped.WithLabelValues(model, name, string(why)).Inc()
}

// Copied counts a copy that has ended.
func (m *Metrics) Copied(e *ledger.Entry) {
	m.copies.end(e.Pool, sideShadow, e, e.Usage.OutputTotal(), e.Cost)
}

// Beside counts a request that has ended and was copied to a pool.
func (m *Metrics) Beside(pool sluice.PoolID, r *exchange.Result) {
	m.copies.end(pool, sideRequest, &r.Final, r.Usage.OutputTotal(), r.Cost)
}

func (s *shadowMetrics) end(p sluice.PoolID, side string, e *ledger.Entry, output sluice.Tokens, cost sluice.Nano) {
	model, pool := s.labels(e.Model, p)
	s.ended.WithLabelValues(model, pool, side, e.Outcome.String(), e.Reason.String()).Inc()
	if e.FirstToken > 0 {
		s.first.WithLabelValues(model, pool, side).Observe(max(e.FirstToken-e.Queued, time.Microsecond).Seconds())
	}
	if e.Outcome == sluice.Completed {
		s.duration.WithLabelValues(model, pool, side).Observe(max(e.Duration-e.Queued, 0).Seconds())
	}
	s.output.WithLabelValues(model, pool, side).Add(float64(output))
	s.cost.WithLabelValues(model, pool, side).Add(float64(cost))
}
