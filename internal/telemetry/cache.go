package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/cache"
)

// cacheMetrics are what the output cache does.
type cacheMetrics struct {
	results  *prometheus.CounterVec
	bypasses *prometheus.CounterVec
	unkept   *prometheus.CounterVec
	tokens   prometheus.Counter
	saved    prometheus.Counter
	bytes    prometheus.Counter
	failures prometheus.Counter
	seconds  *prometheus.HistogramVec
}

func newCacheMetrics(m *Metrics) cacheMetrics {
	one := func(name, help string) prometheus.Counter { return m.counter(name, help).WithLabelValues() }
	return cacheMetrics{
		results:  m.counter("sluice_output_cache_requests_total", "Requests of plans that keep answers, by result: hit, miss, bypass, coalesced (it got the answer of the same request in flight).", "result"),
		bypasses: m.counter("sluice_output_cache_bypasses_total", "Requests that were neither kept nor looked for, by reason: plan, request, operation, state, provider_tools, external, too_large.", "reason"),
		unkept:   m.counter("sluice_output_cache_unkept_total", "Answers that were not kept, by reason: failed, too_large, status, budget, tier, hook, anomalous, finish, refused, policy (another was put in force meanwhile), purged, store.", "reason"),
		tokens:   one("sluice_output_cache_saved_tokens_total", "Input and output tokens that hits did not take."),
		saved:    one("sluice_output_cache_saved_nanodollars_total", "What hits did not cost, by the usage of the answers that they got."),
		bytes:    one("sluice_output_cache_stored_bytes_total", "Bytes of answers that were put into the store."),
		failures: one("sluice_output_cache_store_failures_total", "Questions that the store did not answer in time, and entries that could not be read."),
		seconds:  m.histogram("sluice_output_cache_first_content_seconds", "From the arrival of a request to its first content, by result: hit or coalesced.", []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .5, 1, 5}, "result"),
	}
}

// Cached counts what the output cache had to do with a request.
func (m *Metrics) Cached(e cache.Event) {
	c := &m.cached
	switch e.Result {
	case cache.Unkept:
		c.unkept.WithLabelValues(e.Reason).Inc()
	case cache.Stored:
		c.bytes.Add(float64(e.Bytes))
	case cache.Corrupt:
		c.failures.Inc()
	case cache.Bypass:
		c.bypasses.WithLabelValues(e.Reason).Inc()
		c.results.WithLabelValues(e.Result.String()).Inc()
	default:
		c.results.WithLabelValues(e.Result.String()).Inc()
		if e.Took > 0 {
			c.seconds.WithLabelValues(e.Result.String()).Observe(e.Took.Seconds())
		}
		c.tokens.Add(float64(e.Tokens))
		c.saved.Add(float64(e.Saved))
	}
}

// CacheFailed counts a question that the store of answers did not answer.
func (m *Metrics) CacheFailed() { m.cached.failures.Inc() }
