package telemetry

import "github.com/prometheus/client_golang/prometheus"

// StateLevel is what is remembered of what providers keep between requests.
type StateLevel struct {
	IDs     int
	Pending int   // changes that wait for the store
	Lost    int64 // changes that it was never told
}

// stateDescs are its metrics.
type stateDescs struct{ ids, pending, lost *prometheus.Desc }

func newStateDescs(m *Metrics) stateDescs {
	return stateDescs{
		ids:     m.desc("sluice_state_ids", "gauge", "Ids remembered of what providers keep between requests, over all tenants."),
		pending: m.desc("sluice_state_pending", "gauge", "Changes of what is remembered of ids that the store does not have yet."),
		lost:    m.desc("sluice_state_lost_total", "counter", "Such changes that the store was never told, for want of room while it took none: unknown after a restart and to other replicas."),
	}
}

func (d *stateDescs) describe(ch chan<- *prometheus.Desc) { ch <- d.ids; ch <- d.pending; ch <- d.lost }

func (d *stateDescs) collect(s StateLevel, ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(d.ids, prometheus.GaugeValue, float64(s.IDs))
	ch <- prometheus.MustNewConstMetric(d.pending, prometheus.GaugeValue, float64(s.Pending))
	ch <- prometheus.MustNewConstMetric(d.lost, prometheus.CounterValue, float64(s.Lost))
}
