package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"sluice"
	"sluice/internal/handover"
	"sluice/internal/jobs"
)

// batchMetrics count what becomes of batches and their lines.
type batchMetrics struct {
	lines, deferred, ended *prometheus.CounterVec
	handed, handedLines    *prometheus.CounterVec
	reclaimed, stale       prometheus.Counter
	failed                 prometheus.Counter
}

func newBatchMetrics(m *Metrics) batchMetrics {
	return batchMetrics{
		lines:       m.counter("sluice_batch_lines_total", "Lines of batches that have their result, by kind (batch, message_batch, async) and result (succeeded, failed, cancelled, expired).", "kind", "result"),
		deferred:    m.counter("sluice_batch_deferred_total", "Times that a line was refused for a rate, for capacity or for a budget, and waits, by reason. upstream_refused is also of each that a provider's batch gave back, and that runs by itself.", "reason"),
		ended:       m.counter("sluice_batch_jobs_total", "Batches that have ended, by kind and state.", "kind", "state"),
		reclaimed:   m.counter("sluice_batch_reclaimed_lines_total", "Lines that were in flight at a worker that is lost, and are run again.").WithLabelValues(),
		stale:       m.counter("sluice_batch_stale_answers_total", "Answers that came from a worker that had lost its lease: they are voided.").WithLabelValues(),
		failed:      m.counter("sluice_batch_store_errors_total", "Calls of the store for batches that did not succeed. What they were for is tried again, and nothing is lost.").WithLabelValues(),
		handed:      m.counter("sluice_batch_handovers_total", "Batches at providers' own batch APIs, by provider and how each came out: made or refused; then ended, failed, expired, cancelled or lost.", "provider", "result"),
		handedLines: m.counter("sluice_batch_handover_lines_total", "Lines that were at providers' own batch APIs, by provider and result: answered; or undone, which is taken back and runs here, also after an error of its own that another attempt may not have. An answer that turns out to be none is counted as both.", "provider", "result"),
	}
}

// HandOvers are the hooks of what hands lines over.
func (m *Metrics) HandOvers() handover.Hooks {
	b := &m.batches
	return handover.Hooks{
		Batch: func(p sluice.ProviderID, how string) { b.handed.WithLabelValues(string(p), how).Inc() },
		Line: func(p sluice.ProviderID, done bool) {
			result := "undone"
			if done {
				result = "answered"
			}
			b.handedLines.WithLabelValues(string(p), result).Inc()
		},
	}
}

// Batches are the hooks of the desk.
func (m *Metrics) Batches() jobs.Hooks {
	b := &m.batches
	return jobs.Hooks{
		Line: func(k jobs.Kind, s jobs.LineState) {
			if s == jobs.LineSucceeded || s == jobs.LineFailed { // the others are counted at the end
				b.lines.WithLabelValues(k.String(), s.String()).Inc()
			}
		},
		Deferred:    func(why sluice.Reason) { b.deferred.WithLabelValues(why.String()).Inc() },
		Reclaimed:   b.reclaimed.Inc,
		Stale:       b.stale.Inc,
		StoreFailed: b.failed.Inc,
		Ended: func(j *jobs.Job) {
			b.ended.WithLabelValues(j.Kind.String(), j.State.String()).Inc()
			for s, n := range map[jobs.LineState]int{jobs.LineCancelled: j.Counts.Cancelled, jobs.LineExpired: j.Counts.Expired} {
				if n > 0 {
					b.lines.WithLabelValues(j.Kind.String(), s.String()).Add(float64(n))
				}
			}
		},
	}
}

// batchDescs are the gauges of batches.
type batchDescs struct{ jobs, late, waiting, running, inflight, stalled *prometheus.Desc }

func newBatchDescs(m *Metrics) batchDescs {
	return batchDescs{
		jobs:     m.desc("sluice_batch_jobs", "gauge", "Batches that have not ended, by state.", "state"),
		late:     m.desc("sluice_batch_jobs_late", "gauge", "Of those, predicted to miss their deadline at the rate of the last minutes."),
		waiting:  m.desc("sluice_batch_lines_waiting", "gauge", "Lines of batches that wait."),
		running:  m.desc("sluice_batch_lines_running", "gauge", "Lines that a worker has, over all replicas."),
		inflight: m.desc("sluice_batch_lines_inflight", "gauge", "Lines that this process runs."),
		stalled:  m.desc("sluice_batch_stalled_seconds", "gauge", "For how long batches have waited for something that the store does not do, 0 if it does: its disk is full, or it does not answer."),
	}
}

func (d *batchDescs) describe(ch chan<- *prometheus.Desc) {
	for _, v := range [...]*prometheus.Desc{d.jobs, d.late, d.waiting, d.running, d.inflight, d.stalled} {
		ch <- v
	}
}

func (d *batchDescs) collect(l jobs.Level, ch chan<- prometheus.Metric) {
	gauge := func(of *prometheus.Desc, n int, label ...string) {
		ch <- prometheus.MustNewConstMetric(of, prometheus.GaugeValue, float64(n), label...)
	}
	for s, n := range l.Jobs {
		gauge(d.jobs, n, jobs.State(s).String())
	}
	gauge(d.late, l.Late)
	gauge(d.waiting, l.Waiting)
	gauge(d.running, l.Running)
	gauge(d.inflight, l.Inflight)
	ch <- prometheus.MustNewConstMetric(d.stalled, prometheus.GaugeValue, l.Stalled.Seconds())
}
