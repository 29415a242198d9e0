package handover

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"sluice"
	"sluice/internal/upstream"
)

// The bounds of one process.
const (
	MaxLines   = 1000    // of a batch
	MaxBytes   = 8 << 20 // of the bodies of a batch
	MaxWaiting = 4096    // lines that have been handed over, and those that collect
)

// ErrUndone is of a line that the provider has not run.
var ErrUndone = errors.New("the provider's batch ended without the line")

// Line is what a batch's line says of itself.
type Line struct {
	Job      string
	Number   int       // from 1
	Open     int       // lines of the job that have no end yet
	Deadline time.Time // of the job
	// Taken is called once when it is handed over, and is told when it is expected back: it
	// needs no place any more.
	Taken    func(expected time.Time)
	Unwanted <-chan struct{} // closed when the job is cancelled; nil if nobody says so
}

// Call is a line that is to be handed over.
type Call struct {
	Line   *Line
	At     Batch  // Expected and where it is to be made alone; all of it where Found
	Found  bool   // At has the line already
	Path   string // of one request
	Header http.Header
	Pieces [][]byte  // of its body; they are copied
	Until  time.Time // when what the provider has not done is taken back
}

// Result is what became of a line at the provider.
type Result struct {
	Status int
	Body   []byte
	Err    error // ErrUndone, an *Undone where more is known, or nil
	Sent   bool  // of ErrUndone: the provider may have run it all the same
}

// Options is what an Agent works with. Log, Hooks and MaxResults may be left out.
type Options struct {
	Upstream *upstream.Client
	Target   func(sluice.BackendID) (*upstream.Target, bool) // how a backend is called
	Store    Store
	Log      *slog.Logger
	Hooks    Hooks
	// MaxResults bounds what is read of a file of results, in bytes: lines whose results are
	// behind it run by themselves. 0 means DefaultMaxResults.
	MaxResults int64
}

// Hooks are told what happened. They must not block.
type Hooks struct {
	Batch func(p sluice.ProviderID, how string) // made or refused; then ended, failed, expired, cancelled or lost
	// Line is of each line that has a result, and of each that is to run by itself, as the
	// store counts those: an answer that then turns out to be none is both.
	Line func(p sluice.ProviderID, done bool)
}

// Agent hands lines over.
type Agent struct {
	o    Options
	wg   sync.WaitGroup
	ctx  context.Context
	stop context.CancelFunc

	mu      sync.Mutex
	waiting int
	collect map[account]*group
	running map[string]*group // by Batch.ID
	resting map[resting]time.Time
	closed  bool
}

// resting is an account that has not taken a batch.
type resting struct {
	backend sluice.BackendID
	key     string
}

// account is what a group's lines have in common.
type account struct {
	job, path string
	backend   sluice.BackendID
	key       string
}

// New makes an Agent. Close ends it.
func New(o Options) *Agent {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxResults <= 0 {
		o.MaxResults = DefaultMaxResults
	}
	a := &Agent{o: o, collect: map[account]*group{}, running: map[string]*group{}, resting: map[resting]time.Time{}}
	a.ctx, a.stop = context.WithCancel(context.Background())
	a.wg.Go(a.tidy)
	return a
}

// Close stops asking. What has been handed over stays so: who claims the lines next goes on.
func (a *Agent) Close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.stop()
	a.wg.Wait()
}

// Waiting is how many lines are at providers, or on their way there.
func (a *Agent) Waiting() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waiting
}

// Find is the batch that a line is in. alone says that the line is to run by itself.
func (a *Agent) Find(ctx context.Context, l *Line) (b Batch, found, alone bool, err error) {
	b, over, ok, err := a.o.Store.Handed(ctx, l.Job, l.Number)
	return b, ok && !over, ok && over, err
}

// Seat is a line that has been handed over, or waits for that. Leave ends it.
type Seat struct {
	g      *group
	line   int
	done   chan Result
	pieces []byte

	unwanted bool // guarded by Agent.mu
}

// Done gives the line's result, once.
func (s *Seat) Done() <-chan Result { return s.done }

// Stopped is closed when this process asks no more: the line's result comes to who claims
// it next.
func (s *Seat) Stopped() <-chan struct{} { return s.g.a.ctx.Done() }

// Leave says that nobody waits for the line here.
func (s *Seat) Leave() { s.g.leave(s) }

// Cancel says that the line is not wanted any more. A batch of which that is so of all
// lines is cancelled; what is done of it comes all the same.
func (s *Seat) Cancel() { s.g.unwanted(s) }

// TakeBack has a line that a batch has an answer for run by itself all the same.
func (a *Agent) TakeBack(ctx context.Context, id string, line int) error {
	return a.takeBack(ctx, id, []int{line})
}

// takeBack has lines run by themselves, and counts them.
func (a *Agent) takeBack(ctx context.Context, id string, lines []int) error {
	p, back, err := a.o.Store.TakeBack(ctx, id, lines)
	if h := a.o.Hooks.Line; h != nil && err == nil {
		for range back {
			h(p, false)
		}
	}
	return err
}

// Batch is the id of the line's batch.
func (s *Seat) Batch() string { return s.g.at.ID }

// Join puts a line into a group. It is nil where there is no room, or where the account has
// just refused a batch.
func (a *Agent) Join(c *Call) *Seat {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.waiting >= MaxWaiting {
		return nil
	}
	s := &Seat{line: c.Line.Number, done: make(chan Result, 1)}
	if c.Found {
		if s.g = a.running[c.At.ID]; s.g == nil {
			s.g = a.begin(c)
			a.running[c.At.ID] = s.g
		}
	} else {
		if time.Now().Before(a.resting[resting{c.At.Backend, c.At.Key}]) {
			return nil
		}
		a.collectFor(c, s)
	}
	a.waiting++
	s.g.seats[s.line] = s
	s.g.joined()
	return s
}

// collectFor finds a seat its place in a group that is collected. a.mu is held.
func (a *Agent) collectFor(c *Call, s *Seat) {
	of := account{c.Line.Job, c.Path, c.At.Backend, c.At.Key}
	for _, p := range c.Pieces {
		s.pieces = append(s.pieces, p...)
	}
	if g := a.collect[of]; g != nil && g.bytes+len(s.pieces) > MaxBytes {
		g.seal()
	}
	if s.g = a.collect[of]; s.g == nil {
		s.g = a.begin(c)
		s.g.of = of
		a.collect[of] = s.g
	}
	s.g.bytes += len(s.pieces)
}

// idPrefix is what the ids of batches begin with.
const idPrefix = "handover_"

// begin makes a group. a.mu is held.
func (a *Agent) begin(c *Call) *group {
	g := &group{
		a: a, at: c.At, p: &provider{a: a, backend: c.At.Backend, key: c.At.Key, header: c.Header.Clone()}, path: c.Path, until: c.Until,
		seats: map[int]*Seat{}, more: make(chan struct{}, 1), full: make(chan struct{}), nobody: make(chan struct{}),
	}
	if !c.Found {
		var b [16]byte
		_, _ = rand.Read(b[:]) // it does not fail
		g.at.ID, g.at.Job = idPrefix+hex.EncodeToString(b[:]), c.Line.Job
	}
	a.wg.Go(func() { g.run(c.Found) })
	return g
}
