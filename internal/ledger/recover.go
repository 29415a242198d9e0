package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sluice"
)

// OpenJournal opens or creates the journal in dir (mode 0700) and recovers what
// it holds. It fails if another process has the directory (ErrLocked), or if a
// segment is damaged otherwise than by a loss of power: a *DamageError names file
// and offset and says what to do.
func OpenJournal(dir string, o JournalOptions) (*Journal, error) {
	start := time.Now()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	lock, err := LockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j := &Journal{
		dir: dir, o: o.withDefaults(), lock: lock,
		dirty: make(chan struct{}, 1), late: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
		ready: make(chan struct{}, 1), full: make(chan struct{}, 1),
		stopDrain: make(chan struct{}), stopSync: make(chan struct{}),
		buf:  make([]byte, 0, 4<<10),
		open: make(map[sluice.RequestID]*request),
	}
	if err := j.replay(); err != nil {
		if j.f != nil {
			err = errors.Join(err, j.f.Close())
		}
		return nil, errors.Join(fmt.Errorf("open journal: %w", err), lock.Unlock())
	}
	if j.o.Ballast > 0 && j.makeBallast() != nil {
		j.noSpare = true // a full disk is no reason not to start; the syncer tries again
		poke(j.dirty)
	}
	j.ctx, j.cancel = context.WithCancel(context.Background())
	j.wg.syncer.Go(j.syncLoop)
	if j.o.Sink != nil {
		j.wg.drainer.Go(j.drainLoop)
	}
	if h := j.o.Hooks.Recovered; h != nil {
		h(len(j.recovered), int(j.settled), time.Since(start))
	}
	return j, nil
}

// replay reads the segments, cuts a torn end off, and opens the last segment for
// writing, the first one if there is none.
func (j *Journal) replay() error {
	seqs, err := segments(j.dir)
	if err != nil {
		return err
	}
	if len(seqs) == 0 {
		if j.f, err = j.create(1); err != nil {
			return err
		}
		j.segs = []*segment{{seq: 1, size: headerLen}}
		j.bytes = headerLen
		j.cursor, j.synced = at(1, headerLen), at(1, headerLen)
		return nil
	}
	// A segment is made before the one before it is sealed: while it is empty both
	// may have an end that is torn.
	torn := len(seqs) - 1
	if info, err := os.Stat(segmentPath(j.dir, seqs[torn])); err != nil {
		return err
	} else if torn > 0 && info.Size() <= headerLen {
		torn--
	}
	mark := at(seqs[0], headerLen)
	for i, seq := range seqs {
		if err := j.replaySegment(seq, i >= torn, &mark); err != nil {
			return err
		}
	}
	j.synced = j.end()
	if mark > j.end() {
		mark = at(seqs[0], headerLen) // records were cut off by hand: drain again what is left
	}
	j.cursor = mark
	if j.settled, err = j.countEntries(mark, j.end()); err != nil {
		return err
	}
	if j.settled > 0 {
		poke(j.ready)
	}
	j.recovered, err = j.readOpen()
	return err
}

// replaySegment reads one segment. What may be torn is mended and becomes, as long
// as no other follows, the one that is written to.
func (j *Journal) replaySegment(seq uint32, torn bool, mark *lsn) error {
	path := segmentPath(j.dir, seq)
	f, err := j.o.OpenFile(path, os.O_RDWR)
	if err != nil {
		return err
	}
	s := &segment{seq: seq, size: headerLen}
	j.segs = append(j.segs, s)
	var fill func(from, to int64) error
	if torn {
		fill = func(from, to int64) error {
			if h := j.o.Hooks.Hole; h != nil {
				h(path, from, to-from)
			}
			return fillHole(f, from, to)
		}
	}
	end, err := scan(f, path, seq, fill, func(off int64, payload []byte) error {
		if err := checkPayload(payload); err != nil {
			return err
		}
		j.note(at(seq, off), payload)
		if kind(payload[0]) == kindMark {
			d := decoder{s: string(payload[1:])}
			*mark = max(*mark, lsn(d.int()))
		}
		return nil
	})
	if err != nil {
		return errors.Join(err, f.Close())
	}
	s.size = max(end, headerLen)
	j.bytes += s.size
	if !torn {
		return f.Close()
	}
	if j.f != nil {
		err = j.f.Close()
	}
	j.f = f
	if err := errors.Join(err, mendEnd(f, seq, end)); err != nil {
		return fmt.Errorf("mend the end of %s: %w", path, err)
	}
	return nil
}

// mendEnd cuts a torn end off the last segment and makes the rest durable. A
// segment whose process died while it was created gets its header.
func mendEnd(f File, seq uint32, end int64) error {
	if end == 0 {
		if err := f.Truncate(0); err != nil {
			return err
		}
		if _, err := f.WriteAt(header(seq), 0); err != nil {
			return err
		}
		return f.Sync()
	}
	if err := f.Truncate(end); err != nil {
		return err
	}
	return f.Sync()
}

// checkPayload decodes a record whole: what the drainer or a later recovery
// could not read must stop the start, not the night after it.
func checkPayload(payload []byte) error {
	d := decoder{s: string(payload[1:])}
	switch kind(payload[0]) {
	case kindReserve:
		d.reserve()
	case kindDispatch:
		d.dispatch()
	case kindCheckpoint:
		d.checkpoint()
	case kindEntry:
		d.entry()
	case kindRelease:
		d.text()
	case kindMark:
		d.int()
	case kindHole:
		return nil
	default:
		return errRecord
	}
	return d.end()
}

// countEntries counts the entries between two positions.
func (j *Journal) countEntries(from, to lsn) (n uint64, err error) {
	r := reader{j: j}
	defer r.close()
	err = r.each(from, to, func(_ lsn, payload []byte) (bool, error) {
		if kind(payload[0]) == kindEntry {
			n++
		}
		return true, nil
	})
	return n, err
}

// readOpen reads what is open, oldest first.
func (j *Journal) readOpen() ([]Open, error) {
	type aged struct {
		id    sluice.RequestID
		first lsn
	}
	ids := make([]aged, 0, len(j.open))
	for id, r := range j.open {
		ids = append(ids, aged{id, r.first()})
	}
	slices.SortFunc(ids, func(a, b aged) int { return cmp.Compare(a.first, b.first) })
	rd := reader{j: j}
	defer rd.close()
	out := make([]Open, 0, len(ids))
	for _, a := range ids {
		r := j.open[a.id]
		o := Open{Reserve: Reserve{Request: a.id}}
		if err := rd.record(r.reserve, func(d *decoder) { o.Reserve = d.reserve() }); err != nil {
			return nil, err
		}
		running := slices.DeleteFunc(append([]attempt{r.cur}, r.more...), func(a attempt) bool { return a.n == 0 })
		slices.SortFunc(running, func(a, b attempt) int { return cmp.Compare(a.n, b.n) })
		if len(running) == 0 {
			o.Final = true
			out = append(out, o)
		}
		for i, at := range running {
			o.Final = i == len(running)-1
			o.Checkpoint = Checkpoint{}
			err := rd.record(at.dispatch, func(d *decoder) { o.Dispatch = d.dispatch() })
			if err == nil {
				err = rd.record(at.checkpoint, func(d *decoder) { o.Checkpoint = d.checkpoint() })
			}
			if err != nil {
				return nil, err
			}
			out = append(out, o)
		}
	}
	return out, nil
}

// record reads one record, if there is one at p.
func (r *reader) record(rec record, decode func(*decoder)) error {
	p := rec.at
	if p == 0 {
		return nil
	}
	payload, _, err := r.frame(p, r.j.segment(p.seg()).size)
	if err != nil {
		return err
	}
	d := decoder{s: string(payload[1:])}
	decode(&d)
	return d.end()
}
