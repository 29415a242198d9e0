package jobs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"sluice"
)

// indexGroup is how many lines are told to the store at a time.
const indexGroup = 1000

var byteOrderMark = []byte("\xef\xbb\xbf")

// scanned is one pass over an input: it checks each line and indexes it.
type scanned struct {
	d     *Desk
	c     *checker
	fence int64
	lines []Line // that the store has not been told
	total int
	line  int // the number of the line that is read
	lost  bool
	over  bool // there are more lines than a job may have
}

// scan checks the input of a job, whose steps this worker has, and gives its lines to the
// store. It keeps one chunk and one line of it in memory. lost says that another worker
// has taken the job over.
func (d *Desk) scan(ctx context.Context, j *Job, fence int64) (c *checker, lost bool, err error) {
	b := d.bounds()
	r, err := d.Open(ctx, j.Caller.Tenant, j.Input)
	if err != nil {
		return nil, false, err
	}
	p, err := d.o.Principal(j.Caller)
	c = &checker{job: j, policy: p.Policy, table: d.o.Table(), max: b.LineBytes}
	if err != nil {
		c.refused(0, "", err)
		return c, false, nil
	}
	if ok, err := d.o.Store.ResetLines(ctx, j.ID, fence); err != nil || !ok {
		return c, !ok, err
	}
	s := &scanned{d: d, c: c, fence: fence}
	if j.Kind == Async {
		err = s.whole(ctx, r)
	} else {
		err = s.each(ctx, r)
	}
	if err == nil && !c.broken() {
		err = s.flush(ctx)
	}
	j.Counts.Total, j.Bytes = s.total, r.File.Bytes
	if err == nil && s.total == 0 && !c.broken() {
		c.wrong(0, "empty_file", "", "The input has no line: write at least one request")
	}
	j.Problems, j.Dropped = c.problems, c.dropped
	return c, s.lost, err
}

// whole takes an input that is one line.
func (s *scanned) whole(ctx context.Context, r *Reader) error {
	if r.File.Bytes > s.c.max {
		s.c.wrong(0, "request_too_large", "", "The request has %d bytes, the bound is %d", r.File.Bytes, s.c.max)
		return nil
	}
	body, err := r.at(ctx, 0, int(r.File.Bytes))
	if err != nil {
		return err
	}
	return s.take(ctx, 0, body)
}

// each takes an input line by line.
func (s *scanned) each(ctx context.Context, r *Reader) error {
	var carry []byte // the beginning of a line that goes on in the next chunk
	var at int64     // where it begins
	var off int64    // of the chunk
	skip := false    // the line is too large and its rest is passed over
	for {
		p, err := r.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if off == 0 && bytes.HasPrefix(p, byteOrderMark) {
			p, off, at = p[len(byteOrderMark):], int64(len(byteOrderMark)), int64(len(byteOrderMark))
		}
		for {
			k := bytes.IndexByte(p, '\n')
			part := p
			if k >= 0 {
				part = p[:k]
			}
			if !skip && int64(len(carry)+len(part)) > s.c.max {
				s.tooLarge()
				skip, carry = true, carry[:0]
			}
			if k < 0 {
				if !skip {
					carry = append(carry, part...)
				}
				off += int64(len(p))
				break
			}
			if !skip {
				line := part
				if len(carry) > 0 {
					carry = append(carry, part...)
					line = carry
				}
				if err := s.take(ctx, at, line); err != nil || s.lost || s.over {
					return err
				}
			} else {
				s.line++
			}
			off += int64(k) + 1
			p, at, carry, skip = p[k+1:], off, carry[:0], false
		}
	}
	if skip || len(carry) == 0 {
		return nil
	}
	return s.take(ctx, at, carry)
}

func (s *scanned) tooLarge() {
	s.c.wrong(s.line+1, "request_too_large", "", "The line has more than %d bytes, which is the bound of one", s.c.max)
}

// full reports whether there are more lines than a job may have. It is called once for each.
func (s *scanned) full() bool {
	most := s.d.bounds().JobLines
	if s.c.job.Kind == MessageBatch { // whose clients are used to that
		most *= 2
	}
	if s.total <= most {
		return false
	}
	s.over = true
	s.c.wrong(s.line, "too_many_tasks", "", "The input has more than %d requests, which is the bound of one batch: send it as several", most)
	return true
}

// take checks one line and indexes it. Blank lines are passed over, but counted.
func (s *scanned) take(ctx context.Context, at int64, line []byte) error {
	s.line++
	blank := len(bytes.TrimSpace(line)) == 0
	if blank && s.c.job.Kind != Async {
		return nil
	}
	line = bytes.TrimSuffix(line, []byte("\r"))
	s.total++
	if s.full() {
		return nil
	}
	id := s.c.check(s.line, line)
	if s.c.broken() { // nothing of it will run
		s.lines = nil
		return nil
	}
	s.lines = append(s.lines, Line{Line: s.line, At: at, Bytes: len(line), CustomID: id})
	if len(s.lines) == indexGroup {
		return s.flush(ctx)
	}
	return nil
}

// flush tells the store of lines.
func (s *scanned) flush(ctx context.Context) error {
	if len(s.lines) == 0 || s.lost {
		return nil
	}
	until := time.Now().Add(s.d.bounds().Lease)
	ok, err := s.d.o.Store.PutLines(ctx, s.c.job.ID, s.fence, s.lines, until, s.d.bounds().TenantLines)
	s.lines, s.lost = s.lines[:0], err == nil && !ok
	if err == nil || sluice.AsError(err).Kind != sluice.KindRateLimited {
		return err
	}
	s.c.refused(0, "", err)
	return nil
}

// refusal is the error that Submit returns for an input that is wrong.
func refusal(p Problem, cause *sluice.Error, within string) *sluice.Error {
	if cause != nil { // it says more than the problem that was made of it
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
