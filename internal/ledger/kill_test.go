package ledger

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
	"sluice/test/bubble"
)

// killDir is set in the process that TestKill starts and kills.
const killDir = "SLUICE_TEST_JOURNAL_DIR"

// victim runs requests for ever and says on its output what a client would know:
// which upstream calls were dialled, and which answers were settled.
func victim(dir string) {
	j, err := OpenJournal(dir, JournalOptions{SegmentBytes: 64 << 10, SyncEvery: time.Millisecond, Ballast: -1})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	var out sync.Mutex
	say := func(format string, args ...any) {
		out.Lock()
		defer out.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("w%d-%d", w, i)
				if j.Begin(reserve(id), dispatch(id, 1)) != nil {
					return
				}
				say("dialled %s", id)
				if i%3 == 0 {
					continue // a stream that goes on
				}
				if j.Settle(entry(id, 1, true)) != nil {
					return
				}
				say("settled %s", id)
			}
		})
	}
	wg.Wait()
}

// After kill -9 at any moment no upstream call lacks a record, and no settlement
// that was told is lost.
func TestKill(t *testing.T) {
	if dir := os.Getenv(killDir); dir != "" {
		victim(dir)
		return
	}
	for round := range 3 {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
		cmd.Env = append(os.Environ(), killDir+"="+dir)
		stdout, err := cmd.StdoutPipe()
		must(t, err, cmd.Start())
		dialled, settled := map[string]bool{}, map[string]bool{}
		lines := bufio.NewScanner(stdout)
		for n := 0; lines.Scan(); n++ {
			if n == 500+700*round {
				must(t, cmd.Process.Kill())
			}
			what, id, _ := strings.Cut(lines.Text(), " ")
			switch what {
			case "dialled":
				dialled[id] = true
			case "settled":
				settled[id] = true
			}
		}
		_ = cmd.Wait() // it was killed
		sink := &memory{}
		j := open(t, dir, JournalOptions{Sink: sink})
		must(t, j.Flush(context.Background()))
		lost := map[string]bool{}
		for _, o := range j.Recovered() {
			e := o.Lost(t0)
			id := string(e.Request)
			// Killed in the middle of its write, a request may have the first of
			// its two records; it was not dialled.
			if lost[id] = true; dialled[id] && (e.Cost == 0 || e.CostHigh < e.Cost) {
				t.Errorf("lost for nothing: %+v", e)
			}
		}
		for id := range dialled {
			_, told := sink.entries[id+"/1"]
			if told == lost[id] {
				t.Errorf("%s: settled %v, lost %v: want one of the two", id, told, lost[id])
			}
			if settled[id] && !told {
				t.Errorf("%s: its settlement is gone", id)
			}
		}
		if len(dialled) < 200 {
			t.Errorf("only %d calls", len(dialled))
		}
	}
}

// Many at once, over many segments.
func TestConcurrentUse(t *testing.T) {
	sink := &memory{}
	dir := t.TempDir()
	j := open(t, dir, JournalOptions{Sink: sink, SegmentBytes: 16 << 10, SyncEvery: time.Millisecond, DrainEvery: time.Millisecond, DrainBatch: 50})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 100 {
				id := fmt.Sprintf("w%d-%d", w, i)
				must(t, j.Begin(reserve(id), dispatch(id, 1)), j.Checkpoint(checkpoint(id, 1, 1, 1)))
				if i%10 == 0 {
					must(t, j.Sync(context.Background()))
				}
				if i%7 == 0 {
					must(t, j.Settle(entry(id, 1, false)), j.Dispatch(dispatch(id, 2)), j.Settle(entry(id, 2, true)))
					continue
				}
				must(t, j.Settle(entry(id, 1, true)))
			}
		})
	}
	wg.Wait()
	must(t, j.Flush(context.Background()))
	if l := j.Lag(); l.Open != 0 || l.Entries != 0 {
		t.Errorf("lag %+v", l)
	}
	must(t, j.Close(context.Background()))
	if got, want := len(sink.keys()), 8*(100+15); got != want {
		t.Errorf("sink has %d entries, want %d", got, want)
	}
	if j = open(t, dir, JournalOptions{}); len(j.Recovered()) != 0 {
		t.Errorf("%d are open", len(j.Recovered()))
	}
}

// A journal whose sink is down for long has a bound: beginnings are refused
// there, ends are not.
func TestBound(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		sink := &memory{err: context.DeadlineExceeded}
		j := open(t, t.TempDir(), JournalOptions{Sink: sink, SegmentBytes: 2 << 10, MaxBytes: 8 << 10})
		begin := func(n int) error {
			time.Sleep(time.Millisecond)
			return j.Begin(reserve(fmt.Sprint(n)), dispatch(fmt.Sprint(n), 1))
		}
		n := 0
		for ; n < 1000; n++ {
			if err := begin(n); err != nil {
				if sluice.AsError(err).Reason != sluice.LedgerBusy {
					t.Errorf("got %v", err)
				}
				break
			}
		}
		if n == 0 || n == 1000 {
			t.Fatalf("refused after %d", n)
		}
		for i := range n {
			must(t, j.Settle(entry(fmt.Sprint(i), 1, true)))
		}
		sink.fail(nil)
		must(t, j.Flush(context.Background()))
		synctest.Wait()
		must(t, begin(n))
	})
}

// Requests that stay open and fill several segments must not make the journal
// carry them over for ever.
func TestManyStayOpen(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		j := open(t, t.TempDir(), JournalOptions{Sink: &memory{}, SegmentBytes: 2 << 10})
		for i := range 100 {
			must(t, j.Begin(reserve(fmt.Sprint(i)), dispatch(fmt.Sprint(i), 1)), j.Settle(entry(fmt.Sprint("s", i), 1, true)))
			time.Sleep(time.Second)
		}
		synctest.Wait()
		l := j.Lag()
		if l.Open != 100 || l.Bytes > 2*(j.live+j.o.SegmentBytes)+j.o.SegmentBytes {
			t.Errorf("lag %+v with %d bytes live", l, j.live)
		}
		for i := range 100 {
			must(t, j.Settle(entry(fmt.Sprint(i), 1, true)))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if l := j.Lag(); l.Segments != 1 || j.live != 0 {
			t.Errorf("lag %+v with %d bytes live", l, j.live)
		}
	})
}
