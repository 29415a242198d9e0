package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// retryEvery is how often a disk that refuses is tried again.
const retryEvery = time.Second

// lateSync is the longest time between the write of a checkpoint, or of a mark,
// and its fsync. A loss of power that takes one takes a second of a stream that
// goes back to the checkpoint before anyway, or has a batch drained twice; and a
// gateway of many long streams would else do nothing but fsync.
const lateSync = time.Second

// Sync waits until all that was written before the call is on disk. It fails
// with reason ledger_busy when the fsync does, and with ctx's cause when that
// ends first.
func (j *Journal) Sync(ctx context.Context) error {
	j.mu.Lock()
	switch end := j.end(); {
	case j.closed:
		j.mu.Unlock()
		return busy(ErrClosed)
	case j.resync:
		defer j.mu.Unlock()
		return busy(j.err)
	case j.synced >= end:
		j.mu.Unlock()
		return nil
	default:
		w := waiter{end, make(chan error, 1)}
		j.syncers = append(j.syncers, w)
		j.mu.Unlock()
		poke(j.hurry)
		select {
		case err := <-w.done:
			return err
		case <-ctx.Done(): // the syncer answers into the buffer
			return context.Cause(ctx)
		}
	}
}

// end is where the next record goes. Called with mu held.
func (j *Journal) end() lsn {
	s := j.segs[len(j.segs)-1]
	return at(s.seq, s.size)
}

// syncLoop is the syncer: it fsyncs in groups, seals full segments and nurses a
// disk that refuses.
func (j *Journal) syncLoop() {
	gather, late, retry := time.NewTimer(time.Hour), time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	defer gather.Stop()
	defer late.Stop()
	defer retry.Stop()
	late.Stop()
	retry.Stop()
	waiting := false // for retry
	for {
		select {
		case <-j.dirty:
			gather.Reset(j.o.SyncEvery)
			select {
			case <-gather.C:
			case <-j.hurry:
			case <-j.stopSync:
			}
		case <-j.late:
			late.Reset(lateSync)
			continue
		case <-late.C:
		case <-j.hurry:
		case <-retry.C:
			waiting = false
			j.mend()
		case <-j.stopSync:
			j.mend()
			j.answer(j.syncOnce())
			return
		}
		if err := j.syncErr(); waiting && err != nil {
			j.answer(err)
			continue
		}
		err := j.syncOnce()
		j.answer(err)
		if err == nil && !waiting && j.segmentFull() {
			err = j.rotate()
		}
		if (err != nil || j.ailing()) && !waiting {
			waiting = true
			retry.Reset(retryEvery)
		}
	}
}

// syncErr is why the last fsync failed, nil if it did not.
func (j *Journal) syncErr() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.resync {
		return nil
	}
	return j.err
}

// ailing reports whether the disk refuses something.
func (j *Journal) ailing() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err != nil || j.noSpare || len(j.kept) > 0
}

// syncOnce fsyncs what has been written.
func (j *Journal) syncOnce() error {
	j.mu.Lock()
	j.isDirty, j.isLate = false, false
	from, to, again, f := j.synced, j.end(), j.resync, j.f
	j.mu.Unlock()
	if from >= to && !again {
		return nil
	}
	start := time.Now()
	var err error
	if again {
		err = rewrite(f, from.off(), to.off())
	}
	if err == nil {
		err = f.Sync()
	}
	if h := j.o.Hooks.Synced; h != nil {
		h(time.Since(start), err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.resync = true
		j.err = fmt.Errorf("sync journal: %w", err)
		return j.err
	}
	if j.resync {
		j.resync, j.err = false, nil
	}
	j.synced = max(j.synced, to)
	return nil
}

// rewrite writes the records between two offsets once more, so that an fsync
// after a failed one has pages to write: the kernel marks them clean when it
// fails. What does not read back whole stays as it is.
func rewrite(f File, from, to int64) error {
	b := make([]byte, to-from)
	if _, err := f.ReadAt(b, from); err != nil {
		return err
	}
	for rest := b; len(rest) > 0; {
		var ok bool
		if _, rest, ok = cutFrame(rest); !ok {
			return errors.New("records written before a failed fsync do not read back: free or replace the disk and restart")
		}
	}
	_, err := f.WriteAt(b, from)
	return err
}

// answer tells waiters whose records are on disk, or all that they are not.
func (j *Journal) answer(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	left := j.syncers[:0]
	for _, w := range j.syncers {
		switch {
		case err != nil:
			w.done <- busy(err)
		case w.until <= j.synced:
			w.done <- nil
		default:
			left = append(left, w)
		}
	}
	j.syncers = left
	if len(left) > 0 {
		poke(j.hurry)
	}
}

func (j *Journal) segmentFull() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.segs[len(j.segs)-1].size >= j.o.SegmentBytes
}

// rotate seals the last segment and begins the next. The new file is made off
// the lock; on it remains the fsync of what was written since the last one, so
// that a sealed segment has no torn end.
func (j *Journal) rotate() error {
	j.mu.Lock()
	seq := j.segs[len(j.segs)-1].seq + 1
	j.mu.Unlock()
	f, err := j.create(seq)
	if err != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.failed(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	last := j.segs[len(j.segs)-1]
	if err = j.f.Truncate(last.size); err == nil { // what was set aside, and what a failed write may have left
		err = j.f.Sync()
	}
	if err != nil {
		j.resync = true
		j.err = fmt.Errorf("sync journal: %w", err)
		_ = f.Close()
		return errors.Join(j.err, os.Remove(segmentPath(j.dir, seq)))
	}
	err = j.f.Close()
	j.f, j.broken = f, false
	j.segs = append(j.segs, &segment{seq: seq, size: headerLen})
	j.bytes += headerLen
	j.synced = at(seq, headerLen)
	poke(j.ready) // the old one may be ready to go
	return err
}

// create makes a segment with its header, durably.
func (j *Journal) create(seq uint32) (File, error) {
	path := segmentPath(j.dir, seq)
	f, err := j.o.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return nil, fmt.Errorf("create segment: %w", err)
	}
	if _, err = f.WriteAt(header(seq), 0); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = syncDir(j.dir)
	}
	if err != nil {
		return nil, fmt.Errorf("create segment: %w", errors.Join(err, f.Close(), os.Remove(path)))
	}
	return f, nil
}

// mend writes kept settlements, sets the ballast aside again, and finds out
// whether the disk takes records again.
func (j *Journal) mend() {
	j.mu.Lock()
	if j.err != nil || len(j.kept) > 0 {
		if j.append(appendMark(j.buf[:0], j.cursor)) == nil {
			j.writeKept()
		}
	}
	rebuild := j.noSpare && j.err == nil && len(j.kept) == 0
	j.mu.Unlock()
	if rebuild && j.makeBallast() == nil {
		j.mu.Lock()
		j.noSpare = false
		j.mu.Unlock()
	}
}

func (j *Journal) ballastPath() string { return filepath.Join(j.dir, "ballast") }

// makeBallast sets space aside: written, since a hole takes none.
func (j *Journal) makeBallast() error {
	f, err := j.o.OpenFile(j.ballastPath(), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	zeros := make([]byte, 64<<10)
	for off := int64(0); off < j.o.Ballast && err == nil; off += int64(len(zeros)) {
		_, err = f.WriteAt(zeros[:min(int64(len(zeros)), j.o.Ballast-off)], off)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(j.ballastPath()))
	}
	return nil
}

// dropBallast frees the ballast for records that end something, and reports
// whether there was one. Called with mu held.
func (j *Journal) dropBallast() bool {
	if j.o.Ballast < 0 || j.noSpare {
		return false
	}
	j.noSpare = true
	poke(j.dirty) // the syncer sets it aside again when it can
	return os.Remove(j.ballastPath()) == nil
}

// lastSync is the fsync of a journal whose goroutines have ended.
func (j *Journal) lastSync() error {
	if err := j.f.Sync(); err != nil {
		return fmt.Errorf("sync journal: %w", err)
	}
	return nil
}
