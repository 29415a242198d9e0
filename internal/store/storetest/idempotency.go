package storetest

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice"
	"sluice/internal/idempotency"
	"sluice/internal/store"
)

var idempotencyTests = []namedTest{
	{"life of a key", keyTest(testKeyLife)},
	{"lease", keyTest(testKeyLease)},
	{"one of many", keyTest(testKeyOneOfMany)},
	{"bounds", keyTest(testKeyBounds)},
	{"restart", testKeyRestart},
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
