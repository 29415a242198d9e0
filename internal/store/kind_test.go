package store

import (
	"database/sql"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"sluice"
	"sluice/internal/ladder"
	"sluice/internal/ledger"
)

// manyKinds are entries that have this and that in common.
func manyKinds(n int) []ledger.Entry {
	r := rand.New(rand.NewPCG(15, 15))
	one := func(words ...string) string { return words[r.IntN(len(words))] }
	es := make([]ledger.Entry, n)
	for i := range es {
		at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC).Add(time.Duration(r.IntN(n)) * time.Second / 4)
		e := ledger.Entry{
			Request: sluice.RequestID(fmt.Sprintf("req_%06d", i)), Attempt: r.IntN(3), At: at, Ended: at.Add(time.Second),
			Tenant: sluice.TenantID(one("acme", "other")), Project: sluice.ProjectID(one("default", "p")), Key: sluice.KeyID(one("k1", "k2")),
			User: sluice.UserID(one("", "u1", "u2")), Task: one("", "chat"), Class: sluice.Class(r.IntN(2)), Model: sluice.ModelID(one("small", "large")),
			Pool: "main", Backend: sluice.BackendID(one("b1", "b2")), Provider: "sim", UpstreamModel: "up", ServedModel: one("", "up-2"),
			UpstreamRequestID: fmt.Sprint("up-", i), Policy: one("v1", "v2"), Final: r.IntN(5) > 0, Outcome: sluice.Completed, Status: 200,
			Late: r.IntN(9) == 0, Stream: r.IntN(2) == 0, Operation: "chat", Dialect: "openai", PriceVersion: one("1", "2"), Finish: one("stop", "length"),
			Usage: sluice.Usage{Input: 10, CacheRead: 1, CacheWrite: 2, CacheWrite1h: 3, AudioInput: 4, Output: 5, Reasoning: 6, AudioOutput: 7, ToolCalls: 8, WebSearches: 9, Units: 10, ServiceTier: one("", "flex"), Source: sluice.UsageReported, Anomalous: r.IntN(9) == 0},
			Cost:  sluice.Nano(r.IntN(1000)), CostHigh: 1000, EstimatedInput: 11, OutputBound: 12, HeldSpend: 13,
			Queued: 14 * time.Microsecond, FirstToken: 15 * time.Microsecond, Duration: 16 * time.Microsecond,
			Tier: ladder.Tier(r.IntN(2)), Detail: []byte(one(`{"a":1}`, `{"b":2}`)),
		}
		if r.IntN(4) == 0 {
			e.Run, e.Labels = "run", []sluice.Label{{Key: "a", Value: "b"}, {Key: "c", Value: "d"}}
		}
		if r.IntN(9) == 0 {
			e.ShadowOf = "req_000001"
		}
		es[i] = e
	}
	return es
}

// schemaBefore makes the schema of a version, and returns the database.
func schemaBefore(t *testing.T, dsn string, version int64) *sql.DB {
	t.Helper()
	driver, address, dialect := "pgx", dsn, goose.DialectPostgres
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		driver, address, dialect = "sqlite", path, goose.DialectSQLite3
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	p, err := goose.NewProvider(dialect, db, files, goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), version-1); err != nil {
		t.Fatal(err)
	}
	return db
}

// wideValues are an entry's values in the order of entryColumns, as one table had them.
func wideValues(e *ledger.Entry) []any {
	k := kindOf(e)
	of := map[string]any{}
	for i, v := range k.values() {
		of[kindColumns[2+i]] = v
	}
	var row values
	row.row(e, 0)
	for i, v := range row.any(nil) {
		of[rowColumns[i]] = v
	}
	values := make([]any, len(entryColumns))
	for i, c := range entryColumns {
		values[i] = of[c]
	}
	return values
}

func bothEngines(t *testing.T, run func(t *testing.T, dsn string)) {
	t.Parallel()
	for name, fresh := range map[string]func(*testing.T) string{"sqlite": func(t *testing.T) string { return "sqlite:" + t.TempDir() + "/sluice.db" }, "postgres": planSchema} {
		t.Run(name, func(t *testing.T) { run(t, fresh(t)) })
	}
}

// What was in one table is, in two, what it was, and what comes again is known.
func TestKindsOfOldEntries(t *testing.T) {
	bothEngines(t, func(t *testing.T, dsn string) {
		es := manyKinds(60)
		old := schemaBefore(t, dsn, 15)
		insert := insertSQL("entries", entryColumns, 1)
		for i := range es {
			if _, err := old.ExecContext(t.Context(), insert, wideValues(&es[i])...); err != nil {
				t.Fatal(err)
			}
		}
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
		db, err := Open(t.Context(), dsn, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		more := manyKinds(90)
		if err := db.Append(t.Context(), more); err != nil {
			t.Fatal(err)
		}
		for i := range more {
			got, err := db.Explain(t.Context(), ledger.Everyone(), more[i].Request)
			if err != nil {
				t.Fatal(err)
			}
			want := more[i]
			if i < len(es) {
				want = es[i] // the first stands
			}
			if d := cmp.Diff([]ledger.Entry{want}, got); d != "" {
				t.Fatalf("entry %d (-want +got):\n%s", i, d)
			}
		}
		if n := countOf(t, db, "SELECT COUNT(*) FROM entries"); n != len(more) {
			t.Errorf("%d entries, want %d", n, len(more))
		}
	})
}

func countOf(t *testing.T, db *DB, query string) (n int) {
	t.Helper()
	if err := db.read.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A kind is kept once, whatever batches its entries come in; and a database that has lost
// it gets it again.
func TestKindsAreKeptOnce(t *testing.T) {
	bothEngines(t, func(t *testing.T, dsn string) {
		db, err := Open(t.Context(), dsn, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		es := manyKinds(80)
		want := map[kind]bool{}
		for i := range es {
			want[kindOf(&es[i])] = true
		}
		for _, part := range [][]ledger.Entry{es[:40], es[20:30], es[40:], es} {
			if err := db.Append(t.Context(), part); err != nil {
				t.Fatal(err)
			}
		}
		if n := countOf(t, db, "SELECT COUNT(*) FROM entry_kinds"); n != len(want) || n < 40 {
			t.Errorf("%d kinds, want %d", n, len(want))
		}
		for _, q := range []string{"DELETE FROM entry_kinds", "DELETE FROM entry_rows", "UPDATE meta SET value = 0 WHERE name = 'entry_kind'"} {
			if _, err := db.write.ExecContext(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Append(t.Context(), es); err != nil {
			t.Fatal(err)
		}
		if n := countOf(t, db, "SELECT COUNT(*) FROM entries"); n != len(es) {
			t.Errorf("%d entries, want %d", n, len(es))
		}
	})
}

// Entries are found by an index, and their kinds by their number: no question about a
// few entries looks at all of them, or sorts them.
func TestEntriesAreFoundByAnIndex(t *testing.T) {
	bothEngines(t, func(t *testing.T, dsn string) {
		db, err := Open(t.Context(), dsn, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		few := manyKinds(20)
		es := make([]ledger.Entry, 4000)
		for i := range es {
			es[i] = few[i%len(few)]
			es[i].Tenant = sluice.TenantID(fmt.Sprint("tenant-", i%40))
			es[i].Request, es[i].At = sluice.RequestID(fmt.Sprintf("req_%06d", i)), es[i].At.Add(time.Duration(i)*time.Second)
		}
		if err := db.Append(t.Context(), es); err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"entry_rows", "entry_kinds"} {
			if _, err := db.write.ExecContext(t.Context(), "ANALYZE "+table); err != nil {
				t.Fatal(err)
			}
		}
		columns := strings.Join(entryColumns, ", ")
		pkey := map[string]string{"sqlite": "sqlite_autoindex_entry_rows_1", "postgres": "entry_rows_pkey"}[db.Engine()]
		for _, q := range []struct {
			query, index string
			args         []any
		}{
			{"SELECT " + columns + " FROM entries WHERE request_id = $1 ORDER BY attempt", pkey, []any{"req_000001"}},
			{recentSQL(columns, " WHERE tenant = $1 AND final = 1 AND shadow_of = '' AND model = 'large' AND at_us >= $2", 50), "entries_tenant_at", []any{"tenant-7", 0}},
			{recentSQL(columns, " WHERE final = 1 AND shadow_of = '' AND outcome <> $1 AND at_us >= $2", 50), "entries_at", []any{"failed", 0}},
			{"SELECT " + columns + " FROM entries WHERE shadow_of = $1 AND shadow_of <> '' ORDER BY pool, request_id", "entries_shadow_of", []any{"req_000009"}},
			{"SELECT e.request_id FROM entry_rows e WHERE e.request_id = $1", pkey, []any{"req_000001"}},
		} {
			plan := planOf(t, db, q.query, q.args...)
			t.Logf("%s:\n%s", q.query, plan)
			if !strings.Contains(plan, q.index) || strings.Contains(plan, "Seq Scan on entry_rows") || strings.Contains(plan, "SCAN r") {
				t.Errorf("%s is answered so:\n%s", q.query, plan)
			}
		}
	})
}
