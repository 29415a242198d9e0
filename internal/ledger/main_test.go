package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a Sink that keeps what it gets, once per (request, attempt).
type memory struct {
	mu      sync.Mutex
	entries map[string]Entry
	order   []string
	batches []int
	seen    int // entries handed over, duplicates included
	err     error
}

func (m *memory) Append(_ context.Context, es []Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	if m.entries == nil {
		m.entries = map[string]Entry{}
	}
	m.batches = append(m.batches, len(es))
	m.seen += len(es)
	for _, e := range es {
		k := fmt.Sprintf("%s/%d", e.Request, e.Attempt)
		if _, ok := m.entries[k]; !ok {
			m.entries[k] = e
			m.order = append(m.order, k)
		}
	}
	return nil
}

func (m *memory) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

func (m *memory) keys() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.order)
}

// disk makes the files of a journal fail on demand.
type disk struct {
	mu        sync.Mutex
	writeErr  error
	short     int // bytes of a failing write that arrive
	syncErr   error
	truncErr  error
	createErr error
	syncs     int
	noSync    bool // for tests that open many journals
}

func (d *disk) set(f func(d *disk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d)
}

func (d *disk) open(path string, flag int) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if flag&os.O_CREATE != 0 && d.createErr != nil {
		return nil, d.createErr
	}
	f, err := OpenFile(path, flag)
	return &diskFile{f, d}, err
}

type diskFile struct {
	File
	d *disk
}

func (f *diskFile) WriteAt(p []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.writeErr != nil {
		n, _ := f.File.WriteAt(p[:min(f.d.short, len(p))], off)
		return n, f.d.writeErr
	}
	return f.File.WriteAt(p, off)
}

func (f *diskFile) Sync() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.syncs++
	if f.d.syncErr != nil {
		return f.d.syncErr
	}
	if f.d.noSync {
		return nil
	}
	return f.File.Sync()
}

func (f *diskFile) Truncate(n int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.truncErr != nil {
		return f.d.truncErr
	}
	return f.File.Truncate(n)
}

var t0 = time.Date(2026, 11, 1, 12, 0, 0, 123_456_000, time.UTC)

func reserve(id string) Reserve {
	return Reserve{
		Request: sluice.RequestID(id), At: t0,
		Principal: sluice.Principal{Tenant: "acme", Project: "web", Key: "k1", User: "u-7", Run: "run 7"},
		Task:      "summary", Labels: []sluice.Label{{Key: "feature", Value: "inbox"}}, Class: sluice.Batch, Model: "fast",
		Stream: true, Operation: "chat", Dialect: "openai", Policy: "v3",
		EstimatedInput: 1500, OutputBound: 4096, HeldSpend: 70_000,
	}
}

func dispatch(id string, n int) Dispatch {
	return Dispatch{
		Request: sluice.RequestID(id), Attempt: n, At: t0.Add(time.Second),
		Pool: "chat", Backend: "oai", Provider: "openai", UpstreamModel: "gpt-x", PriceVersion: "2026-11",
		Estimate: sluice.Usage{Input: 1500, Output: 300, Source: sluice.UsageEstimated}, Cost: 40_000, CostHigh: 70_000,
	}
}

func checkpoint(id string, n int, out sluice.Tokens, cost sluice.Nano) Checkpoint {
	return Checkpoint{
		Request: sluice.RequestID(id), Attempt: n, At: t0.Add(3 * time.Second),
		Usage: sluice.Usage{Input: 1480, Output: out, Source: sluice.UsageCounted}, Cost: cost, CostHigh: cost,
	}
}

func entry(id string, n int, final bool) Entry {
	return Entry{
		Request: sluice.RequestID(id), Attempt: n, At: t0, Ended: t0.Add(5 * time.Second),
		Tenant: "acme", Project: "web", Key: "k1", User: "u-7", Run: "r-9", Task: "summary",
		Labels: []sluice.Label{{Key: "feature", Value: "inbox"}}, Class: sluice.Batch, Model: "fast", ShadowOf: "first", Finish: "length",
		Pool: "chat", Backend: "oai", Provider: "openai", UpstreamModel: "gpt-x", ServedModel: "gpt-x-0613", UpstreamRequestID: "req_1", Policy: "v3",
		Final: final, Outcome: sluice.Cancelled, Reason: sluice.ClientGone, Status: 499, Late: true, Stream: true, Operation: "chat", Dialect: "openai",
		Usage: sluice.Usage{
			Input: 1, CacheRead: 2, CacheWrite: 3, CacheWrite1h: 4, AudioInput: 5, Output: 6, Reasoning: 7, AudioOutput: 8,
			ToolCalls: 9, WebSearches: 10, ServiceTier: "flex", Source: sluice.UsageCounted, Anomalous: true,
		},
		Cost: 41, CostHigh: 42, PriceVersion: "2026-11", EstimatedInput: 1500, OutputBound: 4096, HeldSpend: 70_000,
		Queued: 12 * time.Millisecond, FirstToken: 80 * time.Millisecond, Duration: 5 * time.Second, Detail: []byte(`{"why":"test"}`),
	}
}

// open opens a journal for a test that closes it itself or leaves it to the
// cleanup.
func open(t testing.TB, dir string, o JournalOptions) *Journal {
	t.Helper()
	if o.Ballast == 0 {
		o.Ballast = -1
	}
	j, err := OpenJournal(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(context.Background()); err != nil && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
	return j
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// crash abandons a journal as the death of its process would: what was written
// is in the files, nothing else happens.
func crash(t testing.TB, j *Journal) {
	t.Helper()
	j.cancel()
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	close(j.stopDrain)
	j.wg.drainer.Wait()
	close(j.stopSync)
	j.wg.syncer.Wait()
	must(t, j.f.Close(), j.lock.Unlock())
}
