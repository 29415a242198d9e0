package telemetry

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"sluice"
)

// family remembers the series of label values, of which there are few: to find one
// by its labels costs the library more than to count. What K holds are labels, so
// that the map is as bounded as they are.
type family[K comparable, V any] struct {
	mu   sync.RWMutex
	of   map[K]V
	find func(K) V
}

func newFamily[K comparable, V any](find func(K) V) *family[K, V] {
	return &family[K, V]{of: make(map[K]V), find: find}
}

func (f *family[K, V]) get(k K) V {
	f.mu.RLock()
	v, ok := f.of[k]
	f.mu.RUnlock()
	if ok {
		return v
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	v = f.find(k) // the same again, if another was faster
	f.of[k] = v
	return v
}

// What series are found by.
type (
	ended struct {
		model   string
		class   sluice.Class
		outcome sluice.Outcome
		reason  sluice.Reason
	}
	classed struct {
		name  string // of a model or a pool
		class sluice.Class
	}
	reasoned struct {
		backend string
		reason  sluice.Reason
	}
	sourced struct {
		model  string
		class  string // of tokens; empty for cost
		source sluice.UsageSource
	}
)

// hot are the series that every request counts in.
type hot struct {
	requests      *family[ended, prometheus.Counter]
	duration      *family[classed, prometheus.Observer]
	firstToken    *family[classed, prometheus.Observer]
	queueWait     *family[classed, prometheus.Observer]
	attempts      *family[reasoned, prometheus.Counter]
	tokens        *family[sourced, prometheus.Counter]
	cost          *family[sourced, prometheus.Counter]
	estimateError *family[string, prometheus.Observer]
	outputError   *family[string, prometheus.Counter]
	outputTokens  *family[string, prometheus.Counter]
}

func (m *Metrics) heat() {
	of := func(v *prometheus.HistogramVec) *family[classed, prometheus.Observer] {
		return newFamily(func(k classed) prometheus.Observer { return v.WithLabelValues(k.name, k.class.String()) })
	}
	m.hot = hot{
		requests: newFamily(func(k ended) prometheus.Counter {
			return m.requests.WithLabelValues(k.model, k.class.String(), k.outcome.String(), k.reason.String())
		}),
		duration: of(m.duration), firstToken: of(m.firstToken), queueWait: of(m.queueWait),
		attempts: newFamily(func(k reasoned) prometheus.Counter { return m.attempts.WithLabelValues(k.backend, k.reason.String()) }),
		tokens: newFamily(func(k sourced) prometheus.Counter {
			return m.tokens.WithLabelValues(k.model, k.class, k.source.String())
		}),
		cost:          newFamily(func(k sourced) prometheus.Counter { return m.cost.WithLabelValues(k.model, k.source.String()) }),
		estimateError: newFamily(func(k string) prometheus.Observer { return m.estimateError.WithLabelValues(k) }),
		outputError:   newFamily(func(k string) prometheus.Counter { return m.outputError.WithLabelValues(k) }),
		outputTokens:  newFamily(func(k string) prometheus.Counter { return m.outputTokens.WithLabelValues(k) }),
	}
}
