package stateful

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"sluice"
	"sluice/internal/route"
	"sluice/test/bubble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// table is a store in memory, for several keepers.
type table struct {
	mu     sync.Mutex
	rows   map[spot]row
	seq    int64
	down   bool
	writes int
}

// spot is what of a record there is once.
type spot struct {
	mark Mark
	pin  route.Pin
}

type row struct {
	Record
	seq int64
}

// owner is whose a record is.
func (s *table) owner(at spot) sluice.TenantID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows[at].Tenant
}

// written is how many operations it was given.
func (s *table) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

func newTable() *table { return &table{rows: map[spot]row{}} }

func (s *table) WriteState(_ context.Context, now time.Time, ops []Op) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return errors.New("down")
	}
	s.seq++
	for _, op := range ops {
		s.writes++
		at := spot{op.Mark, op.Pin}
		has, there := s.rows[at]
		switch {
		case there && has.Tenant != op.Tenant && (op.Drop || has.Until.After(now)):
		case op.Drop:
			delete(s.rows, at)
		default:
			s.rows[at] = row{op.Record, s.seq}
		}
	}
	return nil
}

func (s *table) ReadState(_ context.Context, after int64, now time.Time, f func(Record)) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return after, errors.New("down")
	}
	inOrder := slices.SortedFunc(maps.Values(s.rows), func(a, b row) int { return cmp.Compare(a.seq, b.seq) })
	for _, r := range inOrder {
		if r.seq > after && r.Until.After(now) {
			f(r.Record)
		}
	}
	return s.seq, nil
}

func (s *table) ForgetState(_ context.Context, over time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.rows, func(_ spot, r row) bool { return !r.Until.After(over) })
	return nil
}

func (s *table) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rows)
}

func (s *table) fail(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

var here, there = route.Pin{Provider: "p", Key: "one"}, route.Pin{Provider: "p", Key: "two"}

func file(id string) []route.State { return []route.State{{Kind: route.StateFile, ID: id}} }

func start(t *testing.T, o Options) *Keeper {
	t.Helper()
	k := New(o)
	if err := k.Load(t.Context(), o.Store); err != nil {
		t.Fatal(err)
	}
	k.Start(t.Context())
	return k
}

func wantAt(t *testing.T, k *Keeper, tenant sluice.TenantID, id string, want *route.Pin) {
	t.Helper()
	f := k.Find(t.Context(), tenant, file(id))
	switch {
	case want == nil && f.Pin != nil, want != nil && (f.Pin == nil || *f.Pin != *want):
		t.Errorf("%s finds %s at %v, want %v", tenant, id, f.Pin, want)
	case (f.Unknown == nil) != (want != nil):
		t.Errorf("%s: %s is unknown: %v", tenant, id, f.Unknown)
	}
}

// What was kept is there after a restart, and is its tenant's alone.
func TestRestart(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := newTable()
		k := start(t, Options{Store: store})
		k.Keep("a", here, file("f1"))
		k.Keep("b", there, file("f2"))
		if owned := k.Keep("b", here, file("f1")); owned != 1 {
			t.Errorf("b is told of %d ids of others, want 1", owned)
		}
		k.Close() // it writes what nobody had time to
		k = start(t, Options{Store: store})
		wantAt(t, k, "a", "f1", &here)
		wantAt(t, k, "b", "f1", nil)
		wantAt(t, k, "b", "f2", &there)
		if f := k.Find(t.Context(), "b", file("f1")); !f.Owned {
			t.Error("f1 is nobody's")
		}
		f := k.Find(t.Context(), "a", append(file("f1"), route.State{Kind: route.StateContainer, ID: "f1"}))
		if f.Unknown == nil || f.Unknown.Kind != route.StateContainer || f.Owned {
			t.Errorf("a file's id is a container's: %+v", f)
		}
		k.Keep("a", there, file("f3"))
		if f := k.Find(t.Context(), "a", append(file("f1"), file("f3")...)); f.Split == nil || f.Split.ID != "f3" {
			t.Errorf("f1 and f3 are at one place: %+v", f)
		}
		k.Close()
	})
}

// An id is kept from its last use on, and the store is told of few of these.
func TestExpiry(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := newTable()
		k := start(t, Options{Store: store, Keep: 16 * time.Hour})
		k.Keep("a", here, append(file("used"), file("left")...))
		for range 40 {
			time.Sleep(30 * time.Minute)
			k.Keep("a", here, file("used"))
			synctest.Wait()
		}
		wantAt(t, k, "a", "used", &here)
		wantAt(t, k, "a", "left", nil)
		if n := store.len(); n != 1 || k.Stats().IDs != 1 {
			t.Errorf("%d rows in the store, %d ids: want the one that is used", n, k.Stats().IDs)
		}
		if n := store.written(); n > 2+20 {
			t.Errorf("the store was told %d times of 40 uses in 20 hours", n)
		}
		k.Close()
		k = start(t, Options{Store: store, Keep: 16 * time.Hour})
		time.Sleep(14 * time.Hour) // the store is behind by a sixteenth at most
		wantAt(t, k, "a", "used", &here)
		time.Sleep(3 * time.Hour)
		wantAt(t, k, "a", "used", nil)
		k.Keep("b", here, file("used")) // what is over is whoever's comes
		wantAt(t, k, "b", "used", &here)
		k.Close()
	})
}

// Of several replicas each knows at once what another was told, and one that knows it
// itself asks nobody.
func TestReplicas(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := newTable()
		o := Options{Store: store, Shared: func() bool { return true }}
		one, two := start(t, o), start(t, o)
		one.Keep("a", here, file("f1"))
		synctest.Wait()
		began := time.Now()
		wantAt(t, two, "a", "f1", &here)
		wantAt(t, two, "b", "f1", nil)
		if took := time.Since(began); took > missEach {
			t.Errorf("it took %v", took)
		}
		// Both give one id of one place to two tenants: the first write stands everywhere.
		store.fail(true)
		one.Keep("a", here, file("f2"))
		two.Keep("b", here, file("f2"))
		synctest.Wait()
		began = time.Now()
		wantAt(t, one, "a", "f2", &here)
		wantAt(t, two, "b", "f2", &here)
		if took := time.Since(began); took > 0 {
			t.Errorf("what is known took %v", took)
		}
		store.fail(false)
		time.Sleep(10 * time.Second)
		first := sluice.TenantID("a")
		if store.owner(spot{MarkOf(file("f2")[0]), here}) == "b" {
			first = "b"
		}
		for _, k := range []*Keeper{one, two} {
			for _, tenant := range []sluice.TenantID{"a", "b"} {
				want := &here
				if tenant != first {
					want = nil
				}
				wantAt(t, k, tenant, "f2", want)
			}
		}
		one.Close()
		two.Close()
	})
}

// A store that takes nothing costs nobody anything, and is told all that there is room for.
func TestStoreDown(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := newTable()
		k := start(t, Options{Store: store, PerTenant: 2 * MaxPending, Total: 4 * MaxPending})
		store.fail(true)
		for i := range MaxPending + 100 {
			k.Keep("a", here, file(fmt.Sprint(i)))
		}
		synctest.Wait()
		if s := k.Stats(); s.Pending != MaxPending || s.Lost != 100 || s.IDs != MaxPending+100 {
			t.Errorf("%+v", s)
		}
		store.fail(false)
		time.Sleep(2 * retry)
		if s := k.Stats(); s.Pending != 0 || store.len() != MaxPending {
			t.Errorf("%+v, %d rows", s, store.len())
		}
		k.Close()
	})
}

// What is forgotten for want of room is forgotten in the store, too.
func TestBoundsOfTheStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := newTable()
		k := start(t, Options{Store: store, PerTenant: 10, Total: 100})
		for i := range 200 {
			k.Keep("a", here, file(fmt.Sprint(i)))
			synctest.Wait()
		}
		if store.len() != 10 {
			t.Errorf("%d rows, want 10", store.len())
		}
		wantAt(t, k, "a", "199", &here)
		wantAt(t, k, "a", "189", nil)
		k.Configure(4, 100, time.Hour)
		for i := range 6 {
			k.Keep("a", here, file(fmt.Sprint("new", i)))
		}
		synctest.Wait()
		if s := k.Stats(); s.IDs != 4 || store.len() != 4 {
			t.Errorf("%d ids and %d rows, want 4: the bound was lowered", s.IDs, store.len())
		}
		k.Close()
	})
}

// The model that was asked for when an id was made is known as long as the id is, and after
// a restart; what refers to it changes nothing of that. What is deleted is forgotten.
func TestKeeperModelAndForget(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := &table{rows: map[spot]row{}}
		k := start(t, Options{Store: store, Keep: time.Hour})
		k.KeepOf("fast", "a", here, file("1"))
		for range 20 { // until the store is told again
			time.Sleep(10 * time.Minute)
			k.Keep("a", here, file("1"))
		}
		k.Close()
		k = start(t, Options{Store: store, Keep: time.Hour})
		if f := k.Find(t.Context(), "a", file("1")); f.Pin == nil || f.Model != "fast" {
			t.Errorf("found %+v, want what was made by fast", f)
		}
		k.Forget("b", file("1"))
		wantAt(t, k, "a", "1", &here)
		k.Forget("a", file("1"))
		wantAt(t, k, "a", "1", nil)
		k.Close()
		if n := store.len(); n != 0 {
			t.Errorf("the store has %d rows of what was forgotten", n)
		}
	})
}
