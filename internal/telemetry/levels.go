package telemetry

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/jobs"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// Levels is what the gateway is holding right now. It is read at scrape time,
// so a level cannot drift from the state that it describes.
type Levels struct {
	Pools    []PoolLevel
	Backends []BackendLevel

	Drains     map[sluice.ProviderID]int // answers that are read though their clients have left
	Background int                       // responses that are made though their requests have been answered

	Health  Health
	Regions []engine.RegionView

	RetryBudget        int64 // retries that there is room for in all
	RetryBudgetBounded bool  // else no budget is in force

	JournalEntries int           // settled entries not yet in the store
	JournalAge     time.Duration // age of the oldest of them
	JournalOpen    int           // attempts without a settle
	Tenants        int           // tenants in the snapshot that admits
	Keys           int           // keys in it
	State          StateLevel
	Batch          jobs.Level
	Idempotency    KeysLevel
	SnapshotAge    time.Duration // since the snapshot was last read or confirmed
	Ready          bool
	OffFile        bool // something else than the configuration file is in force
}

// PoolLevel is one pool's queue.
type PoolLevel struct {
	Pool      sluice.PoolID
	Inflight  int64
	Classes   [sluice.NumClasses]sched.ClassView
	Contracts []sched.ContractView
	Failed    bool                // none of its backends takes requests
	Gathering bool                // capacity is kept for a request that lacks it
	Affinity  *route.ChoiceCounts // nil where it does not look at prefixes
	Demand    engine.DemandView
	Ladder    *engine.LadderView // nil where it is off
}

// BackendLevel is one backend's load and health.
type BackendLevel struct {
	Backend  sluice.BackendID
	Inflight int64
	KVTokens sluice.Tokens
	Healthy  bool
	Limit    int64   // attempts that it may be given at a time
	Share    float64 // part of its share that it may have
	Held     bool    // in use though it fails, as the last of its pool
	Retries  int64   // retries that it may be given now, other bounds aside
	Bounded  bool    // else no retry budget is in force

	KVUsage     float64 // used part of its memory as the engine told last, from 0 to 1
	KVUsageTold bool
	RatesLeft   map[string]int64 // of the provider, by rate; negative is debt
}

// levels collects Levels.
type levels struct {
	m    *Metrics
	read atomic.Pointer[func() Levels]

	inflight                                       *prometheus.Desc
	queue                                          queueDescs
	demand                                         demandDescs
	healths                                        healthDescs
	affine                                         affinityDescs
	ladder                                         ladderDescs
	region                                         regionDescs
	state                                          stateDescs
	batch                                          batchDescs
	idempotency                                    keysDescs
	backendInflight, backendKV, backendHealthy     *prometheus.Desc
	backendLimit, backendKVUsage, backendRate      *prometheus.Desc
	retryBudget, backendRetryBudget                *prometheus.Desc
	journalEntries, journalAge, journalOpen        *prometheus.Desc
	snapshotTenants, snapshotKeys, snapshotAge, up *prometheus.Desc
	offFile, drains, background                    *prometheus.Desc
}

func newLevels(m *Metrics) *levels {
	return &levels{
		m:                  m,
		inflight:           m.desc("sluice_inflight", "gauge", "Attempts in flight, by pool.", "pool"),
		queue:              newQueueDescs(m),
		demand:             newDemandDescs(m),
		healths:            newHealthDescs(m),
		affine:             newAffinityDescs(m),
		ladder:             newLadderDescs(m),
		region:             newRegionDescs(m),
		state:              newStateDescs(m),
		batch:              newBatchDescs(m),
		idempotency:        newKeysDescs(m),
		backendInflight:    m.desc("sluice_backend_inflight", "gauge", "Attempts in flight, by backend.", "backend"),
		backendKV:          m.desc("sluice_backend_kv_tokens", "gauge", "Tokens of key-value memory held, by backend.", "backend"),
		backendLimit:       m.desc("sluice_backend_limit", "gauge", "Attempts that the backend may be given at a time: configured, or found from its answers.", "backend"),
		backendKVUsage:     m.desc("sluice_backend_kv_usage", "gauge", "Used part of the engine's key-value memory as it told last, from 0 to 1.", "backend"),
		backendRate:        m.desc("sluice_backend_rate_remaining", "gauge", "What is left of the provider's rates, by backend and rate; negative is debt.", "backend", "rate"),
		backendHealthy:     m.desc("sluice_backend_healthy", "gauge", "1 when the backend takes work, 0 when it is left out.", "backend"),
		retryBudget:        m.desc("sluice_retry_budget", "gauge", "Retries that there is room for now, over all backends and tenants."),
		backendRetryBudget: m.desc("sluice_backend_retry_budget", "gauge", "Retries that the backend may be given now: none while its breaker is open.", "backend"),
		journalEntries:     m.desc("sluice_journal_lag_entries", "gauge", "Settled entries that the store does not have yet."),
		journalAge:         m.desc("sluice_journal_lag_seconds", "gauge", "Age of the oldest settled entry that the store does not have yet."),
		journalOpen:        m.desc("sluice_journal_open", "gauge", "Reservations in the journal without a settlement."),
		snapshotTenants:    m.desc("sluice_snapshot_tenants", "gauge", "Tenants in the snapshot that identifies callers."),
		snapshotKeys:       m.desc("sluice_snapshot_keys", "gauge", "Keys in the snapshot that identifies callers."),
		snapshotAge:        m.desc("sluice_snapshot_age_seconds", "gauge", "Time since that snapshot was last confirmed."),
		offFile:            m.desc("sluice_config_off_file", "gauge", "1 while a rollback or a change of routes is in force in place of the configuration file, 0 while the file is followed."),
		drains:             m.desc("sluice_drains", "gauge", "Answers that are read though their clients have left, by provider.", "provider"),
		background:         m.desc("sluice_background_responses", "gauge", "Responses that are made in the background, whose requests have been answered and are not settled yet."),
		up:                 m.desc("sluice_ready", "gauge", "1 when the gateway admits requests, 0 while it starts or drains."),
	}
}

// Watch makes the gauges read from f at each scrape. f is called without a lock
// and must be bounded in time and size.
func (m *Metrics) Watch(f func() Levels) { m.levels.read.Store(&f) }

// Describe implements prometheus.Collector.
func (l *levels) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		l.inflight, l.backendInflight, l.backendKV, l.backendLimit, l.backendKVUsage, l.backendRate, l.backendHealthy, l.retryBudget, l.backendRetryBudget, l.journalEntries,
		l.journalAge, l.journalOpen, l.snapshotTenants, l.snapshotKeys, l.snapshotAge, l.up, l.offFile,
	} {
		ch <- d
	}
	l.queue.describe(ch)
	l.demand.describe(ch)
	l.healths.describe(ch)
	l.affine.describe(ch)
	l.ladder.describe(ch)
	l.region.describe(ch)
	l.state.describe(ch)
	l.batch.describe(ch)
	l.idempotency.describe(ch)
}

// Collect implements prometheus.Collector.
func (l *levels) Collect(ch chan<- prometheus.Metric) {
	read := l.read.Load()
	if read == nil {
		return
	}
	v := (*read)()
	gauge := func(d *prometheus.Desc, n float64, label ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n, label...)
	}
	l.pools(v.Pools, gauge)
	l.queues(v.Pools, ch)
	l.demands(v.Pools, gauge)
	l.affinity(v.Pools, ch)
	l.ladders(v.Pools, ch)
	l.regions(v.Regions, ch)
	l.state.collect(v.State, ch)
	l.batch.collect(v.Batch, ch)
	l.idempotency.collect(v.Idempotency, ch)
	l.backends(v.Backends, gauge)
	l.health(&v, gauge)
	if v.RetryBudgetBounded {
		gauge(l.retryBudget, float64(v.RetryBudget))
	}
	gauge(l.journalEntries, float64(v.JournalEntries))
	gauge(l.journalAge, v.JournalAge.Seconds())
	gauge(l.journalOpen, float64(v.JournalOpen))
	gauge(l.snapshotTenants, float64(v.Tenants))
	gauge(l.snapshotKeys, float64(v.Keys))
	gauge(l.snapshotAge, v.SnapshotAge.Seconds())
	gauge(l.up, oneIf(v.Ready))
	gauge(l.offFile, oneIf(v.OffFile))
	gauge(l.background, float64(v.Background))
	for p, n := range v.Drains {
		gauge(l.drains, float64(n), string(p))
	}
}

// pools sums what shares a label, so that two pools beyond the cap are one
// series and not a failed scrape.
func (l *levels) pools(all []PoolLevel, gauge func(*prometheus.Desc, float64, ...string)) {
	sum := make(map[string]int64, len(all))
	for i := range all {
		sum[l.m.pools.label(string(all[i].Pool))] += all[i].Inflight
	}
	for name, n := range sum {
		gauge(l.inflight, float64(n), name)
	}
}

// backends does the same; of several in one series the worst health and the fullest memory show.
func (l *levels) backends(all []BackendLevel, gauge func(*prometheus.Desc, float64, ...string)) {
	sum := make(map[string]BackendLevel, len(all))
	for _, b := range all {
		name := l.m.backends.label(string(b.Backend))
		s, seen := sum[name]
		s.Inflight += b.Inflight
		s.KVTokens += b.KVTokens
		s.Healthy = b.Healthy && (!seen || s.Healthy)
		s.Limit += b.Limit
		s.Retries, s.Bounded = s.Retries+b.Retries, s.Bounded || b.Bounded
		s.KVUsage, s.KVUsageTold = max(s.KVUsage, b.KVUsage), s.KVUsageTold || b.KVUsageTold
		for rate, left := range b.RatesLeft {
			if s.RatesLeft == nil {
				s.RatesLeft = make(map[string]int64)
			}
			s.RatesLeft[rate] += left
		}
		sum[name] = s
	}
	for name, s := range sum {
		gauge(l.backendInflight, float64(s.Inflight), name)
		gauge(l.backendKV, float64(s.KVTokens), name)
		gauge(l.backendHealthy, oneIf(s.Healthy), name)
		gauge(l.backendLimit, float64(s.Limit), name)
		if s.Bounded {
			gauge(l.backendRetryBudget, float64(s.Retries), name)
		}
		if s.KVUsageTold {
			gauge(l.backendKVUsage, s.KVUsage, name)
		}
		for rate, left := range s.RatesLeft {
			gauge(l.backendRate, float64(left), name, rate)
		}
	}
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
