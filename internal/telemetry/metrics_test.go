package telemetry

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"sluice"
	"sluice/internal/fetch"
	"sluice/internal/ledger"
	"sluice/internal/route"
)

var update = flag.Bool("update", false, "rewrite docs/metrics.md")

func table() *route.Table {
	b := &route.Backend{ID: "gpu-a"}
	return &route.Table{
		Models: map[sluice.ModelID]*route.Model{"fast": {ID: "fast"}},
		Pools:  map[sluice.PoolID]*route.Pool{"chat": {ID: "chat", Backends: []*route.Backend{b}}},
	}
}

// series counts the sluice_* sample lines that a scrape returns.
func series(t *testing.T, m *Metrics) (n int, text string) {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("scrape: status %d: %s", w.Code, w.Body)
	}
	text = w.Body.String()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "sluice_") {
			n++
		}
	}
	return n, text
}

// TestCardinality is case cT4's second half: a million random labels leave the
// number of series where the caps say.
func TestCardinality(t *testing.T) {
	m := New(Options{})
	m.Declare(table())
	rng := rand.New(rand.NewPCG(1, 2))
	label := func() string { return fmt.Sprintf("x%016x", rng.Uint64()) }
	const requests = 125_000 // of eight random names each
	for range requests {
		e := ledger.Entry{
			Attempt: 1, Tenant: sluice.TenantID(label()), Project: sluice.ProjectID(label()), Key: sluice.KeyID(label()), User: sluice.UserID(label()),
			Task: label(), Model: sluice.ModelID(label()), Pool: sluice.PoolID(label()), Backend: sluice.BackendID(label()), Final: true,
			Usage: sluice.Usage{Input: 10, Output: 5, Source: sluice.UsageReported}, Cost: 7, EstimatedInput: 9,
			FirstToken: time.Second, Duration: 2 * time.Second,
		}
		m.Attempt(&e)
		m.Request(&Request{Final: e})
		m.Granted(e.Pool, e.Class, 0)
	}
	n, text := series(t, m)
	if n > 400 {
		t.Errorf("a million random labels made %d series, want at most 400", n)
	}
	if got := testutil.ToFloat64(m.tokens.WithLabelValues(Other, "input", "reported")); got != 10*requests {
		t.Errorf("tokens of undeclared models: got %v, want %v", got, 10*requests)
	}
	var ended, cost float64
	for line := range strings.Lines(text) {
		var v float64
		name, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		fmt.Sscanf(value, "%g", &v)
		switch {
		case strings.HasPrefix(name, "sluice_tenant_requests_total{"):
			ended += v
		case strings.HasPrefix(name, "sluice_tenant_cost_nanodollars_total{"):
			cost += v
		}
	}
	if ended != requests || cost != 7*requests {
		t.Errorf("sums over the tenant label: %v requests, %v nano-dollars, want %v and %v", ended, cost, requests, 7*requests)
	}
}

// TestDeclaredNamesAreCapped fills every label from configuration beyond its
// cap.
func TestDeclaredNamesAreCapped(t *testing.T) {
	m := New(Options{})
	tab := &route.Table{Models: map[sluice.ModelID]*route.Model{}, Pools: map[sluice.PoolID]*route.Pool{}}
	for i := range 600 {
		s := fmt.Sprintf("n%04d", i)
		tab.Models[sluice.ModelID(s)] = &route.Model{}
		tab.Pools[sluice.PoolID(s)] = &route.Pool{Backends: []*route.Backend{{ID: sluice.BackendID(s)}}}
	}
	m.Declare(tab)
	m.Watch(func() Levels {
		var l Levels
		for id := range tab.Pools {
			l.Pools = append(l.Pools, fullLevel(id))
			l.Backends = append(l.Backends, BackendLevel{Backend: sluice.BackendID(id), Healthy: true, Bounded: true})
		}
		return l
	})
	for i := range 600 {
		s := fmt.Sprintf("n%04d", i)
		for reason := range sluice.Reason(sluice.NumReasons) {
			e := ledger.Entry{
				Attempt: 1, Model: sluice.ModelID(s), Backend: sluice.BackendID(s), Outcome: sluice.Failed, Reason: reason,
				Class: sluice.Class(i % sluice.NumClasses), FirstToken: 1, Usage: sluice.Usage{Input: 1, Source: sluice.UsageReported}, EstimatedInput: 1, Cost: 1,
			}
			m.Attempt(&e)
			m.Request(&Request{Final: e})
			m.Retry(e.Backend, reason.String())
		}
	}
	if n, _ := series(t, m); n > MaxSeries {
		t.Errorf("%d series, want at most %d", n, MaxSeries)
	}
}

// TestBusyTenantRises says that the first tenants to come do not keep their
// series against one that works.
func TestBusyTenantRises(t *testing.T) {
	m := New(Options{})
	for i := range MaxTenants * 3 {
		m.Request(&Request{Final: ledger.Entry{Tenant: sluice.TenantID(fmt.Sprintf("idle%03d", i))}})
	}
	for range 10 {
		m.Attempt(&ledger.Entry{Attempt: 1, Tenant: "noisy", Usage: sluice.Usage{Input: 100}})
	}
	_, text := series(t, m)
	if !strings.Contains(text, `sluice_tenant_tokens_total{tenant="noisy"}`) {
		t.Error("a tenant with nearly all of the work has no series of its own")
	}
	sum := 0.0
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "sluice_tenant_tokens_total{"); ok {
			var v float64
			_, value, _ := strings.Cut(rest, "} ")
			fmt.Sscanf(value, "%g", &v)
			sum += v
		}
	}
	if sum != 1000 {
		t.Errorf("tokens over the tenant label: got %v, want 1000", sum)
	}
}

func TestScoresFade(t *testing.T) {
	now := time.Unix(0, 0)
	m := New(Options{Now: func() time.Time { return now }})
	for i := range MaxTenants {
		m.Attempt(&ledger.Entry{Attempt: 1, Tenant: sluice.TenantID(fmt.Sprintf("was%03d", i)), Usage: sluice.Usage{Input: 1 << 30}})
	}
	now = now.Add(24 * time.Hour)
	m.Attempt(&ledger.Entry{Attempt: 1, Tenant: "is", Usage: sluice.Usage{Input: 10}})
	if _, ok := m.tenants.top["is"]; !ok {
		t.Error("yesterday's tenants keep today's out")
	}
}

func TestRejectionsNameTheLimit(t *testing.T) {
	m := New(Options{})
	m.Declare(table())
	m.Request(&Request{
		Final:   ledger.Entry{Model: "fast", Outcome: sluice.Rejected, Reason: sluice.RateLimited},
		Refusal: &sluice.Refusal{Scope: sluice.ScopeTenant, Limit: sluice.Limit{Dimension: sluice.InputTokens}},
	})
	m.Request(&Request{Final: ledger.Entry{Model: "fast", Outcome: sluice.Rejected, Reason: sluice.Unpriced}})
	if got := testutil.ToFloat64(m.rejections.WithLabelValues("rate_limited", "tenant", "input_tokens")); got != 1 {
		t.Errorf("rejections: got %v, want 1", got)
	}
	if got := testutil.ToFloat64(m.unpriced.WithLabelValues("fast", "refused")); got != 1 {
		t.Errorf("unpriced: got %v, want 1", got)
	}
}

func TestTruncationsCountByBackend(t *testing.T) {
	m := New(Options{})
	m.Declare(table())
	m.Attempt(&ledger.Entry{Attempt: 1, Backend: "gpu-a", Reason: sluice.UpstreamTruncated})
	if got := testutil.ToFloat64(m.truncations.WithLabelValues("gpu-a")); got != 1 {
		t.Errorf("truncations: got %v, want 1", got)
	}
}

// What is fetched by URL is counted by its outcome; only what came has bytes and a time.
func TestFetches(t *testing.T) {
	m := New(Options{})
	m.Fetched(fetch.Event{Outcome: fetch.Fetched, Bytes: 700, Took: time.Second})
	m.Fetched(fetch.Event{Outcome: fetch.TimedOut, Took: 10 * time.Second})
	for o, want := range map[fetch.Outcome]float64{fetch.Fetched: 1, fetch.TimedOut: 1, fetch.Forbidden: 0} {
		if got := testutil.ToFloat64(m.fetches.results.WithLabelValues(string(o))); got != want {
			t.Errorf("%s: got %v, want %v", o, got, want)
		}
	}
	if got := testutil.ToFloat64(m.fetches.bytes); got != 700 {
		t.Errorf("bytes: got %v", got)
	}
	if n := testutil.CollectAndCount(m.fetches.results); n != len(fetch.Outcomes) {
		t.Errorf("%d series, want one for each outcome", n)
	}
}

// TestDoc holds docs/metrics.md to the metrics that exist; -update rewrites it.
func TestDoc(t *testing.T) {
	const path = "../../docs/metrics.md"
	want := Document(New(Options{}).Rows())
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/metrics.md differs from the metrics: run go test ./internal/telemetry -run TestDoc -update")
	}
}

// Hedges are counted by the backend that was late.
func TestHedges(t *testing.T) {
	m := New(Options{})
	m.Declare(table())
	m.Hedge("gpu-a", "won")
	m.Hedge("gpu-a", string(route.DeniedPlace))
	m.Hedge("elsewhere", "won")
	_, text := series(t, m)
	for _, want := range []string{
		`sluice_hedges_total{backend="gpu-a",result="won"} 1`,
		`sluice_hedges_total{backend="gpu-a",result="no_place"} 1`,
		`sluice_hedges_total{backend="other",result="won"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// What is decided of retries is counted by the backend that failed, and what is left
// of the budget shows as long as there is one.
func TestRetries(t *testing.T) {
	m := New(Options{})
	m.Declare(table())
	m.Retry("gpu-a", "")
	m.Retry("gpu-a", "")
	m.Retry("gpu-a", string(route.DeniedTenant))
	m.Retry("elsewhere", string(route.DeniedShedding))
	l := Levels{Backends: []BackendLevel{{Backend: "gpu-a", Retries: 7, Bounded: true}}, RetryBudget: 12, RetryBudgetBounded: true}
	m.Watch(func() Levels { return l })
	_, text := series(t, m)
	for _, want := range []string{
		`sluice_retries_total{backend="gpu-a",decision="allowed"} 2`,
		`sluice_retries_total{backend="gpu-a",decision="retry_budget_tenant"} 1`,
		`sluice_retries_total{backend="other",decision="shedding"} 1`,
		`sluice_backend_retry_budget{backend="gpu-a"} 7`,
		`sluice_retry_budget 12`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	l = Levels{Backends: []BackendLevel{{Backend: "gpu-a"}}}
	if _, text := series(t, m); strings.Contains(text, "retry_budget{") || strings.Contains(text, "sluice_retry_budget ") {
		t.Error("a budget that is not in force is shown")
	}
}
