package ledger

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"sluice"
)

// Sink takes settled entries. Append is idempotent by (Request, Attempt), all
// or nothing, and durable when it returns nil. It does not keep the slice.
type Sink interface {
	Append(ctx context.Context, entries []Entry) error
}

// Hooks tell what the journal does. Each may be nil; they must not block or call
// the journal.
type Hooks struct {
	Synced      func(took time.Duration, err error)           // after each group fsync
	Drained     func(entries int, took time.Duration)         // after each batch that the sink took
	DrainFailed func(err error, retryIn time.Duration)        // after each that it did not
	WriteFailed func(err error)                               // a record could not be written
	Recovered   func(open, undrained int, took time.Duration) // once, by OpenJournal
	Hole        func(file string, at, bytes int64)            // by OpenJournal, for records that power loss took from between others
}

// JournalOptions says how a journal behaves. Zero fields take the defaults.
type JournalOptions struct {
	Sink         Sink          // where settled entries go; nil drains nothing
	SegmentBytes int64         // size at which a segment is sealed; 0 is 16 MiB
	MaxBytes     int64         // size of all segments at which only ends are recorded; 0 is 4 GiB
	SyncEvery    time.Duration // longest time between a write and the start of its fsync, but for checkpoints; 0 is 10 ms
	DrainEvery   time.Duration // longest time that an entry waits for a batch; 0 is 500 ms
	DrainBatch   int           // most entries of a batch, which are held in memory; 0 is 2,000
	RetryMax     time.Duration // longest pause of a failing drain; 0 is 5 s
	SinkTimeout  time.Duration // longest time that the sink has for a batch; 0 is 30 s
	Ballast      int64         // bytes set aside for settlements on a full disk; 0 is 4 MiB, negative none
	KeepMax      int           // most settlements kept in memory while the disk refuses; 0 is 10,000
	Hooks        Hooks

	// OpenFile opens segments and ballast in place of os.OpenFile, for tests that
	// break the disk or watch it.
	OpenFile func(path string, flag int) (File, error)
}

func (o JournalOptions) withDefaults() JournalOptions {
	set(&o.SegmentBytes, 16<<20)
	o.SegmentBytes = min(o.SegmentBytes, maxSegment/2)
	set(&o.MaxBytes, 4<<30)
	o.MaxBytes = max(o.MaxBytes, 4*o.SegmentBytes) // the last segment is never deleted
	set(&o.SyncEvery, 10*time.Millisecond)
	set(&o.DrainEvery, 500*time.Millisecond)
	set(&o.DrainBatch, 2000)
	set(&o.RetryMax, 5*time.Second)
	set(&o.SinkTimeout, 30*time.Second)
	set(&o.Ballast, 4<<20)
	set(&o.KeepMax, 10_000)
	if o.OpenFile == nil {
		o.OpenFile = OpenFile
	}
	return o
}

func set[T int | int64 | time.Duration](v *T, def T) {
	if *v == 0 {
		*v = def
	}
}

// ErrClosed is wrapped by the errors of a closed journal.
var ErrClosed = errors.New("journal is closed")

// ErrNotKept is wrapped by the error of a Settle that could neither be written
// nor kept in memory. Its attempt is still open: a restart settles it as lost.
var ErrNotKept = errors.New("too many settlements wait for the disk")

// Journal is the durable record of requests in flight. See the package
// documentation. Its methods are safe for concurrent use.
type Journal struct {
	dir       string
	o         JournalOptions
	lock      *FileLock
	recovered []Open

	dirty chan struct{} // 1-buffered: something was written; wakes the syncer
	late  chan struct{} // 1-buffered: the same, but it may wait for a group that comes anyway
	hurry chan struct{} // 1-buffered: somebody waits in Sync, or a segment is full
	ready chan struct{} // 1-buffered: there is something to drain or compact; wakes the drainer
	full  chan struct{} // 1-buffered: a batch is full, or somebody waits in Flush

	stopDrain chan struct{} // closed by Close: drain the rest and return
	stopSync  chan struct{} // closed by Close, after the drainer has returned
	ctx       context.Context
	cancel    context.CancelFunc // ends the sink's context when Close's time is up
	wg        struct{ drainer, syncer sync.WaitGroup }

	mu       sync.Mutex
	closed   bool       // guarded by mu, like all that follows
	segs     []*segment // oldest first; the last is written to
	bytes    int64      // of all segments
	live     int64      // of those, in records of open requests
	f        File       // of the last segment
	buf      []byte     // encoding space, reused
	open     map[sluice.RequestID]*request
	spare    []*request // for reuse
	isDirty  bool
	isLate   bool
	err      error   // of the last write or fsync; nil when it succeeded
	broken   bool    // a partial write could not be cut away yet
	resync   bool    // an fsync failed: what it covered must be written again
	noSpare  bool    // the ballast is spent: settlements only
	kept     []Entry // settled, not written
	synced   lsn     // all before is on disk
	syncers  []waiter
	settled  uint64 // entries in the segments, since open
	drained  uint64 // of those, in the sink
	oldest   time.Time
	cursor   lsn // all before is drained
	rewound  int // how often the cursor was set back
	flushers []flusher
}

// waiter waits in Sync for the fsync that covers a position.
type waiter struct {
	until lsn
	done  chan error // 1-buffered
}

// flusher waits in Flush for the sink to have so many entries.
type flusher struct {
	until uint64
	done  chan struct{} // closed
}

// Recovered is what was open when the journal was opened: one Open for each
// running attempt, or one for a request that had none, oldest first. The caller
// ends each, by SettleLost or one by one, before its first request.
func (j *Journal) Recovered() []Open { return j.recovered }

// lostChunk is how many lost attempts are settled with one write.
const lostChunk = 64

// SettleLost settles all that was recovered as Lost, as of now, many with one
// write, and forgets it; it returns how many there were. An error is that of
// Settle: what is left is recovered again by the next open.
func (j *Journal) SettleLost(now time.Time) (int, error) {
	lost := j.recovered
	j.recovered = nil
	for chunk := range slices.Chunk(lost, lostChunk) {
		if err := j.settleLost(chunk, now); err != nil {
			return 0, err
		}
	}
	return len(lost), nil
}

func (j *Journal) settleLost(lost []Open, now time.Time) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	frames := j.buf[:0]
	for i := range lost {
		e := lost[i].Lost(now)
		frames = appendEntry(frames, &e)
	}
	return j.write(frames, true)
}

// Reserve records an admitted request. An error is a *sluice.Error with reason
// ledger_busy: nothing is recorded.
func (j *Journal) Reserve(r Reserve) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.write(appendReserve(j.buf[:0], &r), false)
}

// Dispatch records an attempt. It returns nil before any dial of a request whose
// record must not be missing. Errors are those of Reserve.
func (j *Journal) Dispatch(d Dispatch) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.write(appendDispatch(j.buf[:0], &d), false)
}

// Begin is Reserve and Dispatch in one write: both are recorded or none.
func (j *Journal) Begin(r Reserve, d Dispatch) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.write(appendDispatch(appendReserve(j.buf[:0], &r), &d), false)
}

// Checkpoint records what an attempt has taken so far. To lose one is harmless;
// errors are those of Reserve.
func (j *Journal) Checkpoint(c Checkpoint) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.write(appendCheckpoint(j.buf[:0], &c), false)
}

// Settle records the entry of an attempt; a Final entry closes its request. The
// request need not have been reserved. On an error the entry is not on disk yet:
// it is kept in memory and written when the disk lets it, unless the error wraps
// ErrNotKept or ErrClosed. To settle again is harmless: the first entry stands.
func (j *Journal) Settle(e Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	err := j.write(appendEntry(j.buf[:0], &e), true)
	if err == nil || j.closed {
		return err
	}
	if len(j.kept) >= j.o.KeepMax {
		return busy(errors.Join(ErrNotKept, err))
	}
	j.kept = append(j.kept, e)
	poke(j.dirty) // the syncer tries again
	return err
}

// Release closes a request that needs no entry. If the record cannot be written
// a restart finds the request open.
func (j *Journal) Release(id sluice.RequestID) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.write(appendRelease(j.buf[:0], id), true)
}

// Lag is how far the sink is behind.
type Lag struct {
	Entries  int64         // settled, not in the sink
	Age      time.Duration // about how long the oldest of them has waited
	Kept     int           // of those, in memory only because the disk refuses
	Open     int           // requests without an end
	Segments int
	Bytes    int64 // of all segments
}

// Lag tells how far the sink is behind, for metrics and readiness.
func (j *Journal) Lag() Lag {
	j.mu.Lock()
	defer j.mu.Unlock()
	l := Lag{
		Entries: int64(j.settled-j.drained) + int64(len(j.kept)),
		Kept:    len(j.kept), Open: len(j.open), Segments: len(j.segs), Bytes: j.bytes,
	}
	if j.settled > j.drained {
		l.Age = max(0, time.Since(j.oldest))
	}
	return l
}

// Err is why beginnings are refused: the last write or fsync failed, or the
// ballast is not set aside again since. It is nil once that has succeeded.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil && j.noSpare {
		return errNoSpare
	}
	return j.err
}

// Close drains what it can until ctx ends, syncs, joins the goroutines and
// closes the files. Entries that were not drained are drained after the next
// open. Calls after Close fail with ErrClosed.
func (j *Journal) Close(ctx context.Context) error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return ErrClosed
	}
	j.closed = true
	j.mu.Unlock()

	stop := context.AfterFunc(ctx, j.cancel)
	defer stop()
	close(j.stopDrain)
	j.wg.drainer.Wait()
	close(j.stopSync)
	j.wg.syncer.Wait()
	j.cancel()
	return errors.Join(j.lastSync(), j.f.Close(), j.lock.Unlock())
}

// busy is the error of a record that could not be written.
func busy(err error) error {
	return &sluice.Error{
		Kind: sluice.KindOverloaded, Reason: sluice.LedgerBusy, Msg: "usage cannot be recorded now",
		Hint: "try again", RetryAfter: time.Second, Err: err,
	}
}

// poke wakes whoever waits on c, now or the next time.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
