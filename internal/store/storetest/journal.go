package storetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sluice"
	"sluice/internal/ledger"
	"sluice/internal/store"
)

var journalTests = []namedTest{
	{"exactly one row", testJournalToStore},
	{"store down", testStoreDown},
}

// unreliable is a store that loses its answer now and then, before or after the
// work was done.
type unreliable struct {
	db  *store.DB
	rnd *rand.Rand
}

func (u *unreliable) Append(ctx context.Context, es []ledger.Entry) error {
	switch u.rnd.IntN(4) {
	case 0:
		return errors.New("lost before the commit")
	case 1:
		return errors.Join(errors.New("lost after the commit"), u.db.Append(ctx, es))
	}
	return u.db.Append(ctx, es)
}

// copyDir copies a journal's files as they are: what the death of the process
// would leave.
func copyDir(t testing.TB, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "journal")
	must(t, os.MkdirAll(to, 0o700))
	must(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, d.Name()), b, 0o600)
	}))
	return to
}

// Any interleaving of requests, duplicates, batches, lost answers and kills
// gives exactly one row for each attempt, and roll-ups that equal their sum.
func testJournalToStore(t *testing.T, fresh Fresh) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			db := Open(t, fresh(t), store.Options{})
			rnd := rand.New(rand.NewPCG(seed, 7))
			dir := filepath.Join(t.TempDir(), "journal")
			sink := &unreliable{db, rand.New(rand.NewPCG(seed, 8))}
			want := map[string]bool{}
			for life := range 4 {
				j := openJournal(t, dir, sink)
				for _, o := range j.Recovered() {
					e := o.Lost(noon.Add(time.Hour))
					want[fmt.Sprint(e.Request, "/", e.Attempt)] = true
					must(t, j.Settle(e))
				}
				for i := range 60 {
					id := fmt.Sprintf("%d-%d", life, i)
					e := entry(id, 1)
					e.At = noon.Add(time.Duration(rnd.IntN(6)) * time.Hour)
					e.Tenant = sluice.TenantID(fmt.Sprint("t", rnd.IntN(3)))
					must(t, j.Begin(reserveOf(e), dispatchOf(e)))
					if rnd.IntN(4) == 0 {
						continue // stays open
					}
					want[fmt.Sprint(id, "/", 1)] = true
					must(t, j.Settle(e))
					if rnd.IntN(5) == 0 {
						e.Cost *= 2
						must(t, j.Settle(e)) // told twice: the first stands
					}
				}
				if rnd.IntN(2) == 0 {
					must(t, j.Flush(t.Context()))
				}
				must(t, j.Sync(t.Context()))
				if life < 3 {
					dir = copyDir(t, dir) // killed here; what the old process still drains comes twice
				}
				must(t, j.Close(t.Context()))
			}
			j := openJournal(t, dir, sink)
			for _, o := range j.Recovered() {
				e := o.Lost(noon.Add(time.Hour))
				want[fmt.Sprint(e.Request, "/", e.Attempt)] = true
				must(t, j.Settle(e))
			}
			must(t, j.Flush(t.Context()), j.Close(t.Context()))
			verified(t, db, len(want))
		})
	}
}

func openJournal(t testing.TB, dir string, sink ledger.Sink) *ledger.Journal {
	t.Helper()
	j, err := ledger.OpenJournal(dir, ledger.JournalOptions{
		Sink: sink, SegmentBytes: 8 << 10, SyncEvery: time.Millisecond, DrainEvery: time.Millisecond, DrainBatch: 17,
		RetryMax: time.Millisecond, Ballast: -1,
	})
	must(t, err)
	return j
}

func reserveOf(e ledger.Entry) ledger.Reserve {
	return ledger.Reserve{
		Request: e.Request, At: e.At, Model: e.Model, EstimatedInput: e.EstimatedInput, HeldSpend: e.HeldSpend,
		Principal: sluice.Principal{Tenant: e.Tenant, Project: e.Project, Key: e.Key, User: e.User},
	}
}

func dispatchOf(e ledger.Entry) ledger.Dispatch {
	return ledger.Dispatch{
		Request: e.Request, Attempt: e.Attempt, At: e.At, Backend: e.Backend, Provider: e.Provider,
		Estimate: e.Usage, Cost: e.Cost, CostHigh: e.CostHigh,
	}
}

// A store that is closed delays the drain; nothing is lost when it is back.
func testStoreDown(t *testing.T, fresh Fresh) {
	dsn := fresh(t)
	db, err := store.Open(t.Context(), dsn, store.Options{})
	must(t, err, db.Close())
	dir := filepath.Join(t.TempDir(), "journal")
	j := openJournal(t, dir, db)
	for i := range 50 {
		must(t, j.Settle(entry(fmt.Sprint("r", i), 1)))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	must(t, j.Close(ctx))
	again := Open(t, dsn, store.Options{})
	j = openJournal(t, dir, again)
	must(t, j.Flush(t.Context()), j.Close(t.Context()))
	verified(t, again, 50)
}
