package auth

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
	"sluice/test/bubble"
)

// table is a store as the Keeper sees it.
type table struct {
	mu      sync.Mutex
	records Records
	err     error
	hang    bool
	loads   int
}

func (s *table) Load(ctx context.Context) (Records, error) {
	s.mu.Lock()
	s.loads++
	r, err, hang := s.records, s.err, s.hang
	s.mu.Unlock()
	if hang {
		<-ctx.Done()
		return Records{}, ctx.Err()
	}
	return r, err
}

func (s *table) Version(ctx context.Context) (int64, error) {
	s.mu.Lock()
	v, err, hang := s.records.Version, s.err, s.hang
	s.mu.Unlock()
	if hang {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return v, err
}

// write replaces the records as a transaction would: keys are copied, the
// version rises.
func (s *table) write(change func(*Records)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records
	r.Keys = append([]Key(nil), r.Keys...)
	r.Version++
	change(&r)
	s.records = r
}

func (s *table) set(err error, hang bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.hang = err, hang
}

func startKeeper(t *testing.T, o KeeperOptions, declared Records, s Source) *Keeper {
	k := NewKeeper(o, declared, s)
	k.Start(t.Context())
	t.Cleanup(k.Close)
	return k
}

// A revoked key stops within 5 s though nobody notifies, and at once if
// somebody does.
func TestRevokedKeyStops(t *testing.T) {
	for _, notify := range []bool{false, true} {
		bubble.Test(t, func(t *testing.T) {
			m := mustMint(t, "prod")
			s := &table{records: house(m, nil)}
			k := startKeeper(t, KeeperOptions{}, Records{}, s)
			time.Sleep(700 * time.Millisecond)
			if _, err := k.Identify(m.Key.Reveal(), time.Now()); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			s.write(func(r *Records) { r.Keys[0].Revoked = time.Now() })
			if notify {
				k.Notify()
				synctest.Wait()
			}
			for reasonOf(second(k.Identify(m.Key.Reveal(), time.Now()))) != sluice.KeyRevoked {
				if time.Since(start) > 5*time.Second {
					t.Fatal("still admitted after 5 s")
				}
				time.Sleep(10 * time.Millisecond)
			}
			if took := time.Since(start); notify && took != 0 || took > 5*time.Second {
				t.Errorf("notify %v: stopped after %v", notify, took)
			}
		})
	}
}

func second(_ sluice.Principal, err error) error { return err }

// cT3: the store comes up 20 s after the process. Until then 503 and never 401;
// within 5 s of it the first 200. Declared keys work all along.
func TestStoreComesUpLate(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m, declared := mustMint(t, "prod"), mustMint(t, "file")
		s := &table{records: house(m, nil), err: errors.New("connection refused")}
		k := startKeeper(t, KeeperOptions{}, house(declared, nil), s)
		for range 200 {
			if e := sluice.AsError(second(k.Identify(m.Key.Reveal(), time.Now()))); e.Kind != sluice.KindOverloaded || e.Reason != sluice.NotReady || e.RetryAfter <= 0 {
				t.Fatalf("before the first load: %+v", e)
			}
			if _, err := k.Admin(MintAdmin().Key.Reveal(), time.Now()); reasonOf(err) != sluice.NotReady {
				t.Fatal(err)
			}
			if _, err := k.Identify(declared.Key.Reveal(), time.Now()); err != nil {
				t.Fatal(err)
			}
			if _, err := k.Identify("slk_x", time.Now()); reasonOf(err) != sluice.Unauthenticated {
				t.Fatal("what is malformed is refused without the store")
			}
			time.Sleep(100 * time.Millisecond)
		}
		if k.Health().Ready || k.Health().Err == nil {
			t.Error("health says ready")
		}
		s.set(nil, false)
		time.Sleep(5 * time.Second)
		if _, err := k.Identify(m.Key.Reveal(), time.Now()); err != nil {
			t.Fatal(err)
		}
		if h := k.Health(); !h.Ready || h.Err != nil {
			t.Errorf("got %+v", h)
		}
		if _, err := k.Identify(mustMint(t, "x").Key.Reveal(), time.Now()); reasonOf(err) != sluice.Unauthenticated {
			t.Error("once loaded, an unknown key is 401")
		}
	})
}

func TestLastSnapshotOutlivesTheSource(t *testing.T) {
	for _, staleMax := range []time.Duration{0, time.Hour} {
		bubble.Test(t, func(t *testing.T) {
			m := mustMint(t, "prod")
			s := &table{records: house(m, nil)}
			failures := 0
			k := startKeeper(t, KeeperOptions{StaleMax: staleMax, Loaded: func(_ *Snapshot, err error) {
				if err != nil {
					failures++
				}
			}}, Records{}, s)
			s.set(nil, true) // it hangs
			time.Sleep(59 * time.Minute)
			if _, err := k.Identify(m.Key.Reveal(), time.Now()); err != nil {
				t.Fatalf("after 59 min: %v", err)
			}
			time.Sleep(2 * time.Minute)
			want := sluice.ReasonNone
			if staleMax > 0 {
				want = sluice.NotReady
			}
			if got := reasonOf(second(k.Identify(m.Key.Reveal(), time.Now()))); got != want {
				t.Errorf("stale_max %v: got %v, want %v", staleMax, got, want)
			}
			if failures != 1 {
				t.Errorf("a row of failures is told %d times", failures)
			}
			s.set(nil, false)
			time.Sleep(5 * time.Second)
			if _, err := k.Identify(m.Key.Reveal(), time.Now()); err != nil {
				t.Errorf("after it came back: %v", err)
			}
		})
	}
}

// A reload of the file waits for no store.
func TestDeclareDoesNotWait(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m := mustMint(t, "prod")
		s := &table{hang: true}
		start := time.Now()
		k := startKeeper(t, KeeperOptions{}, Records{}, s)
		if waited := time.Since(start); waited > MaxPoll {
			t.Errorf("Start waited %v for a source that hangs", waited)
		}
		time.Sleep(MaxPoll)
		synctest.Wait() // the Keeper hangs in Load
		k.Declare(house(m, nil))
		if _, err := k.Identify(m.Key.Reveal(), time.Now()); err != nil {
			t.Error(err)
		}
		if len(k.Declared().Keys) != 1 {
			t.Error("Declared does not tell")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := k.Refresh(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting for the turn ended with %v", err)
		}
	})
}

func TestUnchangedSourceIsNotLoadedAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &table{records: house(mustMint(t, "prod"), nil)}
		k := startKeeper(t, KeeperOptions{Poll: time.Hour}, Records{}, s)
		before := k.Snapshot()
		time.Sleep(time.Minute)
		if s.loads != 1 || k.Snapshot() != before {
			t.Errorf("loaded %d times", s.loads)
		}
		s.write(func(*Records) {})
		time.Sleep(MaxPoll)
		synctest.Wait()
		if s.loads != 2 {
			t.Errorf("a change was not seen within MaxPoll, though Poll asks for longer: %d loads", s.loads)
		}
	})
}

// cW3: a key is rotated with an hour of grace under load: no call fails, all
// calls are the same key's.
func TestRotationUnderLoad(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		old := mustMint(t, "prod")
		fresh, err := MintSecret("prod", old.Ref.ID)
		if err != nil {
			t.Fatal(err)
		}
		s := &table{records: house(old, nil)}
		k := startKeeper(t, KeeperOptions{}, Records{}, s)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var callers sync.WaitGroup
		call := func(m Minted, pause time.Duration) {
			for ctx.Err() == nil {
				p, err := k.Identify(m.Key.Reveal(), time.Now())
				if err != nil || p.Key != old.Ref.ID {
					t.Errorf("a call failed: %+v %v", p, err)
					return
				}
				time.Sleep(pause)
			}
		}
		for i := range 8 {
			callers.Go(func() { call(old, time.Duration(200+i)*time.Millisecond) })
		}
		time.Sleep(10 * time.Second)
		s.write(func(r *Records) {
			r.Keys[0].Secrets = append([]SecretHash(nil), r.Keys[0].Secrets...)
			r.Keys[0].Rotate(fresh.Ref.Hash(Hasher{}), time.Now(), time.Hour)
		})
		if err := k.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range 8 {
			callers.Go(func() { call(fresh, time.Duration(200+i)*time.Millisecond) })
		}
		time.Sleep(59 * time.Minute)
		stop()
		callers.Wait()
		time.Sleep(2 * time.Minute)
		if got := reasonOf(second(k.Identify(old.Key.Reveal(), time.Now()))); got != sluice.KeyExpired {
			t.Errorf("after the grace the old secret gives %v", got)
		}
		if _, err := k.Identify(fresh.Key.Reveal(), time.Now()); err != nil {
			t.Error(err)
		}
	})
}
