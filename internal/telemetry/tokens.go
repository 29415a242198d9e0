package telemetry

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/auth/jwt"
)

// MaxIssuers bounds the issuers of tokens that have series of their own.
const MaxIssuers = 32

// issuerMetrics are what became of signed tokens and of the keys that verify them.
type issuerMetrics struct {
	names   *names
	bearers *prometheus.CounterVec
	fetches *prometheus.CounterVec
}

func newIssuerMetrics(m *Metrics) issuerMetrics {
	return issuerMetrics{
		names:   newNames(MaxIssuers),
		bearers: m.counter("sluice_jwt_checks_total", "Signed tokens that came in the place of keys: known (verified before), verified, refused, or not_ready where the keys of their issuer are not there. What is of no known issuer is of other.", "issuer", "result"),
		fetches: m.counter("sluice_jwt_key_fetches_total", "Fetches of an issuer's keys: ok or failed.", "issuer", "result"),
	}
}

// DeclareIssuers gives issuers series of their own.
func (m *Metrics) DeclareIssuers(specs []jwt.Spec) {
	for i := range specs {
		m.issuers.names.declare(specs[i].Name)
	}
}

// Token counts what became of a token.
func (m *Metrics) Token(issuer string, result jwt.Result) {
	m.issuers.bearers.WithLabelValues(m.issuers.names.label(cmp.Or(issuer, Other)), string(result)).Inc()
}

// IssuerKeys counts a fetch.
func (m *Metrics) IssuerKeys(issuer string, err error) {
	result := "ok"
	if err != nil {
		result = "failed"
	}
	m.issuers.fetches.WithLabelValues(m.issuers.names.label(issuer), result).Inc()
}
