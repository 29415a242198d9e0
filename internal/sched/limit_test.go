package sched_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/sched"
)

// TestLimitKeepsItsBounds: whatever it is told, and whatever the clock does, the
// limit stays within its bounds; hints and refusals never raise it; one whose
// bounds meet never moves; time that steps back teaches nothing that it would not
// have taught at the latest moment.
func TestLimitKeepsItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := sched.LimitBounds{
			Min: rapid.Int64Range(1, 8).Draw(t, "min"), Start: rapid.Int64Range(0, 64).Draw(t, "start"),
			Token: rapid.SampledFrom([]time.Duration{0, time.Nanosecond, 20 * time.Millisecond, time.Hour}).Draw(t, "token"),
		}
		b.Max = b.Min + rapid.Int64Range(0, 100).Draw(t, "span")
		var l sched.Limit
		l.SetBounds(b)
		now := time.Unix(1_800_000_000, 0)
		duration := rapid.OneOf(rapid.Just(time.Duration(0)), rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(2*time.Second)).Draw(t, "d"))
		}), rapid.Just(time.Duration(1<<62)))
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(-int64(time.Second), int64(time.Second)).Draw(t, "passes")))
			before := l.Value()
			n := rapid.Int64Range(-1, 2000).Draw(t, "n")
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				l.Overloaded(now, n)
				if l.Value() > before {
					t.Fatalf("a refusal raised the limit from %d to %d", before, l.Value())
				}
			case 1:
				l.Lower(now, n)
				if l.Value() > before || l.Value() < before && l.Value() < min(max(n, b.Min), before) {
					t.Fatalf("a hint to %d took the limit from %d to %d", n, before, l.Value())
				}
			default:
				l.Observe(now, sched.Sample{
					InFlight: n, First: duration.Draw(t, "first"), Start: n, Prefill: sluice.Tokens(rapid.Int64Range(-1, 1<<40).Draw(t, "prefill")),
					Tokens: sluice.Tokens(rapid.Int64Range(-1, 1<<40).Draw(t, "tokens")), Took: duration.Draw(t, "took"), Ended: rapid.Bool().Draw(t, "ended"),
				})
				if b.Min == b.Max && l.Value() != before {
					t.Fatalf("a fixed limit moved from %d to %d", before, l.Value())
				}
			}
			if v := l.Value(); v < b.Min || v > b.Max {
				t.Fatalf("limit %d is outside of %d to %d", v, b.Min, b.Max)
			}
		}
	})
}

// TestLimitGrowsOnlyWhileItBinds.
func TestLimitGrowsOnlyWhileItBinds(t *testing.T) {
	for _, c := range []struct {
		inFlight int64
		grows    bool
	}{{1, false}, {7, false}, {9, true}, {16, true}} {
		var l sched.Limit
		l.SetBounds(sched.LimitBounds{Start: 16, Min: 1, Max: 64})
		now := time.Unix(1_800_000_000, 0)
		for range 400 {
			now = now.Add(25 * time.Millisecond)
			l.Observe(now, sched.Sample{InFlight: c.inFlight, Tokens: 64, Took: 640 * time.Millisecond})
		}
		if grew := l.Value() > 16; grew != c.grows {
			t.Errorf("%d in flight of 16: limit %d", c.inFlight, l.Value())
		}
	}
}

// TestLimitKeepsItsPlaceOverReload: other bounds clamp, and what is learnt stays.
func TestLimitKeepsItsPlaceOverReload(t *testing.T) {
	var l sched.Limit
	l.SetBounds(sched.LimitBounds{Start: 16, Min: 1, Max: 64})
	l.Overloaded(time.Unix(1_800_000_000, 0), 8)
	if got := l.Value(); got != 8 {
		t.Fatalf("limit %d after a refusal with 8 in flight, want 8", got)
	}
	l.SetBounds(sched.LimitBounds{Start: 16, Min: 1, Max: 32})
	if got := l.Value(); got != 8 {
		t.Errorf("limit %d after a reload, want 8", got)
	}
	l.SetBounds(sched.LimitBounds{Start: 4, Min: 4, Max: 4})
	if got := l.Value(); got != 4 || l.Adaptive() {
		t.Errorf("limit %d, adaptive %v, of a fixed 4", got, l.Adaptive())
	}
}
