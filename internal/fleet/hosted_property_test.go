package fleet

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice"
)

func drawFaults(t *rapid.T) Faults {
	share := rapid.Int64Range(0, 300)
	return Faults{OverloadPermille: share.Draw(t, "overload"), ErrorPermille: share.Draw(t, "errors"), BreakPermille: share.Draw(t, "breaks")}
}

func drawService(t *rapid.T) Service {
	return Service{
		Latency:     time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "latency")),
		LatencyTail: time.Duration(rapid.SampledFrom([]int64{0, int64(200 * time.Millisecond)}).Draw(t, "tail")),
		PrefillRate: rapid.Int64Range(100, 50_000).Draw(t, "prefill"),
		TokenTime:   time.Duration(rapid.Int64Range(0, int64(20*time.Millisecond)).Draw(t, "token")),
		Concurrency: rapid.IntRange(0, 10).Draw(t, "concurrency"),
		StartUp:     time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "start-up")),
		Faults:      drawFaults(t), Seed: rapid.Uint64().Draw(t, "seed"),
		RequestsPerMinute: rapid.SampledFrom([]int64{0, 300}).Draw(t, "requests"),
	}
}

// accounts are two accounts that get the same calls; one is advanced at every
// wake, the other seldom.
type accounts struct {
	often, seldom *Hosted
	now           time.Time
	got           []Progress
	ids           []JobID
	ended         map[JobID]bool
}

// The same as TestReplicaProperties, of a provider.
func TestHostedProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawService(t)
		w := &accounts{often: NewHosted(s), seldom: NewHosted(s), now: epoch, ended: map[JobID]bool{}}
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			until := w.now.Add(time.Duration(rapid.Int64Range(0, int64(400*time.Millisecond)).Draw(t, "wait")))
			for at, ok := w.often.NextWake(); ok && !at.After(until); at, ok = w.often.NextWake() {
				w.advance(t, at)
			}
			w.now = until
			w.act(t)
		}
		for at, ok := w.often.NextWake(); ok; at, ok = w.often.NextWake() {
			w.advance(t, at)
		}
		seldom := slices.Clone(w.seldom.Advance(w.now.Add(1000 * time.Hour)))
		if diff := cmp.Diff(w.got, seldom); diff != "" {
			t.Fatal(diff)
		}
		got := w.often.Totals()
		if got.Done+got.Cancelled+got.Failed != got.Submitted || got.Submitted != int64(len(w.ids)) || len(w.ended) != len(w.ids) {
			t.Fatalf("%+v with %d ended of %d jobs", got, len(w.ended), len(w.ids))
		}
		if l := w.often.Load(); l.Running != 0 || l.KVUsed != 0 {
			t.Fatalf("an idle account has %+v", l)
		}
	})
}

func (w *accounts) advance(t *rapid.T, at time.Time) {
	for _, e := range w.often.Advance(at) {
		if e.At.After(at) || len(w.got) > 0 && e.At.Before(w.got[len(w.got)-1].At) {
			t.Fatalf("%+v at %s, after %+v", e, at, w.got)
		}
		if w.ended[e.ID] {
			t.Fatalf("%+v of a job that has ended", e)
		}
		if e.Done {
			w.ended[e.ID] = true
		}
		w.got = append(w.got, e)
	}
}

func (w *accounts) act(t *rapid.T) {
	id := JobID(0)
	if len(w.ids) > 0 {
		id = rapid.SampledFrom(w.ids).Draw(t, "job")
	}
	switch rapid.IntRange(0, 19).Draw(t, "what") {
	case 0, 1:
		x, okA := w.often.Cancel(w.now, id)
		y, okB := w.seldom.Cancel(w.now, id)
		if x != y || okA != okB {
			t.Fatalf("cancel of %d: %d, %t against %d, %t", id, x, okA, y, okB)
		}
		if okA {
			w.ended[id] = true
		}
	case 2, 3, 4:
		n := sluice.Tokens(rapid.Int64Range(1, 50).Draw(t, "tokens"))
		w.often.Expect(w.now, id, n)
		w.seldom.Expect(w.now, id, n)
	case 5:
		w.often.Fail(w.now)
		w.seldom.Fail(w.now)
	case 6, 7:
		w.often.Restart(w.now)
		w.seldom.Restart(w.now)
	case 8, 9:
		permille := rapid.Int64Range(5, 3000).Draw(t, "speed")
		w.often.SetSpeed(w.now, permille)
		w.seldom.SetSpeed(w.now, permille)
	case 10:
		f := drawFaults(t)
		w.often.SetFaults(w.now, f)
		w.seldom.SetFaults(w.now, f)
	default:
		j := Job{
			Input:  sluice.Tokens(rapid.Int64Range(0, 3000).Draw(t, "input")),
			Output: sluice.Tokens(rapid.Int64Range(0, 300).Draw(t, "output")),
		}
		id, err := w.often.Submit(w.now, j)
		id2, err2 := w.seldom.Submit(w.now, j)
		if id != id2 || !reflect.DeepEqual(err, err2) {
			t.Fatalf("submit: %d, %v against %d, %v", id, err, id2, err2)
		}
		if err == nil {
			w.ids = append(w.ids, id)
		}
	}
}
