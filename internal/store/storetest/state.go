package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/route"
	"sluice/internal/stateful"
	"sluice/internal/store"
)

var stateTests = []namedTest{
	{"round trip", testStateRoundTrip},
	{"first tenant", testStateFirstTenant},
	{"replicas", testStateOfReplicas},
}

func kept(id string, tenant sluice.TenantID) stateful.Op {
	return stateful.Op{Record: stateful.Record{
		Mark: stateful.MarkOf(route.State{Kind: route.StateFile, ID: id}), Tenant: tenant,
		Pin: route.Pin{Provider: "anthropic", Site: "eu", Key: "anthropic/one"}, Until: noon.Add(time.Hour),
	}}
}

func readState(t *testing.T, db *store.DB, after int64, now time.Time) (got []stateful.Record, at int64) {
	t.Helper()
	at, err := db.ReadState(t.Context(), after, now, func(r stateful.Record) { got = append(got, r) })
	must(t, err)
	return got, at
}

func testStateRoundTrip(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	a, b := kept("f1", "acme"), kept("f2", "acme")
	b.Pin, b.Model = route.Pin{Provider: "gpus", Backend: "gpu-a"}, "fast"
	must(t, db.WriteState(t.Context(), noon, []stateful.Op{a}))
	must(t, db.WriteState(t.Context(), noon, []stateful.Op{b}))
	got, at := readState(t, db, 0, noon)
	if diff := cmp.Diff([]stateful.Record{a.Record, b.Record}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got, again := readState(t, db, at, noon); len(got) > 0 || again != at {
		t.Errorf("got %v again, at %d after %d", got, again, at)
	}
	a.Until = noon.Add(2 * time.Hour)
	b.Drop = true
	must(t, db.WriteState(t.Context(), noon, []stateful.Op{a, b, kept("f3", "acme")}))
	got, at = readState(t, db, at, noon)
	if len(got) != 2 || !got[0].Until.Equal(a.Until) && !got[1].Until.Equal(a.Until) {
		t.Errorf("got %v, want what was written since", got)
	}
	if got, _ := readState(t, db, 0, noon.Add(90*time.Minute)); len(got) != 1 || !got[0].Until.Equal(a.Until) {
		t.Errorf("got %v, want what is not over", got)
	}
	must(t, db.ForgetState(t.Context(), noon.Add(90*time.Minute)))
	if got, _ := readState(t, db, 0, noon); len(got) != 1 {
		t.Errorf("got %v, want what was not over", got)
	}
	if _, again := readState(t, db, 0, noon); again != at {
		t.Errorf("at %d, want %d", again, at)
	}
}

// An id of a place is the tenant's who came first, until its time is over.
func testStateFirstTenant(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	first, second := kept("f1", "acme"), kept("f1", "globex")
	must(t, db.WriteState(t.Context(), noon, []stateful.Op{first, second}))
	second.Drop = true
	must(t, db.WriteState(t.Context(), noon, []stateful.Op{second}))
	if got, _ := readState(t, db, 0, noon); len(got) != 1 || got[0].Tenant != "acme" {
		t.Errorf("got %v, want acme's", got)
	}
	elsewhere := kept("f1", "globex")
	elsewhere.Pin.Key = "anthropic/two"
	must(t, db.WriteState(t.Context(), noon, []stateful.Op{elsewhere}))
	if got, _ := readState(t, db, 0, noon); len(got) != 2 {
		t.Errorf("got %v, want one of each place", got)
	}
	later := first.Until.Add(time.Second)
	second.Drop, second.Until = false, later.Add(time.Hour)
	must(t, db.WriteState(t.Context(), later, []stateful.Op{second}))
	if got, _ := readState(t, db, 0, later); len(got) != 1 || got[0].Tenant != "globex" {
		t.Errorf("got %v, want globex's", got)
	}
}

// A reader that goes on from where it was misses nothing that several writers write
// meanwhile.
func testStateOfReplicas(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	const writers, each = 4, 25
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				op := kept(fmt.Sprintf("f%d-%d", w, i), "acme")
				if err := db.WriteState(t.Context(), noon, []stateful.Op{op}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	seen, at := map[stateful.Mark]bool{}, int64(0)
	for last := false; !last; {
		select {
		case <-done:
			last = true
		default:
		}
		var got []stateful.Record
		got, at = readState(t, db, at, noon)
		for _, r := range got {
			seen[r.Mark] = true
		}
	}
	if len(seen) != writers*each {
		t.Errorf("saw %d of %d", len(seen), writers*each)
	}
}
