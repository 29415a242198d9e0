package tabletop

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"
)

// TestDayInBoundedMemory plays a part of a day at 100 requests/s: two minutes
// here, as much as SLUICE_SOAK says, such as 24h. What is held at its end is no more
// than after a fifth of it.
func TestDayInBoundedMemory(t *testing.T) {
	large(t)
	length := 2 * time.Minute
	if d, err := time.ParseDuration(os.Getenv("SLUICE_SOAK")); err == nil {
		length = d
	}
	s := benchWorld(length)
	s.Sources[3].Arrivals.Day = Day{Period: length, Swing: 0.5, Peak: length / 2}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, first, last, began := heap(), uint64(0), uint64(0), time.Now()
	shown := time.Duration(-1)
	r := mustRun(t, s, Options{Progress: func(p Progress) {
		if p.Now < shown || p.Of < length {
			t.Errorf("progress went from %v to %v of %v", shown, p.Now, p.Of)
		}
		shown = p.Now
		switch {
		case first == 0 && p.Now > length/5:
			first = heap() - before
		case p.Now > length*9/10 && p.Now <= length:
			last = heap() - before
		}
	}})
	if n := r.Phases[0].All.Requests; n < int64(90*length.Seconds()) {
		t.Fatalf("%d requests", n)
	}
	t.Logf("%d requests in %v, %d KiB after a fifth and %d KiB in the end", r.Phases[0].All.Requests, time.Since(began).Round(time.Millisecond), first>>10, last>>10)
	if last > first+first/2+4<<20 {
		t.Errorf("it held %d KiB after a fifth, and %d KiB in the end", first>>10, last>>10)
	}
}

// TestInterrupted: a run that is cut short has a whole report up to there.
func TestInterrupted(t *testing.T) {
	large(t)
	s := benchWorld(10 * time.Minute)
	for i := range s.Sources {
		s.Sources[i].Arrivals.Rate = 3
	}
	s.Warmup = time.Minute
	s.Events = []Event{{At: 2 * time.Minute, Phase: "second"}, {At: 8 * time.Minute, Phase: "third"}}
	s.Expect = []Expectation{{Text: "lost == 0"}, {Text: "open == 0"}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := s.Run(ctx, Options{Progress: func(p Progress) {
		if p.Now > 3*time.Minute {
			cancel()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Partial || r.Ended < 3*time.Minute || r.Ended > 4*time.Minute {
		t.Fatalf("partial %v, ended at %v", r.Partial, r.Ended)
	}
	if len(r.Phases) != 2 || r.Phases[1].To != r.Ended || !r.Passed {
		t.Fatalf("%d phases, the last to %v; verdicts %+v", len(r.Phases), r.Phases[len(r.Phases)-1].To, r.Verdicts)
	}
	a := &r.Phases[1].All
	if a.Unfinished == 0 || a.Completed+a.Failed+a.Cancelled+a.Rejected+a.Unfinished != a.Requests {
		t.Errorf("the last phase: %+v", a)
	}
	if r.Phases[0].All.Requests == 0 || a.Goodput < 50 {
		t.Errorf("goodput %+v", a)
	}
}
