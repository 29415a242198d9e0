package admit

import (
	"context"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/route"
)

// Options tune a Gate.
type Options struct {
	Hooks Hooks
}

// Hooks are told what happened, after it did and outside the lock. Nil fields
// are silent. They run on the goroutine of the caller concerned and must not
// block.
type Hooks struct {
	Queued   func(engine.Call, engine.Verdict) // it waits, or is about to be granted
	Refused  func(engine.Call, *sluice.Error)  // at arrival, or when a wait ended without a place
	Granted  func(engine.Call, engine.Grant)   // every attempt
	Ended    func(engine.Call, engine.Result)  // every attempt that a further one may follow
	Settled  func(engine.Call, engine.Actual, error)
	Released func(engine.Call, sluice.Reason)
	Expired  func(sluice.RequestID) // a running request's hold ran out; on the gate's own goroutine or any caller's
}

// Gate is the waiting room. It is safe for concurrent use.
type Gate struct{}

// New puts a gate around an engine, which nobody else may touch from then on.
// Close ends it.
func New(eng *engine.Engine, o Options) *Gate { return &Gate{} }

// Admit waits for a place. The error is a *sluice.Error, and nothing is held
// then. The caller owns the Grant: defer its Release.
func (g *Gate) Admit(ctx context.Context, c engine.Call) (*Grant, error) { return nil, nil }

// Tally charges one request to the caller's request limits, for calls that
// reach no backend (a list of models), and tells the caller's counters. The
// error is a *sluice.Error.
func (g *Gate) Tally(p sluice.Principal) ([]engine.LimitState, error) { return nil, nil }

// Drain stops new admissions: they are refused with shutting_down. Calls that
// wait or run go on.
func (g *Gate) Drain() {}

// Idle waits until nothing waits or runs, or ctx ends.
func (g *Gate) Idle(ctx context.Context) error { return nil }

// Swap puts a routing table into force, or changes nothing and says why.
func (g *Gate) Swap(t *route.Table) error { return nil }

// Observe takes a signal about a backend.
func (g *Gate) Observe(s engine.Signal) {}

// Dump is a bounded picture of the engine.
func (g *Gate) Dump(limit int) engine.View { return engine.View{} }

// Close refuses what still waits with shutting_down and joins the gate's
// goroutine. It is idempotent. Grants may still be settled.
func (g *Gate) Close() {}
