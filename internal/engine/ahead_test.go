package engine_test

import (
	"errors"
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
)

// TestAhead: who gets the place that a request gives back is known before it has it, so
// that it is in the caches by then.
func TestAhead(t *testing.T) {
	const decisions = 2000
	for _, tenants := range []int{1, 20, 400} {
		b, right := newBacklog(t, tenants, 400, 1000), 0
		for range decisions {
			last := b.head % len(b.running)
			b.decide(t)
			if b.e.Ahead() == b.running[last].id {
				right++
			}
		}
		if right < decisions*95/100 {
			t.Errorf("of %d tenants, the next was known %d times of %d", tenants, right, decisions)
		}
	}
}

// TestHandle: what is kept of a request that has ended, or whose memory is another's by
// now, finds nothing but what its id does.
func TestHandle(t *testing.T) {
	e, calls := busyEngine(2)
	now := start
	begin := func(i int) engine.Grant {
		t.Helper()
		if v := e.Arrive(now, calls[i]); v.Err != nil {
			t.Fatal(v.Err)
		}
		g := e.Advance(now)
		if len(g) != 1 || g[0].Err != nil {
			t.Fatalf("%+v", g)
		}
		return g[0]
	}
	settle := func(id sluice.RequestID, h engine.Handle, want error) {
		t.Helper()
		open := e.Open()
		if err := e.Settle(now, id, engine.Actual{Handle: h}); !errors.Is(err, want) {
			t.Errorf("settling %s: %v, want %v", id, err, want)
		}
		e.Advance(now)
		if want == nil {
			open--
		}
		if e.Open() != open {
			t.Errorf("%d are open, want %d", e.Open(), open)
		}
	}
	first := begin(0)
	settle(calls[0].ID, first.Handle, nil)
	settle(calls[0].ID, first.Handle, engine.ErrSettled)

	second := begin(1)
	if second.Handle != first.Handle {
		t.Fatal("the memory of a request was not used again")
	}
	settle(calls[0].ID, first.Handle, engine.ErrSettled) // which is the second's
	settle(calls[1].ID, engine.Handle{}, nil)
	settle(calls[1].ID, second.Handle, engine.ErrSettled)

	third := begin(0)
	now = now.Add(time.Hour)
	if g := e.Advance(now); len(g) != 1 || g[0].Err == nil || g[0].Err.Reason != sluice.HoldExpired {
		t.Fatalf("%+v, want an expiry", g)
	}
	settle(calls[0].ID, third.Handle, engine.ErrLate)
	settle(calls[0].ID, third.Handle, engine.ErrSettled)
}
