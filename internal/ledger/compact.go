package ledger

import (
	"fmt"
	"os"
	"slices"

	"sluice"
)

// compact deletes the oldest segments as far as they are drained. Deleting only
// from the oldest on keeps a request's end from vanishing before its beginning.
// What fails is tried again after the next batch.
//
// Records are carried over only while more than half of the journal, and two
// segments, is dead. One pass over it then writes less than it frees, so that
// compaction ends, and the journal stays below twice what is open and two
// segments, beside what is not drained.
func (j *Journal) compact() {
	for {
		j.mu.Lock()
		s := j.segs[0]
		done := len(j.segs) > 1 && j.o.Sink != nil && (j.cursor.seg() > s.seq || j.cursor >= at(s.seq, s.size))
		refs := s.refs
		worth := refs == 0 || j.bytes > 2*(j.live+j.o.SegmentBytes)
		j.mu.Unlock()
		if !done || !worth {
			return
		}
		if refs > 0 && j.carryOver(s) != nil {
			return
		}
		// What was carried over, and the ends of those that were not, must be on
		// disk first.
		if j.Sync(j.ctx) != nil {
			return
		}
		if os.Remove(segmentPath(j.dir, s.seq)) != nil {
			return
		}
		j.mu.Lock()
		j.cursor = max(j.cursor, at(j.segs[1].seq, headerLen))
		j.bytes -= s.size
		j.segs = j.segs[1:]
		j.mu.Unlock()
	}
}

// carryOver copies the records of requests that are still open from a segment to
// the last one. The request path may run in between the chunks.
func (j *Journal) carryOver(s *segment) error {
	f, err := j.o.OpenFile(segmentPath(j.dir, s.seq), os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	j.mu.Lock()
	ids := make([]sluice.RequestID, 0, s.refs)
	for id, r := range j.open {
		if r.within(s.seq) {
			ids = append(ids, id)
		}
	}
	j.mu.Unlock()
	for chunk := range slices.Chunk(ids, 32) {
		if err := j.carry(f, s, chunk); err != nil {
			return err
		}
	}
	return nil
}

// carry copies the records of a few requests, if they are still open: all that a
// request has, wherever they are, since a checkpoint that came before its dispatch
// would be of no attempt to the one who replays them.
func (j *Journal) carry(f File, s *segment, ids []sluice.RequestID) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var from []lsn
	for _, id := range ids {
		r := j.open[id]
		if r == nil || !r.within(s.seq) {
			continue
		}
		for _, p := range r.records() {
			if p.at != 0 {
				from = append(from, p.at)
			}
		}
	}
	var frames, frame []byte
	for _, p := range from {
		in := f
		var err error
		if p.seg() != s.seq {
			in, err = j.o.OpenFile(segmentPath(j.dir, p.seg()), os.O_RDONLY)
		}
		if err == nil {
			frame, err = frameAt(in, p.off(), frame)
		}
		if in != f && in != nil {
			_ = in.Close() // only read from
		}
		if err != nil {
			return fmt.Errorf("carry over a record at byte %d of %s: %w", p.off(), segmentPath(j.dir, p.seg()), err)
		}
		frames = append(frames, frame...)
	}
	if len(frames) == 0 {
		return nil
	}
	return j.append(frames) // note moves the positions
}

// records are the places of a request's records, the reservation first, a
// dispatch before its checkpoint. Places that are none are in segment 0.
func (r *request) records() []record {
	ps := []record{r.reserve, r.cur.dispatch, r.cur.checkpoint}
	for _, a := range r.more {
		ps = append(ps, a.dispatch, a.checkpoint)
	}
	return ps
}

// within reports whether a record of the request is in a segment.
func (r *request) within(seq uint32) bool {
	return slices.ContainsFunc(r.records(), func(p record) bool { return p.at.seg() == seq })
}

// first is the position of a request's oldest record.
func (r *request) first() lsn {
	first := lsn(0)
	for _, p := range r.records() {
		if p.at != 0 && (first == 0 || p.at < first) {
			first = p.at
		}
	}
	return first
}
