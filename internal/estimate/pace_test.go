package estimate

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
)

var place = Place{Backend: "gpu-a", Model: "m"}

// engine makes answers at a known pace.
type engine struct {
	wait, each time.Duration
	jitter     float64 // of both, to either side
	rng        *rand.Rand
}

func newEngine(wait, each time.Duration, jitter float64) *engine {
	return &engine{wait, each, jitter, rand.New(rand.NewPCG(1, 2))}
}

func (e *engine) at(n sluice.Tokens) time.Duration {
	d := e.wait + time.Duration(n)*e.each
	return time.Duration(float64(d) * (1 + e.jitter*(2*e.rng.Float64()-1)))
}

// answer makes one of n tokens, hidden ones first.
func (e *engine) answer(n, hidden sluice.Tokens, stream bool) Timing {
	t := Timing{Output: n, Hidden: hidden, Whole: e.at(n)}
	if stream {
		t.FirstOutput = hidden + 1
		t.First = min(e.at(t.FirstOutput), t.Whole)
	}
	return t
}

func TestPaceIsLearned(t *testing.T) {
	for name, tt := range map[string]struct {
		stream bool
		hidden sluice.Tokens
		length func(*rand.Rand) sluice.Tokens
	}{
		"streams":                      {true, 0, func(r *rand.Rand) sluice.Tokens { return sluice.Tokens(20 + r.IntN(500)) }},
		"streams of one length":        {true, 0, func(*rand.Rand) sluice.Tokens { return 300 }},
		"in one piece":                 {false, 0, func(r *rand.Rand) sluice.Tokens { return sluice.Tokens(20 + r.IntN(500)) }},
		"streams that think in hiding": {true, 400, func(r *rand.Rand) sluice.Tokens { return sluice.Tokens(450 + r.IntN(500)) }},
	} {
		m, e := New(Options{}), newEngine(800*time.Millisecond, 10*time.Millisecond, 0.05)
		for range 100 {
			m.ObservePace(place, e.answer(tt.length(e.rng), tt.hidden, tt.stream))
		}
		for _, want := range []sluice.Tokens{0, 50, 200, 450} {
			after := e.wait + time.Duration(want)*e.each
			got, ok := m.Generated(place, after)
			if off := got - want; !ok || max(off, -off) > 5+want/12 {
				t.Errorf("%s: %d tokens after %v (%v), want %d", name, got, after, ok, want)
			}
		}
		if got, _ := m.Generated(place, 300*time.Millisecond); got != 0 {
			t.Errorf("%s: %d tokens long before the first", name, got)
		}
		if m.Hides(place) != (tt.hidden > 0) {
			t.Errorf("%s: hides %v", name, m.Hides(place))
		}
	}
}

// Answers in one piece, all of one length, do not tell the wait from the pace.
func TestPaceWithoutASlope(t *testing.T) {
	m := New(Options{})
	for range 20 {
		m.ObservePace(place, Timing{Output: 100, Whole: 2 * time.Second})
	}
	for after, want := range map[time.Duration]sluice.Tokens{0: 0, time.Second: 50, 3 * time.Second: 150} {
		if got, ok := m.Generated(place, after); !ok || got != want {
			t.Errorf("%d after %v, want %d", got, after, want)
		}
	}
}

func TestPaceOfANewBackendIsItsModels(t *testing.T) {
	m, e := New(Options{}), newEngine(100*time.Millisecond, 10*time.Millisecond, 0)
	if _, ok := m.Generated(place, time.Second); ok || m.Hides(place) {
		t.Error("something is known of nothing")
	}
	for range 3 {
		m.ObservePace(place, e.answer(100, 0, true))
	}
	if _, ok := m.Generated(place, time.Second); ok {
		t.Error("six points are enough")
	}
	m.ObservePace(place, e.answer(50, 0, true))
	other := Place{Backend: "gpu-b", Model: "m"}
	if got, ok := m.Generated(other, 600*time.Millisecond); !ok || got != 50 {
		t.Errorf("got %d, %v, want the model's 50", got, ok)
	}
	slow := newEngine(100*time.Millisecond, 40*time.Millisecond, 0)
	for range 4 {
		m.ObservePace(other, slow.answer(100, 0, true))
	}
	if got, _ := m.Generated(other, 2100*time.Millisecond); got != 50 {
		t.Errorf("got %d, want its own 50", got)
	}
	if got, _ := m.Generated(place, 600*time.Millisecond); got != 50 {
		t.Errorf("got %d of the first, want 50 still", got)
	}
	if _, ok := m.Generated(Place{Backend: "gpu-a", Model: "another"}, time.Second); ok {
		t.Error("another model is known")
	}
}

// A backend that hung once is no slow one, but one that has become slow is
// believed soon.
func TestPaceBelievesHabits(t *testing.T) {
	m, e := New(Options{}), newEngine(100*time.Millisecond, 10*time.Millisecond, 0)
	length := func() sluice.Tokens { return sluice.Tokens(50 + e.rng.IntN(200)) }
	for range 50 {
		m.ObservePace(place, e.answer(length(), 0, true))
	}
	m.ObservePace(place, Timing{Output: 3, Whole: 30 * time.Minute})
	if got, _ := m.Generated(place, 1100*time.Millisecond); got < 95 || got > 105 {
		t.Errorf("after one that hung: %d, want about 100", got)
	}
	e.each = 50 * time.Millisecond
	for range 100 {
		m.ObservePace(place, e.answer(length(), 0, true))
	}
	if got, _ := m.Generated(place, 5100*time.Millisecond); got < 90 || got > 110 {
		t.Errorf("after it became slow: %d, want about 100", got)
	}
}

// Whatever comes in, what comes out is a number of tokens that never falls with
// time.
func TestPaceIsSane(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := New(Options{Keys: 2})
		tokens := rapid.OneOf(rapid.Int64Range(0, 2000), rapid.Int64())
		span := rapid.OneOf(rapid.Int64Range(0, 1e11), rapid.Int64())
		for range rapid.IntRange(0, 120).Draw(t, "answers") {
			m.ObservePace(place, Timing{
				Output: sluice.Tokens(tokens.Draw(t, "output")), Hidden: sluice.Tokens(tokens.Draw(t, "hidden")), Whole: time.Duration(span.Draw(t, "whole")),
				First: time.Duration(span.Draw(t, "first")), FirstOutput: sluice.Tokens(tokens.Draw(t, "firstOutput")),
			})
		}
		before := sluice.Tokens(0)
		for _, after := range []time.Duration{-1, 0, 1, time.Millisecond, time.Second, time.Minute, time.Hour, 1<<63 - 1} {
			got, ok := m.Generated(place, after)
			if got < before || got > maxOutput || !ok && got != 0 {
				t.Fatalf("%d tokens after %v, %d before", got, after, before)
			}
			before = got
		}
	})
}

func TestMulDiv(t *testing.T) {
	for _, tt := range []struct{ a, b, c, want int64 }{
		{7, 3, 2, 10},
		{-7, 3, 2, -10},
		{0, 5, 1, 0},
		{1 << 40, 1 << 40, 1 << 30, 1 << 50},
		{1 << 62, 1 << 62, 1, 1 << 62},
		{-1 << 62, 1 << 62, 3, -1 << 62},
	} {
		if got := mulDiv(tt.a, tt.b, tt.c); got != tt.want {
			t.Errorf("%d × %d ÷ %d: got %d, want %d", tt.a, tt.b, tt.c, got, tt.want)
		}
	}
}

// An answer that has come far is expected to be one of the long ones.
func TestRemaining(t *testing.T) {
	m, k := New(Options{}), key("acme", "m", "")
	if got := m.Remaining(k, 0, 1000); got != 256 {
		t.Errorf("cold: got %d, want 256", got)
	}
	for i := range 100 {
		m.ObserveOutput(k, sluice.Tokens(10+i%2*990))
	}
	expected, _ := m.Output(k, 4000)
	for _, tt := range []struct{ least, bound, low, high sluice.Tokens }{
		{0, 4000, expected, expected},
		{10, 4000, expected, expected},
		{11, 4000, 940, 1060},
		{1020, 4000, 1020, 1030},
		{3000, 4000, 3000, 3000},
		{11, 500, 500, 500},
		{600, 500, 500, 500},
		{5, 0, 0, 0},
	} {
		if got := m.Remaining(k, tt.least, tt.bound); got < tt.low || got > tt.high {
			t.Errorf("from %d within %d: got %d, want %d to %d", tt.least, tt.bound, got, tt.low, tt.high)
		}
	}
}

// Of answers that are given up after a time that says nothing of their length the
// ends are never seen: what is learned all the same is how long they were.
func TestCutAnswersTeach(t *testing.T) {
	for _, tt := range []struct {
		name string
		draw func(*rand.Rand) sluice.Tokens
		off  float64 // in per cent
	}{
		{"even", func(r *rand.Rand) sluice.Tokens { return 20 + sluice.Tokens(r.IntN(300)) }, 3},
		// Of more than the longest that is remembered nothing is known.
		{"wide", func(r *rand.Rand) sluice.Tokens { return 1 + sluice.Tokens(r.ExpFloat64()*400) }, 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, k, r := New(Options{}), key("acme", "m", "task"), rand.New(rand.NewPCG(5, 6))
			var longest sluice.Tokens
			for range 100 {
				n := tt.draw(r)
				m.ObserveOutput(k, n)
				longest = max(longest, n)
			}
			var charged, want, all, calls sluice.Tokens
			for range 3000 {
				n, cut := tt.draw(r), sluice.Tokens(r.IntN(int(longest)))
				all, calls = all+n, calls+1
				if n <= cut {
					m.ObserveOutput(k, n)
					continue
				}
				charged += m.Remaining(k, cut, 1<<20)
				want += n
				m.ObserveCut(k, cut, 1<<20)
			}
			off := 100 * float64(charged-want) / float64(want)
			mean, _ := m.Output(k, 1<<20)
			meanOff := 100 * (float64(mean*calls)/float64(all) - 1)
			t.Logf("cut answers are charged %+.1f %% off, the mean of all is %+.1f %% off", off, meanOff)
			if max(off, -off) > tt.off || max(meanOff, -meanOff) > tt.off {
				t.Errorf("cut answers are charged %+.1f %% off, the mean of all is %+.1f %% off", off, meanOff)
			}
		})
	}
}
