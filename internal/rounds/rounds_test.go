package rounds_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"sluice"
	"sluice/internal/rounds"
	"sluice/test/bubble"
)

// target is a backend and its interval.
type target struct {
	id    sluice.BackendID
	every time.Duration
}

func (t target) Asked() (sluice.BackendID, time.Duration) { return t.id, t.every }

// Each is asked in its interval, is given what it returned before, and is forgotten
// when it is gone.
func TestIntervals(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		begun, seen := time.Now(), map[sluice.BackendID][]time.Duration{}
		before := map[sluice.BackendID][]int{}
		gone := func() bool {
			since := time.Since(begun)
			return since > 2500*time.Millisecond && since < 4500*time.Millisecond
		}
		r := rounds.Start(rounds.Options[target, int]{
			Targets: func() []target {
				out := []target{{"second", time.Second}, {"eager", 0}}
				if !gone() {
					out = append(out, target{"comes and goes", time.Second})
				}
				return out
			},
			AtOnce: 2, Patience: time.Second,
			Ask: func(_ context.Context, t target, last int) int {
				mu.Lock()
				defer mu.Unlock()
				seen[t.id] = append(seen[t.id], time.Since(begun))
				before[t.id] = append(before[t.id], last)
				return last + 1
			},
		})
		time.Sleep(5200 * time.Millisecond)
		r.Close()
		if want := []time.Duration{0, 1e9, 2e9, 3e9, 4e9, 5e9}; !slices.Equal(seen["second"], want) {
			t.Errorf("second: %v, want %v", seen["second"], want)
		}
		if got := len(seen["eager"]); got != 53 {
			t.Errorf("eager was asked %d times in 5.2 s, want once in %v", got, rounds.MinEvery)
		}
		if want := []time.Duration{0, 1e9, 2e9, 4.5e9}; !slices.Equal(seen["comes and goes"], want) {
			t.Errorf("comes and goes: %v, want %v", seen["comes and goes"], want)
		}
		if got, want := before["second"], []int{0, 1, 2, 3, 4, 5}; !slices.Equal(got, want) {
			t.Errorf("second was given %v, want %v", got, want)
		}
		if got, want := before["comes and goes"], []int{0, 1, 2, 0}; !slices.Equal(got, want) {
			t.Errorf("comes and goes was given %v, want %v", got, want)
		}
	})
}

// A few are asked at a time, one that hangs is waited for Patience, and Close ends
// those that are being asked.
func TestBounds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const atOnce = 3
		var mu sync.Mutex
		var open, most, timedOut, interrupted int
		r := rounds.Start(rounds.Options[target, struct{}]{
			Targets: func() (out []target) {
				for i := range 10 {
					out = append(out, target{sluice.BackendID(rune('a' + i)), time.Hour})
				}
				return out
			},
			AtOnce: atOnce, Patience: 2 * time.Second,
			Ask: func(ctx context.Context, _ target, s struct{}) struct{} {
				mu.Lock()
				open++
				most = max(most, open)
				mu.Unlock()
				<-ctx.Done()
				mu.Lock()
				defer mu.Unlock()
				if open--; rounds.Interrupted(ctx) {
					interrupted++
				} else {
					timedOut++
				}
				return s
			},
		})
		time.Sleep(5 * time.Second) // the third three are being asked
		closing := time.Now()
		r.Close()
		if took := time.Since(closing); took != 0 {
			t.Errorf("Close took %v", took)
		}
		if most != atOnce || timedOut != 6 || interrupted != 4 {
			t.Errorf("%d at once, want %d; %d timed out, want 6; %d were interrupted, want 4", most, atOnce, timedOut, interrupted)
		}
	})
}
