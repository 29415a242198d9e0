package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"sluice"
	"sluice/internal/ledger"
)

// A store that takes nothing for a while, since its disk is full or read-only,
// delays the journal's drain and nothing else: once it takes entries again, all
// that was settled is in it, once.
func TestFault_P7_StoreFull(t *testing.T) {
	sickStore(t, func(t *testing.T, db *DB) (mend func()) {
		var pages int64
		if err := db.write.QueryRowContext(t.Context(), "PRAGMA page_count").Scan(&pages); err != nil {
			t.Fatal(err)
		}
		pragma(t, db, fmt.Sprintf("max_page_count = %d", pages+2))
		return func() { pragma(t, db, "max_page_count = 1073741823") }
	})
}

func TestFault_P8_StoreReadOnly(t *testing.T) {
	sickStore(t, func(t *testing.T, db *DB) (mend func()) {
		pragma(t, db, "query_only = ON")
		return func() { pragma(t, db, "query_only = OFF") }
	})
}

func pragma(t *testing.T, db *DB, text string) {
	t.Helper()
	if _, err := db.write.ExecContext(t.Context(), "PRAGMA "+text); err != nil {
		t.Fatal(err)
	}
}

func sickStore(t *testing.T, fall func(*testing.T, *DB) (mend func())) {
	dir := t.TempDir()
	db, err := Open(t.Context(), "sqlite:"+filepath.Join(dir, "sluice.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	failed := make(chan error, 1)
	j, err := ledger.OpenJournal(filepath.Join(dir, "journal"), ledger.JournalOptions{
		Sink: db, DrainEvery: time.Millisecond, RetryMax: 10 * time.Millisecond, Ballast: -1,
		Hooks: ledger.Hooks{DrainFailed: func(err error, _ time.Duration) {
			select {
			case failed <- err:
			default:
			}
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close(context.Background())
	settle := func(from, n int) {
		t.Helper()
		for i := range n {
			id := sluice.RequestID(fmt.Sprintf("req_%06d", from+i))
			e := ledger.Entry{Request: id, Attempt: 1, Final: true, At: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC), Tenant: "acme", Cost: 1, CostHigh: 1, Usage: sluice.Usage{Input: 1, Source: sluice.UsageReported}}
			if err := errors.Join(j.Begin(ledger.Reserve{Request: id}, ledger.Dispatch{Request: id, Attempt: 1}), j.Settle(e)); err != nil {
				t.Fatal(err)
			}
		}
	}
	settle(0, 10)
	if err := j.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	mend := fall(t, db)
	settle(10, 2000)
	t.Logf("the store says: %v", <-failed)
	if lag := j.Lag(); lag.Entries == 0 || lag.Kept != 0 || j.Err() != nil {
		t.Errorf("lag %+v, %v", lag, j.Err())
	}
	if _, err := db.Usage(t.Context(), ledger.UsageQuery{Owner: ledger.Everyone()}); err != nil {
		t.Errorf("what is there cannot be read: %v", err)
	}
	settle(2010, 10)
	mend()
	if err := j.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a, err := db.Verify(t.Context()); err != nil || !a.OK() || a.Entries != 2020 {
		t.Errorf("%d entries, want 2020; %q, %v", a.Entries, a.Differences, err)
	}
}
