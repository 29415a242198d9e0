package demand

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

// event is one thing that happened to a request, as the model keeps it.
type event struct {
	at   time.Duration
	kind Kind
	work Work
}

// A meter tells what a list of all events would: what came since the window began, and
// what waited then.
func TestMeterAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var m Meter
		var waiting []event
		var offered, left []event
		now := time.Duration(0)
		m.Tick(start)
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now += time.Duration(rapid.Int64Range(0, int64(4*time.Second)).Draw(t, "later"))
			if rapid.IntRange(0, 30).Draw(t, "pause") == 0 {
				now += time.Duration(rapid.Int64Range(0, int64(3*time.Minute)).Draw(t, "long"))
			}
			at := start.Add(now)
			switch n := len(waiting); {
			case n == 0 || rapid.Bool().Draw(t, "arrives"):
				e := event{at: now, kind: Kind(rapid.IntRange(0, 1).Draw(t, "kind"))}
				for i := range e.work {
					e.work[i] = rapid.Int64Range(0, 20_000).Draw(t, "work")
				}
				m.Offer(at, e.kind, &e.work)
				waiting, offered = append(waiting, e), append(offered, e)
			default:
				i := rapid.IntRange(0, n-1).Draw(t, "which")
				e := waiting[i]
				waiting = append(waiting[:i], waiting[i+1:]...)
				if rapid.IntRange(0, 4).Draw(t, "retracts") == 0 {
					m.Retract(at, e.kind, &e.work)
					for k := range offered {
						if offered[k] == e {
							offered = append(offered[:k], offered[k+1:]...)
							break
						}
					}
					break
				}
				m.Leave(at, e.kind, &e.work)
				e.at = now
				left = append(left, e)
			}
			for _, window := range []time.Duration{Short, Long} {
				for _, batch := range []bool{false, true} {
					want := naive(offered, left, now, window, batch)
					got := m.Rates(at, window, batch)
					for i := range got {
						if d := got[i] - want[i]; d < -1 || d > 1 { // two kinds are rounded apart
							t.Fatalf("at %v, window %v, batch %v, axis %d: %d, want %d", now, window, batch, i, got[i], want[i])
						}
					}
				}
			}
		}
	})
}

// naive is what the package documentation says.
func naive(offered, left []event, now, window time.Duration, batch bool) (r Rates) {
	from := max(now.Truncate(time.Second)-window, 0)
	passed := max(now-from, window)
	var sum Work
	for _, e := range offered {
		if batch || e.kind == Urgent {
			sum.add(&e.work, 1)
		}
	}
	for _, e := range left {
		if (batch || e.kind == Urgent) && e.at < from {
			sum.add(&e.work, -1)
		}
	}
	for i := range r {
		r[i] = mulDiv(sum[i], 1_000_000*int64(time.Second), int64(passed))
	}
	return r
}

// What waits is asked for until it is served; what was refused, only as it came.
func TestBacklogIsDemand(t *testing.T) {
	t.Parallel()
	var m Meter
	w := Work{Requests: 1, Uncached: 60_000}
	m.Offer(start, Urgent, &w)
	refused := Work{Requests: 1, Uncached: 1_000_000}
	m.Offer(start, Urgent, &refused)
	m.Leave(start, Urgent, &refused)
	later := start.Add(time.Hour)
	if got := m.Rates(later, Long, false)[Uncached]; got != 1_000*1_000_000 {
		t.Errorf("60,000 tokens that wait since an hour ask for %d millionths a second, want 1,000 tokens a second", got)
	}
	m.Leave(later, Urgent, &w)
	if got := m.Rates(later.Add(2*time.Minute), Long, false)[Uncached]; got != 0 {
		t.Errorf("when nothing waits, %d is asked for", got)
	}
}

// A correction of what turned out to be cached lowers both sides, so that nothing is
// negative later.
func TestCorrect(t *testing.T) {
	t.Parallel()
	var m Meter
	w := Work{Requests: 1, Uncached: 10_000}
	m.Offer(start, Urgent, &w)
	m.Leave(start.Add(30*time.Second), Urgent, &w)
	m.Correct(start.Add(30*time.Second), Urgent, &Work{Uncached: 9_000})
	if got := m.Rates(start.Add(30*time.Second), Short, false)[Uncached]; got != 1000*1_000_000/10 {
		t.Errorf("1,000 uncached tokens are asked for as %d millionths a second, want 100 tokens a second", got)
	}
	for s := range 200 {
		if r := m.Rates(start.Add(time.Duration(31+s)*time.Second), Long, false); r[Uncached] < 0 {
			t.Fatalf("%d s later %d", s, r[Uncached])
		}
	}
}

// The peak is kept for the stabilisation window, and no longer than a part more.
func TestPeakIsKept(t *testing.T) {
	t.Parallel()
	var m Meter
	m.Stabilise(start, 5*time.Minute)
	w := Work{Requests: 1, Output: 6_000}
	for s := range 60 {
		at := start.Add(time.Duration(s) * time.Second)
		m.Offer(at, Urgent, &w)
		m.Leave(at, Urgent, &w)
	}
	until := time.Duration(0)
	for s := 60; s < 1000; s++ {
		if top, _ := m.Peak(start.Add(time.Duration(s)*time.Second), false); top[Output] >= 5_900*1_000_000 {
			until = time.Duration(s) * time.Second
		}
	}
	if until < 6*time.Minute || until > 6*time.Minute+10*time.Second {
		t.Errorf("the peak of the first minute is kept until %v, want a little more than 5 minutes from its end", until)
	}
}

func TestNoAllocation(t *testing.T) {
	var m Meter
	m.Stabilise(start, 5*time.Minute)
	w, at := Work{1, 2, 3, 4, 5}, start
	if n := testing.AllocsPerRun(1000, func() {
		at = at.Add(700 * time.Millisecond)
		m.Offer(at, Urgent, &w)
		m.Leave(at, Urgent, &w)
	}); n != 0 {
		t.Errorf("an event allocates %v times", n)
	}
}

func BenchmarkOffer(b *testing.B) {
	var m Meter
	m.Stabilise(start, 5*time.Minute)
	w, at := Work{1, 2, 3, 4, 5}, start
	b.ReportAllocs()
	for b.Loop() {
		at = at.Add(100 * time.Microsecond)
		m.Offer(at, Urgent, &w)
		m.Leave(at, Urgent, &w)
	}
}
