package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // registers pgx for the schema's connection

	"sluice"
	"sluice/internal/ledger"
	"sluice/internal/store"
)

// Fresh makes an empty database for one test and returns its address.
type Fresh func(t testing.TB) (dsn string)

// Run runs the whole suite on databases that fresh makes.
func Run(t *testing.T, fresh Fresh) {
	for _, group := range []struct {
		name  string
		tests []namedTest
	}{
		{"ledger", ledgerTests}, {"usage", usageTests}, {"shadow", shadowTests}, {"auth", authTests}, {"lifecycle", lifecycleTests}, {"journal", journalTests}, {"versions", versionTests}, {"state", stateTests}, {"idempotency", idempotencyTests}, {"jobs", jobTests}, {"handover", handoverTests}, {"pins", pinTests},
	} {
		for _, test := range group.tests {
			t.Run(group.name+"/"+test.name, func(t *testing.T) {
				t.Parallel()
				test.run(t, fresh)
			})
		}
	}
}

type namedTest struct {
	name string
	run  func(t *testing.T, fresh Fresh)
}

// SQLite makes a database file in a temporary directory.
func SQLite(t testing.TB) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "sluice.db")
}

var schemas atomic.Int64

// Postgres makes a schema in the database that SLUICE_TEST_POSTGRES addresses
// and drops it at the end of the test.
func Postgres(t testing.TB) string {
	t.Helper()
	dsn := os.Getenv("SLUICE_TEST_POSTGRES")
	if dsn == "" {
		t.Skip("SLUICE_TEST_POSTGRES is not set")
	}
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	schema := fmt.Sprintf("sluice_test_%d_%d", os.Getpid(), schemas.Add(1))
	if _, err := db.ExecContext(t.Context(), "CREATE SCHEMA "+schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.ExecContext(context.Background(), "DROP SCHEMA "+schema+" CASCADE"); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("SLUICE_TEST_POSTGRES does not parse")
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String()
}

// Open opens a store that the test closes at its end.
func Open(t testing.TB, dsn string, o store.Options) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), dsn, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func wantKind(t testing.TB, err error, want sluice.Kind) {
	t.Helper()
	if err == nil || sluice.AsError(err).Kind != want {
		t.Errorf("got %v, want kind %v", err, want)
	}
}

// noon is when the entries of the tests arrive.
var noon = time.Date(2026, 11, 15, 12, 30, 0, 123_456_000, time.UTC)

// entry is a whole entry; tests change what matters to them.
func entry(id string, attempt int) ledger.Entry {
	return ledger.Entry{
		Request: sluice.RequestID(id), Attempt: attempt, At: noon, Ended: noon.Add(3 * time.Second),
		Tenant: "acme", Project: "web", Key: "k1", User: "u1", Run: "r1", Task: "summary",
		Labels: []sluice.Label{{Key: "feature", Value: "inbox"}, {Key: "prompt_version", Value: "7"}},
		Class:  sluice.Standard, Model: "fast",
		Pool: "chat", Backend: "oai", Provider: "openai", UpstreamModel: "gpt-x", ServedModel: "gpt-x-0613", UpstreamRequestID: "req_1", Policy: "v3",
		Final: true, Outcome: sluice.Completed, Status: 200, Stream: true, Finish: "stop", Operation: "chat", Dialect: "openai",
		Usage: sluice.Usage{
			Input: 100, CacheRead: 20, CacheWrite: 3, CacheWrite1h: 4, AudioInput: 5, Output: 60, Reasoning: 7, AudioOutput: 8,
			ToolCalls: 2, WebSearches: 1, Units: 9, ServiceTier: "flex", Source: sluice.UsageReported,
		},
		Cost: 4100, CostHigh: 4200, PriceVersion: "2026-11", EstimatedInput: 140, OutputBound: 4096, HeldSpend: 70_000,
		Queued: 12 * time.Millisecond, FirstToken: 80 * time.Millisecond, Duration: 3 * time.Second, Detail: []byte(`{"why":"test"}`),
	}
}

// varied makes n entries that differ in every dimension.
func varied(n int) []ledger.Entry {
	es := make([]ledger.Entry, n)
	for i := range es {
		e := entry(fmt.Sprintf("r%04d", i/2), 1+i%2)
		e.At = noon.Add(time.Duration(i) * 7 * time.Minute)
		e.Tenant = sluice.TenantID(fmt.Sprint("t", i%3))
		e.Project = sluice.ProjectID(fmt.Sprint("p", i%2))
		e.Key = sluice.KeyID(fmt.Sprint("k", i%5))
		e.User = sluice.UserID(fmt.Sprint("u", i%7))
		e.Task = []string{"", "chat", "summary"}[i%3]
		e.Model = sluice.ModelID([]string{"fast", "large"}[i%2])
		e.Backend = sluice.BackendID(fmt.Sprint("b", i%4))
		e.Provider = sluice.ProviderID(fmt.Sprint("v", i%2))
		e.Class = sluice.Class(i % sluice.NumClasses)
		e.Labels = []sluice.Label{{Key: "feature", Value: fmt.Sprint("f", i%3)}}
		e.Final = i%2 == 1
		if i%2 == 0 {
			e.Outcome, e.Reason = sluice.Failed, sluice.UpstreamError
		}
		e.Usage.Input = sluice.Tokens(i)
		e.Usage.Source = sluice.UsageSource(i) % (sluice.UsageTimed + 1)
		e.Usage.Anomalous, e.Late = i%11 == 0, i%13 == 0
		e.Cost, e.CostHigh = sluice.Nano(i*1000), sluice.Nano(i*1001)
		if i%5 == 0 {
			e.FirstToken = 0
		}
		if i%9 == 8 { // shed: no backend
			e.Attempt, e.Final = 0, true
			e.Request = sluice.RequestID(fmt.Sprintf("s%04d", i))
			e.Backend, e.Provider, e.Usage, e.Cost, e.CostHigh = "", "", sluice.Usage{}, 0, 0
			e.Outcome, e.Reason = sluice.Rejected, sluice.QueueTimeout
		}
		es[i] = e
	}
	return es
}

// sum is the oracle of all sums.
func sum(es []ledger.Entry) (t ledger.Totals) {
	for _, e := range es {
		t.Entries++
		if e.Final {
			t.Requests++
			t.Queued += e.Queued
			t.Duration += e.Duration
		}
		if e.Attempt > 0 {
			t.Attempts++
		}
		if e.Usage.Source != sluice.UsageNone && !e.Usage.Source.Final() {
			t.Estimated++
		}
		if e.Usage.Anomalous {
			t.Anomalous++
		}
		if e.Late {
			t.Late++
		}
		if e.FirstToken > 0 {
			t.FirstTokens++
			t.FirstToken += e.FirstToken
		}
		u := e.Usage
		t.Input += u.Input
		t.CacheRead += u.CacheRead
		t.CacheWrite += u.CacheWrite
		t.CacheWrite1h += u.CacheWrite1h
		t.AudioInput += u.AudioInput
		t.Output += u.Output
		t.Reasoning += u.Reasoning
		t.AudioOutput += u.AudioOutput
		t.ToolCalls += u.ToolCalls
		t.WebSearches += u.WebSearches
		t.Units += u.Units
		t.Cost += e.Cost
		t.CostHigh += e.CostHigh
	}
	return t
}

// verified checks that roll-ups equal the entries and that there are n of them.
func verified(t testing.TB, db *store.DB, n int) {
	t.Helper()
	a, err := db.Verify(t.Context())
	must(t, err)
	if !a.OK() || a.Entries != int64(n) {
		t.Fatalf("%d entries, want %d; differences: %q", a.Entries, n, a.Differences)
	}
}
