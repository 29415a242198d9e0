package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/idempotency"
	"sluice/internal/jobs"
	"sluice/internal/store"
)

var idempotencyTests = []namedTest{
	{"life of a key", keyTest(testKeyLife)},
	{"lease", keyTest(testKeyLease)},
	{"one of many", keyTest(testKeyOneOfMany)},
	{"bounds", keyTest(testKeyBounds)},
	{"restart", testKeyRestart},
	{"made with its key", testKeyMade},
	{"made once of many", testKeyMadeOneOfMany},
}

func keyClaim(key, request string) idempotency.Claim {
	return idempotency.Claim{
		Mark: idempotency.MarkOf("acme", "chat", key), Tenant: "acme", Print: idempotency.Print{1}, Request: sluice.RequestID(request),
		Now: noon, Until: noon.Add(idempotency.Lease),
	}
}

func keyHeld(c idempotency.Claim) idempotency.Held {
	return idempotency.Held{Mark: c.Mark, Request: c.Request}
}

func mustClaim(t testing.TB, db idempotency.Store, c idempotency.Claim) {
	t.Helper()
	found, err := db.ClaimKey(t.Context(), c)
	must(t, err)
	if found != nil {
		t.Fatalf("%s has the key", found.Request)
	}
}

func mustFind(t testing.TB, db idempotency.Store, c idempotency.Claim) *idempotency.Found {
	t.Helper()
	found, err := db.ClaimKey(t.Context(), c)
	must(t, err)
	if found == nil {
		t.Fatal("the key is free")
	}
	seen, err := db.FindKey(t.Context(), c.Mark, c.Now)
	must(t, err)
	if diff := cmp.Diff(found, seen); diff != "" {
		t.Errorf("what is found is not what is in the way (-want +got):\n%s", diff)
	}
	return found
}

func mustKeep(t testing.TB, db idempotency.Store, c idempotency.Claim, answer []byte) {
	t.Helper()
	ok, err := db.KeepAnswer(t.Context(), idempotency.Kept{Held: keyHeld(c), Answer: answer, Until: c.Now.Add(24 * time.Hour)})
	must(t, err)
	if !ok {
		t.Fatal("the claim is not held")
	}
}

// keyTest is one of the conformance tests of idempotency.Store.
func keyTest(f func(*testing.T, idempotency.Store)) func(*testing.T, Fresh) {
	return func(t *testing.T, fresh Fresh) { f(t, Open(t, fresh(t), store.Options{})) }
}

// IdempotencyStore runs the conformance tests of stores of keys on another one, which
// fresh makes.
func IdempotencyStore(t *testing.T, fresh func() idempotency.Store) {
	for name, f := range map[string]func(*testing.T, idempotency.Store){
		"life of a key": testKeyLife, "lease": testKeyLease, "one of many": testKeyOneOfMany, "bounds": testKeyBounds,
	} {
		t.Run(name, func(t *testing.T) { f(t, fresh()) })
	}
}

func testKeyLife(t *testing.T, db idempotency.Store) {
	first, second := keyClaim("k", "req_1"), keyClaim("k", "req_2")
	second.Print = idempotency.Print{2}
	mustClaim(t, db, first)
	f := mustFind(t, db, second)
	if f.Print != first.Print || f.Request != "req_1" || !f.Begun.Equal(noon) || !f.Until.Equal(first.Until) || f.Answer != nil {
		t.Errorf("got %+v of what runs", f)
	}
	// Who has it not cannot end it.
	must(t, db.FreeKey(t.Context(), keyHeld(second)))
	if ok, err := db.KeepAnswer(t.Context(), idempotency.Kept{Held: keyHeld(second), Answer: []byte("x"), Until: noon.Add(time.Hour)}); ok || err != nil {
		t.Errorf("another's claim was ended: %v, %v", ok, err)
	}
	must(t, db.FreeKey(t.Context(), keyHeld(first)))
	mustClaim(t, db, second)
	answer := []byte("\x00\xff binary\n")
	mustKeep(t, db, second, answer)
	f = mustFind(t, db, keyClaim("k", "req_3"))
	if !bytes.Equal(f.Answer, answer) || f.Request != "req_2" || f.Print != second.Print {
		t.Errorf("got %+v, want the answer", f)
	}
	must(t, db.FreeKey(t.Context(), keyHeld(second))) // it has ended: nothing happens
	mustFind(t, db, keyClaim("k", "req_3"))
	// Another operation's key, and another tenant's, are others.
	other := keyClaim("k", "req_4")
	other.Mark = idempotency.MarkOf("globex", "chat", "k")
	mustClaim(t, db, other)
	// After its time it is free.
	later := keyClaim("k", "req_5")
	later.Now = noon.Add(24 * time.Hour)
	if f, err := db.FindKey(t.Context(), later.Mark, later.Now); f != nil || err != nil {
		t.Errorf("got %+v, %v of a key whose time is over", f, err)
	}
	mustClaim(t, db, later)
}

func testKeyLease(t *testing.T, db idempotency.Store) {
	first, second := keyClaim("k", "req_1"), keyClaim("k", "req_2")
	mustClaim(t, db, first)
	second.Now = first.Until.Add(-time.Microsecond)
	mustFind(t, db, second)
	must(t, db.RenewKeys(t.Context(), []idempotency.Held{keyHeld(first), keyHeld(keyClaim("gone", "req_9"))}, first.Until.Add(time.Minute)))
	second.Now, second.Until = first.Until, first.Until.Add(idempotency.Lease)
	mustFind(t, db, second)
	second.Now, second.Until = first.Until.Add(time.Minute), first.Until.Add(2*time.Minute)
	mustClaim(t, db, second)
	// The first has lost it, whatever it does.
	must(t, db.RenewKeys(t.Context(), []idempotency.Held{keyHeld(first)}, first.Until.Add(time.Hour)))
	must(t, db.FreeKey(t.Context(), keyHeld(first)))
	if ok, err := db.KeepAnswer(t.Context(), idempotency.Kept{Held: keyHeld(first), Answer: []byte("late"), Until: noon.Add(time.Hour)}); ok || err != nil {
		t.Errorf("an answer was kept that came after its lease: %v, %v", ok, err)
	}
	mustKeep(t, db, second, []byte("a"))
}

// Of many that ask for a key at once, over several connections, one has it.
func testKeyOneOfMany(t *testing.T, db idempotency.Store) {
	const keys, each = 10, 8
	var wg sync.WaitGroup
	var had [keys]atomic.Int64
	for k := range keys {
		for n := range each {
			wg.Go(func() {
				found, err := db.ClaimKey(t.Context(), keyClaim(fmt.Sprint(k), fmt.Sprint("req_", k, "_", n)))
				if err != nil {
					t.Error(err)
				} else if found == nil {
					had[k].Add(1)
				}
			})
		}
	}
	wg.Wait()
	for k := range had {
		if n := had[k].Load(); n != 1 {
			t.Errorf("%d requests have key %d", n, k)
		}
	}
}

func testKeyBounds(t *testing.T, db idempotency.Store) {
	const size = 4096 - idempotency.Overhead
	put := func(tenant sluice.TenantID, n int) {
		for i := range n {
			c := keyClaim(fmt.Sprint(i), fmt.Sprint("req_", tenant, i))
			c.Tenant, c.Mark, c.Now = tenant, idempotency.MarkOf(tenant, "chat", fmt.Sprint(i)), noon.Add(time.Duration(i)*time.Second)
			mustClaim(t, db, c)
			mustKeep(t, db, c, make([]byte, size))
		}
	}
	put("acme", 20)
	put("globex", 4)
	mustClaim(t, db, keyClaim("runs", "req_r"))
	has, err := db.SweepKeys(t.Context(), noon, idempotency.Bounds{PerTenant: 16 * 4096, Total: 1 << 30})
	must(t, err)
	if has["acme"] != 14*4096 || has["globex"] != 4*4096 {
		t.Errorf("got %v, want an eighth free of the one that has too many", has)
	}
	c := keyClaim("5", "req_x")
	mustClaim(t, db, c) // the oldest went
	must(t, db.FreeKey(t.Context(), keyHeld(c)))
	mustFind(t, db, keyClaim("6", "req_x"))
	has, err = db.SweepKeys(t.Context(), noon, idempotency.Bounds{PerTenant: 1 << 30, Total: 16 * 4096})
	must(t, err)
	if has["acme"] != 10*4096 || has["globex"] != 4*4096 {
		t.Errorf("got %v, want the one that has most to give way", has)
	}
	mustFind(t, db, keyClaim("runs", "req_x")) // what runs is not touched
	has, err = db.SweepKeys(t.Context(), noon.Add(48*time.Hour), idempotency.Bounds{PerTenant: 1, Total: 1})
	must(t, err)
	if len(has) != 0 {
		t.Errorf("got %v after their time", has)
	}
}

func testKeyRestart(t *testing.T, fresh Fresh) {
	dsn := fresh(t)
	db, err := store.Open(t.Context(), dsn, store.Options{})
	must(t, err)
	done, runs := keyClaim("done", "req_1"), keyClaim("runs", "req_2")
	mustClaim(t, db, done)
	mustKeep(t, db, done, []byte("answer"))
	mustClaim(t, db, runs)
	must(t, db.Close())
	db = Open(t, dsn, store.Options{})
	if f := mustFind(t, db, keyClaim("done", "req_3")); string(f.Answer) != "answer" {
		t.Errorf("got %+v", f)
	}
	if f := mustFind(t, db, keyClaim("runs", "req_3")); f.Answer != nil {
		t.Errorf("got %+v", f)
	}
	again := keyClaim("runs", "req_3")
	again.Now = runs.Until
	mustClaim(t, db, again)
}

// once is the key k as a request has it.
func once(request string) *idempotency.Once {
	c := keyClaim("k", request)
	c.Until = noon.Add(24 * time.Hour)
	return &idempotency.Once{Claim: c}
}

// putOnce adds a job under the key of a request.
func putOnce(t testing.TB, db *store.DB, id, request string) *idempotency.Taken {
	t.Helper()
	o := once(request)
	o.Made = id
	err := db.PutJob(t.Context(), newJob(id), jobs.Put{Bounds: jobs.DefaultBounds(), Once: o})
	if taken, ok := errors.AsType[*idempotency.Taken](err); ok {
		return taken
	}
	must(t, err)
	return nil
}

// A job and a file are there with their keys or not at all.
func testKeyMade(t *testing.T, fresh Fresh) {
	ctx, db := t.Context(), Open(t, fresh(t), store.Options{})
	mustClaim(t, db, keyClaim("k", "req_1"))
	if taken := putOnce(t, db, "msgbatch_1", "req_2"); taken == nil || taken.Found.Request != "req_1" || taken.Found.Answer != nil {
		t.Errorf("got %+v of a key whose request runs", taken)
	}
	_, err := db.Job(ctx, "acme", "msgbatch_1")
	wantKind(t, err, sluice.KindNotFound)
	must(t, db.FreeKey(ctx, keyHeld(keyClaim("k", "req_1"))))
	if taken := putOnce(t, db, "msgbatch_2", "req_2"); taken != nil {
		t.Fatalf("%+v has a key that is free", taken)
	}
	taken := putOnce(t, db, "msgbatch_3", "req_3")
	if taken == nil || taken.Found.Request != "req_2" || string(taken.Found.Answer) != "made msgbatch_2" || taken.Found.Print != once("").Print {
		t.Errorf("got %+v of a key that made something", taken)
	}
	if f := mustFind(t, db, keyClaim("k", "req_4")); f.Answer == nil {
		t.Error("a request that makes nothing finds it running")
	}
	f := jobs.File{ID: "file-1", Tenant: "acme", Name: "a", Purpose: jobs.PurposeBatch, Created: noon, Ready: true}
	must(t, db.PutFile(ctx, f))
	if _, ok := errors.AsType[*idempotency.Taken](db.SealFile(ctx, f, once("req_5"))); !ok {
		t.Error("a file was made with a key that another request has")
	}
	if got, err := db.File(ctx, "acme", "file-1"); err != nil || got.Ready {
		t.Errorf("it is %+v, %v", got, err)
	}
	must(t, db.FreeMade(ctx, once("req_3").Held())) // who has it not cannot give it back
	if putOnce(t, db, "msgbatch_4", "req_4") == nil {
		t.Error("another gave it back")
	}
	must(t, db.FreeMade(ctx, once("req_2").Held()), db.SealFile(ctx, f, once("req_5")))
	has, err := db.SweepKeys(ctx, noon, idempotency.Bounds{PerTenant: 1 << 20, Total: 1 << 20})
	must(t, err)
	if want := once("req_5").Size(); has["acme"] != want {
		t.Errorf("it counts %d, want %d", has["acme"], want)
	}
	// After its time it is free.
	later := once("req_6")
	later.Now, later.Until = noon.Add(24*time.Hour), noon.Add(48*time.Hour)
	must(t, db.PutJob(ctx, newJob("msgbatch_5"), jobs.Put{Bounds: jobs.DefaultBounds(), Once: later}))
}

// Of many that make something with one key at once, over several connections, one does.
func testKeyMadeOneOfMany(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	var wg sync.WaitGroup
	var made atomic.Int64
	for n := range 12 {
		wg.Go(func() {
			if putOnce(t, db, fmt.Sprint("msgbatch_", n), fmt.Sprint("req_", n)) == nil {
				made.Add(1)
			}
		})
	}
	wg.Wait()
	all, err := db.Jobs(t.Context(), jobs.JobQuery{Tenant: "acme", Any: true, Limit: 100})
	must(t, err)
	if made.Load() != 1 || len(all) != 1 {
		t.Errorf("%d were made, %d are there", made.Load(), len(all))
	}
}
