package fleet

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice"
)

// bench plays probes on a hidden engine, as a client sees it: every arrival is
// late by the network and by a jitter of its own.
type bench struct {
	engine   *Replica
	now      time.Time
	network  time.Duration
	jitter   time.Duration
	readings bool
	hiccups  int64 // permille of the arrivals that are 50 to 250 ms late
	drawn    uint64
}

// coalesced is how many tokens come in one event.
const coalesced = 4

func (b *bench) late() time.Duration {
	b.drawn++
	d := b.network + time.Duration(below(draw(5, b.drawn, 1), int64(b.jitter)+1))
	if below(draw(5, b.drawn, 2), 1000) < b.hiccups {
		d += time.Duration(50+below(draw(5, b.drawn, 3), 200)) * time.Millisecond
	}
	return d
}

// round sends one round and waits for its end.
func (b *bench) round(t testing.TB, p Probe) []Sample {
	runs := make([]Run, p.Concurrency)
	index := map[JobID]int{}
	for i := range runs {
		runs[i].Sent = b.now
		id, err := b.engine.Submit(b.now, Job{Input: p.Input, Output: p.Output})
		if err != nil {
			continue // refused: too large
		}
		index[id] = i
		b.engine.Expect(b.now, id, 1+coalesced)
	}
	var readings []Reading
	for at, ok := b.engine.NextWake(); ok; at, ok = b.engine.NextWake() {
		for _, e := range slices.Clone(b.engine.Advance(at)) {
			r := &runs[index[e.ID]]
			r.Arrivals = append(r.Arrivals, Arrival{At: e.At.Add(b.late()), Tokens: e.Tokens})
			if !e.Done {
				b.engine.Expect(at, e.ID, e.Tokens+coalesced)
			}
		}
		if l := b.engine.Load(); b.readings && (len(readings) == 0 || at.Sub(readings[len(readings)-1].At) > 100*time.Millisecond) {
			readings = append(readings, Reading{At: at, Running: l.Running, Waiting: l.Waiting, KVMillionths: int64(l.KVUsed) * 1_000_000 / int64(l.KVCapacity)})
		}
		b.now = at
	}
	b.now = b.now.Add(time.Second)
	for _, r := range runs { // what is late holds up what follows
		for k := 1; k < len(r.Arrivals); k++ {
			if before := r.Arrivals[k-1].At; r.Arrivals[k].At.Before(before) {
				r.Arrivals[k].At = before
			}
		}
	}
	return Measure(p, runs, readings)
}

// calibrate plays the whole plan, as its comment says.
func (b *bench) calibrate(t testing.TB, o PlanOptions) (Profile, Quality) {
	plan, err := Plan(o)
	if err != nil {
		t.Fatal(err)
	}
	var samples []Sample
	spent := sluice.Tokens(0)
	for _, p := range plan {
		spent += p.Tokens()
		for range p.Repeat {
			got := b.round(t, p)
			samples = append(samples, got...)
		}
	}
	if spent > o.Budget && o.Budget > 0 || spent > 2_000_000 {
		t.Fatalf("the plan takes %d tokens", spent)
	}
	return Fit(samples)
}

// near compares a fitted figure with the hidden one.
func near(t testing.TB, what string, got, want, permille int64) {
	t.Helper()
	if off := got - want; off*1000 > want*permille || -off*1000 > want*permille {
		t.Errorf("%s: fitted %d, hidden %d: %+.1f %%", what, got, want, float64(off)*100/float64(want))
	}
}

// hidden are the profiles that Fit is to find, each within 10 %.
func hidden() map[string]Profile {
	out := map[string]Profile{}
	for _, n := range Profiles() {
		out[n.Name] = n.Profile
	}
	few := Llama8BOnH100()
	few.Slots = 48
	out["few slots"] = few
	paged := Llama70BOn4H100()
	paged.Paged, paged.KVCapacity = true, 150_000
	out["paged"] = paged
	chunks := Llama8BOnH100()
	chunks.ChunkTokens = 8192
	out["large chunks"] = chunks
	return out
}

func TestFitRecoversHiddenProfiles(t *testing.T) {
	for name, want := range hidden() {
		for _, readings := range []bool{true, false} {
			if !readings && want.KVCapacity > 500_000 {
				continue // the budget does not fill it: nothing new to tell
			}
			t.Run(fmt.Sprintf("%s, readings %t", name, readings), func(t *testing.T) {
				b := &bench{engine: NewReplica(want), now: epoch, network: 3 * time.Millisecond, jitter: 2 * time.Millisecond, readings: readings}
				got, q := b.calibrate(t, PlanOptions{Readings: readings})
				compare(t, got, want, q)
				// 48 slots of the longest context do not fill the memory.
				if want.Slots > 48 || readings {
					near(t, "KVCapacity", int64(got.KVCapacity), int64(want.KVCapacity), 100)
				}
				if want.KVCapacity > 80*256 {
					near(t, "Slots", int64(got.Slots), int64(want.Slots), 0)
				}
				if q.Overhead < 2*time.Millisecond || q.Overhead > 6*time.Millisecond {
					t.Errorf("overhead of %s, the network has 3 to 5 ms", q.Overhead)
				}
			})
		}
	}
}

// compare holds the speeds to 10 %, prefill by the time that prompts take.
func compare(t *testing.T, got, want Profile, q Quality) {
	t.Helper()
	near(t, "PrefillRate", got.PrefillRate, want.PrefillRate, 100)
	for _, n := range []sluice.Tokens{500, 2000, 8000, 16_000} {
		near(t, fmt.Sprintf("prefill of %d", n), int64(got.Prefill(0, n)), int64(want.Prefill(0, n)), 100)
	}
	near(t, "StepBase", int64(got.StepBase), int64(want.StepBase), 100)
	near(t, "StepPerJob", int64(got.StepPerJob), int64(want.StepPerJob), 100)
	near(t, "StepPerToken", got.StepPerToken, want.StepPerToken, 100)
	if t.Failed() {
		t.Logf("got %+v, with %+v", got, q)
	}
}

// One arrival in fifty is 50 to 250 ms late.
func TestFitIsRobust(t *testing.T) {
	for _, want := range []Profile{Llama8BOnH100(), Llama70BOn4H100(), Llama7BOnA10G()} {
		b := &bench{engine: NewReplica(want), now: epoch, network: 10 * time.Millisecond, jitter: 5 * time.Millisecond, hiccups: 20, readings: true}
		got, q := b.calibrate(t, PlanOptions{Readings: true})
		compare(t, got, want, q)
		near(t, "KVCapacity", int64(got.KVCapacity), int64(want.KVCapacity), 100)
	}
}

// What cannot be told is named, not made up.
func TestFitSaysWhatIsMissing(t *testing.T) {
	p, q := Fit(nil)
	if p != (Profile{}) || len(q.Fields) != 0 || len(q.Missing) != 4 {
		t.Errorf("of nothing: got %+v with %+v", p, q)
	}
	b := &bench{engine: NewReplica(Llama8BOnH100()), now: epoch}
	var samples []Sample
	for _, n := range []sluice.Tokens{500, 1000, 2000, 4000} {
		samples = append(samples, b.round(t, Probe{Input: n, Output: 32, Concurrency: 1, Repeat: 1})...)
	}
	p, q = Fit(samples)
	near(t, "PrefillRate", p.PrefillRate, 30_000, 20)
	if p.StepPerToken != 0 || p.KVCapacity != 0 || p.Slots != 0 || len(q.Missing) != 3 {
		t.Errorf("alone, prompts do not tell the batch: got %+v with %+v", p, q)
	}
	slices.Reverse(samples)
	if again, _ := Fit(samples); again != p {
		t.Errorf("in another order: got %+v, want %+v", again, p)
	}
}

func TestMeasure(t *testing.T) {
	at := func(ms int) time.Time { return after(time.Duration(ms) * time.Millisecond) }
	stream := func(from, every, n int) (out []Arrival) {
		for i := range n {
			out = append(out, Arrival{at(from + i*every), sluice.Tokens(i + 1)})
		}
		return out
	}
	p := Probe{Input: 100, Output: 50, Concurrency: 2, Repeat: 1}
	early, late := Run{Sent: at(0), Arrivals: stream(100, 10, 50)}, Run{Sent: at(0), Input: 110, Arrivals: stream(200, 10, 50)}
	got := Measure(p, []Run{early, late}, []Reading{
		{At: at(150), Running: 2, KVMillionths: 1}, {At: at(400), Running: 2, KVMillionths: 400_000}, {At: at(600), Running: 1, KVMillionths: 2},
	})
	want := []Sample{
		{Probe: p, Input: 100, TTFT: 100 * time.Millisecond, PerToken: 10 * time.Millisecond, Context: 100 + 30, Total: 590 * time.Millisecond, AtOnce: 2},
		{Probe: p, Input: 110, TTFT: 200 * time.Millisecond, PerToken: 10 * time.Millisecond, Context: 110 + 20, Total: 690 * time.Millisecond, AtOnce: 2},
	}
	for i := range want {
		// At 400 ms the early one has 31 tokens, the late one 21.
		want[i].Reading, want[i].InUse = Reading{At: at(400), Running: 2, KVMillionths: 400_000}, 100+31+110+21
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// One waits for the other: they were never decoding together.
	late.Arrivals = stream(600, 10, 50)
	for _, s := range Measure(p, []Run{early, late}, []Reading{{At: at(300), Running: 1, Waiting: 1, KVMillionths: 5}}) {
		if s.AtOnce != 1 || s.PerToken != 0 || s.InUse != 0 || s.Reading.Running != 1 {
			t.Errorf("got %+v, want no time per token", s)
		}
	}
	// One was refused.
	if got := Measure(p, []Run{early, {Sent: at(0)}}, nil); len(got) != 1 || got[0].PerToken != 0 {
		t.Errorf("got %+v, want one sample without a time per token", got)
	}
}

func TestPlanKeepsItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := PlanOptions{
			Budget:         sluice.Tokens(rapid.Int64Range(1, 10_000_000).Draw(t, "budget")),
			MaxContext:     sluice.Tokens(rapid.Int64Range(1, 200_000).Draw(t, "context")),
			MaxConcurrency: rapid.IntRange(1, 1000).Draw(t, "concurrency"),
			Readings:       rapid.Bool().Draw(t, "readings"),
		}
		plan, err := Plan(o)
		if err != nil {
			if plan != nil || o.Budget > 100_000 && o.MaxContext >= 1000 && o.MaxConcurrency >= 8 {
				t.Fatalf("%d probes and %v", len(plan), err)
			}
			return
		}
		for _, p := range plan {
			if p.Input < 1 || p.Output < 1 || p.Repeat < 1 || p.Concurrency < 1 || p.Concurrency > o.MaxConcurrency || p.Input+p.Output > o.MaxContext {
				t.Fatalf("%+v is beyond %+v", p, o)
			}
		}
		if total(plan) > o.Budget {
			t.Fatalf("%d tokens", total(plan))
		}
	})
}
