package telemetry

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"sluice"
	"sluice/internal/engine"
)

// The caps of the label values of health.
const (
	MaxDomains     = 100
	MaxCredentials = 500
)

// Health is what a gateway may use, at a moment.
type Health struct {
	Domains     []engine.DomainView
	Credentials []engine.CredentialView
}

// healthDescs are the gauges of health.
type healthDescs struct{ share, held, pool, domain, disabled, parked *prometheus.Desc }

func newHealthDescs(m *Metrics) healthDescs {
	return healthDescs{
		share:    m.desc("sluice_backend_share", "gauge", "Part of its share of requests that the backend may have, from 0 to 1: less than 1 while it comes back by its ramp.", "backend"),
		held:     m.desc("sluice_backend_held", "gauge", "1 while the backend fails so much that it would be left out, and stays in use as the last of its pool.", "backend"),
		pool:     m.desc("sluice_pool_failed", "gauge", "1 while no backend of the pool takes requests.", "pool"),
		domain:   m.desc("sluice_domain_failed", "gauge", "1 while so many backends of the failure domain fail that all of it is avoided.", "domain"),
		disabled: m.desc("sluice_credential_disabled", "gauge", "1 while the provider refuses the credential, at one backend or at all.", "credential"),
		parked:   m.desc("sluice_credential_parked", "gauge", "1 while the credential's allowance is spent.", "credential"),
	}
}

func (d *healthDescs) describe(ch chan<- *prometheus.Desc) {
	for _, x := range []*prometheus.Desc{d.share, d.held, d.pool, d.domain, d.disabled, d.parked} {
		ch <- x
	}
}

// health sums what shares a label: what is out in any of several shows.
func (l *levels) health(v *Levels, gauge func(*prometheus.Desc, float64, ...string)) {
	share, held := map[string]float64{}, map[string]float64{}
	for i := range v.Backends {
		b := &v.Backends[i]
		name := l.m.backends.label(string(b.Backend))
		if s, seen := share[name]; !seen || b.Share < s {
			share[name] = b.Share
		}
		held[name] = max(held[name], oneIf(b.Held))
	}
	pools, domains := map[string]float64{}, map[string]float64{}
	for i := range v.Pools {
		name := l.m.pools.label(string(v.Pools[i].Pool))
		pools[name] = max(pools[name], oneIf(v.Pools[i].Failed))
	}
	for _, d := range v.Health.Domains {
		name := l.m.domains.label(d.Name)
		domains[name] = max(domains[name], oneIf(d.Failed))
	}
	disabled, parked := map[string]float64{}, map[string]float64{}
	for _, c := range v.Health.Credentials {
		name := l.m.credentials.label(c.ID)
		disabled[name] = max(disabled[name], oneIf(c.State == "disabled"))
		parked[name] = max(parked[name], oneIf(c.State == "parked"))
	}
	for _, f := range []struct {
		desc *prometheus.Desc
		of   map[string]float64
	}{{l.healths.share, share}, {l.healths.held, held}, {l.healths.pool, pools}, {l.healths.domain, domains}, {l.healths.disabled, disabled}, {l.healths.parked, parked}} {
		for name, n := range f.of {
			gauge(f.desc, n, name)
		}
	}
}

// healthChanged counts and logs a change of what may be used. What needs somebody's
// hand is an error: a credential that is refused, and a pool that has nothing left.
func (h Hooks) healthChanged(c engine.HealthChange) {
	var what string
	level := slog.LevelWarn
	switch {
	case c.Credential != "":
		what = "credential"
		if c.To == "disabled" {
			level = slog.LevelError
		}
	case c.Pool != "":
		what = "pool"
		if c.To == "failed" {
			level = slog.LevelError
		}
	case c.Domain != "":
		what = "failure domain"
	default:
		what = "backend"
		h.Metrics.healthChanges.WithLabelValues(h.Metrics.backends.label(string(c.Backend)), c.To).Inc()
	}
	if c.To == "healthy" || c.To == "usable" {
		level = slog.LevelInfo
	}
	attrs := []slog.Attr{slog.String("from", c.From), slog.String("to", c.To)}
	for _, f := range []struct{ key, value string }{{"backend", string(c.Backend)}, {"pool", string(c.Pool)}, {"domain", c.Domain}, {"credential", c.Credential}} {
		if f.value != "" {
			attrs = append(attrs, slog.String(f.key, Clean(f.value)))
		}
	}
	h.Log.LogAttrs(context.Background(), level, what+" is "+cmp.Or(words[c.To], c.To), attrs...)
}

// words say what a state means where its own word does not.
var words = map[string]string{
	"cooling":  "left out: it failed, or asked for a pause",
	"ramping":  "coming back: its share climbs",
	"probing":  "being probed by one request",
	"held":     "in use though it fails: its pool has no other",
	"avoided":  "avoided: its failure domain has failed",
	"disabled": "refused by its provider: exchange the credential and reload",
	"parked":   "left alone: the allowance of its credential is spent",
	"drained":  "drained by an operator: it takes no new requests",
	"failed":   "failed: nothing of it takes requests",
}

// declareHealth makes names of failure domains and credentials label values.
func (m *Metrics) declareHealth(domain string, keys []string, backend sluice.BackendID) {
	if domain != "" {
		m.domains.declare(domain)
	}
	for _, k := range keys {
		m.credentials.declare(k)
	}
	if len(keys) == 0 {
		m.credentials.declare(string(backend)) // the one that nothing is known of
	}
}
