package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice"
	"sluice/internal/ledger"
	"sluice/internal/store"
	"sluice/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func someEntries(from, n int) []ledger.Entry {
	es := make([]ledger.Entry, n)
	for i := range es {
		es[i] = ledger.Entry{
			Request: sluice.RequestID(fmt.Sprintf("req_019ad4c2-7f00-7000-8000-%012d", from+i)), Attempt: 1,
			At:     time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC).Add(time.Duration(from+i) * 20 * time.Millisecond),
			Tenant: sluice.TenantID(fmt.Sprint("tenant-", i%27)), Project: "default", Key: sluice.KeyID(fmt.Sprint("key", i%27)),
			User: sluice.UserID(fmt.Sprint("user-", i%400)), Task: "chat", Model: "sim-small", Backend: sluice.BackendID(fmt.Sprint("b", i%8)),
			Provider: "sim", Final: true, Status: 200, Operation: "chat", Dialect: "openai",
			Usage: sluice.Usage{Input: 1500, Output: 200, Source: sluice.UsageReported}, Cost: 1000, CostHigh: 1000,
			Detail: []byte(`{"estimate":{"raw_input":1432,"input":1500,"input_bound":6000,"output":180,"output_hold":400,"output_bound":4096}}`),
		}
	}
	return es
}

func openFile(t testing.TB) (*store.DB, string) {
	dsn := storetest.SQLite(t)
	return storetest.Open(t, dsn, store.Options{}), strings.TrimPrefix(dsn, "sqlite:")
}

// P10: a second process on the same file is refused with a message.
func TestSecondProcessIsRefused(t *testing.T) {
	_, path := openFile(t)
	_, err := store.Open(t.Context(), "sqlite:"+path, store.Options{})
	if !errors.Is(err, ledger.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

// P9: a damaged file is refused, with what to do, and left as it is.
func TestDamagedDatabaseIsRefused(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "sluice.db")
	db, err := store.Open(ctx, "sqlite:"+path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Append(ctx, someEntries(0, 500)), db.Close()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func(b []byte){
		"header":     func(b []byte) { copy(b, "not a database at all") },
		"page":       func(b []byte) { copy(b[8*4096:], strings.Repeat("\xff", 4096)) },
		"schema":     func(b []byte) { copy(b[100:], strings.Repeat("\xa5", 500)) },
		"other file": func(b []byte) { copy(b, strings.Repeat("listen: 127.0.0.1:8080\n", 100)) },
	} {
		b := append([]byte(nil), whole...)
		damage(b)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := store.Open(ctx, "sqlite:"+path, store.Options{})
		if err == nil {
			_ = db.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "is damaged") || !strings.Contains(err.Error(), path+"-wal") {
			t.Errorf("%s: got %v", name, err)
		}
		if after, _ := os.ReadFile(path); string(after) != string(b) {
			t.Errorf("%s: the damaged file was changed", name)
		}
	}
}

// P6: another program holds the file's lock; the append fails in bounded time
// and goes through once the lock is gone.
func TestLockedDatabase(t *testing.T) {
	ctx := t.Context()
	dsn := storetest.SQLite(t)
	db := storetest.Open(t, dsn, store.Options{BusyTimeout: time.Millisecond})
	other, err := sql.Open("sqlite", strings.TrimPrefix(dsn, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetMaxOpenConns(1)
	if _, err := other.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	if err := db.Append(ctx, someEntries(0, 10)); err == nil {
		t.Error("appended to a locked database")
	}
	if _, err := db.Usage(ctx, ledger.UsageQuery{Owner: ledger.Everyone()}); err != nil {
		t.Errorf("reading waits for the writer: %v", err)
	}
	if _, err := other.ExecContext(ctx, "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := db.Append(ctx, someEntries(0, 10)); err != nil {
		t.Error(err)
	}
}

// The settings that durability rests on are really in force.
func TestSQLiteSettings(t *testing.T) {
	_, path := openFile(t)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	raw, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	var mode string
	if err := raw.QueryRowContext(t.Context(), "PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
		t.Errorf("journal mode %q, %v", mode, err)
	}
}

func TestBadAddresses(t *testing.T) {
	for dsn, want := range map[string]string{
		"":                          "use sqlite:PATH",
		"mysql://x":                 "use sqlite:PATH",
		"sqlite:":                   "use sqlite:PATH",
		"postgres://u:hunter2@[bad": "does not parse",
	} {
		_, err := store.Open(t.Context(), dsn, store.Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: got %v", dsn, err)
		}
	}
}

// A Postgres that does not answer may come; one that refuses will not.
func TestUnavailable(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := store.Open(ctx, "postgres://u:hunter2@127.0.0.1:1/db?sslmode=disable", store.Options{})
	if !errors.Is(err, store.ErrUnavailable) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}

func BenchmarkAppendSQLite(b *testing.B) { benchmarkAppend(b, storetest.SQLite(b)) }

func BenchmarkAppendPostgres(b *testing.B) { benchmarkAppend(b, storetest.Postgres(b)) }

func benchmarkAppend(b *testing.B, dsn string) {
	db := storetest.Open(b, dsn, store.Options{})
	const batch = 500
	n := 0
	for b.Loop() {
		if err := db.Append(b.Context(), someEntries(n, batch)); err != nil {
			b.Fatal(err)
		}
		n += batch
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "entries/s")
}

// Whatever stands where in batches that overlap, of two with one key the first is in
// the sums, once: in statements of many rows, across them and in what is left over.
func TestOverlappingBatches(t *testing.T) {
	db, _ := openFile(t)
	ctx := t.Context()
	random := rand.New(rand.NewPCG(5, 5))
	have := map[sluice.RequestID]sluice.Nano{}
	for _, n := range []int{1, 15, 16, 17, 40, 100, 33} {
		batch := make([]ledger.Entry, n)
		for i := range batch {
			e := someEntries(random.IntN(150), 1)[0]
			e.Cost = sluice.Nano(random.IntN(1000))
			e.CostHigh = e.Cost
			if batch[i] = e; have[e.Request] == 0 {
				have[e.Request] = e.Cost + 1
			}
		}
		if err := db.Append(ctx, batch); err != nil {
			t.Fatal(err)
		}
	}
	audit, err := db.Verify(ctx)
	if err != nil || len(audit.Differences) > 0 || audit.Entries != int64(len(have)) {
		t.Fatalf("got %+v, %v, want %d entries", audit, err, len(have))
	}
	var want, got sluice.Nano
	for _, cost := range have {
		want += cost - 1
	}
	rows, err := db.Usage(ctx, ledger.UsageQuery{Owner: ledger.Everyone()})
	for _, r := range rows {
		got += r.Cost
	}
	if err != nil || got != want {
		t.Errorf("got cost %d, want %d (%v)", got, want, err)
	}
}
