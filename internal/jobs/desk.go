package jobs

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/route"
)

// Options is what a Desk works with. All but Log, Hooks and Bounds are needed.
type Options struct {
	Store Store
	Run   exchange.Runner // takes a line's request to its result
	// Refuse records a request that is refused before it is run (exchange.Exchange.Refuse).
	Refuse func(*exchange.Request, exchange.Client, *sluice.Error) exchange.Result
	Table  func() *route.Table // the routing table in force
	// Principal is who a job's caller is now, with the policy of now: its error says why
	// that caller may not call any more.
	Principal func(sluice.Principal) (sluice.Principal, error)
	Log       *slog.Logger // nil discards
	Bounds    Bounds
	Hooks     Hooks
}

// Hooks are told what happened. Nil fields are silent. They must not block.
type Hooks struct {
	Ran       func(res *exchange.Result) // a request of a line has ended, and is not one that was refused and waits
	Line      func(k Kind, s LineState)  // a line has its result
	Deferred  func(why sluice.Reason)    // a line was refused and waits
	Reclaimed func()                     // a line was taken over from a worker that is lost
	Stale     func()                     // an answer came for a line that another worker has, and was voided
	Ended     func(j *Job)               // a job has ended
	// StoreFailed is of a call of the store that did not succeed; what it was for is tried
	// again.
	StoreFailed func()
}

// Desk takes files and jobs, and gives what became of them. Its methods are safe for
// concurrent use.
type Desk struct {
	o      Options
	bound  atomic.Pointer[Bounds]
	worker string // of this process
	// spare is until when lines that other workers seem to have lost are left to them; the
	// foreman's.
	spare time.Time

	crew    crew
	turns   *turns
	trouble trouble
	wake    chan struct{} // one place: there is something to do
	ended   chan done
	moved   atomic.Bool  // a job is in another state
	litter  atomic.Bool  // there may be something to delete
	tidying atomic.Bool  // it is being deleted
	checked atomic.Int64 // bytes that checks have in memory between slices
	alive   atomic.Int64 // until when this worker's claims are its own, in microseconds

	stop, giveUp    context.CancelFunc
	foreman, poster sync.WaitGroup
	steps, lines    sync.WaitGroup
}

// New makes a Desk that takes files and jobs and runs nothing yet.
func New(o Options) *Desk {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	d := &Desk{o: o, wake: make(chan struct{}, 1), turns: newTurns(stepsAt)}
	d.crew.jobs, d.crew.tenants = make(map[JobID]*work), make(map[sluice.TenantID]*team)
	d.worker = d.newID("worker-")
	d.Configure(o.Bounds)
	return d
}

// Configure puts other bounds into force.
func (d *Desk) Configure(b Bounds) {
	b = b.withDefaults()
	d.bound.Store(&b)
}

func (d *Desk) bounds() *Bounds { return d.bound.Load() }

// now is the time as the store keeps it.
func (d *Desk) now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// newID is a prefix and 128 random bits.
func (d *Desk) newID(prefix string) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it does not fail
	return prefix + hex.EncodeToString(b[:])
}

// notFound is what is said of what is not there and of what is another tenant's.
func notFound(param, what string) *sluice.Error {
	return &sluice.Error{Kind: sluice.KindNotFound, Reason: sluice.NotFound, Param: param, Msg: "names no " + what + " that is here"}
}

// File is what is known of a file.
func (d *Desk) File(ctx context.Context, t sluice.TenantID, id FileID) (File, error) {
	f, err := d.o.Store.File(ctx, t, id)
	if err == nil && (!f.Ready || f.Over(d.now())) {
		return File{}, notFound("file_id", "file")
	}
	return f, err
}

// Files is a page of files, and whether there is another.
func (d *Desk) Files(ctx context.Context, q FileQuery) (page []File, more bool, err error) {
	if q.Limit <= 0 {
		q.Limit = 100
	}
	q.Limit = min(q.Limit, 10_000)
	page, err = d.o.Store.Files(ctx, q, d.now())
	if len(page) > q.Limit {
		page, more = page[:q.Limit], true
	}
	return page, more, err
}

// Progress is how far a job is, as far as this process has measured it.
func (d *Desk) Progress(j *Job) Progress {
	now := d.now()
	d.crew.mu.Lock()
	defer d.crew.mu.Unlock()
	if w := d.crew.jobs[j.ID]; w != nil && j.State == InProgress {
		return w.pace.progress(now, j)
	}
	p := pace{urgency: j.Urgency}
	return p.progress(now, j)
}

// DeleteFile deletes a file. One that a job of its tenant's still reads is KindConflict.
func (d *Desk) DeleteFile(ctx context.Context, t sluice.TenantID, id FileID) error {
	if _, err := d.File(ctx, t, id); err != nil {
		return err
	}
	defer d.tidy()
	return d.o.Store.DropFile(ctx, t, id)
}
