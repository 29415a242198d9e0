package jobs

import (
	"context"
	"fmt"
	"maps"
	"time"
	"unicode/utf8"

	"sluice"
	"sluice/internal/idempotency"
	"sluice/internal/wire"
)

// Submit takes a job. One whose kind is checked before it returns is in progress then, or
// an error says which line is wrong and nothing is left of it. *idempotency.Taken is that
// another request has its key.
func (d *Desk) Submit(ctx context.Context, n NewJob) (Job, error) {
	b := d.bounds()
	j, err := d.newJob(&n, b)
	if err != nil {
		return Job{}, err
	}
	if _, err := d.File(ctx, j.Caller.Tenant, j.Input); err != nil {
		return Job{}, err
	}
	put := Put{Bounds: *b, Once: made(n.Once, string(j.ID))}
	h := hold{owner: d.worker + "/" + string(j.ID), lasts: inlineLease * b.Lease}
	if j.Kind.inline() {
		put.Owner, put.Until = h.owner, h.extend(d)
		h.fence = 1 // of the first lease
	}
	if err := d.o.Store.PutJob(ctx, &j, put); err != nil {
		return Job{}, err
	}
	if j.Kind.inline() {
		if err := d.checkNow(ctx, &j, h); err != nil {
			d.forget(ctx, &j, n.Once)
			return Job{}, err
		}
	}
	d.again()
	return j, nil
}

// newJob is the job that is asked for, or what is wrong with it.
func (d *Desk) newJob(n *NewJob, b *Bounds) (Job, error) {
	if n.Window == 0 {
		n.Window = b.Window
	}
	if n.Window < minWindow || n.Window > maxWindow {
		return Job{}, sluice.Invalid("completion_window", "is %s: write one from %s to %s", n.Window, minWindow, maxWindow)
	}
	if n.Keep <= 0 {
		n.Keep = b.KeepResults
	}
	if err := checkMetadata(n.Metadata); err != nil {
		return Job{}, err
	}
	now := d.now()
	j := Job{
		ID: JobID(d.newID(kindPrefixes[n.Kind])), Kind: n.Kind, Caller: n.Caller, Terms: n.Terms,
		Endpoint: n.Endpoint, Op: n.Op, Input: n.Input, Metadata: maps.Clone(n.Metadata),
		Window: n.Window, Created: now, Deadline: now.Add(n.Window), Keep: n.Keep,
	}
	j.Caller.Policy = nil
	j.Terms.Header = wire.RequestHeader(n.Terms.Header)
	if size := sizeOf(j.Terms.Header); size > maxHeaderBytes {
		return Job{}, sluice.Invalid("header", "has %d bytes that would be kept with the job, the bound is %d", size, maxHeaderBytes)
	}
	return j, nil
}

func checkMetadata(m map[string]string) error {
	if len(m) > MaxMetadata {
		return sluice.Invalid("metadata", "has %d keys: write at most %d", len(m), MaxMetadata)
	}
	for k, v := range m {
		switch {
		case k == "" || len(k) > MaxMetadataKey || !utf8.ValidString(k):
			return sluice.Invalid("metadata", "has the key %q: write 1 to %d bytes", cut(k), MaxMetadataKey)
		case len(v) > MaxMetadataText || !utf8.ValidString(v):
			return sluice.Invalid("metadata."+k, "has %d bytes: write at most %d", len(v), MaxMetadataText)
		}
	}
	return nil
}

// inlineLease is how many leases of a worker's a check lasts that its client waits for:
// who waits long for its turn is not lost.
const inlineLease = 10

// checkNow checks the input of a job before its client is answered.
func (d *Desk) checkNow(ctx context.Context, j *Job, h hold) error {
	c := d.check(j, h)
	c.fresh = true
	v, err := d.slices(ctx, j.Kind, j.Caller.Tenant, c)
	if err != nil || v != finished {
		return busy(err)
	}
	if j.State == Failed {
		within := ""
		if j.Kind == MessageBatch {
			within = "requests"
		}
		return refusal(j.Problems[0], c.c.cause, within)
	}
	_, _, err = d.o.Store.LeaseJob(ctx, j.ID, h.owner, d.now(), d.now()) // further steps are any worker's
	return err
}

func busy(err error) error {
	if err != nil {
		return err
	}
	return &sluice.Error{Kind: sluice.KindOverloaded, Reason: sluice.NotReady, RetryAfter: time.Second, Msg: "the batch was taken over while it was checked", Hint: "send it again"}
}

// forget deletes a job whose client is told that there is none.
func (d *Desk) forget(ctx context.Context, j *Job, once *idempotency.Once) {
	ctx = context.WithoutCancel(ctx)
	if once != nil {
		_ = d.o.Store.FreeMade(ctx, once.Held()) // else it says, until its time, that the batch has been deleted
	}
	if !j.State.Ended() {
		was := j.State
		j.State, j.Ended, j.ResultsExpire = Failed, d.now(), d.now()
		if ok, err := d.o.Store.SaveJob(ctx, j, was, 0); err != nil || !ok {
			return // its deadline ends it
		}
	}
	_ = d.o.Store.DropJob(ctx, j.Caller.Tenant, j.ID) // else it is swept
	d.tidy()
}

// Job is what is known of a job.
func (d *Desk) Job(ctx context.Context, t sluice.TenantID, id JobID) (Job, error) {
	j, err := d.o.Store.Job(ctx, t, id)
	if err == nil && t == "" {
		return Job{}, notFound("id", "batch")
	}
	return j, err
}

// Jobs is a page of jobs, newest first, and whether there is another.
func (d *Desk) Jobs(ctx context.Context, q JobQuery) (page []Job, more bool, err error) {
	if q.Limit <= 0 {
		q.Limit = 20
	}
	q.Limit = min(q.Limit, 1000)
	page, err = d.o.Store.Jobs(ctx, q)
	if len(page) > q.Limit {
		page, more = page[:q.Limit], true
	}
	return page, more, err
}

// Cancel has no further line of a job begin. One whose input is still checked before its
// client is told of it is KindConflict: all of its lines, once they are known, or none have
// an end. Those that run have Bounds.CancelGrace to
// finish. One that is being cancelled is left as it is; one that has ended, or has only
// its files left to write, is KindConflict.
func (d *Desk) Cancel(ctx context.Context, t sluice.TenantID, id JobID) (Job, error) {
	for {
		j, err := d.Job(ctx, t, id)
		if err != nil || j.State == Cancelling {
			return j, err
		}
		if !Follows(j.State, Cancelling) {
			return j, &sluice.Error{
				Kind: sluice.KindConflict, Reason: sluice.InvalidRequest, Param: "id",
				Msg: fmt.Sprintf("names a batch that is %s and cannot be cancelled", j.State),
			}
		}
		was := j.State
		if was == Validating && j.Kind.inline() {
			return j, &sluice.Error{Kind: sluice.KindConflict, Reason: sluice.InvalidRequest, Param: "id", Msg: "names a batch that is still being checked", Hint: "cancel it in a moment"}
		}
		j.State, j.Cancelling = Cancelling, d.now()
		ok, err := d.o.Store.SaveJob(ctx, &j, was, 0)
		if err != nil {
			return j, err
		}
		if ok {
			d.again()
			return d.Job(ctx, t, id)
		}
	}
}

// DeleteJob deletes a job that has ended, and its results; others are KindConflict.
func (d *Desk) DeleteJob(ctx context.Context, t sluice.TenantID, id JobID) error {
	j, err := d.Job(ctx, t, id)
	if err != nil {
		return err
	}
	if !j.State.Ended() {
		return &sluice.Error{
			Kind: sluice.KindConflict, Reason: sluice.InvalidRequest, Param: "id",
			Msg: fmt.Sprintf("names a batch that is %s", j.State), Hint: "cancel it, and delete it when it has ended",
		}
	}
	defer d.tidy()
	return d.o.Store.DropJob(ctx, t, id)
}

// Answer is the result of an Async job. One that has not ended is KindConflict, one whose
// results are gone KindNotFound.
func (d *Desk) Answer(ctx context.Context, t sluice.TenantID, id JobID) (Result, error) {
	j, err := d.Job(ctx, t, id)
	if err != nil {
		return Result{}, err
	}
	if j.Kind != Async || !j.ResultsExpire.IsZero() && !d.now().Before(j.ResultsExpire) {
		return Result{}, notFound("id", "answer")
	}
	if !j.State.Ended() {
		return Result{}, &sluice.Error{Kind: sluice.KindConflict, Reason: sluice.NotReady, Param: "id", Msg: "names a request that has not been answered yet"}
	}
	found, err := d.o.Store.Results(ctx, j.ID, 0, 1, 1)
	if err == nil && len(found) == 0 {
		err = notFound("id", "answer")
	}
	if err != nil {
		return Result{}, err
	}
	return found[0], nil
}
