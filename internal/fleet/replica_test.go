package fleet

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
)

var epoch = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return epoch.Add(d) }

// simple has round figures: 1,000 input tokens/s, 10 ms per token whatever the
// batch.
func simple() Profile {
	return Profile{PrefillRate: 1000, ChunkTokens: 1000, StepBase: 10 * time.Millisecond, KVCapacity: 10_000, Slots: 4}
}

func drain(t *testing.T, r *Replica) []Progress {
	t.Helper()
	var out []Progress
	for range 1_000_000 {
		at, ok := r.NextWake()
		if !ok {
			return out
		}
		out = append(out, r.Advance(at)...)
	}
	t.Fatal("the replica never becomes idle")
	return nil
}

func TestOneJobTakesItsPrefillAndItsTokens(t *testing.T) {
	r := NewReplica(simple())
	id, err := r.Submit(epoch, Job{Input: 500, Output: 5})
	if err != nil {
		t.Fatal(err)
	}
	r.Expect(epoch, id, 3)
	want := []Progress{
		{ID: id, Tokens: 1, At: after(500 * time.Millisecond)},
		{ID: id, Tokens: 3, At: after(520 * time.Millisecond)},
		{ID: id, Tokens: 5, At: after(540 * time.Millisecond), Done: true},
	}
	if diff := cmp.Diff(want, drain(t, r)); diff != "" {
		t.Error(diff)
	}
	if got, want := r.Totals(), (Totals{Submitted: 1, Done: 1, Prefilled: 500, Generated: 5}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := r.Load(); got.KVUsed != 0 || got.KVReserved != 0 || got.Running != 0 {
		t.Errorf("idle replica has load %+v", got)
	}
}

func TestTimesIsFaster(t *testing.T) {
	r := NewReplica(simple().Times(10))
	if _, err := r.Submit(epoch, Job{Input: 500, Output: 5}); err != nil {
		t.Fatal(err)
	}
	got := drain(t, r)
	if at := got[len(got)-1].At; !at.Equal(after(54 * time.Millisecond)) {
		t.Errorf("the end is at %s, want 54 ms", at.Sub(epoch))
	}
	h := NewHosted(Service{Latency: time.Second, PrefillRate: 1000, TokenTime: 10 * time.Millisecond}.Times(10))
	if _, err := h.Submit(epoch, Job{Input: 1000, Output: 11}); err != nil {
		t.Fatal(err)
	}
	if e := h.Advance(after(time.Hour)); !e[len(e)-1].At.Equal(after(210 * time.Millisecond)) {
		t.Errorf("the end is at %s, want 210 ms", e[len(e)-1].At.Sub(epoch))
	}
}

func TestCachedInputIsNotPrefilled(t *testing.T) {
	r := NewReplica(simple())
	if _, err := r.Submit(epoch, Job{Input: 500, Cached: 400, Output: 1}); err != nil {
		t.Fatal(err)
	}
	got := drain(t, r)
	if len(got) != 1 || !got[0].At.Equal(after(100*time.Millisecond)) {
		t.Errorf("got %v, want the end after 100 ms", got)
	}
}

func TestQueueIsFirstComeFirstServed(t *testing.T) {
	p := simple()
	p.Slots, p.Queue = 1, 2
	r := NewReplica(p)
	for i := range 3 {
		if _, err := r.Submit(epoch, Job{Input: 100, Output: 2}); err != nil {
			t.Fatalf("job %d: %v", i, err)
		}
	}
	if _, err := r.Submit(epoch, Job{Input: 1}); err != ErrQueueFull {
		t.Errorf("got %v, want %v", err, ErrQueueFull)
	}
	if _, err := r.Submit(epoch, Job{Input: 10_000, Output: 1}); err != ErrTooLarge {
		t.Errorf("got %v, want %v", err, ErrTooLarge)
	}
	var done []JobID
	for _, e := range drain(t, r) {
		if e.Done {
			done = append(done, e.ID)
		}
	}
	if want := []JobID{1, 2, 3}; !slices.Equal(done, want) {
		t.Errorf("got %v, want %v", done, want)
	}
}

func TestCancelFreesAtOnce(t *testing.T) {
	p := simple()
	p.Slots = 1
	r := NewReplica(p)
	first, _ := r.Submit(epoch, Job{Input: 100, Output: 1000})
	second, _ := r.Submit(epoch, Job{Input: 100, Output: 1})
	third, _ := r.Submit(epoch, Job{Input: 100, Output: 1})
	now := after(100*time.Millisecond + 195*time.Millisecond) // in the middle of the 20th further step
	r.Advance(now)
	for id, want := range map[JobID]struct {
		tokens sluice.Tokens
		state  State
	}{first: {20, Decoding}, second: {0, Waiting}, 99: {0, Unknown}} {
		if got, state := r.Tokens(id); got != want.tokens || state != want.state {
			t.Errorf("job %d: got %d tokens in state %d, want %+v", id, got, state, want)
		}
	}
	if got, ok := r.Cancel(now, first); !ok || got != 20 {
		t.Errorf("got %d, %t, want 20 tokens", got, ok)
	}
	if _, ok := r.Cancel(now, second); !ok {
		t.Error("the waiting job was not found")
	}
	if _, ok := r.Cancel(now, first); ok {
		t.Error("a job was cancelled twice")
	}
	got := drain(t, r)
	last := got[len(got)-1]
	// The step under way ends at 300 ms, then 100 ms of prefill.
	if last.ID != third || !last.At.Equal(after(400*time.Millisecond)) {
		t.Errorf("got %+v, want job %d at 400 ms", last, third)
	}
}

// The illustrative profiles agree with the figures that they are derived from:
// time per output token by batch, at 1,500 tokens of context.
func TestStepOfTheIllustrativeProfiles(t *testing.T) {
	tests := []struct {
		name    string
		profile Profile
		jobs    int64
		want    time.Duration
	}{
		{"8B alone", Llama8BOnH100(), 1, 8 * time.Millisecond},
		{"8B, batch of 32", Llama8BOnH100(), 32, 11700 * time.Microsecond},
		{"8B, batch of 128", Llama8BOnH100(), 128, 23 * time.Millisecond},
		{"8B, batch of 256", Llama8BOnH100(), 256, 38 * time.Millisecond},
		{"70B alone", Llama70BOn4H100(), 1, 17500 * time.Microsecond},
		{"70B, batch of 32", Llama70BOn4H100(), 32, 20 * time.Millisecond},
		{"70B, batch of 128", Llama70BOn4H100(), 128, 27 * time.Millisecond},
		{"70B, batch of 256", Llama70BOn4H100(), 256, 37 * time.Millisecond},
	}
	for _, tt := range tests {
		got := tt.profile.Step(tt.jobs, sluice.Tokens(tt.jobs*1500))
		if off := got - tt.want; off.Abs() > tt.want/50 {
			t.Errorf("%s: got %s, want %s within 2 %%", tt.name, got, tt.want)
		}
	}
}

// The brief's demands, offered to as many replicas as they need: what the
// replicas have computed in a minute is what was asked of them.
func TestBriefArithmetic(t *testing.T) {
	type load struct{ perMinute, input, output int64 }
	tests := []struct {
		name     string
		loads    []load
		wantIn   int64 // input tokens per minute
		wantOut  int64
		replicas int
	}{
		{"30/s of 2,000 in, 300 out", []load{{1800, 2000, 300}}, 60_000 * 60, 9_000 * 60, 5},
		{"100/s of 1k", []load{{6000, 1000, 10}}, 100_000 * 60, 60_000, 6},
		{"half of them at 20k", []load{{3000, 1000, 10}, {3000, 20_000, 10}}, 1_050_000 * 60, 60_000, 51},
		{"Harbor", []load{{20, 1500, 200}}, 30_000, 4000, 1},
		{"Harbor, half at 15,000", []load{{10, 1500, 200}, {10, 15_000, 200}}, 165_000, 4000, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fleet := make([]*Replica, tt.replicas)
			for i := range fleet {
				fleet[i] = NewReplica(Llama8BOnH100())
			}
			n := 0
			for _, l := range tt.loads {
				n += int(l.perMinute)
			}
			// Interleave the loads in order of time.
			next := make([]int64, len(tt.loads))
			for i := range n {
				best := -1
				var when time.Duration
				for k, l := range tt.loads {
					at := time.Duration(next[k]) * time.Minute / time.Duration(l.perMinute)
					if next[k] < l.perMinute && (best < 0 || at < when) {
						best, when = k, at
					}
				}
				next[best]++
				l := tt.loads[best]
				if _, err := fleet[i%len(fleet)].Submit(after(when), Job{Input: sluice.Tokens(l.input), Output: sluice.Tokens(l.output)}); err != nil {
					t.Fatal(err)
				}
			}
			var got Totals
			var last time.Time
			for _, r := range fleet {
				for _, e := range drain(t, r) {
					if e.At.After(last) {
						last = e.At
					}
				}
				got.Prefilled += r.Totals().Prefilled
				got.Generated += r.Totals().Generated
			}
			if int64(got.Prefilled) != tt.wantIn || int64(got.Generated) != tt.wantOut {
				t.Errorf("got %d in, %d out, want %d, %d", got.Prefilled, got.Generated, tt.wantIn, tt.wantOut)
			}
			if late := last.Sub(after(time.Minute)); late > 15*time.Second {
				t.Errorf("the last job ends %s after the minute: the fleet is over water", late)
			}
		})
	}
}

// 120/s of 800 in and 300 out on 8 replicas: 96,000 input tokens/s against
// 240,000, 36,000 output tokens/s against 8 batches; prefill steals from decode.
func TestLabsOpeningQuestion(t *testing.T) {
	r := NewReplica(Llama8BOnH100()) // one of eight: 15 requests/s
	for i := range 15 * 120 {
		if _, err := r.Submit(after(time.Duration(i)*time.Second/15), Job{Input: 800, Output: 300}); err != nil {
			t.Fatal(err)
		}
	}
	l := r.Load()
	if l.Waiting > 2 { // those that came during the current step
		t.Errorf("%d jobs wait after two minutes: over water", l.Waiting)
	}
	// Little: 15/s × 300 tokens × time per token = jobs in the batch.
	if l.Running < 60 || l.Running > 256 {
		t.Errorf("got %d running, want a batch between 60 and 256", l.Running)
	}
	t.Logf("running %d, memory %d/1000", l.Running, l.Permille())
}
