package route

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
)

// Whatever the figures: what comes first is as good as the best, all are still there,
// what is alike keeps its order, and to sort again changes nothing.
func TestPreferenceSorts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		by := rapid.SampledFrom([]Prefer{PreferLatency, PreferPrice}).Draw(t, "by")
		n := rapid.IntRange(1, 6).Draw(t, "pools")
		figures, ids := make([]Figure, n), make([]int, n)
		for i := range n {
			figures[i] = Figure{
				Time: time.Duration(rapid.Int64Range(0, 2000).Draw(t, "ms")) * time.Millisecond, Known: rapid.Bool().Draw(t, "known"),
				Price: sluice.Nano(rapid.Int64Range(0, 9).Draw(t, "price")),
			}
			ids[i] = i
		}
		before := slices.Clone(figures)
		sort := func() {
			by.Sort(figures, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		}
		sort()
		for i, id := range ids {
			if figures[i] != before[id] {
				t.Fatalf("figure %d is not that of what was swapped: %v of %v", i, figures, before)
			}
			if best := by.Best(figures[i:]); by.Worse(figures[i], best) {
				t.Fatalf("%v comes before better ones: %v", figures[i], figures[i:])
			}
			for j := range i {
				if ids[j] > id && !by.Worse(before[id], by.Best(figures[j:])) {
					t.Fatalf("%d came before %d, is as good as the best, and comes after it now: %v", id, ids[j], ids)
				}
			}
		}
		after := slices.Clone(ids)
		if sort(); !slices.Equal(ids, after) {
			t.Fatalf("sorted again: %v, was %v", ids, after)
		}
	})
}

// Times that differ by less than the band are alike, prices only where they are equal,
// and what nobody knows anything of is as good as the best.
func TestPreferenceBands(t *testing.T) {
	at := func(d time.Duration) Figure { return Figure{Time: d, Known: true} }
	best := at(time.Second)
	for _, tt := range []struct {
		by    Prefer
		f     Figure
		worse bool
	}{
		{PreferLatency, at(time.Second + 275*time.Millisecond), false},
		{PreferLatency, at(time.Second + 276*time.Millisecond), true},
		{PreferLatency, Figure{Time: math.MaxInt64}, false},
		{PreferPrice, Figure{Price: 1}, true},
		{PreferPrice, at(time.Hour), false},
		{PreferNone, Figure{Time: time.Hour, Known: true, Price: 9}, false},
	} {
		if got := tt.by.Worse(tt.f, best); got != tt.worse {
			t.Errorf("%v of %+v: worse is %v, want %v", tt.by, tt.f, got, tt.worse)
		}
	}
}

// A place learns the time to its first token beyond its prefill, and that of a token,
// and forgets both.
func TestPlaceLearnsItsPace(t *testing.T) {
	now := time.Unix(0, 0)
	p := &Place{Backend: &Backend{ID: "b", Weight: 1, Capacity: Capacity{Concurrency: 9, PrefillRate: 1000}}}
	if f := p.Expected(now, 500, 100); f.Known || f.Time != 500*time.Millisecond {
		t.Errorf("of a new place: %+v", f)
	}
	for range 10 {
		taken := take(p, now, Need{KV: 100, Prefill: 1000})
		now = now.Add(1200 * time.Millisecond) // one second of it is prefill
		p.Progressed(now, &taken, 1, 1)
		p.Answered(&taken)
		now = now.Add(640 * time.Millisecond)
		p.Completed(now, &taken, 65, 1)
		p.Give(&taken)
	}
	if f := p.Expected(now, 500, 100); !f.Known || f.Time != 500*time.Millisecond+200*time.Millisecond+time.Second {
		t.Errorf("got %+v, want 500ms of prefill, 200ms and 100 tokens of 10ms", f)
	}
	if f := p.Expected(now.Add(PaceKept+time.Second), 0, 100); f.Known || f.Time != 0 {
		t.Errorf("long after: %+v", f)
	}
}
