package jobs

import (
	"context"
	"fmt"

	"sluice"
)

// The bounds of one slice of results that are written to files.
const (
	resultLines = 2000
	resultBytes = 4 << 20 // of bodies; one at least
)

// writing writes the results of a job all of whose lines have an end to its files, slice by
// slice, and ends it.
type writing struct {
	d     *Desk
	j     *Job
	h     hold
	as    State // that it comes to
	fresh bool
	line  []byte
}

func (s *writing) free() {}

func (s *writing) slice(ctx context.Context) (verdict, error) {
	was := s.j.State
	if ok, err := s.d.renew(ctx, s.j, &s.h, &s.fresh); err != nil || !ok || s.j.State != was {
		return idle, err
	}
	if s.j.Kind == Async {
		return s.end(ctx)
	}
	group, err := s.d.o.Store.Results(ctx, s.j.ID, s.j.Written.Line, resultLines, resultBytes)
	if err != nil {
		return idle, err
	}
	if len(group) == 0 {
		return s.end(ctx)
	}
	err = s.write(ctx, group)
	if sluice.AsError(err).Kind == sluice.KindNotFound { // a file was swept away meanwhile: the results are there
		s.j.Written = Written{}
		return more, nil
	}
	if err == errNotHeld {
		return idle, nil
	}
	return more, err
}

// errNotHeld is of a job that is another worker's, or in another state.
var errNotHeld = fmt.Errorf("the job is not this worker's")

// sheet is what a slice adds to one file.
type sheet struct {
	id   *FileID // in the job's Written, as is size
	size *int64
	what string
	body []byte // from the last chunk that was not full
}

// write renders a slice of results.
func (s *writing) write(ctx context.Context, group []Result) error {
	w := s.j.Written // as it will be
	sheets := [...]sheet{{id: &w.Output, size: &w.OutputBytes, what: "output"}, {id: &w.Errors, size: &w.ErrorsBytes, what: "error"}}
	for i := range sheets {
		if err := s.load(ctx, &sheets[i]); err != nil {
			return err
		}
	}
	for i := range group {
		w.Line = group[i].Line
		if !given(s.j, &group[i]) {
			continue
		}
		var failed bool
		s.line, failed = render(s.line[:0], s.j, &group[i])
		to := &sheets[0]
		if failed {
			to = &sheets[1]
		}
		to.body = append(to.body, s.line...)
	}
	j := *s.j
	out := Output{Job: &j, Fence: s.h.fence, Until: s.h.extend(s.d)}
	for i := range sheets {
		s.put(&out, &sheets[i])
	}
	j.Written = w
	ok, err := s.d.o.Store.PutOutput(ctx, &out)
	if err == nil && !ok {
		err = errNotHeld
	}
	if err == nil {
		s.j.Written = w
	}
	if cap(s.line) > ChunkBytes {
		s.line = nil
	}
	return err
}

// load reads the last chunk of a file that is not full.
func (s *writing) load(ctx context.Context, of *sheet) error {
	rest := *of.size % ChunkBytes
	if rest == 0 {
		return nil
	}
	p, err := s.d.o.Store.Chunk(ctx, s.j.Caller.Tenant, *of.id, int(*of.size/ChunkBytes))
	if err == nil && int64(len(p)) != rest {
		err = notFound("file_id", "file")
	}
	of.body = p
	return err
}

// put adds what a slice has for one file. Files that nothing belongs in are not begun.
func (s *writing) put(out *Output, of *sheet) {
	n, held := int(*of.size/ChunkBytes), *of.size%ChunkBytes
	if int64(len(of.body)) == held {
		return
	}
	if *of.id == "" {
		*of.id = FileID(s.d.newID(filePrefix))
		out.Begin = append(out.Begin, File{
			ID: *of.id, Tenant: s.j.Caller.Tenant, Project: s.j.Caller.Project, Purpose: PurposeOutput, Hidden: s.j.Kind != OpenAIBatch,
			Name: fmt.Sprintf("%s_%s.jsonl", s.j.ID, of.what), Created: s.d.now(),
		})
	}
	*of.size += int64(len(of.body)) - held
	for b := of.body; len(b) > 0; n++ {
		k := min(len(b), ChunkBytes)
		out.Chunks = append(out.Chunks, Chunk{File: *of.id, N: n, Body: b[:k]})
		b = b[k:]
	}
}

// end ends the job, whose files are written.
func (s *writing) end(ctx context.Context) (verdict, error) {
	j, was, now := s.j, s.j.State, s.d.now()
	j.Output, j.Errors, j.Written = j.Written.Output, j.Written.Errors, Written{}
	j.State, j.Ended, j.ResultsExpire = s.as, now, now.Add(j.Keep)
	if ok, err := s.d.o.Store.SaveJob(ctx, j, was, s.h.fence); err != nil || !ok {
		return idle, err
	}
	s.d.dropInput(ctx, j)
	return finished, nil
}
