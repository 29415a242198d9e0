package jobs

import (
	"context"
	"log/slog"
	"time"

	"sluice"
)

// The rhythm of a foreman.
const (
	pollEach  = time.Second
	pollIdle  = 5 * time.Second // while there is no job
	sweepEach = 5 * time.Minute
	// sweepRetry is how long a sweep that failed waits.
	sweepRetry = 10 * time.Second
	openLimit  = 1000 // jobs that are worked at

	abandonedAfter = 24 * time.Hour      // a file that is not ready
	forgottenAfter = 30 * 24 * time.Hour // a job whose results are gone
)

// Start begins to work. Close ends it.
func (d *Desk) Start(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	working, stop := context.WithCancel(ctx)
	posting, giveUp := context.WithCancel(ctx)
	d.stop, d.giveUp = stop, giveUp
	ended := make(chan done, claimGroup)
	d.ended = ended
	d.foreman.Go(func() { d.lead(working) })
	d.poster.Go(func() { d.post(posting, ended) })
}

// Close stops to work: no line begins any more, those that run may finish until ctx ends
// and are given back then, and what this worker had claimed is free for others at once. It
// is called once. Without a Start it does nothing.
func (d *Desk) Close(ctx context.Context) {
	if d.stop == nil {
		return
	}
	d.Hold()
	d.stop()
	d.foreman.Wait() // and the steps of jobs
	d.finishLines(ctx)
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastPost)
	defer cancel()
	context.AfterFunc(after, d.giveUp)
	close(d.ended)
	d.poster.Wait()
	for _, w := range d.crew.list() {
		d.release(after, w)
		w.cancel(errStopping)
	}
	if err := d.o.Store.Beat(after, d.worker, d.now()); err != nil {
		d.o.Log.Warn("batches were not given back: they go on when this worker's lease is over", slog.Any("error", err))
	}
}

// Hold begins no further line. Those that run go on.
func (d *Desk) Hold() {
	d.crew.mu.Lock()
	defer d.crew.mu.Unlock()
	d.crew.held = true
}

// finishLines waits for the lines that run, and ends them with ctx.
func (d *Desk) finishLines(ctx context.Context) {
	finished := make(chan struct{})
	go func() { // it is joined below
		d.lines.Wait()
		close(finished)
	}()
	select {
	case <-finished:
		return
	case <-ctx.Done():
	}
	for _, w := range d.crew.list() {
		w.cancel(errStopping)
	}
	<-finished
}

// hurry has the foreman look at once.
func (d *Desk) hurry() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// lead is the foreman: it says that this worker lives, follows the jobs from state to
// state, and begins lines.
func (d *Desk) lead(ctx context.Context) {
	defer d.steps.Wait()
	d.retire(ctx)
	var beat, poll time.Time
	sweep := d.now().Add(sweepEach)
	for ctx.Err() == nil {
		now := d.now()
		if d.moved.Swap(false) || !now.Before(poll) {
			poll = now.Add(d.poll(ctx))
			d.over(now)
		}
		if d.litter.Load() || !now.Before(sweep) {
			d.sweep(ctx)
			sweep = now.Add(sweepEach)
		}
		if len(d.crew.list()) == 0 { // nothing is this worker's
			d.rest(ctx, poll)
			continue
		}
		if !now.Before(beat) {
			beat = d.beat(ctx, now)
		}
		d.dispatch(ctx)
		d.rest(ctx, beat, poll)
	}
}

// rest waits until something is due.
func (d *Desk) rest(ctx context.Context, until ...time.Time) {
	now := d.now()
	next := d.crew.next(d.bounds(), now)
	for _, t := range until {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	t := time.NewTimer(max(next.Sub(now), time.Millisecond))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-d.wake:
	case <-t.C:
	}
}

// retire tells a store that is this process's alone that no worker before it lives. It
// waits for the store.
func (d *Desk) retire(ctx context.Context) {
	for d.o.Store.Retire(ctx, d.worker) != nil && sleep(ctx, postRetry) {
	}
}

// beat says that this worker lives, and returns when it is to say so again. A worker that
// could not say so for its lease gives back what it had claimed and not begun: others may
// have that. It leaves alone for a while what others seem to have lost, who may not have been
// able to say so either.
func (d *Desk) beat(ctx context.Context, now time.Time) time.Time {
	lease := d.bounds().Lease
	err := d.o.Store.Beat(ctx, d.worker, now.Add(lease))
	d.asked(ctx, "renew the lease of this worker", err)
	if err != nil {
		d.spare = now.Add(lease) // moved on as long as it fails
		return now.Add(lease / 10)
	}
	if was := d.alive.Swap(now.Add(lease).UnixMicro()); was != 0 && now.UnixMicro() >= was {
		for _, w := range d.crew.list() {
			d.release(ctx, w)
		}
	}
	if d.spare.After(now.Add(lease / 3)) {
		d.spare = now.Add(lease / 3)
	}
	return now.Add(lease / 3)
}

// tidy has what is over deleted soon.
func (d *Desk) tidy() {
	d.litter.Store(true)
	d.hurry()
}

// sweep deletes what is over, on a goroutine of its own if it does not do so already:
// slice by slice, in turn with the tenants as if it were one.
func (d *Desk) sweep(ctx context.Context) {
	if !d.tidying.CompareAndSwap(false, true) {
		return
	}
	d.litter.Store(false)
	d.steps.Go(func() {
		_, err := d.slices(ctx, OpenAIBatch, "", sweeping{d})
		d.asked(ctx, "delete what is over", err)
		if err != nil && sleep(ctx, sweepRetry) {
			d.litter.Store(true)
		}
		d.tidying.Store(false)
		if d.litter.Load() {
			d.hurry()
		}
	})
}

// sweeping deletes what is over.
type sweeping struct{ d *Desk }

func (sweeping) free() {}

func (s sweeping) slice(ctx context.Context) (verdict, error) {
	now := s.d.now()
	left, err := s.d.o.Store.Sweep(ctx, Sweep{Now: now, Abandoned: now.Add(-abandonedAfter), Forgotten: now.Add(-forgottenAfter)})
	if left && err == nil {
		return more, nil
	}
	return idle, err
}

// dispatch begins lines as long as there is room and something to begin.
func (d *Desk) dispatch(ctx context.Context) {
	for ctx.Err() == nil {
		b, now := d.bounds(), d.now()
		if now.UnixMicro() >= d.alive.Load() {
			return // others may have what this worker claims
		}
		c := &d.crew
		c.mu.Lock()
		w := c.pick(b, now)
		if w == nil {
			c.mu.Unlock()
			return
		}
		l, ok := c.begin(w)
		full := !ok && len(w.claimed) > 0 // no room for its body
		want := min(max(w.limit(b), 8), claimGroup)
		urgent := w.pace.urgency == Urgent
		c.mu.Unlock()
		switch {
		case full:
			return
		case ok:
			d.lines.Go(func() { d.line(w, l, urgent) })
		case !d.claim(ctx, w, want):
			return
		}
	}
}

// claim takes lines of a job for this worker; false if the store does not answer. Lines of
// lost workers are looked for now and then, since looking for them is looking at all that run.
func (d *Desk) claim(ctx context.Context, w *work, want int) bool {
	now := d.now()
	lost := !now.Before(w.look) && !now.Before(d.spare)
	lines, err := d.o.Store.Claim(ctx, Claim{Job: w.id, Worker: d.worker, Now: now, Limit: want, Lost: lost})
	d.asked(ctx, "claim lines", err)
	d.crew.mu.Lock()
	defer d.crew.mu.Unlock()
	w.dry = time.Time{}
	if err != nil || len(lines) < want {
		w.dry = now.Add(pollEach)
	}
	if err != nil {
		return false
	}
	w.claimed = append(w.claimed, lines...)
	found := 0
	for _, l := range lines {
		if !l.Lost {
			continue
		}
		if found++; d.o.Hooks.Reclaimed != nil {
			d.o.Hooks.Reclaimed()
		}
	}
	if lost && found < want { // else there may be more of them
		w.look = now.Add(d.bounds().Lease / 10)
	}
	return true
}

// line runs one line and hands over what became of it.
func (d *Desk) line(w *work, l Line, urgent bool) {
	d.crew.mu.Lock()
	j := w.job
	d.crew.mu.Unlock()
	ctx, cancel := context.WithDeadlineCause(w.ctx, j.Deadline, errOverdue)
	defer cancel()
	a := attempt{d: d, job: &j, line: l, class: sluice.Batch, unwanted: w.unwanted}
	a.taken = func(expected time.Time) {
		d.crew.park(w, l, expected)
		d.hurry()
	}
	if urgent {
		a.class = sluice.Standard
	}
	var out outcome
	if err := d.read(ctx, w, &a); err != nil {
		out = a.unread(err)
	} else {
		out = a.run(ctx)
	}
	d.ended <- done{w, l, out}
}

// read reads the line's body. Lines are begun in order, so that most are in the chunk that
// the one before was in.
func (d *Desk) read(ctx context.Context, w *work, a *attempt) error {
	w.reading.Lock()
	defer w.reading.Unlock()
	if w.reader == nil {
		f, err := d.o.Store.File(ctx, a.job.Caller.Tenant, a.job.Input) // its time does not end before the job
		if err != nil {
			return err
		}
		w.reader = &Reader{File: f, d: d, held: -1}
	}
	var err error
	a.body, err = w.reader.at(ctx, a.line.At, a.line.Bytes)
	return err
}
