package telemetry

import (
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sluice"
	"sluice/internal/ledger"
	"sluice/internal/route"
)

// MaxSeries is the most series that sluice_* metrics can have together, buckets
// of histograms included, whatever clients send. It is what the caps of this
// package allow in theory; a gateway of ten models has a few thousand.
const MaxSeries = 100_000

// Options says what a Metrics is made of.
type Options struct {
	Version  string           // of the binary, for sluice_build_info
	Revision string           // of its source; empty if unknown
	Now      func() time.Time // nil means time.Now
}

// Metrics is the Prometheus face of the gateway: a registry of its own and the
// methods that feed it.
type Metrics struct {
	registry *prometheus.Registry
	rows     []Row

	models, backends, pools *names
	domains, credentials    *names
	regions                 *names
	tenants                 *tenants
	levels                  *levels

	requests      *prometheus.CounterVec
	risks         *prometheus.CounterVec
	duration      *prometheus.HistogramVec
	firstToken    *prometheus.HistogramVec
	queueWait     *prometheus.HistogramVec
	rejections    *prometheus.CounterVec
	shadows       *prometheus.CounterVec
	outputError   *prometheus.CounterVec
	outputTokens  *prometheus.CounterVec
	tokens        *prometheus.CounterVec
	cost          *prometheus.CounterVec
	attempts      *prometheus.CounterVec
	retries       *prometheus.CounterVec
	hedges        *prometheus.CounterVec
	stateRefs     *prometheus.CounterVec
	healthChanges *prometheus.CounterVec
	tierChanges   *prometheus.CounterVec
	truncations   *prometheus.CounterVec
	anomalies     *prometheus.CounterVec
	unmarked      *prometheus.CounterVec
	drains        *prometheus.CounterVec
	background    *prometheus.CounterVec
	late          prometheus.Counter
	unpriced      *prometheus.CounterVec
	estimateError *prometheus.HistogramVec
	fsync         prometheus.Histogram
	journalErrors *prometheus.CounterVec
	reloads       *prometheus.CounterVec
	panics        prometheus.Counter
	hot           hot // of the above
	copies        shadowMetrics
	inspect       hookMetrics
	issuers       issuerMetrics
	batches       batchMetrics
	cached        cacheMetrics
	fetches       fetchMetrics
	keyEvents     *prometheus.CounterVec
}

// Row describes one metric, for docs/metrics.md.
type Row struct {
	Name, Type, Help string
	Labels           []string
}

// Buckets in seconds. Long requests are the point of this gateway: the last
// buckets are minutes.
var (
	durationBuckets = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640}
	firstBuckets    = []float64{.025, .05, .1, .2, .4, .8, 1.5, 3, 6, 12, 25, 50, 100}
	waitBuckets     = []float64{.001, .005, .025, .1, .25, .5, 1, 2, 4, 8, 15, 30, 60, 120}
	fsyncBuckets    = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}
	ratioBuckets    = []float64{.25, .5, .7, .8, .9, .95, 1, 1.05, 1.1, 1.25, 1.5, 2, 4}
)

// New returns metrics in a registry of their own, with Go runtime and process
// collectors.
func New(o Options) *Metrics {
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		models:   newNames(MaxModels), backends: newNames(MaxBackends), pools: newNames(MaxPools),
		domains: newNames(MaxDomains), credentials: newNames(MaxCredentials), regions: newNames(MaxRegions),
	}
	m.requestMetrics()
	m.accountMetrics()
	m.copies = newShadowMetrics(m)
	m.inspect = newHookMetrics(m)
	m.issuers = newIssuerMetrics(m)
	m.batches = newBatchMetrics(m)
	m.cached = newCacheMetrics(m)
	m.fetches = newFetchMetrics(m)
	m.idempotencyMetrics()
	m.heat()
	m.tenants = newTenants(o.Now, [4]*prometheus.Desc{
		m.desc("sluice_tenant_requests_total", "counter", "Requests that ended, by tenant: the busiest tenants and other.", "tenant"),
		m.desc("sluice_tenant_rejections_total", "counter", "Requests refused before a backend was touched, by tenant.", "tenant"),
		m.desc("sluice_tenant_tokens_total", "counter", "Tokens of all classes, by tenant.", "tenant"),
		m.desc("sluice_tenant_cost_nanodollars_total", "counter", "Cost in nano-dollars, by tenant.", "tenant"),
	})
	m.levels = newLevels(m)
	m.registry.MustRegister(m.tenants, m.levels, m.buildInfo(o),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *Metrics) requestMetrics() {
	m.requests = m.counter("sluice_requests_total", "Requests that ended, by how and why.", "model", "class", "outcome", "reason")
	m.risks = m.counter("sluice_risk_requests_total", "Requests with a risk label that ended, by the label: low, normal or high.", "risk", "outcome")
	m.duration = m.histogram("sluice_request_duration_seconds", "Time from arrival to the last byte, of requests that reached a backend.", durationBuckets, "model", "class")
	m.firstToken = m.histogram("sluice_time_to_first_token_seconds", "Time from arrival to the first content, waiting included.", firstBuckets, "model", "class")
	m.queueWait = m.histogram("sluice_queue_wait_seconds", "Time in a pool's queue before an attempt.", waitBuckets, "pool", "class")
	m.rejections = m.counter("sluice_rejections_total", "Requests refused before a backend was touched, by the limit that did not fit, if it was one.", "reason", "scope", "dimension")
	m.shadows = m.counter("sluice_shadow_refusals_total", "Requests that ran and would have been refused, or would have waited, were their limits not in shadow.", "reason", "scope", "dimension")
	m.attempts = m.counter("sluice_upstream_attempts_total", "Calls to backends that ended; the reason is empty when one completed.", "backend", "reason")
	m.retries = m.counter("sluice_retries_total", "Attempts that failed in a way that allows another, by the backend that failed: the decision is allowed, or why there was none.", "backend", "decision")
	m.stateRefs = m.counter("sluice_state_references_total", "Requests that refer to what a provider keeps, by its kind: pinned to where that is; refused, since it is unknown to their tenant, or split over several places; or foreign, unknown to all and left to the provider.", "kind", "result")
	m.hedges = m.counter("sluice_hedges_total", "Attempts whose first content was late, of requests that may be hedged, by the backend that was late: the result is won, lost or failed of the second attempt, ended if the client left before either had content, or why there was none.", "backend", "result")
	m.tierChanges = m.counter("sluice_pool_tier_changes_total", "Moves of the pool's degradation ladder that requests felt, by the tier that it came to and why: queue_age, kv, refused, calm, pin, unpin, pin_expired or config.", "pool", "tier", "why")
	m.healthChanges = m.counter("sluice_backend_health_changes_total", "Changes of what a backend may be given, by what it was then: healthy, cooling, probing, ramping, held, avoided, parked, disabled or drained.", "backend", "to")
	m.truncations = m.counter("sluice_stream_truncations_total", "Streams that a backend ended before they were complete.", "backend")
	m.background = m.counter("sluice_background_total", "Responses that were made in the background and are settled, by how they came out: ended (completed or failed), stopped (cancelled), gone (the provider has it no more), time (cancelled after two hours), or shutdown.", "provider", "result")
	m.drains = m.counter("sluice_drains_total", "Answers whose client had left, of providers that bill them to the end, by what became of reading them on: whole, time, bytes, cut, shutdown, or full if none was begun since as many were read as are at a time.", "provider", "result")
	m.unmarked = m.counter("sluice_stream_markers_added_total", "Streams that a backend ended complete but for the terminal marker, which was added.", "backend")
}

func (m *Metrics) accountMetrics() {
	m.tokens = m.counter("sluice_tokens_total", "Tokens by disjoint class and by where the figure comes from.", "model", "token_class", "source")
	m.cost = m.counter("sluice_cost_nanodollars_total", "Cost of attempts in nano-dollars (1e-9 USD): divide by 1e9 for dollars.", "model", "source")
	m.anomalies = m.counter("sluice_usage_anomalies_total", "Usage reports with impossible figures, which were clamped.", "backend")
	late := m.counter("sluice_late_settlements_total", "Attempts settled after their hold had expired.")
	m.late = late.WithLabelValues()
	m.unpriced = m.counter("sluice_unpriced_total", "Requests for a model without a price: refused, or charged the configured ceiling.", "model", "action")
	m.estimateError = m.histogram("sluice_estimate_error_ratio", "Reported input tokens divided by the estimate made at arrival.", ratioBuckets, "model")
	m.outputError = m.counter("sluice_output_error_tokens_total", "Sum of |reported output − output expected at arrival|: divide by sluice_output_reported_tokens_total for the mean error.", "model")
	m.outputTokens = m.counter("sluice_output_reported_tokens_total", "Output tokens of the answers that sluice_output_error_tokens_total is over.", "model")
	fsync := m.histogram("sluice_journal_fsync_seconds", "Time of one group fsync of the journal.", fsyncBuckets)
	m.fsync = fsync.WithLabelValues().(prometheus.Histogram)
	m.journalErrors = m.counter("sluice_journal_errors_total", "Journal and drain operations that failed and were tried again.", "operation")
	panics := m.counter("sluice_panics_total", "Requests whose handling panicked; each was settled and the others went on.")
	m.panics = panics.WithLabelValues()
	m.reloads = m.counter("sluice_config_reloads_total", "Reloads of the configuration; a failed one changes nothing.", "result")
}

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	m.rows = append(m.rows, Row{name, "counter", help, labels})
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	m.rows = append(m.rows, Row{name, "histogram", help, labels})
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(v)
	return v
}

// desc records a metric that is read at scrape time.
func (m *Metrics) desc(name, kind, help string, labels ...string) *prometheus.Desc {
	m.rows = append(m.rows, Row{name, kind, help, labels})
	return prometheus.NewDesc(name, help, labels, nil)
}

func (m *Metrics) buildInfo(o Options) prometheus.Collector {
	labels := []string{"version", "revision", "go_version"}
	const name, help = "sluice_build_info", "Always 1; the labels say what runs."
	m.rows = append(m.rows, Row{name, "gauge", help, labels})
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	g.WithLabelValues(o.Version, o.Revision, runtime.Version()).Set(1)
	return g
}

// Rows describes every sluice_* metric, by name.
func (m *Metrics) Rows() []Row {
	return slices.SortedFunc(slices.Values(m.rows), func(a, b Row) int { return strings.Compare(a.Name, b.Name) })
}

// Handler serves the registry in the text and OpenMetrics formats.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true, MaxRequestsInFlight: 4, Timeout: 10 * time.Second,
	})
}

// Gatherer gives tests and other exporters what Handler serves.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// Declare makes the names of a routing table label values, in the order of
// their names, up to the caps. It is called at start and at each reload.
func (m *Metrics) Declare(t *route.Table) {
	for _, id := range sorted(t.Models) {
		m.models.declare(string(id))
	}
	m.copies.declare(t)
	for _, id := range sorted(t.Pools) {
		m.pools.declare(string(id))
		for _, b := range t.Pools[id].Backends {
			m.backends.declare(string(b.ID))
			keys := make([]string, len(b.Keys))
			for i, k := range b.Keys {
				keys[i] = k.ID
			}
			m.regions.declare(b.Region)
			m.declareHealth(b.Domain, keys, b.ID)
		}
	}
}

func sorted[K ~string, V any](m map[K]V) []K {
	out := make([]K, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// Attempt counts one ledger entry: a call to a backend, its tokens and its
// cost. Entries of requests that reached no backend count nothing here but what a kept
// answer cost.
func (m *Metrics) Attempt(e *ledger.Entry) {
	if e.Late {
		m.late.Inc()
	}
	if e.Attempt == 0 {
		if e.Cost > 0 {
			m.hot.cost.get(sourced{model: m.models.label(string(e.Model)), source: e.Usage.Source}).Add(float64(e.Cost))
			m.tenants.observe(string(e.Tenant), tally{cost: int64(e.Cost)})
		}
		return
	}
	backend, model := m.backends.label(string(e.Backend)), m.models.label(string(e.Model))
	m.hot.attempts.get(reasoned{backend, e.Reason}).Inc()
	if e.Reason == sluice.UpstreamTruncated {
		m.truncations.WithLabelValues(backend).Inc()
	}
	if e.Usage.Anomalous {
		m.anomalies.WithLabelValues(backend).Inc()
	}
	source := e.Usage.Source
	for _, c := range tokenClasses(&e.Usage) {
		if c.n > 0 {
			m.hot.tokens.get(sourced{model, c.name, source}).Add(float64(c.n))
		}
	}
	if e.Cost > 0 {
		m.hot.cost.get(sourced{model: model, source: source}).Add(float64(e.Cost))
	}
	if e.Usage.Source.Final() && e.EstimatedInput > 0 {
		m.hot.estimateError.get(model).Observe(float64(e.Usage.InputTotal()) / float64(e.EstimatedInput))
	}
	m.tenants.observe(string(e.Tenant), tally{tokens: int64(e.Usage.Total()), cost: int64(e.Cost)})
}

// Retry counts a decision on whether a failed attempt is followed by another.
// Denied is a word of route.Denied or a reason, empty where it is.
func (m *Metrics) Retry(failed sluice.BackendID, denied string) {
	if denied == "" {
		denied = "allowed"
	}
	m.retries.WithLabelValues(m.backends.label(string(failed)), denied).Inc()
}

// Hedge counts how the hedge of a late attempt came out: a word of exchange.Hooks.Hedge.
func (m *Metrics) Hedge(late sluice.BackendID, result string) {
	m.hedges.WithLabelValues(m.backends.label(string(late)), result).Inc()
}

// State counts a request that refers to what a backend keeps: a word of
// exchange.Hooks.State.
func (m *Metrics) State(kind route.StateKind, result string) {
	m.stateRefs.WithLabelValues(kind.String(), result).Inc()
}

// Drained counts what became of reading an answer on whose client had left.
func (m *Metrics) Drained(p sluice.ProviderID, result string, _ time.Duration) {
	m.drains.WithLabelValues(string(p), result).Inc()
}

// Background counts a response that was made in the background, when it is settled.
func (m *Metrics) Background(p sluice.ProviderID, result string, _ time.Duration) {
	m.background.WithLabelValues(string(p), result).Inc()
}

// Output counts how far the expected output of an answer was off.
func (m *Metrics) Output(model sluice.ModelID, expected, reported sluice.Tokens) {
	off := reported - expected
	if off < 0 {
		off = -off
	}
	label := m.models.label(string(model))
	m.hot.outputError.get(label).Add(float64(off))
	m.hot.outputTokens.get(label).Add(float64(reported))
}

// Request counts one request at its end.
func (m *Metrics) Request(r *Request) {
	e := &r.Final
	model := m.models.label(string(e.Model))
	m.hot.requests.get(ended{model, e.Class, e.Outcome, e.Reason}).Inc()
	if r.Risk != sluice.RiskNone {
		m.risks.WithLabelValues(r.Risk.String(), e.Outcome.String()).Inc()
	}
	d := tally{requests: 1}
	if e.Outcome == sluice.Rejected {
		d.rejected = 1
		scope, dimension := "", ""
		if r.Refusal != nil {
			scope, dimension = r.Refusal.Scope.String(), r.Refusal.Limit.Dimension.String()
		}
		m.rejections.WithLabelValues(e.Reason.String(), scope, dimension).Inc()
	}
	if w := r.Would; w != nil && w.Refusal != nil {
		m.shadows.WithLabelValues(w.Reason.String(), w.Refusal.Scope.String(), w.Refusal.Limit.Dimension.String()).Inc()
	}
	if e.Reason == sluice.Unpriced {
		m.unpriced.WithLabelValues(model, "refused").Inc()
	}
	if e.Attempt > 0 {
		m.hot.duration.get(classed{model, e.Class}).Observe(e.Duration.Seconds())
	}
	if e.FirstToken > 0 {
		m.hot.firstToken.get(classed{model, e.Class}).Observe(e.FirstToken.Seconds())
	}
	m.tenants.observe(string(e.Tenant), d)
}

// Granted records how long a request waited for one attempt.
func (m *Metrics) Granted(pool sluice.PoolID, class sluice.Class, waited time.Duration) {
	m.hot.queueWait.get(classed{m.pools.label(string(pool)), class}).Observe(waited.Seconds())
}

// Ceiling counts a request for an unpriced model that is charged the configured
// ceiling.
func (m *Metrics) Ceiling(model sluice.ModelID) {
	m.unpriced.WithLabelValues(m.models.label(string(model)), "ceiling").Inc()
}

// Fsync records one group fsync of the journal.
func (m *Metrics) Fsync(took time.Duration) { m.fsync.Observe(took.Seconds()) }

// JournalError counts a journal or drain operation that failed. Operation is one
// of a few words of the ledger, never text from outside.
func (m *Metrics) JournalError(operation string) { m.journalErrors.WithLabelValues(operation).Inc() }

// Reloaded counts a reload of the configuration.
func (m *Metrics) Reloaded(ok bool) {
	result := "failed"
	if ok {
		result = "ok"
	}
	m.reloads.WithLabelValues(result).Inc()
}

// classCount is one token class and its count.
type classCount struct {
	name   string
	logged string // its name in a log line
	n      sluice.Tokens
}

func tokenClasses(u *sluice.Usage) [8]classCount {
	return [8]classCount{
		{"input", "tokens_input", u.Input},
		{"cache_read", "tokens_cache_read", u.CacheRead},
		{"cache_write", "tokens_cache_write", u.CacheWrite},
		{"cache_write_1h", "tokens_cache_write_1h", u.CacheWrite1h},
		{"audio_input", "tokens_audio_input", u.AudioInput},
		{"output", "tokens_output", u.Output},
		{"reasoning", "tokens_reasoning", u.Reasoning},
		{"audio_output", "tokens_audio_output", u.AudioOutput},
	}
}
