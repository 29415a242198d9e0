package jobs

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever way a job takes, it comes to an end, and to no state twice.
func TestStates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seen := map[State]bool{}
		for s := Validating; !s.Ended(); {
			if seen[s] {
				t.Fatalf("%s comes twice", s)
			}
			seen[s] = true
			var ways []State
			for to := range State(NumStates) {
				if Follows(s, to) {
					ways = append(ways, to)
				}
			}
			if len(ways) == 0 {
				t.Fatalf("nothing follows %s", s)
			}
			s = rapid.SampledFrom(ways).Draw(t, "next")
		}
	})
	for s := Completed; s < NumStates; s++ {
		for to := range State(NumStates) {
			if Follows(s, to) {
				t.Errorf("%s follows %s, which is an end", to, s)
			}
		}
	}
}

// A job at any rate meets its deadline if that of four times the lines would, by no more
// urgency than it needs: it rises one step at a time while it is late, and falls when there
// is time.
func TestUrgencyFollowsTheRate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(100, 20_000).Draw(t, "lines")
		window := time.Duration(rapid.IntRange(600, 86_400).Draw(t, "window")) * time.Second
		// What a relaxed job ends in its window, of all of its lines: from a third on, four
		// times as many are enough even though it begins slowly.
		part := rapid.Float64Range(0.45, 3).Draw(t, "part")
		start := time.Unix(0, 0)
		j := &Job{State: InProgress, Window: window, Created: start, Deadline: start.Add(window), Counts: Counts{Total: total, Waiting: total}}
		var p pace
		done, was := 0.0, Relaxed
		tick := window / 600
		now := start
		for ; now.Before(j.Deadline) && int(done) < total; now = now.Add(tick) {
			done += part * float64(total) * float64(int(1)<<p.urgency) / 600
			j.Counts.Waiting = total - min(int(done), total)
			p.note(now, min(int(done), total))
			is := p.decide(now, j)
			if d := int(is) - int(was); d > 1 || d < -1 {
				t.Fatalf("from %s to %s at once", was, is)
			}
			was = is
		}
		if int(done) < total {
			t.Fatalf("%d of %d lines at the deadline, at %.2f of the rate, %s", int(done), total, part, was)
		}
		// Of a few lines a measure says little, and what errs then errs towards haste.
		measured := part * float64(total) * paceWindow.Seconds() / window.Seconds()
		if part > 1.5 && measured >= 10 && was != Relaxed {
			t.Fatalf("is %s at %.2f times the rate that is needed", was, part)
		}
	})
}

// What a provider has of a job makes it neither urgent nor late, and nor does it hide that
// the rest is.
func TestPaceOfWhatIsAway(t *testing.T) {
	start := time.Unix(0, 0)
	back := start.Add(12 * time.Hour)
	for _, tt := range []struct {
		name      string
		here      int // lines that wait, beside 100 that are away
		perMinute int // that end
		want      Urgency
		finish    time.Time
	}{
		{"all away", 0, 0, Relaxed, back},
		{"rest in time", 1000, 10, Relaxed, back},
		{"rest late", 100_000, 10, Urgent, start.Add(6*time.Hour + 10_000*time.Minute)},
		{"rest stands", 1000, 0, Pressed, time.Time{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := &Job{State: InProgress, Window: 24 * time.Hour, Created: start, Deadline: start.Add(24 * time.Hour)}
			p := pace{away: away{100, back}}
			now := start
			for minute := range 361 {
				now = start.Add(time.Duration(minute) * time.Minute)
				ended := minute * tt.perMinute
				j.Counts = Counts{Total: 100 + tt.here + 3600, Running: 100, Waiting: tt.here + 3600 - ended, Succeeded: ended}
				if tt.here == 0 {
					j.Counts = Counts{Total: 100, Running: 100}
				}
				p.note(now, ended)
				p.decide(now, j)
			}
			got := p.progress(now, j)
			if got.Urgency != tt.want || got.Finish.Sub(tt.finish).Abs() > 8*time.Hour || got.Finish.IsZero() != tt.finish.IsZero() || got.Late != tt.finish.After(j.Deadline) {
				t.Errorf("it is %s, late %v, and ends at %v; want %s at %v", got.Urgency, got.Late, got.Finish.Sub(start), tt.want, tt.finish.Sub(start))
			}
		})
	}
}
