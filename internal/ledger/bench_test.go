package ledger

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sluice"
)

// discard is a Sink that takes everything.
type discard struct{}

func (discard) Append(context.Context, []Entry) error { return nil }

// requests are ids of running requests, as a gateway has them: distinct, and
// made elsewhere.
func requests(n int) []sluice.RequestID {
	ids := make([]sluice.RequestID, n)
	for i := range ids {
		ids[i] = sluice.RequestID(fmt.Sprintf("req_019ad4c2-7f00-7000-8000-%012d", i))
	}
	return ids
}

// One request without its network: one write before the dial, one at the end.
func BenchmarkRequest(b *testing.B) {
	j := open(b, b.TempDir(), JournalOptions{Sink: discard{}})
	ids := requests(4096)
	r, d, e := reserve(""), dispatch("", 1), entry("", 1, true)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		id := ids[i%len(ids)]
		i++
		r.Request, d.Request, e.Request = id, id, id
		must(b, j.Begin(r, d), j.Settle(e))
	}
	b.StopTimer()
	must(b, j.Flush(context.Background()))
	b.ReportMetric(float64(j.Lag().Segments), "segments")
}

// What a tenant with hard spend waits for before the dial.
func BenchmarkSync(b *testing.B) {
	j := open(b, b.TempDir(), JournalOptions{Sink: discard{}})
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			must(b, j.Reserve(reserve("a")), j.Sync(context.Background()))
		}
	})
}

func BenchmarkCheckpoint(b *testing.B) {
	j := open(b, b.TempDir(), JournalOptions{Sink: discard{}})
	must(b, j.Begin(reserve("a"), dispatch("a", 1)))
	c := checkpoint("a", 1, 100, 100)
	b.ReportAllocs()
	for b.Loop() {
		must(b, j.Checkpoint(c))
	}
}

// A restart with a hundred thousand requests open must be quick.
func BenchmarkRecover(b *testing.B) {
	dir := b.TempDir()
	j := open(b, dir, JournalOptions{})
	for i := range 100_000 {
		id := fmt.Sprintf("req_019ad4c2-7f00-7000-8000-%012d", i)
		must(b, j.Begin(reserve(id), dispatch(id, 1)))
	}
	must(b, j.Close(context.Background()))
	for b.Loop() {
		start := time.Now()
		j := open(b, dir, JournalOptions{})
		b.ReportMetric(time.Since(start).Seconds(), "s/open")
		if len(j.Recovered()) != 100_000 {
			b.Fatal(len(j.Recovered()))
		}
		must(b, j.Close(context.Background()))
	}
}

// The request path allocates for a request's place in the table of open ones,
// and for nothing else.
func TestAllocations(t *testing.T) {
	j := open(t, t.TempDir(), JournalOptions{})
	ids := requests(2000)
	r, d, c, e := reserve(""), dispatch("", 1), checkpoint("", 1, 100, 100), entry("", 1, true)
	i := 0
	got := testing.AllocsPerRun(1000, func() {
		id := ids[i]
		i++
		r.Request, d.Request, c.Request, e.Request = id, id, id, id
		must(t, j.Begin(r, d), j.Checkpoint(c), j.Checkpoint(c), j.Settle(e))
	})
	if got > 2 && !raceEnabled {
		t.Errorf("%v allocations per request, want at most 2", got)
	}
}
