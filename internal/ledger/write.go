package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"sluice"
)

// record is where a record of an open request is, and its length. The zero
// record is none.
type record struct {
	at lsn
	n  uint32
}

// request is where the records of an open request are.
type request struct {
	reserve record
	cur     attempt   // the zero attempt if none runs
	more    []attempt // others that run at the same time, rarely any
}

type attempt struct {
	n                    int32
	dispatch, checkpoint record
}

var (
	errNoSpare = errors.New("the disk was full: the ballast is not set aside again yet")
	errTooLong = errors.New("the sink is too far behind: the journal has reached its bound")
)

// write appends whole frames, encoded in j.buf, in one go and takes note
// of them. must is for records that end something: they may use the ballast.
// Called with mu held.
func (j *Journal) write(frames []byte, must bool) error {
	j.buf = frames
	if j.closed {
		return busy(ErrClosed)
	}
	if (j.noSpare || j.resync) && !must {
		return busy(cmp.Or(j.err, errNoSpare))
	}
	if j.bytes >= j.o.MaxBytes && !must {
		return busy(errTooLong)
	}
	err := j.append(frames)
	if err != nil && must && j.dropBallast() {
		err = j.append(frames)
	}
	if err != nil {
		if h := j.o.Hooks.WriteFailed; h != nil {
			h(err)
		}
		return busy(err)
	}
	if len(j.kept) > 0 {
		j.writeKept()
	}
	return nil
}

// append is the only place that writes records. A failed write leaves no trace.
// Called with mu held.
func (j *Journal) append(frames []byte) error {
	s := j.segs[len(j.segs)-1]
	if j.broken {
		if err := j.f.Truncate(s.size); err != nil {
			return j.failed(err)
		}
		j.broken = false
	}
	if s.size+int64(len(frames)) > maxSegment {
		return j.failed(fmt.Errorf("%s is full and no new segment can be made", segmentPath(j.dir, s.seq)))
	}
	if _, err := j.f.WriteAt(frames, s.size); err != nil {
		j.broken = j.f.Truncate(s.size) != nil
		return j.failed(err)
	}
	if !j.resync {
		j.err = nil
	}
	pos := at(s.seq, s.size)
	s.size += int64(len(frames))
	j.bytes += int64(len(frames))
	late := true
	for rest := frames; len(rest) > 0; {
		n, _ := frameLen(rest)
		if k := kind(rest[frameHeader]); k != kindCheckpoint && k != kindMark {
			late = false
		}
		j.note(pos, rest[frameHeader:n])
		rest, pos = rest[n:], pos+lsn(n)
	}
	switch {
	case j.isDirty, late && j.isLate:
	case late:
		j.isLate = true
		poke(j.late)
	default:
		j.isDirty = true
		poke(j.dirty)
	}
	if s.size >= j.o.SegmentBytes {
		poke(j.hurry)
	}
	return nil
}

func (j *Journal) failed(err error) error {
	j.err = fmt.Errorf("write journal: %w", err)
	poke(j.dirty) // the syncer finds out when it is over
	return j.err
}

// note applies one record to the state in memory, when it is written and when it
// is replayed. Called with mu held, or before the goroutines start.
func (j *Journal) note(pos lsn, payload []byte) {
	d := peeker{payload}
	rec := record{pos, uint32(frameHeader + len(payload))}
	switch k, id := kind(d.byte()), d.id(); k {
	case kindReserve:
		j.move(&j.request(id).reserve, rec)
	case kindDispatch:
		if n := d.attempt(); n > 0 {
			j.move(&j.request(id).add(n).dispatch, rec)
		}
	case kindCheckpoint:
		if r := j.open[sluice.RequestID(id)]; r != nil {
			if a := r.attempt(d.attempt()); a != nil && a.n > 0 {
				j.move(&a.checkpoint, rec)
			}
		}
	case kindEntry:
		n, final := d.attempt(), d.bool()
		if j.settled++; j.settled == j.drained+1 {
			j.oldest = time.Now()
			poke(j.ready)
		} else if j.settled-j.drained >= uint64(j.o.DrainBatch) {
			poke(j.full)
		}
		if r := j.open[sluice.RequestID(id)]; r != nil && final {
			j.forget(id, r)
		} else if r != nil {
			j.endAttempt(r, n)
		}
	case kindRelease:
		if r := j.open[sluice.RequestID(id)]; r != nil {
			j.forget(id, r)
		}
	}
}

// request finds an open request or opens it.
func (j *Journal) request(id []byte) *request {
	if r := j.open[sluice.RequestID(id)]; r != nil {
		return r
	}
	r := new(request)
	if n := len(j.spare); n > 0 {
		r, j.spare = j.spare[n-1], j.spare[:n-1]
	}
	j.open[sluice.RequestID(id)] = r
	return r
}

// attempt finds a running attempt, nil if it does not run.
func (r *request) attempt(n int32) *attempt {
	if r.cur.n == n {
		return &r.cur
	}
	for i := range r.more {
		if r.more[i].n == n {
			return &r.more[i]
		}
	}
	return nil
}

// add finds an attempt or makes it run.
func (r *request) add(n int32) *attempt {
	if a := r.attempt(n); a != nil {
		return a
	}
	if r.cur.n == 0 {
		r.cur.n = n
		return &r.cur
	}
	r.more = append(r.more, attempt{n: n})
	return &r.more[len(r.more)-1]
}

// move sets the place of a record and counts it in its segment.
func (j *Journal) move(p *record, to record) {
	j.unref(*p)
	*p = to
	j.segment(to.at.seg()).refs++
	j.live += int64(to.n)
}

func (j *Journal) unref(p record) {
	if p.at != 0 {
		j.segment(p.at.seg()).refs--
		j.live -= int64(p.n)
	}
}

// segment finds a segment by number: numbers have no gaps, and none that is
// referred to has been deleted.
func (j *Journal) segment(seq uint32) *segment { return j.segs[seq-j.segs[0].seq] }

// maxSpare bounds the request records that are kept for reuse.
const maxSpare = 1024

// forget drops a request and its attempts.
func (j *Journal) forget(id []byte, r *request) {
	j.unref(r.reserve)
	j.unref(r.cur.dispatch)
	j.unref(r.cur.checkpoint)
	for _, a := range r.more {
		j.unref(a.dispatch)
		j.unref(a.checkpoint)
	}
	delete(j.open, sluice.RequestID(id))
	if len(j.spare) < maxSpare {
		*r = request{}
		j.spare = append(j.spare, r)
	}
}

// endAttempt drops one attempt; its request goes on.
func (j *Journal) endAttempt(r *request, n int32) {
	a := r.attempt(n)
	if a == nil || n == 0 {
		return
	}
	j.unref(a.dispatch)
	j.unref(a.checkpoint)
	if a == &r.cur {
		r.cur = attempt{}
		return
	}
	r.more = slices.DeleteFunc(r.more, func(a attempt) bool { return a.n == n })
}

// writeKept writes settlements that the disk had refused, a few at a time.
func (j *Journal) writeKept() {
	for len(j.kept) > 0 {
		n := min(len(j.kept), 16)
		b := j.buf[:0]
		for i := range n {
			b = appendEntry(b, &j.kept[i])
		}
		j.buf = b
		if j.append(b) != nil {
			return
		}
		j.kept = slices.Delete(j.kept, 0, n)
	}
	j.kept = nil
}

// peeker reads the first fields of a payload without an allocation.
type peeker struct{ b []byte }

func (p *peeker) byte() byte {
	if len(p.b) == 0 {
		return 0
	}
	c := p.b[0]
	p.b = p.b[1:]
	return c
}

func (p *peeker) uint() (v uint64) {
	for shift := 0; shift < 64; shift += 7 {
		c := p.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			break
		}
	}
	return v
}

func (p *peeker) id() []byte {
	n := min(p.uint(), uint64(len(p.b)))
	id := p.b[:n]
	p.b = p.b[n:]
	return id
}

func (p *peeker) attempt() int32 {
	u := p.uint()
	return int32(min(int64(u>>1), math.MaxInt32))
}

func (p *peeker) bool() bool { return p.byte() != 0 }
