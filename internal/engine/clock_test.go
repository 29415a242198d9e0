package engine_test

import (
	"testing"
	"time"
	"unsafe"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/route"
)

// set moves the wall clock of a moment and leaves its monotonic reading: what the
// process sees when its clock is set. There is no other way to make such a moment
// than to know how package time keeps one; the test checks that it still does.
func set(t time.Time, by time.Duration) time.Time {
	m := *(*struct {
		wall uint64 // 1 bit: has a monotonic reading; 33 bits: seconds; 30 bits: nanoseconds
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&t))
	m.wall += uint64(int64(by/time.Second)) << 30
	return *(*time.Time)(unsafe.Pointer(&m))
}

// jumps are how a clock is set: by hand, by NTP after a long sleep, by a machine
// that believed in local time when summer ended.
var jumps = []time.Duration{-time.Hour, 24 * time.Hour, -24 * time.Hour, time.Second, -time.Second, 365 * 24 * time.Hour}

// clock is the middle of a day, so that a jump of an hour stays in it.
func clock(t *testing.T) time.Time {
	t.Helper()
	now := time.Now()
	noon := time.Date(now.Year(), now.Month(), 15, 12, 0, 0, 0, time.UTC)
	now = set(now, noon.Sub(now.Round(0)).Truncate(time.Second))
	for _, by := range jumps {
		if s := set(now, by); s.Sub(now) != 0 || s.Round(0).Sub(now.Round(0)) != by {
			t.Fatalf("package time keeps a moment in another way: %v became %v", now, s)
		}
	}
	return now
}

// A clock that is set refills no bucket: only time that has passed does.
func TestFault_T1_ClockSetRefillsNothing(t *testing.T) {
	for _, by := range jumps {
		r := newRig(t, outputAt(0), policy(false, sluice.ScopeKey, sluice.Limit{Dimension: sluice.Requests, Window: sluice.PerMinute, Amount: 2}))
		r.now = clock(t)
		for range 2 {
			r.settle(r.mustCall(sluice.Work{}), 1, 1, 0)
		}
		r.now = set(r.now, by)
		if _, err := r.call(sluice.Work{}); err == nil || err.RetryAfter != 30*time.Second {
			t.Errorf("clock set by %v: got %v, want a refusal of 30 s", by, err)
		}
		r.now = r.now.Add(30 * time.Second)
		r.settle(r.mustCall(sluice.Work{}), 1, 1, 0)
		if _, err := r.call(sluice.Work{}); err == nil {
			t.Errorf("clock set by %v: a second request after 30 s", by)
		}
		r.now = set(r.now, -by)
		if _, err := r.call(sluice.Work{}); err == nil {
			t.Errorf("clock set by %v and back: admitted", by)
		}
	}
}

// It expires no hold and no wait, and wakes nobody at the wrong time.
func TestFault_T1_ClockSetExpiresNothing(t *testing.T) {
	for _, by := range jumps {
		r := newRig(t, outputAt(0), policy(false, sluice.ScopeKey, sluice.Limit{Dimension: sluice.Concurrency, Amount: 1}))
		r.now = clock(t)
		runs := r.mustCall(sluice.Work{})
		waits := engine.Call{
			ID: "waits", Model: "m", Dialect: "openai", MaxWait: 10 * time.Second,
			Principal: sluice.Principal{Tenant: "acme", Project: sluice.DefaultProject, Key: "k", Policy: r.policy},
		}
		if v := r.eng.Arrive(r.now, waits); v.Err != nil {
			t.Fatal(v.Err)
		}
		r.now = set(r.now, by)
		if ended := r.eng.Advance(r.now); len(ended) != 0 {
			t.Errorf("clock set by %v: %+v", by, ended[0].Err)
		}
		if at, ok := r.eng.NextWake(); !ok || at.Sub(r.now) != 10*time.Second {
			t.Errorf("clock set by %v: it wakes in %v, want 10 s", by, at.Sub(r.now))
		}
		r.now = r.now.Add(10 * time.Second)
		if ended := r.eng.Advance(r.now); len(ended) != 1 || ended[0].ID != "waits" || ended[0].Err == nil {
			t.Errorf("clock set by %v: after its 10 s %+v", by, ended)
		}
		if err := r.settle(runs, 1, 1, 0); err != nil {
			t.Errorf("clock set by %v: the hold is gone: %v", by, err)
		}
	}
}

// A budget's window is one of the calendar, so a clock that is set forward opens
// the next one, once: set back, it stays open until the calendar has reached it,
// and what is spent then is spent in it. What was held is charged to its own.
func TestFault_T1_ClockSetAndBudgets(t *testing.T) {
	day := sluice.Limit{Dimension: sluice.Spend, Window: sluice.PerDay, Amount: int64(sluice.Dollar)}
	for _, by := range jumps {
		r := newRig(t, outputAt(1), policy(true, sluice.ScopeTenant, day))
		r.now = clock(t)
		today := r.now
		spend := func(now time.Time) sluice.Nano {
			r.now = now
			g, err := r.call(sluice.Work{OutputBound: 600_000, OutputHold: 600_000})
			if err != nil {
				return 0
			}
			cost := g.HeldSpend
			if err := r.settle(g, 0, 600_000, cost); err != nil {
				t.Error(err)
			}
			return cost
		}
		all := func(now time.Time) (sum sluice.Nano) {
			for {
				c := spend(now)
				if c == 0 {
					return sum
				}
				sum += c
			}
		}
		first := all(today)
		second := all(set(today, by))
		third := all(today.Add(time.Second))
		fourth := all(set(today.Add(time.Minute), by))
		if first == 0 || first > sluice.Dollar || third != 0 || fourth != 0 {
			t.Errorf("clock set by %v and back, twice: spent %v, %v, %v, %v", by, first, second, third, fourth)
		}
		if next := by >= 24*time.Hour; next != (second > 0) || second > sluice.Dollar {
			t.Errorf("clock set by %v: spent %v more", by, second)
		}
	}
}

// narrow is an engine with one slot that is taken.
func narrow(t *testing.T, now time.Time) (*engine.Engine, func(now time.Time, id sluice.RequestID, wait time.Duration)) {
	b := &route.Backend{ID: "b", Dialect: "openai", Weight: 1, Price: outputAt(0), Capacity: route.Capacity{Concurrency: 1}}
	eng := engine.New(engine.Config{Table: &route.Table{
		Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"a"}}},
		Pools:  map[sluice.PoolID]*route.Pool{"a": {ID: "a", Backends: []*route.Backend{b}}},
	}})
	arrive := func(now time.Time, id sluice.RequestID, wait time.Duration) {
		t.Helper()
		v := eng.Arrive(now, engine.Call{ID: id, Model: "m", Dialect: "openai", MaxWait: wait, Principal: sluice.Principal{Tenant: "t", Key: "k"}})
		if v.Err != nil {
			t.Fatal(v.Err)
		}
	}
	arrive(now, "first", 0)
	if g := eng.Advance(now); len(g) != 1 || g[0].Err != nil {
		t.Fatalf("got %v, want a place", g)
	}
	return eng, arrive
}

// A clock that is set changes no place in a queue and nobody's deadline.
func TestFault_T1_ClockSetKeepsTheQueue(t *testing.T) {
	for _, by := range jumps {
		now := clock(t)
		eng, arrive := narrow(t, now)
		arrive(now, "second", time.Minute)
		now = set(now, by)
		arrive(now, "third", time.Minute)
		if g := eng.Advance(now); len(g) != 0 {
			t.Fatalf("clock set by %v: %v ends", by, g[0].ID)
		}
		if err := eng.Settle(now, "first", engine.Actual{}); err != nil {
			t.Fatal(err)
		}
		if g := eng.Advance(now); len(g) != 1 || g[0].ID != "second" || g[0].Err != nil {
			t.Errorf("clock set by %v: got %v, want a place for the second", by, g)
		}
		if at, ok := eng.NextWake(); !ok || at.Sub(now) != time.Minute {
			t.Errorf("clock set by %v: wakes in %v, want a minute", by, at.Sub(now))
		}
	}
}

// A place that comes after a deadline is not for the one that waited.
func TestLatePlace(t *testing.T) {
	eng, arrive := narrow(t, start)
	arrive(start, "late", time.Second)
	arrive(start, "patient", time.Minute)
	now := start.Add(2 * time.Second)
	if err := eng.Settle(now, "first", engine.Actual{}); err != nil {
		t.Fatal(err)
	}
	got := map[sluice.RequestID]bool{}
	for _, g := range eng.Advance(now) {
		got[g.ID] = g.Err == nil
	}
	if late, ok := got["late"]; !ok || late || !got["patient"] {
		t.Errorf("got %v, want an end without a place for the late one and a place for the other", got)
	}
}
