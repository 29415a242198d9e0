package bubble

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// TestTimers starts goroutines from timers of one instant, each of which looks
// at a timer that is due while the root of the bubble still fires the others:
// under the race detector on two processors this ends the process.
func TestTimers(t *testing.T) {
	const rounds, timers = 50, 100
	Test(t, func(*testing.T) {
		for range rounds {
			var group sync.WaitGroup
			group.Add(timers)
			for range timers {
				time.AfterFunc(time.Millisecond, func() {
					defer group.Done()
					<-time.NewTimer(0).C
				})
			}
			group.Wait()
		}
	})
}

func TestProcessorsComeBack(t *testing.T) {
	before := runtime.GOMAXPROCS(2)
	defer runtime.GOMAXPROCS(before)
	var p processors
	p.enter()
	p.enter()
	if got := runtime.GOMAXPROCS(0); got != 1 {
		t.Errorf("inside: %d processors, want 1", got)
	}
	p.leave()
	if got := runtime.GOMAXPROCS(0); got != 1 {
		t.Errorf("one has left, one is inside: %d processors, want 1", got)
	}
	p.leave()
	if got := runtime.GOMAXPROCS(0); got != 2 {
		t.Errorf("all have left: %d processors, want 2", got)
	}
}
