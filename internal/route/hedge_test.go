package route

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
)

// TestLatency: a percentile is at least the true one of what was observed, and at most
// an eighth more.
func TestLatency(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Latency
		seen := rapid.SliceOfN(rapid.Int64Range(int64(time.Millisecond), int64(20*time.Minute)), 0, latencyWindow-1).Draw(t, "seen")
		for _, d := range seen {
			l.Observe(time.Duration(d))
		}
		permille := rapid.Int64Range(MinHedgePermille, MaxHedgePermille).Draw(t, "permille")
		got, known := l.Within(permille)
		if known != (len(seen) >= LatencySamples) {
			t.Fatalf("known: %v of %d", known, len(seen))
		}
		if !known {
			return
		}
		slices.Sort(seen)
		want := time.Duration(seen[(int64(len(seen))*permille+999)/1000-1])
		if got < want || got > want+want/8+1<<latencyUnit {
			t.Fatalf("%d ‰ of %d are within %v, true is %v", permille, len(seen), got, want)
		}
	})
}

// TestLatencyForgets: what a pool was like is forgotten within two windows.
func TestLatencyForgets(t *testing.T) {
	var l Latency
	l.Observe(-time.Second) // counts as at once
	for range 10 * latencyWindow {
		l.Observe(time.Hour)
	}
	for range 2 * latencyWindow {
		l.Observe(100 * time.Millisecond)
	}
	if got, _ := l.Within(700); got > 120*time.Millisecond {
		t.Errorf("700 ‰ are within %v", got)
	}
	if all := l.all; all >= latencyWindow {
		t.Errorf("%d are counted", all)
	}
}

func TestHedgingDelay(t *testing.T) {
	var l Latency
	if d, ok := (&Hedging{After: time.Second}).Delay(&l); d != time.Second || !ok {
		t.Errorf("fixed: %v, %v", d, ok)
	}
	if d, ok := (&Hedging{Permille: 950}).Delay(&l); ok {
		t.Errorf("%v of nothing", d)
	}
	for _, h := range []Hedging{{}, {After: -1}, {After: MaxHedgeAfter + 1}, {Permille: 499}, {Permille: 1000}, {After: time.Second, Permille: 950}} {
		if h.valid() {
			t.Errorf("%+v is valid", h)
		}
	}
}

// TestLostRace: who loses a race has not failed, and has not answered either; but its
// first token was slow if none had come by when that is.
func TestLostRace(t *testing.T) {
	for _, c := range []struct {
		name  string
		first time.Duration // from which on a first token is slow
		lost  time.Duration
		slow  bool
	}{
		{"in time", 2 * time.Second, time.Second, false},
		{"late", 2 * time.Second, 3 * time.Second, true},
		{"none is late", 0, time.Hour, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &Place{Backend: &Backend{ID: "a", Weight: 1, Capacity: Capacity{Concurrency: 10}}}
			p.Health.Configure(BreakerPolicy{FirstToken: c.first, Failures: 5, Share: 500, Volume: 5, Window: MaxBreakTime}, false)
			now := time.Unix(1_700_000_000, 0)
			end := func(after time.Duration, why sluice.Reason) {
				taken := take(p, now, Need{})
				p.Ended(now.Add(after), &taken, Ending{Why: why})
				p.Give(&taken)
			}
			for range 4 {
				end(time.Millisecond, sluice.UpstreamError)
			}
			end(c.lost, sluice.LostRace) // forgives no failure in a row
			if p.Health.Open() != c.slow {
				t.Errorf("open: %v after four failures and one race lost after %v", p.Health.Open(), c.lost)
			}
			if !c.slow {
				end(time.Millisecond, sluice.UpstreamError)
				if !p.Health.Open() {
					t.Error("the fifth failure in a row did not open it")
				}
			}
		})
	}
}
