package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/fetch"
)

// fetchMetrics are what is fetched by URL for requests.
type fetchMetrics struct {
	results *prometheus.CounterVec
	bytes   prometheus.Counter
	seconds prometheus.Histogram
}

func newFetchMetrics(m *Metrics) fetchMetrics {
	f := fetchMetrics{
		results: m.counter("sluice_fetches_total", "Images and documents that were fetched by URL for requests, by outcome: fetched, url (the gateway goes to no such URL), forbidden (its address is not public), unanswered, redirected (too often, or to where it does not go), too_large, unfit (no image or PDF), timeout, ended (its request did, or another piece of it could not be had).", "outcome"),
		bytes:   m.counter("sluice_fetch_bytes_total", "Bytes of what was fetched by URL.").WithLabelValues(),
		seconds: m.histogram("sluice_fetch_seconds", "Time to fetch one image or document by URL, its wait for room included.", []float64{.025, .05, .1, .25, .5, 1, 2.5, 5, 10}).WithLabelValues().(prometheus.Histogram),
	}
	for _, o := range fetch.Outcomes {
		f.results.WithLabelValues(string(o))
	}
	return f
}

// Fetched counts what became of a URL.
func (m *Metrics) Fetched(e fetch.Event) {
	f := &m.fetches
	f.results.WithLabelValues(string(e.Outcome)).Inc()
	f.bytes.Add(float64(e.Bytes))
	if e.Outcome == fetch.Fetched {
		f.seconds.Observe(e.Took.Seconds())
	}
}
