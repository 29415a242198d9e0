package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice"
	"sluice/test/bubble"
)

func TestRecordsSurvive(t *testing.T) {
	dir := t.TempDir()
	sink := &memory{}
	j := open(t, dir, JournalOptions{})
	must(t,
		j.Reserve(reserve("waits")),
		j.Begin(reserve("runs"), dispatch("runs", 1)),
		j.Checkpoint(checkpoint("runs", 1, 10, 100)),
		j.Checkpoint(checkpoint("runs", 1, 400, 50_000)),
		j.Begin(reserve("done"), dispatch("done", 1)),
		j.Settle(entry("done", 1, true)),
		j.Reserve(reserve("released")),
		j.Release("released"),
		j.Begin(reserve("retried"), dispatch("retried", 1)),
		j.Settle(entry("retried", 1, false)),
		j.Dispatch(dispatch("retried", 2)),
		j.Begin(reserve("between"), dispatch("between", 1)),
		j.Settle(entry("between", 1, false)),
	)
	crash(t, j)

	j = open(t, dir, JournalOptions{Sink: sink})
	want := []Open{
		{Reserve: reserve("waits"), Final: true},
		{Reserve: reserve("runs"), Dispatch: dispatch("runs", 1), Checkpoint: checkpoint("runs", 1, 400, 50_000), Final: true},
		{Reserve: reserve("retried"), Dispatch: dispatch("retried", 2), Final: true},
		{Reserve: reserve("between"), Final: true},
	}
	if d := cmp.Diff(want, j.Recovered()); d != "" {
		t.Errorf("recovered (-want +got):\n%s", d)
	}
	must(t, j.Flush(t.Context()))
	if d := cmp.Diff([]string{"done/1", "retried/1", "between/1"}, sink.keys()); d != "" {
		t.Errorf("drained (-want +got):\n%s", d)
	}
	if d := cmp.Diff(entry("done", 1, true), sink.entries["done/1"]); d != "" {
		t.Errorf("entry (-want +got):\n%s", d)
	}
	for _, o := range j.Recovered() {
		must(t, j.Settle(o.Lost(t0.Add(time.Minute))))
	}
	must(t, j.Close(t.Context()))
	if j = open(t, dir, JournalOptions{}); len(j.Recovered()) != 0 {
		t.Errorf("still open after all were settled: %v", j.Recovered())
	}
	if got := len(sink.keys()); got != 7 {
		t.Errorf("sink has %d entries, want 7", got)
	}
}

// What is lost can be settled in one go, and what is not in the sink yet can be
// read for the counters that must not wait for it.
func TestSettleLost(t *testing.T) {
	dir, sink := t.TempDir(), &memory{}
	j := open(t, dir, JournalOptions{Sink: sink})
	must(t, j.Settle(entry("done", 1, true)), j.Flush(t.Context()))
	sink.fail(errors.New("down"))
	must(t, j.Settle(entry("late", 1, true)))
	const n = 3*lostChunk + 1
	for i := range n {
		id := fmt.Sprint("r", i)
		must(t, j.Begin(reserve(id), dispatch(id, 1)))
	}
	crash(t, j)

	j = open(t, dir, JournalOptions{Sink: sink, DrainBatch: 10, SegmentBytes: 16 << 10})
	want := map[string]Entry{"late/1": entry("late", 1, true)}
	for _, o := range j.Recovered() {
		want[string(o.Reserve.Request)+"/1"] = o.Lost(t0)
	}
	if got, err := j.SettleLost(t0); got != n || err != nil {
		t.Errorf("settled %d, %v; want %d", got, err, n)
	}
	if got, err := j.SettleLost(t0); got != 0 || err != nil || len(j.Recovered()) != 0 {
		t.Errorf("once more settled %d, %v", got, err)
	}
	got := map[string]Entry{}
	must(t, j.Undrained(func(es []Entry) error {
		for _, e := range es {
			got[fmt.Sprintf("%s/%d", e.Request, e.Attempt)] = e
		}
		return nil
	}))
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("undrained (-want +got):\n%s", d)
	}
	stop := errors.New("enough")
	if err := j.Undrained(func([]Entry) error { return stop }); err != stop {
		t.Errorf("got %v, want what visit says", err)
	}
	sink.fail(nil)
	must(t, j.Flush(t.Context()))
	must(t, j.Undrained(func(es []Entry) error { return fmt.Errorf("%d entries are left", len(es)) }))
	if len(sink.keys()) != n+2 {
		t.Errorf("sink has %d entries, want %d", len(sink.keys()), n+2)
	}
}

func TestLost(t *testing.T) {
	now := t0.Add(time.Minute)
	o := Open{Reserve: reserve("a"), Dispatch: dispatch("a", 2), Final: true}
	tests := []struct {
		name       string
		open       Open
		wantUsage  sluice.Usage
		wantCost   sluice.Nano
		wantHigh   sluice.Nano
		wantSource sluice.UsageSource
	}{
		{"no checkpoint: the estimate", o, o.Dispatch.Estimate, 40_000, 70_000, sluice.UsageEstimated},
		{"checkpoint below the estimate", with(o, checkpoint("a", 2, 10, 9_000)), o.Dispatch.Estimate, 40_000, 70_000, sluice.UsageEstimated},
		{"checkpoint above", with(o, checkpoint("a", 2, 900, 90_000)), checkpoint("a", 2, 900, 0).Usage, 90_000, 90_000, sluice.UsageCounted},
		{"never dispatched", Open{Reserve: reserve("a"), Final: true}, sluice.Usage{}, 0, 0, sluice.UsageNone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := tt.open.Lost(now)
			tt.wantUsage.Source = tt.wantSource
			if e.Usage != tt.wantUsage || e.Cost != tt.wantCost || e.CostHigh != tt.wantHigh {
				t.Errorf("got %+v %v %v, want %+v %v %v", e.Usage, e.Cost, e.CostHigh, tt.wantUsage, tt.wantCost, tt.wantHigh)
			}
			if e.Outcome != sluice.Expired || e.Reason != sluice.Lost || !e.Final || e.Attempt != tt.open.Attempt() || !e.At.Equal(t0) {
				t.Errorf("got %+v", e)
			}
		})
	}
}

func with(o Open, c Checkpoint) Open {
	o.Checkpoint = c
	return o
}

// A process that dies leaves any prefix of its last write. Whatever is whole is
// there, nothing else, and the journal goes on.
func TestTornTailAtEveryByte(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, JournalOptions{})
	path := segmentPath(dir, 1)
	ends := []int64{headerLen}
	for _, write := range []func() error{
		func() error { return j.Begin(reserve("a"), dispatch("a", 1)) },
		func() error { return j.Checkpoint(checkpoint("a", 1, 5, 5)) },
		func() error { return j.Settle(entry("a", 1, true)) },
		func() error { return j.Reserve(reserve("b")) },
		func() error { return j.Release("b") },
	} {
		must(t, write())
		ends = append(ends, j.segs[0].size)
	}
	crash(t, j)
	whole, err := os.ReadFile(path)
	must(t, err)
	sub, d := t.TempDir(), &disk{noSync: true}
	for n := range int64(len(whole)) + 1 {
		must(t, os.WriteFile(segmentPath(sub, 1), whole[:n], 0o600))
		sink := &memory{}
		j, err := OpenJournal(sub, JournalOptions{Sink: sink, Ballast: -1, OpenFile: d.open})
		must(t, err)
		opens, settled := len(j.Recovered()), 0
		wantOpen := 0
		switch {
		case n > headerLen && n < ends[1]:
			wantOpen = opens // the reservation may be whole without its dispatch
		case n >= ends[1] && n < ends[3], n >= ends[4] && n < ends[5]:
			wantOpen = 1
		}
		if n >= ends[3] {
			settled = 1
		}
		must(t, j.Settle(entry("next", 1, true)), j.Close(t.Context()))
		if opens != wantOpen || len(sink.keys()) != settled+1 {
			t.Fatalf("cut at %d: %d open and %d settled, want %d and %d", n, opens, len(sink.keys())-1, wantOpen, settled)
		}
		must(t, os.Remove(segmentPath(sub, 1)))
	}
}

// The next segment is on disk before the last one is sealed: a loss of power in
// between leaves a torn end in one and nothing, or a header that is not there yet,
// in the other.
func TestTornBeforeAnEmptySegment(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, JournalOptions{})
	must(t, j.Begin(reserve("a"), dispatch("a", 1)))
	first := j.segs[0].size
	must(t, j.Settle(entry("a", 1, true)))
	crash(t, j)
	whole, err := os.ReadFile(segmentPath(dir, 1))
	must(t, err)
	sub := t.TempDir()
	for _, next := range [][]byte{header(2), make([]byte, headerLen), append(header(2)[:12], make([]byte, 8)...), header(2)[:7], {}} {
		for _, n := range []int64{first, first + 9, int64(len(whole)) - 1, int64(len(whole))} {
			must(t, os.WriteFile(segmentPath(sub, 1), whole[:n], 0o600), os.WriteFile(segmentPath(sub, 2), next, 0o600))
			for life := range 2 { // the second finds what the first has mended
				sink := &memory{}
				j, err := OpenJournal(sub, JournalOptions{Sink: sink, Ballast: -1})
				must(t, err)
				_, err = j.SettleLost(time.Now())
				must(t, err, j.Settle(entry(fmt.Sprint("next", life), 1, true)), j.Close(t.Context()))
				if life == 0 && len(sink.keys()) != 2 {
					t.Fatalf("cut at %d, followed by %x: %v are settled, want a and the next", n, next, sink.keys())
				}
			}
			segments, err := filepath.Glob(filepath.Join(sub, "journal-*.log"))
			must(t, err)
			for _, path := range segments {
				must(t, os.Remove(path))
			}
		}
	}
	must(t, os.WriteFile(segmentPath(sub, 1), whole[:first+9], 0o600), os.WriteFile(segmentPath(sub, 2), append(header(2), whole[headerLen:]...), 0o600))
	if _, err := OpenJournal(sub, JournalOptions{}); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("a torn segment before one that has records: got %v", err)
	}
}

// A loss of power keeps any of the pages from the disk that were written since the
// last fsync: all records that are whole count, and the journal goes on.
func TestPagesThatNeverReachedTheDisk(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, JournalOptions{})
	ends := []int64{headerLen}
	settle := func(i int) {
		must(t, j.Settle(entry(fmt.Sprintf("r%03d", i), 1, true)))
		ends = append(ends, j.segs[0].size)
	}
	for i := range 20 {
		settle(i)
	}
	must(t, j.Sync(t.Context()))
	synced := j.segs[0].size
	for i := range 120 {
		settle(20 + i)
	}
	crash(t, j)
	path := segmentPath(dir, 1)
	whole, err := os.ReadFile(path)
	must(t, err)
	d := &disk{noSync: true}
	rapid.Check(t, func(t *rapid.T) {
		b := slices.Clone(whole)
		lost := make([]bool, len(ends)) // by record, as it begins at ends[i]
		for from := synced; from < int64(len(b)); {
			to := min((from/page+1)*page, int64(len(b)))
			// What is left of a page at its end is fewer bytes than show what they were.
			if to-from > 2*frameHeader && rapid.Bool().Draw(t, "lost") {
				clear(b[from:to])
				for i := range ends[:len(ends)-1] {
					lost[i] = lost[i] || ends[i] < to && ends[i+1] > from
				}
			}
			from = to
		}
		sub, sink, holes := fresh(t), &memory{}, int64(0)
		defer os.RemoveAll(sub)
		if err := os.WriteFile(segmentPath(sub, 1), b, 0o600); err != nil {
			t.Fatal(err)
		}
		for life := range 2 {
			j, err := OpenJournal(sub, JournalOptions{Sink: sink, Ballast: -1, OpenFile: d.open, Hooks: Hooks{Hole: func(_ string, _, n int64) { holes += n }}})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(j.Settle(entry(fmt.Sprint("life", life), 1, true)), j.Flush(context.Background()), j.Close(context.Background())); err != nil {
				t.Fatal(err)
			}
		}
		want := []string{}
		for i, lost := range lost[:len(ends)-1] {
			if !lost {
				want = append(want, fmt.Sprintf("r%03d/1", i))
			}
		}
		if d := cmp.Diff(append(want, "life0/1", "life1/1"), sink.keys()); d != "" {
			t.Errorf("in the sink (-want +got):\n%s", d)
		}
		if told := holes > 0; told && !slices.Contains(lost, true) {
			t.Errorf("told of holes of %d bytes", holes)
		}
	})
}

func fresh(t *rapid.T) string {
	dir, err := os.MkdirTemp("", "sluice-journal-")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Bytes that changed after they were written are damage: the journal refuses,
// names the place and touches nothing.
func TestDamageInTheMiddleRefuses(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, JournalOptions{})
	must(t, j.Begin(reserve("a"), dispatch("a", 1)))
	second := j.segs[0].size
	must(t, j.Settle(entry("a", 1, true)), j.Settle(entry("b", 1, true)))
	crash(t, j)
	path := segmentPath(dir, 1)
	whole, err := os.ReadFile(path)
	must(t, err)
	for _, off := range []int64{second, second + 1, second + 5, second + frameHeader, second + 60} {
		b := slices.Clone(whole)
		b[off] ^= 0xff
		must(t, os.WriteFile(path, b, 0o600))
		_, err = OpenJournal(dir, JournalOptions{})
		d, ok := errors.AsType[*DamageError](err)
		if !ok || d.Offset != second || d.File != path {
			t.Fatalf("byte %d flipped: got %v, want damage at %d", off, err, second)
		}
		if after, _ := os.ReadFile(path); !slices.Equal(after, b) {
			t.Fatal("the damaged file was changed")
		}
	}
	if !strings.Contains(err.Error(), fmt.Sprintf("truncate -s %d %s", second, path)) {
		t.Errorf("the error does not say what to do: %v", err)
	}
	must(t, os.WriteFile(path, append([]byte("not a journal segment"), whole[21:]...), 0o600))
	if _, err := OpenJournal(dir, JournalOptions{}); err == nil || !strings.Contains(err.Error(), "header is damaged") {
		t.Errorf("damaged header: got %v", err)
	}
}

func TestMissingSegmentRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, seq := range []uint32{1, 3} {
		must(t, os.WriteFile(segmentPath(dir, seq), header(seq), 0o600))
	}
	if _, err := OpenJournal(dir, JournalOptions{}); err == nil || !strings.Contains(err.Error(), segmentPath(dir, 2)+" is missing") {
		t.Errorf("got %v", err)
	}
}

func TestSecondProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	open(t, dir, JournalOptions{})
	_, err := OpenJournal(dir, JournalOptions{})
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("got %v", err)
	}
}

// A checkpoint that is in a later segment than its dispatch is not lost when the
// dispatch is carried over.
func TestCheckpointIsCarriedWithItsDispatch(t *testing.T) {
	for stop := 10; stop < 150; stop += 7 {
		dir, d := t.TempDir(), &disk{noSync: true}
		j := open(t, dir, JournalOptions{Sink: &memory{}, SegmentBytes: 4 << 10, SyncEvery: time.Microsecond, OpenFile: d.open})
		must(t, j.Begin(reserve("long"), dispatch("long", 1)))
		var want Checkpoint
		for i := range stop {
			must(t, j.Settle(entry(fmt.Sprint("r", i), 1, true)))
			if i%10 == 8 {
				want = checkpoint("long", 1, sluice.Tokens(i), sluice.Nano(i))
				must(t, j.Checkpoint(want))
			}
			if i%5 == 4 {
				must(t, j.Flush(t.Context()), j.Sync(t.Context()))
			}
		}
		must(t, j.Flush(t.Context()), j.Close(t.Context()))
		j = open(t, dir, JournalOptions{OpenFile: d.open})
		got := j.Recovered()
		if diff := cmp.Diff([]Open{{Reserve: reserve("long"), Dispatch: dispatch("long", 1), Checkpoint: want, Final: true}}, got); diff != "" {
			t.Fatalf("after %d others, recovered (-want +got):\n%s", stop, diff)
		}
		must(t, j.Close(t.Context()))
	}
}

// Old segments go once they are drained, also when a request that began in the
// first is still open at the end.
func TestSegmentsAreDeleted(t *testing.T) {
	dir := t.TempDir()
	sink := &memory{}
	j := open(t, dir, JournalOptions{Sink: sink, SegmentBytes: 4 << 10, SyncEvery: time.Microsecond})
	must(t, j.Begin(reserve("long"), dispatch("long", 1)), j.Checkpoint(checkpoint("long", 1, 7, 7)), j.Reserve(reserve("waits")))
	for i := range 200 {
		must(t, j.Settle(entry(fmt.Sprint("r", i), 1, true)))
		if i%10 == 9 {
			must(t, j.Flush(t.Context()), j.Sync(t.Context()))
		}
	}
	must(t, j.Flush(t.Context()), j.Close(t.Context()))
	names, _ := filepath.Glob(filepath.Join(dir, "journal-*"))
	if len(names) > 4 {
		t.Errorf("%d segments are left: %v", len(names), names)
	}
	if _, err := os.Stat(segmentPath(dir, 1)); !os.IsNotExist(err) {
		t.Errorf("the first segment is still there")
	}
	j = open(t, dir, JournalOptions{})
	want := []Open{
		{Reserve: reserve("long"), Dispatch: dispatch("long", 1), Checkpoint: checkpoint("long", 1, 7, 7), Final: true},
		{Reserve: reserve("waits"), Final: true},
	}
	got := j.Recovered()
	slices.SortFunc(got, func(a, b Open) int { return strings.Compare(string(a.Reserve.Request), string(b.Reserve.Request)) })
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("recovered (-want +got):\n%s", d)
	}
	if got := len(sink.keys()); got != 200 {
		t.Errorf("sink has %d entries, want 200", got)
	}
}

// What power loss can take is what was written in the last 10 ms: the fsync that
// covers a record begins that long after it at the latest, whatever else is written.
func TestGroupsBeginInTime(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		j := open(t, t.TempDir(), JournalOptions{})
		var ends []lsn // by the millisecond
		for ms := range 200 {
			if ms%3 != 0 || ms%40 < 5 {
				must(t, j.Reserve(reserve(fmt.Sprint(ms))))
			}
			synctest.Wait()
			j.mu.Lock()
			ends = append(ends, j.end())
			if ms >= 10 && j.synced < ends[ms-10] {
				t.Errorf("at %d ms what was written 10 ms before is not on disk", ms)
			}
			j.mu.Unlock()
			time.Sleep(time.Millisecond)
		}
	})
}

func TestDrainBatches(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		sink := &memory{}
		j := open(t, t.TempDir(), JournalOptions{Sink: sink, DrainBatch: 10})
		start := time.Now()
		must(t, j.Settle(entry("a", 1, true)))
		synctest.Wait()
		if len(sink.keys()) != 0 || j.Lag().Entries != 1 {
			t.Errorf("drained without waiting for a batch; lag %+v", j.Lag())
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if len(sink.keys()) != 1 || j.Lag().Entries != 0 || time.Since(start) != 500*time.Millisecond {
			t.Errorf("after 500 ms: %v, lag %+v", sink.keys(), j.Lag())
		}
		for i := range 25 {
			must(t, j.Settle(entry(fmt.Sprint(i), 1, true)))
		}
		synctest.Wait()
		if got := len(sink.keys()); got < 11 {
			t.Errorf("full batches wait: %d drained", got)
		}
		must(t, j.Flush(t.Context()))
		if slices.Max(sink.batches) > 10 {
			t.Errorf("batches of %v", sink.batches)
		}
	})
}

// A sink that is down delays the drain, with growing pauses, and loses nothing.
func TestFailingSinkLosesNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		sink := &memory{err: errors.New("database is locked")}
		var pauses []time.Duration
		j := open(t, t.TempDir(), JournalOptions{
			Sink: sink, RetryMax: time.Second,
			Hooks: Hooks{DrainFailed: func(_ error, in time.Duration) { pauses = append(pauses, in) }},
		})
		for i := range 1200 {
			must(t, j.Begin(reserve(fmt.Sprint(i)), dispatch(fmt.Sprint(i), 1)), j.Settle(entry(fmt.Sprint(i), 1, true)))
		}
		time.Sleep(10 * time.Second)
		if lag := j.Lag(); lag.Entries != 1200 || lag.Age < 10*time.Second {
			t.Errorf("lag %+v", lag)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := j.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("flush: got %v", err)
		}
		sink.fail(nil)
		must(t, j.Flush(t.Context()))
		if sink.seen != 1200 || len(sink.keys()) != 1200 {
			t.Errorf("sink saw %d", sink.seen)
		}
		if pauses[0] != retryMin || pauses[1] != 2*retryMin || slices.Max(pauses) != time.Second {
			t.Errorf("pauses %v", pauses)
		}
	})
}

// What was drained is not drained again after a restart, and what was not, is.
func TestDrainGoesOnAfterRestart(t *testing.T) {
	dir := t.TempDir()
	sink := &memory{}
	j := open(t, dir, JournalOptions{Sink: sink})
	must(t, j.Settle(entry("a", 1, true)), j.Flush(t.Context()))
	sink.fail(errors.New("down"))
	must(t, j.Settle(entry("b", 1, true)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	must(t, j.Close(ctx))
	sink.fail(nil)
	j = open(t, dir, JournalOptions{Sink: sink})
	must(t, j.Flush(t.Context()))
	if sink.seen != 2 || !slices.Equal(sink.keys(), []string{"a/1", "b/1"}) {
		t.Errorf("sink saw %d entries: %v", sink.seen, sink.keys())
	}
}

func TestSyncGroups(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		d := &disk{}
		j := open(t, t.TempDir(), JournalOptions{OpenFile: d.open})
		synctest.Wait()
		d.set(func(d *disk) { d.syncs = 0 })
		for i := range 100 {
			must(t, j.Reserve(reserve(fmt.Sprint(i))))
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if d.syncs != 1 || j.synced != j.end() {
			t.Errorf("%d fsyncs for one group", d.syncs)
		}
		time.Sleep(time.Minute)
		if d.syncs != 1 {
			t.Errorf("%d fsyncs of a clean journal", d.syncs)
		}
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 50 {
			must(t, j.Reserve(reserve(fmt.Sprint("w", i))))
			wg.Go(func() { must(t, j.Sync(t.Context())) })
		}
		wg.Wait()
		if time.Since(start) != 0 || d.syncs > 52 {
			t.Errorf("waited %v in %d fsyncs", time.Since(start), d.syncs)
		}
	})
}

// A full disk: admission stops with ledger_busy, no byte of the failed write
// stays, settlements use the ballast, then wait in memory; all goes on by itself
// when space returns.
func TestDiskFull(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		d, sink := &disk{}, &memory{}
		j := open(t, dir, JournalOptions{Sink: sink, OpenFile: d.open, Ballast: 64 << 10, KeepMax: 2})
		must(t, j.Begin(reserve("a"), dispatch("a", 1)), j.Begin(reserve("b"), dispatch("b", 1)))
		d.set(func(d *disk) { d.writeErr, d.short = syscall.ENOSPC, 7 })
		err := j.Reserve(reserve("c"))
		if e := sluice.AsError(err); e.Reason != sluice.LedgerBusy || e.Kind != sluice.KindOverloaded || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("reserve: got %v", err)
		}
		if info, _ := os.Stat(segmentPath(dir, 1)); info.Size() != j.segs[0].size {
			t.Errorf("the file has %d bytes, the records %d", info.Size(), j.segs[0].size)
		}
		for i, id := range []string{"a", "b", "x"} {
			err := j.Settle(entry(id, 1, true))
			if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, ErrNotKept) != (i == 2) {
				t.Errorf("settle %s: got %v", id, err)
			}
		}
		if _, err := os.Stat(j.ballastPath()); !os.IsNotExist(err) {
			t.Error("the ballast was not freed")
		}
		if l := j.Lag(); l.Kept != 2 || l.Entries != 2 || j.Err() == nil {
			t.Errorf("lag %+v, err %v", l, j.Err())
		}
		time.Sleep(time.Minute)
		d.set(func(d *disk) { d.writeErr = nil })
		must(t, j.Flush(t.Context()))
		if !slices.Equal(sink.keys(), []string{"a/1", "b/1"}) {
			t.Errorf("sink %v", sink.keys())
		}
		time.Sleep(2 * time.Second)
		if _, err := os.Stat(j.ballastPath()); err != nil || j.Err() != nil {
			t.Errorf("the ballast was not set aside again: %v, %v", err, j.Err())
		}
		must(t, j.Reserve(reserve("c")))
	})
}

func TestBallastTakesSettlements(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		d, sink := &disk{}, &memory{}
		dir := t.TempDir()
		j := open(t, dir, JournalOptions{Sink: sink, OpenFile: d.open, Ballast: 64 << 10})
		must(t, j.Begin(reserve("a"), dispatch("a", 1)))
		// The disk is full for as long as the ballast exists.
		d.set(func(d *disk) { d.writeErr = syscall.ENOSPC })
		j.mu.Lock()
		j.f = &untilGone{j.f, j.ballastPath(), d}
		j.mu.Unlock()
		must(t, j.Settle(entry("a", 1, true)))
		if err := j.Reserve(reserve("b")); sluice.AsError(err).Reason != sluice.LedgerBusy {
			t.Errorf("reserve on the ballast: got %v", err)
		}
		must(t, j.Flush(t.Context()))
	})
}

// untilGone lets writes through once a file has been deleted.
type untilGone struct {
	File
	path string
	d    *disk
}

func (f *untilGone) WriteAt(p []byte, off int64) (int, error) {
	if _, err := os.Stat(f.path); os.IsNotExist(err) {
		return f.File.(*diskFile).File.WriteAt(p, off)
	}
	return f.File.WriteAt(p, off)
}

// A partial write that cannot even be cut away is cut away before the next.
func TestPartialWriteIsCutAway(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		d := &disk{}
		j := open(t, dir, JournalOptions{OpenFile: d.open})
		must(t, j.Reserve(reserve("a")))
		d.set(func(d *disk) { d.writeErr, d.short, d.truncErr = syscall.EIO, 50, syscall.EIO })
		if j.Reserve(reserve("b")) == nil || j.Reserve(reserve("c")) == nil {
			t.Fatal("no error")
		}
		d.set(func(d *disk) { d.writeErr, d.truncErr = nil, nil })
		must(t, j.Release("a"), j.Close(t.Context()))
		j = open(t, dir, JournalOptions{})
		if len(j.Recovered()) != 0 {
			t.Errorf("recovered %v", j.Recovered())
		}
	})
}

// A failed fsync may have dropped the pages: the records are written again
// before the next one, and nobody is told that they are safe in between.
func TestFailedSyncIsWrittenAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		d := &disk{}
		j := open(t, dir, JournalOptions{OpenFile: d.open})
		must(t, j.Reserve(reserve("a")), j.Sync(t.Context()))
		d.set(func(d *disk) { d.syncErr = syscall.EIO })
		must(t, j.Reserve(reserve("b")))
		if err := j.Sync(t.Context()); !errors.Is(err, syscall.EIO) || sluice.AsError(err).Reason != sluice.LedgerBusy {
			t.Errorf("sync: got %v", err)
		}
		if err := j.Reserve(reserve("c")); !errors.Is(err, syscall.EIO) {
			t.Errorf("reserve: got %v", err)
		}
		must(t, j.Release("a")) // ends are recorded all the same
		if err := j.Sync(t.Context()); err == nil {
			t.Error("sync said yes while the disk fails")
		}
		d.set(func(d *disk) { d.syncErr = nil })
		time.Sleep(2 * time.Second)
		must(t, j.Err(), j.Reserve(reserve("c")), j.Sync(t.Context()))
	})
}

func TestClosedJournal(t *testing.T) {
	j := open(t, t.TempDir(), JournalOptions{Sink: &memory{}})
	must(t, j.Settle(entry("a", 1, true)), j.Close(t.Context()))
	for name, err := range map[string]error{
		"reserve": j.Reserve(reserve("b")), "settle": j.Settle(entry("b", 1, true)), "sync": j.Sync(t.Context()), "close": j.Close(t.Context()),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	must(t, j.Flush(t.Context())) // all is drained
}

// A sink that has lost what it had taken is given it again, also while a batch is
// under way, and what it has it takes once.
func TestRewind(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		dir, sink := t.TempDir(), &memory{}
		j := open(t, dir, JournalOptions{Sink: sink, DrainBatch: 7})
		if _, ok, err := j.LastDrained(); ok || err != nil {
			t.Errorf("of an empty journal: %v %v", ok, err)
		}
		for i := range 20 {
			must(t, j.Settle(entry(fmt.Sprint("r", i), 1, true)))
		}
		must(t, j.Flush(t.Context()), j.Reserve(reserve("open")), j.Close(t.Context()))

		sink.fail(errors.New("not there yet"))
		j = open(t, dir, JournalOptions{Sink: sink, DrainBatch: 7})
		must(t, j.Settle(entry("new", 1, true)))
		last, ok, err := j.LastDrained()
		if d := cmp.Diff(entry("r19", 1, true), last); d != "" || !ok || err != nil {
			t.Errorf("last drained: %v %v %s", ok, err, d)
		}
		sink.mu.Lock()
		for i := range 5 {
			delete(sink.entries, fmt.Sprintf("r%d/1", 19-i))
		}
		sink.mu.Unlock()
		if n, err := j.Rewind(); n != 20 || err != nil {
			t.Errorf("rewound over %d, %v", n, err)
		}
		if l := j.Lag(); l.Entries != 21 {
			t.Errorf("lag %+v", l)
		}
		sink.fail(nil)
		must(t, j.Flush(t.Context()))
		if got := len(sink.entries); got != 21 || j.Lag().Entries != 0 {
			t.Errorf("the sink has %d entries, want 21; lag %+v", got, j.Lag())
		}
		must(t, j.Close(t.Context()))
		j = open(t, dir, JournalOptions{Sink: sink})
		if last, ok, err := j.LastDrained(); !ok || err != nil || last.Request != "new" {
			t.Errorf("last drained: %v %v %s", ok, err, last.Request)
		}
	})
}
