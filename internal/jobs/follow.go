package jobs

import (
	"context"
	"log/slog"
	"time"

	"sluice"
)

// poll looks at the jobs that have not ended, and takes each a step further. It returns
// when to look again.
func (d *Desk) poll(ctx context.Context) time.Duration {
	open, err := d.o.Store.OpenJobs(ctx, openLimit)
	d.asked(ctx, "read the jobs", err)
	if err != nil {
		return pollEach
	}
	now := d.now()
	seen := make(map[JobID]bool, len(open))
	for i := range open {
		seen[open[i].ID] = true
		d.follow(ctx, d.see(&open[i], now), now)
	}
	d.crew.mu.Lock()
	defer d.crew.mu.Unlock()
	for id, w := range d.crew.jobs {
		if !seen[id] && w.running+w.parked == 0 && !w.step {
			w.cancel(errCancelled)
			delete(d.crew.jobs, id)
		}
	}
	for t, v := range d.crew.tenants {
		if v.running == 0 && !d.crew.has(t) {
			delete(d.crew.tenants, t)
		}
	}
	if len(d.crew.jobs) == 0 {
		return pollIdle
	}
	return pollEach
}

// has reports whether a tenant has a job. REQUIRES: mu is held.
func (c *crew) has(t sluice.TenantID) bool {
	for _, w := range c.jobs {
		if w.job.Caller.Tenant == t {
			return true
		}
	}
	return false
}

// see takes what the store says of a job.
func (d *Desk) see(j *Job, now time.Time) *work {
	d.crew.mu.Lock()
	defer d.crew.mu.Unlock()
	w := d.crew.jobs[j.ID]
	if w == nil {
		w = &work{id: j.ID, kind: j.Kind, unwanted: make(chan struct{})}
		w.ctx, w.cancel = context.WithCancelCause(context.Background())
		d.crew.jobs[j.ID] = w
	}
	w.job = *j
	if j.State == InProgress {
		w.pace.note(now, j.Counts.Total-j.Counts.Open())
	}
	return w
}

// follow takes a job a step further.
func (d *Desk) follow(ctx context.Context, w *work, now time.Time) {
	j := w.job // only this goroutine writes it
	switch j.State {
	case Validating:
		if now.Before(j.Deadline) {
			d.stepOf(ctx, w, d.validation)
			return
		}
		d.move(ctx, w, Expired, func(j *Job) { j.Ended, j.ResultsExpire, j.Checked = now, now.Add(j.Keep), Checked{} })
	case InProgress:
		d.progress(ctx, w, now)
	case Finalizing:
		d.stepOf(ctx, w, func(j *Job, h hold) step { return &writing{d: d, j: j, h: h, as: j.Ending} })
	case Cancelling:
		if !w.recalled {
			w.recalled = true
			close(w.unwanted)
		}
		if now.After(j.Cancelling.Add(d.bounds().CancelGrace)) {
			w.cancel(errCancelled)
		}
		d.release(ctx, w)
		d.stepOf(ctx, w, func(j *Job, h hold) step {
			return &ending{d: d, j: j, h: h, as: LineCancelled, then: &writing{d: d, j: j, h: h, as: Cancelled}}
		})
	}
}

// progress follows a job whose lines run.
func (d *Desk) progress(ctx context.Context, w *work, now time.Time) {
	j := &w.job
	switch {
	case j.Counts.Open() == 0:
		ending := Completed
		if j.Counts.Expired > 0 {
			ending = Expired
		}
		d.move(ctx, w, Finalizing, func(j *Job) { j.Ending, j.Finalizing = ending, now })
	case !now.Before(j.Deadline):
		d.release(ctx, w)
		d.stepOf(ctx, w, func(j *Job, h hold) step { return &ending{d: d, j: j, h: h, as: LineExpired} })
	default:
		d.lookAway(ctx, w, now)
		d.crew.mu.Lock()
		was, met := w.pace.urgency, w.held
		is := w.pace.decide(now, j)
		w.held = nil
		d.crew.mu.Unlock()
		if is != was {
			d.o.Log.Info("a batch is paced differently", slog.String("job", string(j.ID)), slog.String("urgency", is.String()))
		}
		if is != j.Urgency || met != nil {
			d.move(ctx, w, InProgress, func(j *Job) {
				if j.Urgency = is; met != nil {
					j.Held = met.to
				}
			})
		}
	}
}

// lookAway notes what of a job providers have, whoever gave it to them, if that is to be
// decided by.
func (d *Desk) lookAway(ctx context.Context, w *work, now time.Time) {
	d.crew.mu.Lock()
	due := w.pace.due(now, &w.job)
	d.crew.mu.Unlock()
	if !due {
		return
	}
	lines, expected, err := d.o.Store.Elsewhere(ctx, w.id)
	if err != nil {
		return // it goes by what it knew
	}
	d.crew.mu.Lock()
	defer d.crew.mu.Unlock()
	w.pace.away = away{max(lines, w.parked), expected}
}

// release gives back lines that were claimed and have not begun.
func (d *Desk) release(ctx context.Context, w *work) {
	d.crew.mu.Lock()
	posts := make([]Posting, len(w.claimed))
	for i, l := range w.claimed {
		posts[i] = Posting{Line: l.Line, Claim: l.Claim}
	}
	w.claimed = nil
	d.crew.mu.Unlock()
	if len(posts) == 0 {
		return
	}
	_, err := d.o.Store.Post(ctx, w.id, d.now(), posts)
	d.asked(ctx, "give lines back", err) // else the lease ends
}

// move saves a job in another state, if it is still in the one that was seen.
func (d *Desk) move(ctx context.Context, w *work, to State, change func(*Job)) {
	j := w.job
	was := j.State
	j.State = to
	change(&j)
	ok, err := d.o.Store.SaveJob(ctx, &j, was, 0)
	d.asked(ctx, "save a job", err)
	if !ok {
		return
	}
	d.crew.mu.Lock()
	w.job = j
	d.crew.mu.Unlock()
	d.ran(&j)
	if was != to {
		d.again()
	}
}

// again has the jobs looked at at once.
func (d *Desk) again() {
	d.moved.Store(true)
	d.hurry()
}

// ran tells the hooks of a job that has ended.
func (d *Desk) ran(j *Job) {
	if !j.State.Ended() {
		return
	}
	d.tidy()
	d.o.Log.Info("a batch has ended", slog.String("job", string(j.ID)), slog.String("state", j.State.String()),
		slog.Int("lines", j.Counts.Total), slog.Int("succeeded", j.Counts.Succeeded), slog.Int("failed", j.Counts.Failed))
	if d.o.Hooks.Ended != nil {
		d.o.Hooks.Ended(j)
	}
}
