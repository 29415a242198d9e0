package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/hook"
)

// MaxHooks bounds the hooks that have series of their own.
const MaxHooks = 64

// hookBuckets are in seconds.
var hookBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

// hookMetrics are what hooks decided.
type hookMetrics struct {
	names    *names
	calls    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	failures *prometheus.CounterVec
	found    *prometheus.CounterVec
}

func newHookMetrics(m *Metrics) hookMetrics {
	return hookMetrics{
		names:    newNames(MaxHooks),
		calls:    m.counter("sluice_hook_calls_total", "Verdicts of hooks by stage (request, commit, event): allow, redact, refuse, risk, or failed where none came and the hook's failure mode decided. The built-in redaction counts where it found something.", "hook", "stage", "verdict"),
		seconds:  m.histogram("sluice_hook_seconds", "Time of a call of a hook's service, the wait for its turn included.", hookBuckets, "hook", "stage"),
		failures: m.counter("sluice_hook_failures_total", "Calls that brought no verdict: timeout, busy, open (left alone after failures in a row), connect, status, malformed, too_large, unknown.", "hook", "cause"),
		found:    m.counter("sluice_hook_redactions_total", "What the built-in redaction found, by kind.", "hook", "kind"),
	}
}

// DeclareHooks gives hooks series of their own.
func (m *Metrics) DeclareHooks(specs []hook.Spec) {
	for i := range specs {
		m.inspect.names.declare(specs[i].Name)
	}
}

// Inspected counts a verdict.
func (m *Metrics) Inspected(e hook.Event) {
	h := &m.inspect
	name, stage := h.names.label(e.Hook), e.Stage.String()
	h.calls.WithLabelValues(name, stage, e.Verdict.String()).Inc()
	if e.Took > 0 {
		h.seconds.WithLabelValues(name, stage).Observe(e.Took.Seconds())
	}
	if e.Verdict == hook.Failed {
		h.failures.WithLabelValues(name, string(e.Cause)).Inc()
	}
	for k, n := range e.Counts {
		if n > 0 {
			h.found.WithLabelValues(name, hook.Kind(k).String()).Add(float64(n))
		}
	}
}
