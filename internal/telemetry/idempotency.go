package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/idempotency"
)

// KeysLevel is what is kept for Idempotency-Key.
type KeysLevel struct {
	Bytes int64 // of answers in the store, as of the last sweep and of what was kept here since
	Held  int   // keys of requests that run here
}

// keysDescs are its metrics.
type keysDescs struct{ bytes, held *prometheus.Desc }

func newKeysDescs(m *Metrics) keysDescs {
	return keysDescs{
		bytes: m.desc("sluice_idempotency_bytes", "gauge", "Bytes of answers kept for Idempotency-Key, in the store."),
		held:  m.desc("sluice_idempotency_held", "gauge", "Idempotency-Keys of requests that run in this process."),
	}
}

func (d *keysDescs) describe(ch chan<- *prometheus.Desc) { ch <- d.bytes; ch <- d.held }

func (d *keysDescs) collect(l KeysLevel, ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(d.bytes, prometheus.GaugeValue, float64(l.Bytes))
	ch <- prometheus.MustNewConstMetric(d.held, prometheus.GaugeValue, float64(l.Held))
}

// Idempotency counts what became of a key.
func (m *Metrics) Idempotency(e idempotency.Event) { m.keyEvents.WithLabelValues(string(e)).Inc() }

func (m *Metrics) idempotencyMetrics() {
	m.keyEvents = m.counter("sluice_idempotency_total", "Idempotency-Keys by what became of them: claimed (the request runs), replayed, in_flight, mismatch; and of the answers: stored, freed (failed: the key is free again), too_large, full (no room), lost (the claim was taken over), failed (the store did not answer).", "result")
}
