package fleet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFailEndsEveryJobWithWhatItHas(t *testing.T) {
	p := simple()
	p.Slots, p.StartUp = 1, 30*time.Second
	r := NewReplica(p)
	running, _ := r.Submit(epoch, Job{Input: 100, Output: 1000})
	waiting, _ := r.Submit(epoch, Job{Input: 100, Output: 10})
	now := after(205 * time.Millisecond) // in the middle of a step
	r.Advance(now)
	r.Fail(now)
	want := []Progress{
		{ID: running, Tokens: 11, At: now, Done: true, Fault: Lost},
		{ID: waiting, At: now, Done: true, Fault: Lost},
	}
	if diff := cmp.Diff(want, r.Advance(now)); diff != "" {
		t.Error(diff)
	}
	if _, err := r.Submit(now, Job{Input: 1, Output: 1}); err != ErrDown {
		t.Errorf("got %v, want %v", err, ErrDown)
	}
	if _, ok := r.NextWake(); ok {
		t.Error("a replica that is down wakes")
	}
	r.Restart(after(time.Second))
	if _, err := r.Submit(after(30*time.Second), Job{Input: 1, Output: 1}); err != ErrDown {
		t.Errorf("while starting: got %v, want %v", err, ErrDown)
	}
	if at, ok := r.NextWake(); !ok || !at.Equal(after(31*time.Second)) {
		t.Errorf("wakes at %s, want the end of the start-up", at)
	}
	if _, err := r.Submit(after(31*time.Second), Job{Input: 1, Output: 1}); err != nil {
		t.Errorf("after the start-up: %v", err)
	}
	if got := r.Totals(); got.Failed != 2 || got.Submitted != 3 {
		t.Errorf("got %+v", got)
	}
}

func TestSpeedChangesWithTheNextStep(t *testing.T) {
	r := NewReplica(simple())
	id, _ := r.Submit(epoch, Job{Input: 100, Output: 101})
	now := after(100*time.Millisecond + 495*time.Millisecond) // in the 50th further step
	r.SetSpeed(now, 500)
	got := drain(t, r)
	want := after(600*time.Millisecond + 50*20*time.Millisecond)
	if e := got[len(got)-1]; e.ID != id || !e.At.Equal(want) {
		t.Errorf("got %+v, want the end at %s", e, want)
	}
	r.SetSpeed(want, 2000)
	if took, _ := last(t, r, want, Job{Input: 100, Output: 11}); took != 100*time.Millisecond {
		t.Errorf("at twice the speed it took %s, want 100 ms", took)
	}
}

func TestHostedFailsAndComesBack(t *testing.T) {
	h := NewHosted(Service{Latency: 100 * time.Millisecond, TokenTime: 10 * time.Millisecond, StartUp: time.Second, Faults: Faults{RetryAfter: 2 * time.Second}})
	a, _ := h.Submit(epoch, Job{Output: 100})
	b, _ := h.Submit(after(150*time.Millisecond), Job{Output: 100})
	now := after(205 * time.Millisecond)
	h.Advance(now)
	h.Fail(now)
	want := []Progress{
		{ID: a, Tokens: 11, At: now, Done: true, Fault: Lost},
		{ID: b, At: now, Done: true, Fault: Lost},
	}
	if diff := cmp.Diff(want, h.Advance(now)); diff != "" {
		t.Error(diff)
	}
	refused := func(at time.Time) *StatusError {
		_, err := h.Submit(at, Job{Output: 1})
		status, _ := err.(*StatusError)
		return status
	}
	if got := refused(now); got == nil || got.Status != 503 || got.RetryAfter != 2*time.Second {
		t.Errorf("got %+v, want a 503", got)
	}
	h.Restart(now)
	if got := refused(now.Add(999 * time.Millisecond)); got == nil || got.Status != 503 {
		t.Errorf("got %+v while it starts, want a 503", got)
	}
	if got := refused(now.Add(time.Second)); got != nil {
		t.Errorf("got %+v after the start-up", got)
	}
}

// A change of speed stretches what is left of jobs in flight.
func TestHostedSpeedInMidRun(t *testing.T) {
	h := NewHosted(Service{Latency: 100 * time.Millisecond, TokenTime: 10 * time.Millisecond})
	early, _ := h.Submit(epoch, Job{Output: 11})
	late, _ := h.Submit(after(100*time.Millisecond), Job{Output: 2})
	h.SetSpeed(after(145*time.Millisecond), 500)
	want := []Progress{
		{ID: early, Tokens: 1, At: after(100 * time.Millisecond)},
		// The sixth token of the early one is 5 ms away, now 10; five more follow.
		{ID: early, Tokens: 11, At: after(255 * time.Millisecond), Done: true},
		// The first token of the late one is 55 ms away, now 110.
		{ID: late, Tokens: 1, At: after(255 * time.Millisecond)},
		{ID: late, Tokens: 2, At: after(275 * time.Millisecond), Done: true},
	}
	got := append([]Progress(nil), h.Advance(after(100*time.Millisecond))...)
	got = append(got, h.Advance(after(time.Hour))...)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestHostedFaultsAreDrawnInTheirShares(t *testing.T) {
	h := NewHosted(Service{Latency: 10 * time.Millisecond, TokenTime: time.Millisecond, Seed: 7, Faults: Faults{OverloadPermille: 100, ErrorPermille: 200, BreakPermille: 300}})
	const calls = 20_000
	overloaded, before, broken, whole := 0, 0, 0, 0
	for i := range calls {
		_, err := h.Submit(after(time.Duration(i)*time.Millisecond), Job{Input: 10, Output: 100})
		if status, ok := err.(*StatusError); ok && status.Status == 529 {
			overloaded++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range h.Advance(after(time.Hour)) {
		switch {
		case !e.Done:
		case e.Fault == NoFault:
			whole++
		case e.Tokens == 0:
			before++
		case e.Tokens >= 1 && e.Tokens < 100:
			broken++
		default:
			t.Fatalf("got %+v", e)
		}
	}
	near := func(what string, got, want int) {
		if off := got - want; off*off > 16*want {
			t.Errorf("%d %s of %d calls, want about %d", got, what, calls, want)
		}
	}
	near("refusals with 529", overloaded, 2000)
	near("errors before the first token", before, 3600)
	near("broken streams", broken, 4320)
	if overloaded+before+broken+whole != calls {
		t.Errorf("%d calls of %d are accounted for", overloaded+before+broken+whole, calls)
	}
	h.SetFaults(after(time.Hour), Faults{})
	for range 1000 {
		if _, err := h.Submit(after(time.Hour), Job{Output: 10}); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range h.Advance(after(2 * time.Hour)) {
		if e.Fault != NoFault {
			t.Fatalf("got %+v after the faults were switched off", e)
		}
	}
}

// The tail of the latency is exponential: its mean, and the share beyond 1, 2 and
// 4.6 means.
func TestLatencyTail(t *testing.T) {
	const n = 100_000
	mean := time.Second
	sum := time.Duration(0)
	beyond := map[time.Duration]int{time.Second: 0, 2 * time.Second: 0, 4605 * time.Millisecond: 0}
	for i := range uint64(n) {
		x := exponential(draw(3, i, drawLatency), mean)
		if x < 0 || x > 45*time.Second {
			t.Fatalf("drew %s", x)
		}
		sum += x
		for d := range beyond {
			if x > d {
				beyond[d]++
			}
		}
	}
	if got := sum / n; got < 990*time.Millisecond || got > 1010*time.Millisecond {
		t.Errorf("the mean is %s, want 1 s", got)
	}
	for d, want := range map[time.Duration]int{time.Second: 36_788, 2 * time.Second: 13_534, 4605 * time.Millisecond: 1000} {
		if off := beyond[d] - want; off*off > 16*want {
			t.Errorf("%d of %d beyond %s, want about %d", beyond[d], n, d, want)
		}
	}
}
