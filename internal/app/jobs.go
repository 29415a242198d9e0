package app

import (
	"context"
	"strings"
	"time"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/exchange"
	"sluice/internal/idempotency"
	"sluice/internal/jobs"
	"sluice/internal/proxy"
	"sluice/internal/route"
	"sluice/internal/store"
)

// openDesk makes what takes files and batches, and runs their lines by run. It works once
// the store is there.
func (a *App) openDesk(run exchange.Runner, table func() *route.Table, log func(*proxy.Record), b jobs.Bounds) {
	hooks := a.metrics.Batches()
	hooks.Ran = func(res *exchange.Result) {
		record := proxy.Record{Final: res.Final, Usage: res.Usage, Cost: res.Cost, Risk: res.Risk, Denied: res.Denied, Would: res.Would}
		if res.Err != nil {
			record.Refusal, record.Err = res.Err.Refusal, res.Err.Err
		}
		log(&record)
	}
	a.desk = jobs.New(jobs.Options{
		Store: lateJobs{&a.store}, Table: table, Run: run, Refuse: a.exchange.Refuse, Principal: a.principalOf,
		Log: a.log, Bounds: b, Hooks: hooks,
	})
}

// tokenKeys begins the ids that stand in the place of a key's for bearers of tokens.
const tokenKeys = "jwt:"

// principalOf is who a caller of some time ago is now.
func (a *App) principalOf(p sluice.Principal) (sluice.Principal, error) {
	now := time.Now()
	if !a.ready.Load() {
		return sluice.Principal{}, &sluice.Error{Kind: sluice.KindOverloaded, Reason: sluice.NotReady, Msg: "the gateway is starting", RetryAfter: time.Second}
	}
	if strings.HasPrefix(string(p.Key), tokenKeys) {
		return a.keeper.Admit(&auth.Bearer{Key: p.Key, Tenant: p.Tenant, Project: p.Project, User: p.User}, now)
	}
	is, err := a.keeper.Principal(p.Key, now)
	if err == nil && is.Tenant != p.Tenant {
		err = &sluice.Error{Kind: sluice.KindUnauthenticated, Reason: sluice.Unauthenticated, Msg: "the API key that this was sent with is another tenant's now"}
	}
	return is, err
}

// lateJobs is the store of files and batches, which may come later.
type lateJobs struct{ l *lateStore }

var _ jobs.Store = lateJobs{}

// late asks the store, if it is there.
func late[T any](s lateJobs, ask func(*store.DB) (T, error)) (v T, err error) {
	db, err := s.l.get()
	if err != nil {
		return v, &sluice.Error{Kind: sluice.KindOverloaded, Reason: sluice.NotReady, RetryAfter: time.Second, Msg: "files and batches cannot be reached: the store does not answer", Hint: "try again in a moment", Err: err}
	}
	return ask(db)
}

// lateDo is late for what gives nothing.
func lateDo(s lateJobs, ask func(*store.DB) error) error {
	_, err := late(s, func(db *store.DB) (struct{}, error) { return struct{}{}, ask(db) })
	return err
}

// PutFile implements jobs.Store.
func (s lateJobs) PutFile(ctx context.Context, f jobs.File) error {
	return lateDo(s, func(db *store.DB) error { return db.PutFile(ctx, f) })
}

// PutChunk implements jobs.Store.
func (s lateJobs) PutChunk(ctx context.Context, t sluice.TenantID, id jobs.FileID, n int, body []byte, bound int64) error {
	return lateDo(s, func(db *store.DB) error { return db.PutChunk(ctx, t, id, n, body, bound) })
}

// SealFile implements jobs.Store.
func (s lateJobs) SealFile(ctx context.Context, f jobs.File, once *idempotency.Once) error {
	return lateDo(s, func(db *store.DB) error { return db.SealFile(ctx, f, once) })
}

// File implements jobs.Store.
func (s lateJobs) File(ctx context.Context, t sluice.TenantID, id jobs.FileID) (jobs.File, error) {
	return late(s, func(db *store.DB) (jobs.File, error) { return db.File(ctx, t, id) })
}

// Files implements jobs.Store.
func (s lateJobs) Files(ctx context.Context, q jobs.FileQuery, now time.Time) ([]jobs.File, error) {
	return late(s, func(db *store.DB) ([]jobs.File, error) { return db.Files(ctx, q, now) })
}

// Chunk implements jobs.Store.
func (s lateJobs) Chunk(ctx context.Context, t sluice.TenantID, id jobs.FileID, n int) ([]byte, error) {
	return late(s, func(db *store.DB) ([]byte, error) { return db.Chunk(ctx, t, id, n) })
}

// DropFile implements jobs.Store.
func (s lateJobs) DropFile(ctx context.Context, t sluice.TenantID, id jobs.FileID) error {
	return lateDo(s, func(db *store.DB) error { return db.DropFile(ctx, t, id) })
}

// PutJob implements jobs.Store.
func (s lateJobs) PutJob(ctx context.Context, j *jobs.Job, p jobs.Put) error {
	return lateDo(s, func(db *store.DB) error { return db.PutJob(ctx, j, p) })
}

// FreeMade implements jobs.Store.
func (s lateJobs) FreeMade(ctx context.Context, h idempotency.Held) error {
	return lateDo(s, func(db *store.DB) error { return db.FreeMade(ctx, h) })
}

// Job implements jobs.Store.
func (s lateJobs) Job(ctx context.Context, t sluice.TenantID, id jobs.JobID) (jobs.Job, error) {
	return late(s, func(db *store.DB) (jobs.Job, error) { return db.Job(ctx, t, id) })
}

// Jobs implements jobs.Store.
func (s lateJobs) Jobs(ctx context.Context, q jobs.JobQuery) ([]jobs.Job, error) {
	return late(s, func(db *store.DB) ([]jobs.Job, error) { return db.Jobs(ctx, q) })
}

// OpenJobs implements jobs.Store.
func (s lateJobs) OpenJobs(ctx context.Context, limit int) ([]jobs.Job, error) {
	return late(s, func(db *store.DB) ([]jobs.Job, error) { return db.OpenJobs(ctx, limit) })
}

// LeaseJob implements jobs.Store.
func (s lateJobs) LeaseJob(ctx context.Context, id jobs.JobID, owner string, now, until time.Time) (fence int64, ok bool, err error) {
	fence, err = late(s, func(db *store.DB) (int64, error) {
		var fence int64
		fence, ok, err = db.LeaseJob(ctx, id, owner, now, until)
		return fence, err
	})
	return fence, ok, err
}

// SaveJob implements jobs.Store.
func (s lateJobs) SaveJob(ctx context.Context, j *jobs.Job, was jobs.State, fence int64) (bool, error) {
	return late(s, func(db *store.DB) (bool, error) { return db.SaveJob(ctx, j, was, fence) })
}

// DropJob implements jobs.Store.
func (s lateJobs) DropJob(ctx context.Context, t sluice.TenantID, id jobs.JobID) error {
	return lateDo(s, func(db *store.DB) error { return db.DropJob(ctx, t, id) })
}

// PutOutput implements jobs.Store.
func (s lateJobs) PutOutput(ctx context.Context, o *jobs.Output) (bool, error) {
	return late(s, func(db *store.DB) (bool, error) { return db.PutOutput(ctx, o) })
}

// Sweep implements jobs.Store.
func (s lateJobs) Sweep(ctx context.Context, w jobs.Sweep) (bool, error) {
	return late(s, func(db *store.DB) (bool, error) { return db.Sweep(ctx, w) })
}

// ResetLines implements jobs.Store.
func (s lateJobs) ResetLines(ctx context.Context, id jobs.JobID, fence int64) (bool, error) {
	return late(s, func(db *store.DB) (bool, error) { return db.ResetLines(ctx, id, fence) })
}

// PutLines implements jobs.Store.
func (s lateJobs) PutLines(ctx context.Context, l *jobs.Lines) (room int, ok bool, err error) {
	ok, err = late(s, func(db *store.DB) (ok bool, err error) {
		room, ok, err = db.PutLines(ctx, l)
		return ok, err
	})
	return room, ok, err
}

// CustomIDs implements jobs.Store.
func (s lateJobs) CustomIDs(ctx context.Context, id jobs.JobID, visit func(line int, customID string)) error {
	return lateDo(s, func(db *store.DB) error { return db.CustomIDs(ctx, id, visit) })
}

// Beat implements jobs.Store.
func (s lateJobs) Beat(ctx context.Context, worker string, until time.Time) error {
	return lateDo(s, func(db *store.DB) error { return db.Beat(ctx, worker, until) })
}

// Retire implements jobs.Store.
func (s lateJobs) Retire(ctx context.Context, but string) error {
	return lateDo(s, func(db *store.DB) error { return db.Retire(ctx, but) })
}

// Claim implements jobs.Store.
func (s lateJobs) Claim(ctx context.Context, c jobs.Claim) ([]jobs.Line, error) {
	return late(s, func(db *store.DB) ([]jobs.Line, error) { return db.Claim(ctx, c) })
}

// Post implements jobs.Store.
func (s lateJobs) Post(ctx context.Context, id jobs.JobID, now time.Time, posts []jobs.Posting) ([]int, error) {
	return late(s, func(db *store.DB) ([]int, error) { return db.Post(ctx, id, now, posts) })
}

// EndLines implements jobs.Store.
func (s lateJobs) EndLines(ctx context.Context, id jobs.JobID, now time.Time, as jobs.LineState) (running int, more bool, err error) {
	more, err = late(s, func(db *store.DB) (more bool, err error) {
		running, more, err = db.EndLines(ctx, id, now, as)
		return more, err
	})
	return running, more, err
}

// Results implements jobs.Store.
func (s lateJobs) Results(ctx context.Context, id jobs.JobID, after, limit int, maxBytes int64) ([]jobs.Result, error) {
	return late(s, func(db *store.DB) ([]jobs.Result, error) { return db.Results(ctx, id, after, limit, maxBytes) })
}

// Elsewhere implements jobs.Store.
func (s lateJobs) Elsewhere(ctx context.Context, id jobs.JobID) (lines int, expected time.Time, err error) {
	err = lateDo(s, func(db *store.DB) error {
		lines, expected, err = db.Elsewhere(ctx, id)
		return err
	})
	return lines, expected, err
}
