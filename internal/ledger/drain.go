package ledger

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"
)

// retryMin is the first pause of a failing drain; each further one doubles.
const retryMin = 50 * time.Millisecond

var errNoSink = errors.New("journal has no sink")

// Flush waits until all that was settled before the call is in the sink, or
// until ctx ends. It does not wait out DrainEvery.
func (j *Journal) Flush(ctx context.Context) error {
	if j.o.Sink == nil {
		return errNoSink
	}
	j.mu.Lock()
	f := flusher{j.settled + uint64(len(j.kept)), make(chan struct{})}
	if f.until <= j.drained {
		j.mu.Unlock()
		return nil
	}
	if j.closed {
		j.mu.Unlock()
		return ErrClosed
	}
	j.flushers = append(j.flushers, f)
	j.mu.Unlock()
	poke(j.ready)
	poke(j.full)
	select {
	case <-f.done:
		return nil
	case <-j.ctx.Done():
		return ErrClosed
	case <-ctx.Done():
		j.mu.Lock()
		defer j.mu.Unlock()
		j.flushers = slices.DeleteFunc(j.flushers, func(g flusher) bool { return g.done == f.done })
		return context.Cause(ctx)
	}
}

// Undrained calls visit with what was settled and is not in the sink yet, in
// order and in batches that are valid until visit returns, and ends with its
// error. What the sink takes in the meantime may be visited or not: a caller that
// needs each entry once keeps the sink from taking any.
func (j *Journal) Undrained(visit func([]Entry) error) error {
	j.mu.Lock()
	from, end := j.cursor, j.end()
	j.mu.Unlock()
	r := reader{j: j}
	defer r.close()
	for {
		batch, next, err := r.batch(from, end)
		if err == nil && len(batch) > 0 {
			err = visit(batch)
		}
		if err != nil || len(batch) < j.o.DrainBatch {
			return err
		}
		from = next
	}
}

// LastDrained is the newest entry that the sink has taken, if a segment still
// holds one. It is for a caller that has kept the sink from taking any since the
// journal was opened.
func (j *Journal) LastDrained() (last Entry, ok bool, err error) {
	j.mu.Lock()
	oldest, cursor := j.segs[0].seq, j.cursor
	j.mu.Unlock()
	r := reader{j: j}
	defer r.close()
	var payload []byte
	for seg, end := cursor.seg(), cursor; payload == nil && seg >= oldest; seg-- {
		err = r.each(at(seg, headerLen), end, func(_ lsn, p []byte) (bool, error) {
			if kind(p[0]) == kindEntry {
				payload = append(payload[:0], p...)
			}
			return true, nil
		})
		if err != nil {
			return Entry{}, false, err
		}
		end = at(seg, headerLen)
	}
	if payload == nil {
		return Entry{}, false, nil
	}
	d := decoder{s: string(payload[1:])}
	return d.entry(), true, d.end()
}

// Rewind gives the sink all entries again that the segments still hold, since it
// has lost some that it had taken; those that it has it takes once. It returns how
// many they are.
func (j *Journal) Rewind() (int, error) {
	for {
		j.mu.Lock()
		from, to := at(j.segs[0].seq, headerLen), j.cursor
		j.mu.Unlock()
		n, err := j.countEntries(from, to)
		if err != nil {
			return 0, err
		}
		j.mu.Lock()
		if j.cursor != to || at(j.segs[0].seq, headerLen) != from { // drained on in the meantime
			j.mu.Unlock()
			continue
		}
		if j.settled == j.drained {
			j.oldest = time.Now()
		}
		j.cursor, j.settled = from, j.settled+n
		j.rewound++ // a batch that is under way does not move the cursor on
		j.mu.Unlock()
		poke(j.ready)
		return int(n), nil
	}
}

// drainLoop is the drainer.
func (j *Journal) drainLoop() {
	r := reader{j: j}
	defer r.close()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		pending, hurry := j.pending()
		if pending == 0 {
			select {
			case <-j.ready:
				j.compact()
				continue
			case <-j.stopDrain:
				return
			}
		}
		if pending < j.o.DrainBatch && !hurry {
			timer.Reset(j.o.DrainEvery)
			select {
			case <-timer.C:
			case <-j.full:
			case <-j.stopDrain:
			}
		}
		if !j.drainBatch(&r) {
			return
		}
		j.compact()
	}
}

// pending is how many entries wait for the sink, and whether somebody waits in
// Flush.
func (j *Journal) pending() (n int, hurry bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n = int(j.settled - j.drained)
	if n == 0 {
		j.cursor = j.end() // what is left is no entry, and holds no segment
	}
	return n, len(j.flushers) > 0
}

// drainBatch hands one batch to the sink, again and again until it takes it. It
// is false when the journal's time is up.
func (j *Journal) drainBatch(r *reader) bool {
	// An entry that a loss of power takes from here and not from the sink would be
	// settled as lost by the next start, and the sink keep the first. A disk that
	// does not sync holds nothing up: its journal is worth no more than that.
	_ = j.Sync(j.ctx)
	pause := retryMin
	for {
		start := time.Now()
		j.mu.Lock()
		from, end, rewound := j.cursor, j.end(), j.rewound
		if !j.resync && !j.closed { // Close syncs at its end
			end = max(from, min(end, j.synced))
		}
		j.mu.Unlock()
		batch, next, err := r.batch(from, end)
		if err == nil && len(batch) > 0 {
			ctx, cancel := context.WithTimeout(j.ctx, j.o.SinkTimeout)
			err = j.o.Sink.Append(ctx, batch)
			cancel()
		}
		if err == nil {
			j.advance(batch, next, rewound)
			if h := j.o.Hooks.Drained; h != nil && len(batch) > 0 {
				h(len(batch), time.Since(start))
			}
			return true
		}
		if j.ctx.Err() != nil {
			return false
		}
		if h := j.o.Hooks.DrainFailed; h != nil {
			h(err, pause)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-j.ctx.Done():
			timer.Stop()
			return false
		}
		pause = min(2*pause, j.o.RetryMax)
	}
}

// advance takes note that everything before next is in the sink, and journals
// it, unless the journal was rewound since the batch was read. A mark that cannot
// be written is no loss: the sink gets the batch twice.
func (j *Journal) advance(batch []Entry, next lsn, rewound int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.rewound != rewound {
		return
	}
	j.cursor = next
	if len(batch) == 0 {
		return
	}
	j.drained += uint64(len(batch))
	if last := batch[len(batch)-1].Ended; !last.IsZero() {
		j.oldest = last // those that are left ended later
	}
	left := j.flushers[:0]
	for _, f := range j.flushers {
		if f.until <= j.drained {
			close(f.done)
		} else {
			left = append(left, f)
		}
	}
	j.flushers = left
	if !j.noSpare && !j.resync {
		j.buf = appendMark(j.buf[:0], next)
		_ = j.append(j.buf)
	}
}

// reader reads settled entries back from the segments. One goroutine owns it.
type reader struct {
	j     *Journal
	seq   uint32 // of f
	f     File
	buf   []byte // what was read of f
	start int64  // where in f buf begins
	taken []Entry
}

const readChunk = 256 << 10

func (r *reader) close() {
	if r.f != nil {
		_ = r.f.Close() // only read from
		r.f = nil
	}
}

// batch reads the next entries between two positions and where they end. They are
// valid until the next call.
func (r *reader) batch(from, end lsn) (entries []Entry, next lsn, err error) {
	clear(r.taken)
	entries, next = r.taken[:0], from
	err = r.each(next, end, func(p lsn, payload []byte) (bool, error) {
		if kind(payload[0]) == kindEntry {
			d := decoder{s: string(payload[1:])}
			e := d.entry()
			if err := d.end(); err != nil {
				return false, &DamageError{segmentPath(r.j.dir, next.seg()), next.off(), "the record is whole but does not decode"}
			}
			entries = append(entries, e)
		}
		next = p
		return len(entries) < r.j.o.DrainBatch, nil
	})
	r.taken = entries
	return entries, next, err
}

// each visits the records between two positions, in order, with the position
// after each, until visit says stop.
func (r *reader) each(from, end lsn, visit func(after lsn, payload []byte) (bool, error)) error {
	for from < end {
		stop := end.off()
		if from.seg() != end.seg() {
			r.j.mu.Lock()
			stop = r.j.segment(from.seg()).size
			r.j.mu.Unlock()
		}
		if from.off() >= stop {
			from = at(from.seg()+1, headerLen)
			continue
		}
		payload, n, err := r.frame(from, stop)
		if err != nil {
			return err
		}
		from += lsn(n)
		if more, err := visit(from, payload); err != nil || !more {
			return err
		}
	}
	return nil
}

// frame returns the payload at p, valid until the next call, and the length of
// its frame. The segment's records end at stop.
func (r *reader) frame(p lsn, stop int64) ([]byte, int, error) {
	if r.f == nil || r.seq != p.seg() {
		r.close()
		f, err := r.j.o.OpenFile(segmentPath(r.j.dir, p.seg()), os.O_RDONLY)
		if err != nil {
			return nil, 0, err
		}
		r.f, r.seq, r.buf, r.start = f, p.seg(), r.buf[:0], 0
	}
	for want := readChunk; ; want = maxPayload + frameHeader {
		if i := p.off() - r.start; 0 <= i && i < int64(len(r.buf)) {
			if payload, rest, ok := cutFrame(r.buf[i:]); ok {
				return payload, len(r.buf[i:]) - len(rest), nil
			}
		}
		if want > readChunk && r.start == p.off() && int64(len(r.buf)) == min(int64(want), stop-p.off()) {
			return nil, 0, &DamageError{segmentPath(r.j.dir, r.seq), p.off(), "the record is not whole"}
		}
		n := int(min(int64(want), stop-p.off()))
		r.buf = slices.Grow(r.buf[:0], n)[:n]
		r.start = p.off()
		if _, err := r.f.ReadAt(r.buf, r.start); err != nil {
			r.buf = r.buf[:0]
			return nil, 0, err
		}
	}
}
