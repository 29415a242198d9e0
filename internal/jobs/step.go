package jobs

import (
	"context"
	"time"

	"sluice"
)

// stepsAt is how many slices are done at a time.
const stepsAt = 2

// verdict is what came of a slice.
type verdict uint8

const (
	idle     verdict = iota // there is nothing to do now, or it is another worker's
	more                    // there is another slice
	finished                // the job is in another state
)

// step is what takes a job from one state to the next, slice by slice. What a slice has
// done is in the store, so that any worker goes on from there: an error loses nothing else.
type step interface {
	slice(ctx context.Context) (verdict, error)
	free() // gives back what it has in memory
}

// hold is the lease of a job's steps.
type hold struct {
	owner string
	lasts time.Duration
	fence int64 // 0 before there is one
	until time.Time
}

// extend is until when a slice renews the lease.
func (h *hold) extend(d *Desk) time.Time {
	h.until = d.now().Add(h.lasts)
	return h.until
}

// renew makes sure that a lease lasts for half of its time still; false is that it is
// another's, or was. The first lease reads the job anew, unless it is fresh: another worker
// may have taken it further.
func (d *Desk) renew(ctx context.Context, j *Job, h *hold, fresh *bool) (bool, error) {
	now := d.now()
	if h.fence != 0 && h.until.Sub(now) > h.lasts/2 {
		return true, nil
	}
	until := now.Add(h.lasts)
	fence, ok, err := d.o.Store.LeaseJob(ctx, j.ID, h.owner, now, until)
	if err != nil || !ok || h.fence != 0 && h.fence != fence {
		return false, err
	}
	h.fence, h.until = fence, until
	if *fresh {
		return true, nil
	}
	is, err := d.o.Store.Job(ctx, j.Caller.Tenant, j.ID)
	if err != nil {
		return false, err
	}
	*j, *fresh = is, true
	return true, nil
}

// slices does the slices of a step, each when it is its tenant's turn. That of an Async is
// one line, for which nobody is kept waiting.
func (d *Desk) slices(ctx context.Context, k Kind, t sluice.TenantID, s step) (v verdict, err error) {
	defer s.free()
	if k == Async {
		for v = more; v == more && err == nil; {
			v, err = s.slice(ctx)
		}
		return v, err
	}
	if err := d.turns.enter(ctx, t); err != nil {
		return idle, err
	}
	defer func() { d.turns.leave() }()
	for {
		if v, err = s.slice(ctx); err != nil || v != more {
			return v, err
		}
		if err := d.turns.again(ctx, t); err != nil {
			return idle, err
		}
	}
}

// stepOf takes a step of a job, on a goroutine of its own, if none of it is under way.
func (d *Desk) stepOf(ctx context.Context, w *work, begin func(*Job, hold) step) {
	d.crew.mu.Lock()
	defer d.crew.mu.Unlock()
	if w.step {
		return
	}
	w.step = true
	j := w.job
	s := begin(&j, hold{owner: d.worker, lasts: d.bounds().Lease})
	d.steps.Go(func() {
		v, err := d.slices(ctx, j.Kind, j.Caller.Tenant, s)
		d.asked(ctx, "take a job a step further", err)
		if err != nil {
			sleep(ctx, postRetry)
		}
		d.crew.mu.Lock()
		w.step = false
		d.crew.mu.Unlock()
		if err == nil && v == finished {
			d.ran(&j)
		}
		if err != nil || v == finished {
			d.again()
		}
	})
}

// validation checks the input of a job whose client has been answered. One whose client
// has not, since the process that checked it is lost, fails.
func (d *Desk) validation(j *Job, h hold) step {
	if j.Kind.inline() {
		return &unsaid{d: d, j: j, h: h}
	}
	return d.check(j, h)
}

// unsaid ends a job of which no client has been told.
type unsaid struct {
	d     *Desk
	j     *Job
	h     hold
	fresh bool
}

func (s *unsaid) free() {}

func (s *unsaid) slice(ctx context.Context) (verdict, error) {
	j := s.j
	if ok, err := s.d.renew(ctx, j, &s.h, &s.fresh); err != nil || !ok || j.State != Validating {
		return idle, err
	}
	now := s.d.now()
	j.State, j.Ended, j.ResultsExpire, j.Checked = Failed, now, now, Checked{}
	j.Problems = []Problem{{Code: "server_error", Message: "The gateway stopped while it checked the input: send it again"}}
	if ok, err := s.d.o.Store.SaveJob(ctx, j, Validating, s.h.fence); err != nil || !ok {
		return idle, err
	}
	s.d.dropInput(ctx, j)
	return finished, nil
}

// ending gives the lines of a job that wait their end, and then goes on to what follows.
type ending struct {
	d     *Desk
	j     *Job
	h     hold
	as    LineState
	then  step // nil is another state, which the foreman sees
	fresh bool
	ended bool
}

func (s *ending) free() {}

func (s *ending) slice(ctx context.Context) (verdict, error) {
	if s.ended {
		return s.then.slice(ctx)
	}
	was := s.j.State
	if ok, err := s.d.renew(ctx, s.j, &s.h, &s.fresh); err != nil || !ok || s.j.State != was {
		return idle, err
	}
	running, left, err := s.d.o.Store.EndLines(ctx, s.j.ID, s.d.now(), s.as)
	switch {
	case err != nil:
		return idle, err
	case left:
		return more, nil
	case running > 0:
		return idle, nil
	case s.then == nil:
		return finished, nil
	}
	s.ended = true
	return more, nil
}

// dropInput drops an input that was made for the job alone.
func (d *Desk) dropInput(ctx context.Context, j *Job) {
	f, err := d.o.Store.File(ctx, j.Caller.Tenant, j.Input)
	if err == nil && f.Hidden {
		_ = d.o.Store.DropFile(ctx, j.Caller.Tenant, j.Input) // else its time ends it
	}
}
