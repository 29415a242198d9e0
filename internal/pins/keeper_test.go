package pins_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/ladder"
	"sluice/internal/pins"
	"sluice/internal/route"
	"sluice/test/bubble"
)

// table is a store for several keepers, which may be away.
type table struct {
	mu   sync.Mutex
	rows map[sluice.PoolID]pins.Record
	away bool
}

func (s *table) do(f func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return errors.New("away")
	}
	f()
	return nil
}

func (s *table) Pins(_ context.Context, now time.Time) (out []pins.Record, err error) {
	err = s.do(func() {
		for _, p := range slices.Sorted(maps.Keys(s.rows)) {
			if r := s.rows[p]; r.Expires.After(now) {
				out = append(out, r)
			}
		}
	})
	return out, err
}

func (s *table) KeepPin(_ context.Context, _ time.Time, r pins.Record) error {
	return s.do(func() { s.rows[r.Pool] = r })
}

func (s *table) DropPin(_ context.Context, p sluice.PoolID) error {
	return s.do(func() { delete(s.rows, p) })
}

func (s *table) leave(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

// replica is an engine with a keeper, as a gateway has them.
type replica struct {
	*pins.Keeper
	t     *testing.T
	mu    sync.Mutex
	eng   *engine.Engine
	moves int
}

func tableOf(mode ladder.Mode) *route.Table {
	return &route.Table{Pools: map[sluice.PoolID]*route.Pool{"chat": {
		ID: "chat", Ladder: ladder.Default(mode), Backends: []*route.Backend{{ID: "b", Dialect: "openai", Weight: 1, Capacity: route.Capacity{Concurrency: 1}}},
	}}}
}

func start(t *testing.T, s *table) *replica {
	t.Helper()
	r := &replica{t: t, eng: engine.New(engine.Config{Table: tableOf(ladder.Act)})}
	r.Keeper = pins.New(pins.Options{Store: s, Operate: r.operate, Shared: func() bool { return true }})
	if err := r.Load(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	r.Start(t.Context())
	t.Cleanup(r.Close)
	return r
}

func (r *replica) operate(o engine.Order) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed, err := r.eng.Operate(time.Now(), o)
	r.eng.Advance(time.Now())
	r.moves += len(r.eng.TierChanges())
	return changed, err
}

func (r *replica) swap(mode ladder.Mode) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := r.eng.Prepare(tableOf(mode))
	if err != nil {
		r.t.Fatal(err)
	}
	r.eng.Swap(time.Now(), p)
}

// pin is what is in force, nil if there is none.
func (r *replica) pin() *ladder.Pin {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.eng.Advance(time.Now())
	if l := r.eng.Dump(time.Now(), engine.Zoom{}, 9).Pools[0].Ladder; l != nil {
		return l.Pin
	}
	return nil
}

func (r *replica) moved() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.moves
}

func (r *replica) want(tier ladder.Tier, author string) {
	r.t.Helper()
	if p := r.pin(); p == nil || p.Tier != tier || p.Author != author {
		r.t.Errorf("in force is %+v, want tier %v of %s", p, tier, author)
	}
}

func (r *replica) order(tier ladder.Tier, author string, d time.Duration) (kept bool) {
	r.t.Helper()
	_, kept, err := r.Order(r.t.Context(), engine.Order{Pool: "chat", Pin: &ladder.Pin{Tier: tier, Author: author, Reason: "drill", Expires: time.Now().Add(d)}})
	if err != nil {
		r.t.Fatal(err)
	}
	return kept
}

// A pin outlasts a restart, with its author, reason and expiry, and ends when it was to.
func TestPinOutlastsARestart(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &table{rows: map[sluice.PoolID]pins.Record{}}
		first := start(t, s)
		if !first.order(ladder.Defer, "ann", 10*time.Minute) {
			t.Error("it is not recorded")
		}
		given := *first.pin()
		first.Close()
		time.Sleep(4 * time.Minute)
		second := start(t, s)
		if p := second.pin(); p == nil || p.Tier != ladder.Defer || p.Author != "ann" || p.Reason != "drill" || !p.At.Equal(given.At) || !p.Expires.Equal(given.Expires) {
			t.Fatalf("in force is %+v, want %+v", p, given)
		}
		second.order(ladder.Defer, "ann", 6*time.Minute)
		time.Sleep(7 * time.Minute)
		if p := second.pin(); p != nil {
			t.Errorf("it has not ended: %+v", p)
		}
		second.Close()
		if p := start(t, s).pin(); p != nil {
			t.Errorf("a restart brings back what was over: %+v", p)
		}
	})
}

// Replicas of one store have the same pins, and looks that find nothing new move nothing.
func TestPinsAreShared(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &table{rows: map[sluice.PoolID]pins.Record{}}
		a, b := start(t, s), start(t, s)
		settle := func() { time.Sleep(2 * pins.DefaultPoll); synctest.Wait() }
		a.order(ladder.Defer, "ann", time.Hour)
		settle()
		b.want(ladder.Defer, "ann")
		b.order(ladder.None, "bob", time.Hour)
		settle()
		a.want(ladder.None, "bob")
		before := a.moved()
		time.Sleep(time.Minute)
		if n := a.moved() - before; n != 0 {
			t.Errorf("%d moves while nothing happens", n)
		}
		if changed, kept, err := a.Order(t.Context(), engine.Order{Pool: "chat", Unpin: true}); !changed || !kept || err != nil {
			t.Errorf("unpinned: %v, %v, %v", changed, kept, err)
		}
		settle()
		if p := b.pin(); p != nil {
			t.Errorf("elsewhere in force is %+v", p)
		}
	})
}

// Without its store a gateway takes orders, says that they are not recorded, and records
// them when it is back.
func TestPinsWithoutTheStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &table{rows: map[sluice.PoolID]pins.Record{}}
		a, b := start(t, s), start(t, s)
		a.order(ladder.Clamp, "ann", time.Hour)
		time.Sleep(2 * pins.DefaultPoll)
		s.leave(true)
		if a.order(ladder.Shed, "ann", time.Hour) {
			t.Error("it is recorded where nothing answers")
		}
		time.Sleep(time.Minute)
		a.want(ladder.Shed, "ann")
		b.want(ladder.Clamp, "ann")
		s.leave(false)
		time.Sleep(3 * pins.DefaultPoll)
		a.want(ladder.Shed, "ann")
		b.want(ladder.Shed, "ann")
	})
}

// What cannot be in force is refused and not recorded; and what a configuration has taken
// off is back with the ladder.
func TestPinsFollowTheConfiguration(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &table{rows: map[sluice.PoolID]pins.Record{}}
		a := start(t, s)
		if _, _, err := a.Order(t.Context(), engine.Order{Pool: "none", Pin: &ladder.Pin{Tier: 1, Author: "ann", Reason: "drill", Expires: time.Now().Add(time.Hour)}}); err == nil || len(s.rows) > 0 {
			t.Errorf("a pool that there is not: %v, %v", err, s.rows)
		}
		a.order(ladder.Defer, "ann", time.Hour)
		a.swap(ladder.Off)
		time.Sleep(time.Minute)
		if p := a.pin(); p != nil {
			t.Errorf("in force without a ladder: %+v", p)
		}
		a.swap(ladder.Act)
		a.Again()
		synctest.Wait()
		a.want(ladder.Defer, "ann")
	})
}
