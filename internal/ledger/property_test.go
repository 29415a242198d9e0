package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
)

// world drives a journal through any order of calls, restarts, kills and
// failures of sink and disk, beside a model of what must be true: every attempt
// that was dispatched ends in the sink exactly once, settled as it was told or
// lost.
type world struct {
	t    *rapid.T
	dir  string
	disk *disk
	sink *memory
	j    *Journal

	next    int
	open    map[string]int   // request → running attempt, 0 if none
	settled map[string]Entry // request/attempt → the first entry that was told
}

func (w *world) start() {
	j, err := OpenJournal(w.dir, JournalOptions{
		Sink: w.sink, SegmentBytes: 2 << 10, SyncEvery: time.Microsecond, DrainEvery: time.Microsecond, DrainBatch: 3,
		RetryMax: time.Millisecond, Ballast: -1, OpenFile: w.disk.open,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.j = j
	got := map[string]int{}
	for _, o := range j.Recovered() {
		if !o.Final || o.Reserve.Principal.Tenant == "" {
			w.t.Fatalf("recovered %+v", o)
		}
		got[string(o.Reserve.Request)] = o.Attempt()
	}
	if fmt.Sprint(got) != fmt.Sprint(w.open) {
		w.t.Fatalf("open after a restart: %v, want %v", got, w.open)
	}
}

// kill ends the process without a word, perhaps in the middle of a write.
func (w *world) kill() {
	j := w.j
	j.cancel()
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	close(j.stopDrain)
	j.wg.drainer.Wait()
	close(j.stopSync)
	j.wg.syncer.Wait()
	if err := errors.Join(j.f.Close(), j.lock.Unlock()); err != nil {
		w.t.Fatal(err)
	}
	last := segmentPath(w.dir, j.segs[len(j.segs)-1].seq)
	e := entry("torn", 1, true)
	whole := appendEntry(nil, &e)
	f, err := os.OpenFile(last, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.Write(whole[:rapid.IntRange(0, len(whole)-1).Draw(w.t, "torn")])
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.start()
}

func (w *world) pick() (string, int) {
	if len(w.open) == 0 {
		return "", 0
	}
	ids := make([]string, 0, len(w.open))
	for id := range w.open {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	id := rapid.SampledFrom(ids).Draw(w.t, "id")
	return id, w.open[id]
}

func (w *world) settle(e Entry) {
	if err := w.j.Settle(e); err != nil {
		w.t.Fatal(err)
	}
	k := fmt.Sprintf("%s/%d", e.Request, e.Attempt)
	if _, ok := w.settled[k]; !ok {
		w.settled[k] = e
	}
}

func (w *world) step() {
	t := w.t
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	id, n := w.pick()
	switch op := rapid.SampledFrom([]string{
		"begin", "begin", "begin", "reserve", "dispatch", "checkpoint", "checkpoint", "settle", "settle", "settle", "retry",
		"twice", "release", "shed", "sink", "full", "flush", "sync", "kill", "close",
	}).Draw(t, "op"); op {
	case "begin", "reserve":
		w.next++
		id = fmt.Sprint("r", w.next)
		if op == "begin" {
			check(w.j.Begin(reserve(id), dispatch(id, 1)))
			w.open[id] = 1
			break
		}
		check(w.j.Reserve(reserve(id)))
		w.open[id] = 0
	case "dispatch":
		if id != "" && n == 0 {
			w.next++
			check(w.j.Dispatch(dispatch(id, w.next)))
			w.open[id] = w.next
		}
	case "checkpoint":
		if n > 0 {
			check(w.j.Checkpoint(checkpoint(id, n, 5, 5)))
		}
	case "settle":
		if n > 0 {
			w.settle(entry(id, n, true))
			delete(w.open, id)
		}
	case "retry":
		if n > 0 {
			w.settle(entry(id, n, false))
			w.open[id] = 0
		}
	case "twice":
		for k, e := range w.settled {
			if _, open := w.open[string(e.Request)]; !open && k != "" {
				e.Cost++
				w.settle(e)
				break
			}
		}
	case "release":
		if id != "" && n == 0 {
			check(w.j.Release(sluice.RequestID(id)))
			delete(w.open, id)
		}
	case "shed":
		w.next++
		w.settle(entry(fmt.Sprint("s", w.next), 0, true))
	case "sink":
		w.sink.mu.Lock()
		if w.sink.err == nil {
			w.sink.err = errors.New("down")
		} else {
			w.sink.err = nil
		}
		w.sink.mu.Unlock()
	case "full":
		w.disk.set(func(d *disk) { d.writeErr, d.short = errors.New("disk full"), rapid.IntRange(0, 40).Draw(t, "short") })
		if w.j.Reserve(reserve("refused")) == nil {
			t.Fatal("a full disk took a record")
		}
		w.disk.set(func(d *disk) { d.writeErr = nil })
	case "flush":
		w.sink.fail(nil)
		check(w.j.Flush(context.Background()))
		if got := len(w.sink.keys()); got != len(w.settled) {
			t.Fatalf("flushed: the sink has %d entries, want %d", got, len(w.settled))
		}
	case "sync":
		check(w.j.Sync(context.Background()))
	case "kill":
		w.kill()
	case "close":
		w.sink.fail(nil)
		check(w.j.Close(context.Background()))
		w.start()
	}
}

func TestAnyOrderOfEvents(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "journal")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		w := &world{t: rt, dir: dir, disk: &disk{noSync: true}, sink: &memory{}, open: map[string]int{}, settled: map[string]Entry{}}
		w.start()
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			w.step()
		}
		w.sink.fail(nil)
		w.kill()
		for _, o := range w.j.Recovered() {
			w.settle(o.Lost(t0.Add(time.Minute)))
		}
		if err := w.j.Close(context.Background()); err != nil {
			rt.Fatal(err)
		}
		for k, want := range w.settled {
			if got := w.sink.entries[k]; got.Cost != want.Cost || got.Reason != want.Reason {
				rt.Fatalf("%s: the sink has %v %v, want %v %v", k, got.Reason, got.Cost, want.Reason, want.Cost)
			}
		}
		if len(w.sink.entries) != len(w.settled) {
			rt.Fatalf("the sink has %d entries, want %d", len(w.sink.entries), len(w.settled))
		}
	})
}
