package engine

import (
	"time"

	"sluice"
	"sluice/internal/route"
)

// Options tune an Engine. Zero fields take the defaults.
type Options struct {
	// HoldTTL is how long a running request keeps its hold without activity.
	// Default DefaultHoldTTL.
	HoldTTL time.Duration
	// MaxWait is the longest wait in a queue where neither the request, the
	// policy nor the pool says anything. Default DefaultMaxWait.
	MaxWait time.Duration
	// MaxAttempts bounds the attempts of one request. Default
	// DefaultMaxAttempts.
	MaxAttempts int
	// MaxExpired bounds how many expired holds are remembered for a late
	// settlement. Default DefaultMaxExpired.
	MaxExpired int
}

// Defaults of Options.
const (
	DefaultHoldTTL     = 15 * time.Minute
	DefaultMaxWait     = 30 * time.Second
	DefaultMaxAttempts = 4
	DefaultMaxExpired  = 16384
)

// Config is what an Engine is made from.
type Config struct {
	Table   *route.Table
	Options Options
}

// Engine is the state machine. It is not safe for concurrent use: admit guards
// it with one mutex.
type Engine struct{}

// New makes an engine for a table. The table must be one that Prepare accepts;
// New panics otherwise, since a table is validated before it gets here.
func New(c Config) *Engine { return &Engine{} }

// Arrive reserves requests, tokens and spend over every scope, all or nothing,
// and puts the request into one queue. Call Advance next.
func (e *Engine) Arrive(now time.Time, c Call) Verdict { return Verdict{} }

// Advance sweeps expired holds, grants places in queue order and ends waits
// that are over. The slice is valid until the next call of Advance.
func (e *Engine) Advance(now time.Time) []Grant { return nil }

// NextWake is when Advance has something to do though nothing else happens.
func (e *Engine) NextWake() (time.Time, bool) { return time.Time{}, false }

// Progress renews the hold of a running request and, the first time, frees its
// prefill tokens on the backend.
func (e *Engine) Progress(now time.Time, id sluice.RequestID, u sluice.Usage) Directive {
	return Directive{}
}

// AttemptEnded frees the backend and the caller's gauges, posts what the failed
// attempt took and says whether another follows. Call Advance next.
func (e *Engine) AttemptEnded(now time.Time, id sluice.RequestID, r Result) Next { return Next{} }

// Settle ends a request: what it took is charged, the rest of its hold is
// returned. Nil, ErrLate or ErrSettled. Call Advance next.
func (e *Engine) Settle(now time.Time, id sluice.RequestID, a Actual) error { return nil }

// Cancel ends a request that used nothing: everything is returned, the request
// count too. It reports whether the request was open. Call Advance next.
func (e *Engine) Cancel(now time.Time, id sluice.RequestID, why sluice.Reason) bool { return false }

// Tally charges one request to the caller's request limits, for calls that
// reach no backend and hold nothing, such as a list of models.
func (e *Engine) Tally(now time.Time, p sluice.Principal) ([]LimitState, *sluice.Error) {
	return nil, nil
}

// Plan is a validated table, ready to be swapped in.
type Plan struct{}

// Prepare validates a table. It reads no state of the engine but the table in
// force, so it may run outside the lock.
func (e *Engine) Prepare(t *route.Table) (*Plan, error) { return &Plan{}, nil }

// Swap puts a plan into force. Queues, holds, health and counters survive by
// name. Call Advance next.
func (e *Engine) Swap(now time.Time, p *Plan) {}

// Restore charges reservations found open at start. Call it before the first
// Arrive.
func (e *Engine) Restore(now time.Time, holds []OpenHold) {}

// Seed adds what fixed windows had taken before this process started. Call it
// once, before the first Arrive.
func (e *Engine) Seed(now time.Time, spent []Spent) {}

// Observe takes a signal about a backend.
func (e *Engine) Observe(now time.Time, s Signal) {}

// Dump is a picture of the engine with at most limit accounts, and at most
// limit pools of at most limit backends each.
func (e *Engine) Dump(now time.Time, limit int) View { return View{} }

// Open is how many requests wait or run.
func (e *Engine) Open() int { return 0 }
