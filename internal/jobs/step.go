package jobs

import (
	"context"
	"fmt"

	"sluice"
)

// The bounds of one read of results while files are written.
const (
	resultGroup      = 256
	resultGroupBytes = 4 << 20
)

// validate checks a job's input, which this worker leases. ok is false where the job is
// not this worker's any more, or was cancelled meanwhile. cause is the error that its first
// problem was made of, if it was made of one.
func (d *Desk) validate(ctx context.Context, j *Job, fence int64) (cause *sluice.Error, ok bool, err error) {
	c, lost, err := d.scan(ctx, j, fence)
	if err != nil || lost {
		return nil, false, err
	}
	now := d.now()
	if c.broken() {
		j.State, j.Ended, j.ResultsExpire = Failed, now, now.Add(j.Keep)
	} else {
		j.State, j.Started = InProgress, now
	}
	ok, err = d.o.Store.SaveJob(ctx, j, Validating, fence)
	if err != nil || !ok {
		return nil, false, err
	}
	if j.State == Failed {
		d.dropInput(ctx, j)
		return c.cause, true, d.o.Store.DropLines(ctx, j.ID)
	}
	j.Counts.Waiting = j.Counts.Total
	return nil, true, nil
}

// finish writes the files of a job all of whose lines have an end, and ends it. The state
// that it comes to is as.
func (d *Desk) finish(ctx context.Context, j *Job, owner string, fence int64, as State) (ok bool, err error) {
	var out, bad *Writer
	defer func() {
		for _, w := range [...]*Writer{out, bad} {
			if w != nil {
				w.Abort(ctx)
			}
		}
	}()
	if j.Kind != Async {
		if ok, err := d.writeResults(ctx, j, owner, fence, &out, &bad); err != nil || !ok {
			return false, err
		}
	}
	now := d.now()
	for _, w := range [...]struct {
		of *Writer
		id *FileID
	}{{out, &j.Output}, {bad, &j.Errors}} {
		if w.of == nil {
			continue
		}
		w.of.Keep = now.Add(j.Keep).Sub(w.of.f.Created)
		f, err := w.of.seal(ctx, false)
		if err != nil {
			return false, err
		}
		*w.id = f.ID
	}
	was := j.State
	j.State, j.Ended, j.ResultsExpire = as, now, now.Add(j.Keep)
	if ok, err := d.o.Store.SaveJob(ctx, j, was, fence); err != nil || !ok {
		return false, err
	}
	out, bad = nil, nil // they are the job's
	d.dropInput(ctx, j)
	if j.Kind == Async {
		return true, nil
	}
	return true, d.o.Store.DropLines(ctx, j.ID)
}

// writeResults renders the results of a job, a group at a time. Files that nothing
// belongs in are not begun.
func (d *Desk) writeResults(ctx context.Context, j *Job, owner string, fence int64, out, bad **Writer) (ok bool, err error) {
	var line []byte
	for after := 0; ; {
		now := d.now()
		if held, ok, err := d.o.Store.LeaseJob(ctx, j.ID, owner, now, now.Add(d.bounds().Lease)); err != nil || !ok || held != fence {
			return false, err
		}
		group, err := d.o.Store.Results(ctx, j.ID, after, resultGroup, resultGroupBytes)
		if err != nil {
			return false, err
		}
		if len(group) == 0 {
			return true, nil
		}
		for i := range group {
			r := &group[i]
			after = r.Line
			var failed bool
			line, failed = render(line[:0], j, r)
			to, what := out, "output"
			if failed {
				to, what = bad, "error"
			}
			if *to == nil {
				*to, err = d.create(ctx, NewFile{
					Tenant: j.Caller.Tenant, Project: j.Caller.Project, Purpose: PurposeOutput, Hidden: j.Kind != OpenAIBatch,
					Name: fmt.Sprintf("%s_%s.jsonl", j.ID, what), Max: 1 << 40,
				}, 0)
				if err != nil {
					return false, err
				}
			}
			if err := (*to).Write(ctx, line); err != nil {
				return false, err
			}
		}
	}
}

// dropInput drops an input that was made for the job alone.
func (d *Desk) dropInput(ctx context.Context, j *Job) {
	f, err := d.o.Store.File(ctx, j.Caller.Tenant, j.Input)
	if err == nil && f.Hidden {
		_ = d.o.Store.DropFile(ctx, j.Caller.Tenant, j.Input) // else its time ends it
	}
}
