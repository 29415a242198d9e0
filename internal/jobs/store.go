package jobs

import (
	"context"
	"time"

	"sluice"
	"sluice/internal/idempotency"
)

// Store keeps files, jobs and lines. Every method but Sweep is one transaction: all of it
// or nothing. None takes longer the larger a job or a file is, but ResetLines. Errors that a caller can act on are *sluice.Error: KindNotFound for what is not
// there or is another tenant's, KindConflict for what the state of it does not allow,
// KindRateLimited for what a bound of the tenant's does not.
type Store interface {
	FileStore
	JobStore
	LineStore
}

// FileStore keeps files. A tenant's id is in every question.
type FileStore interface {
	// PutFile begins a file, which is not ready.
	PutFile(ctx context.Context, f File) error
	// PutChunk adds chunk n, from 0, of a file that is not ready. bound is what all of the
	// tenant's files may have together; 0 is no bound.
	PutChunk(ctx context.Context, t sluice.TenantID, id FileID, n int, body []byte, bound int64) error
	// SealFile ends the writing of a file, whose name, purpose, expiry and readiness are as
	// f says. A key of once (nil for none) is kept with it; *idempotency.Taken if another
	// request has that.
	SealFile(ctx context.Context, f File, once *idempotency.Once) error
	File(ctx context.Context, t sluice.TenantID, id FileID) (File, error)
	// Files are those that are ready and neither hidden nor over at now; one more than
	// q.Limit tells that there is another page.
	Files(ctx context.Context, q FileQuery, now time.Time) ([]File, error)
	// Chunk reads chunk n of a file; a chunk that is not there is KindNotFound.
	Chunk(ctx context.Context, t sluice.TenantID, id FileID, n int) ([]byte, error)
	// DropFile deletes a file. Of a large one the chunks go by and by with Sweep, and only
	// then are their bytes given back.
	DropFile(ctx context.Context, t sluice.TenantID, id FileID) error
}

// JobStore keeps jobs.
type JobStore interface {
	// PutJob adds a job, unless its tenant has p.Bounds.TenantJobs that have not ended, or
	// p.Bounds.TenantLines lines of such.
	PutJob(ctx context.Context, j *Job, p Put) error
	// FreeMade gives back the key of a job that is forgotten.
	FreeMade(ctx context.Context, h idempotency.Held) error
	// Job reads one; an empty tenant reads anybody's.
	Job(ctx context.Context, t sluice.TenantID, id JobID) (Job, error)
	// Jobs are a page; one more than q.Limit tells that there is another.
	Jobs(ctx context.Context, q JobQuery) ([]Job, error)
	// OpenJobs are those that have not ended: of each tenant its oldest, then of each its
	// second, and so on.
	OpenJobs(ctx context.Context, limit int) ([]Job, error)
	// LeaseJob gives an owner the steps of a job that one takes alone, validation and the
	// writing of its files, until a time. The fence rises with each owner; ok is false while
	// another has it.
	LeaseJob(ctx context.Context, id JobID, owner string, now, until time.Time) (fence int64, ok bool, err error)
	// SaveJob replaces what is known of a job that is in the state was, but its Counts,
	// Usage and Cost. A fence other than 0 must be that of its last lease. ok is false where
	// either is not so. A job that ends gives back what it held of its tenant's bounds, its
	// output and errors become ready and are kept until its ResultsExpire, and its lines are
	// over: at once, and with it those of an Async, whose results they are.
	SaveJob(ctx context.Context, j *Job, was State, fence int64) (ok bool, err error)
	// PutOutput adds to the files of a job that is about to end. ok as in SaveJob; a file
	// that is not there any more is KindNotFound.
	PutOutput(ctx context.Context, w *Output) (ok bool, err error)
	// DropJob deletes a job that has ended, and its results; of a large one these go by and
	// by with Sweep.
	DropJob(ctx context.Context, t sluice.TenantID, id JobID) error
	// Sweep deletes a slice of what is over, in transactions of a slice at most, and reports
	// whether there may be more.
	Sweep(ctx context.Context, s Sweep) (more bool, err error)
}

// Output is one slice of the results of a job that is about to end.
type Output struct {
	Job    *Job // whose Written is kept with it
	Fence  int64
	Until  time.Time // of the lease, which is renewed
	Begin  []File    // that begin with it
	Chunks []Chunk   // that are added, or replace the last one of their file, which they begin with
}

// Chunk is a part of a file.
type Chunk struct {
	File FileID
	N    int // from 0
	Body []byte
}

// Put says how a job is added.
type Put struct {
	Bounds Bounds
	Once   *idempotency.Once // its key, which is kept as SealFile does; nil has none
	// Owner has its steps until a time, as by LeaseJob, before anybody else can see it;
	// empty gives them to nobody.
	Owner string
	Until time.Time
}

// Sweep says what is over.
type Sweep struct {
	Now       time.Time // files whose time it is, answers that are gone, workers that are not alive
	Abandoned time.Time // files that were begun before and have not been made ready
	Forgotten time.Time // jobs whose results were gone before
}

// LineStore keeps lines and their results.
type LineStore interface {
	// ResetLines deletes the lines of a job that is validated again; ok as in SaveJob.
	ResetLines(ctx context.Context, id JobID, fence int64) (ok bool, err error)
	// PutLines adds lines, which wait, to a job that is validated. room is for how many of
	// them the tenant's bound has room; where that is not for all, none is added. ok as in
	// SaveJob.
	PutLines(ctx context.Context, l *Lines) (room int, ok bool, err error)
	// CustomIDs tells of the lines of a job.
	CustomIDs(ctx context.Context, id JobID, visit func(line int, customID string)) error
	// Beat says that a worker lives until a time.
	Beat(ctx context.Context, worker string, until time.Time) error
	// Retire says that no worker but one is alive, where no other process can have the
	// store; elsewhere it does nothing.
	Retire(ctx context.Context, but string) error
	// Claim gives a worker lines of a job in progress: those that wait and are due. Each
	// claim of a line has a higher number.
	Claim(ctx context.Context, c Claim) ([]Line, error)
	// Post takes what a worker made of lines of one job. A posting whose claim is not the
	// line's any more changes nothing, voids its request, and is told as stale by its index.
	Post(ctx context.Context, id JobID, now time.Time, posts []Posting) (stale []int, err error)
	// EndLines gives a slice of the lines that wait the state, and of those of workers that
	// are not alive, whose requests are voided. It returns how many a worker still has, and
	// whether there are more to end.
	EndLines(ctx context.Context, id JobID, now time.Time, as LineState) (running int, more bool, err error)
	// Results are lines that have ended, by their number, after one; as many as limit and
	// as maxBytes of bodies allow, but one at least.
	Results(ctx context.Context, id JobID, after, limit int, maxBytes int64) ([]Result, error)
	// Elsewhere is how many lines of a job a provider's own batch API has, and when the
	// last of them is expected back.
	Elsewhere(ctx context.Context, id JobID) (lines int, expected time.Time, err error)
}

// Lines is one slice of an input that has been checked.
type Lines struct {
	Job   *Job // whose Checked, Problems, Dropped and Model are kept with it
	Fence int64
	Until time.Time // of the lease, which is renewed
	Lines []Line
	Bound int // of lines of the tenant's jobs that have not ended; 0 is none
}

// Claim is what a worker would have.
type Claim struct {
	Job    JobID
	Worker string
	Now    time.Time
	Limit  int
	// Lost has it take first what a worker has who is not alive any more. The requests of
	// such are voided.
	Lost bool
}

// Line is one line of a job.
type Line struct {
	Line     int   // from 1
	At       int64 // where in the input it begins
	Bytes    int   // without its line end
	CustomID string
	Claim    int64     // of the claim that gave it; 0 before the first
	Lost     bool      // a worker that is not alive had it
	Due      time.Time // it is not run before; zero is at once
}

// Posting is what became of a claimed line: a result, or that it goes back and waits.
type Posting struct {
	Line   int
	Claim  int64
	Result *Result   // nil gives the line back
	Due    time.Time // of a line that is given back
	Void   bool      // the request of a line that is given back was begun and is not to be billed
}
