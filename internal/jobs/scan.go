package jobs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"sluice"
	"sluice/internal/wire"
)

// The bounds of one slice of checking: whichever is reached first, and then the line that
// is being read.
const (
	checkLines = 1000
	checkBytes = 4 << 20
	// checkMemory is what all inputs that are being checked keep from slice to slice. The one
	// that would have more forgets it, and reads it again with its next slice.
	checkMemory = 64 << 20
	seenBytes   = 48 // of memory for one custom id
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// checking is the check of one input, slice by slice. What it needs to go on after a slice
// is in the store; what it has in memory saves reading.
type checking struct {
	d *Desk
	j *Job
	h hold
	c *checker

	fresh bool // j is as the store has it
	file  *Reader
	kept  int64  // of checkMemory
	carry []byte // the beginning of a line that goes on in the next chunk
	lines []Line // of this slice
	stop  bool   // nothing more is read
	b     *Bounds
}

func (d *Desk) check(j *Job, h hold) *checking {
	return &checking{d: d, j: j, h: h}
}

// slice checks so many lines and gives them to the store.
func (s *checking) slice(ctx context.Context) (verdict, error) {
	s.b = s.d.bounds()
	if ok, err := s.d.renew(ctx, s.j, &s.h, &s.fresh); err != nil || !ok || s.j.State != Validating {
		return idle, err
	}
	s.free()
	if err := s.open(ctx); err != nil {
		return idle, err
	}
	over := s.stop
	if !over {
		var err error
		if over, err = s.read(ctx); err != nil {
			return idle, err
		}
	}
	if len(s.lines) > 0 || !over {
		if ok, err := s.put(ctx); err != nil || !ok {
			return idle, err
		}
	}
	if over || s.stop {
		return s.end(ctx)
	}
	s.keep()
	return more, nil
}

// open has ready what the next slice needs.
func (s *checking) open(ctx context.Context) error {
	if s.file == nil {
		f, err := s.d.o.Store.File(ctx, s.j.Caller.Tenant, s.j.Input)
		if err != nil {
			return err
		}
		s.file = &Reader{File: f, d: s.d, held: -1}
	}
	if s.c == nil {
		p, err := s.d.o.Principal(s.j.Caller)
		if e := sluice.AsError(err); err != nil && (e.Kind == sluice.KindOverloaded || e.Kind == sluice.KindInternal) {
			return err // it passes
		}
		if s.j.Checked.Put != s.j.Counts.Total { // another version of sluice has been at it
			if ok, err := s.d.o.Store.ResetLines(ctx, s.j.ID, s.h.fence); err != nil || !ok {
				return err
			}
			s.j.Checked, s.j.Problems, s.j.Dropped = Checked{}, nil, 0
		}
		s.c = &checker{job: s.j, policy: p.Policy, table: s.d.o.Table(), problems: s.j.Problems, dropped: s.j.Dropped}
		if err != nil {
			s.c.refused(0, "", err)
			s.stop = true
			return nil
		}
	}
	if s.c.seen != nil || s.j.Checked.Put == 0 {
		return nil
	}
	return s.d.o.Store.CustomIDs(ctx, s.j.ID, s.c.saw)
}

// read checks lines until there are enough for a slice, and reports whether there is none
// behind them.
func (s *checking) read(ctx context.Context) (over bool, err error) {
	m := &s.j.Checked
	if s.j.Kind == Async {
		return true, s.whole(ctx)
	}
	for n, begun := 0, m.At; n < checkLines && m.At-begun < checkBytes && !s.stop; n++ {
		at, line, found, err := s.next(ctx)
		if err == io.EOF {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if found {
			s.take(at, line)
		}
	}
	return false, nil
}

// whole takes an input that is one line.
func (s *checking) whole(ctx context.Context) error {
	if n := s.file.File.Bytes; n > s.b.LineBytes {
		s.c.wrong(0, "request_too_large", "", "The request has %d bytes, the bound is %d", n, s.b.LineBytes)
		return nil
	}
	body, err := s.file.at(ctx, 0, int(s.file.File.Bytes))
	if err != nil {
		return err
	}
	s.j.Checked.Line = 1
	s.take(0, body)
	return nil
}

// next reads the next line, which is valid until the following call; io.EOF is that there
// is none. A line that is too large is passed over a part at a time: none is found then.
func (s *checking) next(ctx context.Context) (at int64, line []byte, found bool, err error) {
	m := &s.j.Checked
	s.carry = s.carry[:0]
	for off := m.At; ; {
		p, err := s.file.from(ctx, off)
		if err == io.EOF && len(s.carry) > 0 {
			at, m.At = m.At, off
			m.Line++
			return at, s.carry, true, nil
		}
		if err != nil {
			return 0, nil, false, err
		}
		if off == 0 && bytes.HasPrefix(p, byteOrderMark) {
			off = int64(len(byteOrderMark))
			m.At, p = off, p[off:]
		}
		part, k := p, bytes.IndexByte(p, '\n')
		if k >= 0 {
			part = p[:k]
		}
		switch {
		case m.Over:
			m.At = off + int64(len(part))
			if k >= 0 {
				m.At, m.Line, m.Over = m.At+1, m.Line+1, false
			}
			return 0, nil, false, nil
		case int64(len(s.carry)+len(part)) > s.b.LineBytes:
			s.c.wrong(m.Line+1, "request_too_large", "", "The line has more than %d bytes, which is the bound of one", s.b.LineBytes)
			m.At, m.Over = off, true
			return 0, nil, false, nil
		case k < 0:
			s.carry = append(s.carry, part...)
			off += int64(len(p))
			continue
		}
		if line = part; len(s.carry) > 0 {
			s.carry = append(s.carry, part...)
			line = s.carry
		}
		at, m.At = m.At, off+int64(k)+1
		m.Line++
		return at, line, true, nil
	}
}

// take checks one line and indexes it. Blank lines are passed over, but counted.
func (s *checking) take(at int64, line []byte) {
	if len(bytes.TrimSpace(line)) == 0 && s.j.Kind != Async {
		return
	}
	m := &s.j.Checked
	line = bytes.TrimSuffix(line, []byte("\r"))
	m.Total++
	if s.full() {
		return
	}
	id := s.c.check(m.Line, line)
	if s.c.broken() { // nothing of it will run
		s.lines = nil
		return
	}
	s.lines = append(s.lines, Line{Line: m.Line, At: at, Bytes: len(line), CustomID: id})
}

// full reports whether there are more lines than a job may have. It is called once for each.
func (s *checking) full() bool {
	most := s.b.JobLines
	if s.j.Kind == MessageBatch { // whose clients are used to that
		most *= 2
	}
	if s.j.Checked.Total <= most {
		return false
	}
	s.stop = true
	s.c.wrong(s.j.Checked.Line, "too_many_tasks", "", "The input has more than %d requests, which is the bound of one batch: send it as several", most)
	return true
}

// put gives the store what the slice has. The line that the tenant's bound has no room for
// is a problem, and the last thing that is read.
func (s *checking) put(ctx context.Context) (ok bool, err error) {
	n, m := len(s.lines), &s.j.Checked
	m.Put += n
	s.j.Problems, s.j.Dropped = s.c.problems, s.c.dropped
	l := Lines{Job: s.j, Fence: s.h.fence, Until: s.h.extend(s.d), Lines: s.lines, Bound: s.b.TenantLines}
	room, ok, err := s.d.o.Store.PutLines(ctx, &l)
	if err != nil || !ok {
		return false, err
	}
	if room < n {
		m.Put -= n
		s.c.refused(s.lines[room].Line, "", tooManyLines(s.b.TenantLines))
		s.stop = true
	} else {
		s.j.Counts.Total += n
	}
	s.lines = s.lines[:0]
	return true, nil
}

// tooManyLines is what is said of the line that a tenant may not have waiting any more.
func tooManyLines(bound int) *sluice.Error {
	return &sluice.Error{
		Kind: sluice.KindRateLimited, Reason: sluice.ConcurrencyLimited, RetryAfter: wire.NoTime,
		Msg: fmt.Sprintf("with this line the tenant's batches that have not ended would have more than %d, which is the bound", bound), Hint: "wait until one has ended, or cancel one",
	}
}

// end says what came of the check.
func (s *checking) end(ctx context.Context) (verdict, error) {
	j, now := s.j, s.d.now()
	if j.Checked.Total == 0 && !s.c.broken() {
		s.c.wrong(0, "empty_file", "", "The input has no line: write at least one request")
	}
	j.Problems, j.Dropped, j.Bytes = s.c.problems, s.c.dropped, s.file.File.Bytes
	if s.c.broken() {
		j.State, j.Ended, j.ResultsExpire = Failed, now, now.Add(j.Keep)
		j.Counts.Total = j.Checked.Total
	} else {
		j.State, j.Started = InProgress, now
		j.Counts.Waiting = j.Counts.Total
	}
	j.Checked = Checked{}
	if ok, err := s.d.o.Store.SaveJob(ctx, j, Validating, s.h.fence); err != nil || !ok {
		return idle, err
	}
	if j.State == Failed {
		s.d.dropInput(ctx, j)
	}
	return finished, nil
}

// keep keeps what saves reading again, if there is room.
func (s *checking) keep() {
	if cap(s.carry) > ChunkBytes {
		s.carry = nil
	}
	s.kept = ChunkBytes + int64(cap(s.carry)) + seenBytes*int64(len(s.c.seen))
	if s.d.checked.Add(s.kept) <= checkMemory {
		return
	}
	s.free()
	s.carry, s.c.seen = nil, nil
	s.file.chunk, s.file.held = nil, -1
}

// free gives back what keep took.
func (s *checking) free() {
	s.d.checked.Add(-s.kept)
	s.kept = 0
}

// refusal is the error that Submit returns for an input that is wrong.
func refusal(p Problem, cause *sluice.Error, within string) *sluice.Error {
	if cause != nil { // it says more than the problem that was made of it
		if e := *cause; within != "" && p.Line > 0 && e.Param == "" {
			e.Param = fmt.Sprintf("%s.%d", within, p.Line-1)
			return &e
		}
		return cause
	}
	message := p.Message
	if p.Param != "" {
		message = strings.TrimPrefix(message, p.Param+" ") // an error begins with its field
	}
	e := sluice.Invalid(p.Param, "%s", message)
	e.Param = p.Param
	if within != "" && p.Line > 0 {
		e.Param = fmt.Sprintf("%s.%d", within, p.Line-1)
		if p.Param != "" {
			e.Param += "." + p.Param
		}
	}
	return e
}
