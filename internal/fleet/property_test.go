package fleet

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice"
)

// twins are two machines that get the same calls; one is advanced at every wake,
// the other seldom.
type twins struct {
	often, seldom *Replica
	profile       Profile
	now           time.Time
	got           []Progress
	ids           []JobID
	jobs          map[JobID]submitted
	ended         map[JobID]int
	fastest       int64 // permille, of all speeds so far
}

type submitted struct {
	spec Job
	at   time.Time
}

func drawProfile(t *rapid.T) Profile {
	return Profile{
		PrefillRate:    rapid.Int64Range(100, 50_000).Draw(t, "prefill"),
		PrefillPerPair: rapid.SampledFrom([]int64{0, 1000, 100_000}).Draw(t, "per pair"),
		ChunkTokens:    sluice.Tokens(rapid.Int64Range(16, 4096).Draw(t, "chunk")),
		StepBase:       time.Duration(rapid.Int64Range(0, int64(20*time.Millisecond)).Draw(t, "base")) + time.Microsecond,
		StepPerJob:     time.Duration(rapid.Int64Range(0, 10_000).Draw(t, "per job")),
		StepPerToken:   rapid.Int64Range(0, 100_000).Draw(t, "per token"),
		KVCapacity:     sluice.Tokens(rapid.Int64Range(100, 5000).Draw(t, "kv")),
		Slots:          rapid.IntRange(1, 8).Draw(t, "slots"),
		Queue:          rapid.IntRange(0, 5).Draw(t, "queue"),
		HitPermille:    rapid.Int64Range(0, 1000).Draw(t, "hit"),
		StartUp:        time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "start-up")),
		BlockTokens:    sluice.Tokens(rapid.SampledFrom([]int64{0, 1, 16, 64}).Draw(t, "block")),
		Paged:          rapid.Bool().Draw(t, "paged"),
	}
}

// drawJob has blocks of one of three conversations, of any length.
func drawJob(t *rapid.T, p Profile) Job {
	j := Job{
		Input:  sluice.Tokens(rapid.Int64Range(0, 3000).Draw(t, "input")),
		Output: sluice.Tokens(rapid.Int64Range(0, 300).Draw(t, "output")),
	}
	if p.BlockTokens > 0 && rapid.IntRange(0, 3).Draw(t, "with blocks") > 0 {
		conversation := uint64(rapid.IntRange(1, 3).Draw(t, "conversation")) << 32
		for i := range uint64((j.Input + j.Output) / p.BlockTokens) {
			j.Blocks = append(j.Blocks, conversation+i)
		}
	}
	return j
}

// However often Advance is called, the same things happen at the same times; no
// job is lost; memory is never exceeded; no token comes before its prefill.
func TestReplicaProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProfile(t)
		w := &twins{often: NewReplica(p), seldom: NewReplica(p), profile: p, now: epoch, jobs: map[JobID]submitted{}, ended: map[JobID]int{}, fastest: wholeSpeed}
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			w.wait(t, time.Duration(rapid.Int64Range(0, int64(400*time.Millisecond)).Draw(t, "wait")))
			w.act(t)
			hold(t, w.often)
		}
		w.finish(t)
	})
}

// wait lets time pass, advancing the one twin at each of its wakes.
func (w *twins) wait(t *rapid.T, d time.Duration) {
	for at, ok := w.often.NextWake(); ok && !at.After(w.now.Add(d)); at, ok = w.often.NextWake() {
		w.advance(t, at)
	}
	w.now = w.now.Add(d)
}

func (w *twins) advance(t *rapid.T, at time.Time) {
	before := w.often.Totals()
	for _, e := range w.often.Advance(at) {
		w.judge(t, e, at)
	}
	after := w.often.Totals()
	if after.Generated < before.Generated || after.Prefilled < before.Prefilled || after.CacheHits < before.CacheHits {
		t.Fatalf("totals went back from %+v to %+v", before, after)
	}
	hold(t, w.often)
}

func (w *twins) judge(t *rapid.T, e Progress, now time.Time) {
	if e.At.After(now) {
		t.Fatalf("%+v is told at %s, before it happens", e, now)
	}
	if n := len(w.got); n > 0 && e.At.Before(w.got[n-1].At) {
		t.Fatalf("%+v after %+v: the clock went back", e, w.got[n-1])
	}
	w.got = append(w.got, e)
	j := w.jobs[e.ID]
	if w.ended[e.ID] > 0 {
		t.Fatalf("%+v of a job that has ended", e)
	}
	if e.Done {
		w.ended[e.ID]++
		if e.Fault == NoFault && e.Tokens != j.spec.Output {
			t.Fatalf("%+v: done with less than %d tokens", e, j.spec.Output)
		}
	}
	if e.Tokens == 0 {
		return
	}
	need := w.profile.Prefill(e.Cached, j.spec.Input-e.Cached) * wholeSpeed / time.Duration(w.fastest)
	if earliest := j.at.Add(need * 999 / 1000); e.At.Before(earliest) {
		t.Fatalf("%+v: a token before %s, when its prefill may end", e, earliest)
	}
}

// act makes one call on both twins.
func (w *twins) act(t *rapid.T) {
	id := JobID(0)
	if len(w.ids) > 0 {
		id = rapid.SampledFrom(w.ids).Draw(t, "job")
	}
	switch rapid.IntRange(0, 19).Draw(t, "what") {
	case 0, 1, 2:
		x, okA := w.often.Cancel(w.now, id)
		y, okB := w.seldom.Cancel(w.now, id)
		if x != y || okA != okB {
			t.Fatalf("cancel of %d: %d, %t against %d, %t", id, x, okA, y, okB)
		}
		if okA {
			w.ended[id]++
		}
	case 3, 4, 5:
		n := sluice.Tokens(rapid.Int64Range(1, 50).Draw(t, "tokens"))
		w.often.Expect(w.now, id, n)
		w.seldom.Expect(w.now, id, n)
	case 6:
		w.often.Fail(w.now)
		w.seldom.Fail(w.now)
	case 7, 8:
		w.often.Restart(w.now)
		w.seldom.Restart(w.now)
	case 9, 10:
		permille := rapid.Int64Range(5, 3000).Draw(t, "speed")
		w.fastest = max(w.fastest, permille)
		w.often.SetSpeed(w.now, permille)
		w.seldom.SetSpeed(w.now, permille)
	default:
		w.submit(t)
	}
}

func (w *twins) submit(t *rapid.T) {
	j := drawJob(t, w.profile)
	id, err := w.often.Submit(w.now, j)
	id2, err2 := w.seldom.Submit(w.now, j)
	if id != id2 || err != err2 {
		t.Fatalf("submit: %d, %v against %d, %v", id, err, id2, err2)
	}
	if health := w.often.Load().Health; (err == ErrDown) != (health != Serving) {
		t.Fatalf("got %v from a replica that is %s", err, health)
	}
	if err == nil {
		w.ids = append(w.ids, id)
		w.jobs[id] = submitted{j, w.now}
	}
}

// finish lets everything end and compares the twins.
func (w *twins) finish(t *rapid.T) {
	for at, ok := w.often.NextWake(); ok; at, ok = w.often.NextWake() {
		w.advance(t, at)
	}
	seldom := slices.Clone(w.seldom.Advance(w.now.Add(1000 * time.Hour)))
	if diff := cmp.Diff(w.got, seldom); diff != "" {
		t.Fatal(diff)
	}
	got := w.often.Totals()
	if diff := cmp.Diff(got, w.seldom.Totals()); diff != "" {
		t.Fatal(diff)
	}
	if got.Submitted != int64(len(w.ids)) || got.Done+got.Cancelled+got.Failed != got.Submitted {
		t.Fatalf("%+v after %d jobs", got, len(w.ids))
	}
	if len(w.ended) != len(w.ids) {
		t.Fatalf("%d jobs of %d have ended", len(w.ended), len(w.ids))
	}
	if l := w.often.Load(); l.KVUsed != 0 || l.KVReserved != 0 {
		t.Fatalf("an idle replica holds %+v", l)
	}
	if got.Cancelled+got.Failed > 0 {
		return
	}
	input := sluice.Tokens(0)
	for _, j := range w.jobs {
		input += j.spec.Input
	}
	if in := got.Prefilled - got.Recomputed + got.CacheHits; in != input {
		t.Fatalf("%d input tokens were computed or found of %d: %+v", in, input, got)
	}
}

// hold checks the invariants of the package comment.
func hold(t *rapid.T, r *Replica) {
	l := r.Load()
	if l.KVReserved+l.KVCached > l.KVCapacity || l.KVUsed > l.KVReserved || l.KVUsed < 0 || l.KVCached < 0 {
		t.Fatalf("memory: %+v", l)
	}
	if l.Running > r.profile.Slots {
		t.Fatalf("slots: %+v", l)
	}
	if l.Health != Serving && l.Running+l.Waiting > 0 {
		t.Fatalf("jobs on a replica that is %s: %+v", l.Health, l)
	}
	c := r.Totals()
	if c.Submitted != c.Done+c.Cancelled+c.Failed+int64(l.Running+l.Waiting) {
		t.Fatalf("conservation: %+v with %+v", c, l)
	}
	if n := len(r.cache.blocks); n != r.cache.free+r.cache.held {
		t.Fatalf("%d blocks, of which %d free and %d held", n, r.cache.free, r.cache.held)
	}
}
