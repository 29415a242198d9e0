package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/ladder"
	"sluice/internal/pins"
	"sluice/internal/store"
)

var pinTests = []namedTest{{"round trip", testPins}}

func testPins(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	record := func(pool sluice.PoolID, tier ladder.Tier, d time.Duration) pins.Record {
		return pins.Record{Pool: pool, Pin: ladder.Pin{Tier: tier, Author: "ann", Reason: "a \"drill\"", At: noon, Expires: noon.Add(d)}}
	}
	want := func(db *store.DB, now time.Time, want ...pins.Record) {
		t.Helper()
		got, err := db.Pins(t.Context(), now)
		must(t, err)
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	a, b := record("chat", ladder.Defer, time.Hour), record("batch", ladder.None, time.Minute)
	must(t, db.KeepPin(t.Context(), noon, a), db.KeepPin(t.Context(), noon, b))
	want(db, noon, b, a)
	want(db, noon.Add(time.Minute), a)
	a.Tier, a.Author, a.At = ladder.Shed, "bob", noon.Add(time.Second)
	must(t, db.KeepPin(t.Context(), noon.Add(2*time.Minute), a))
	want(db, noon, a) // what was over is forgotten
	must(t, db.DropPin(t.Context(), "chat"), db.DropPin(t.Context(), "chat"))
	want(db, noon)
}
