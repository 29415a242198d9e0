package admit

import (
	"context"
	"errors"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/route"
)

// ErrNoAttempt is what Next returns when no further attempt follows and the
// reason is the attempt's own: settle with that.
var ErrNoAttempt = errors.New("no further attempt")

// NoAttempt is an ErrNoAttempt that says which rule for retries denied one.
type NoAttempt struct{ Why route.Denied }

func (n *NoAttempt) Error() string { return "no further attempt: " + string(n.Why) }

// Is makes it an ErrNoAttempt.
func (n *NoAttempt) Is(target error) bool { return target == ErrNoAttempt }

// Grant is a request that has a place on a backend, or had one and waits for the
// next. One goroutine owns it; Progress alone may be called from another.
type Grant struct {
	gate  *Gate
	call  engine.Call
	place engine.Grant
	ended bool // settled or released
}

// Grant is the current place.
func (g *Grant) Grant() engine.Grant { return g.place }

// Next ends the attempt and waits for the following place. Nil: there is a new
// Grant. Else no further attempt follows, and the request is still open: settle
// it. The error is ErrNoAttempt, as a *NoAttempt where a rule for retries denied
// one, or a *sluice.Error if a fallback was refused,
// found no place in time, or ctx ended.
func (g *Grant) Next(ctx context.Context, r engine.Result) error {
	gate := g.gate
	gate.mu.Lock()
	now := time.Now()
	next := gate.eng.AttemptEnded(now, g.call.ID, r)
	closed := gate.closed
	var ch <-chan engine.Grant
	if next.Step == engine.Queue && !closed {
		ch = gate.expect(g.call.ID)
	}
	told := gate.advance(now)
	gate.mu.Unlock()
	gate.tell(told)
	if gate.hooks.Ended != nil {
		gate.hooks.Ended(g.call, r)
	}
	switch {
	case next.Err != nil:
		return next.Err
	case next.Denied != route.Allowed:
		return &NoAttempt{next.Denied}
	case next.Step != engine.Queue:
		return ErrNoAttempt
	case closed:
		return shuttingDown()
	}
	place, err := gate.await(ctx, g.call.ID, ch)
	switch {
	case place.Denied != route.Allowed:
		return &NoAttempt{place.Denied}
	case err != nil:
		return err
	}
	g.place = place
	if gate.hooks.Granted != nil {
		gate.hooks.Granted(g.call, place)
	}
	return nil
}

// Progress renews the hold; see engine.Engine.Progress.
func (g *Grant) Progress(u sluice.Usage) engine.Directive {
	gate := g.gate
	gate.mu.Lock()
	now := time.Now()
	d := gate.eng.Progress(now, g.call.ID, u)
	var told news
	if d.Advance {
		told = gate.advance(now)
	}
	gate.mu.Unlock()
	gate.tell(told)
	return d
}

// Step raises the hold of an output that is held in steps; see engine.Engine.Step.
func (g *Grant) Step(used, lead sluice.Tokens) (heldTo sluice.Tokens, goOn bool) {
	g.gate.mu.Lock()
	defer g.gate.mu.Unlock()
	return g.gate.eng.Step(time.Now(), g.call.ID, used, lead)
}

// Settle ends the request with what it took, over all its attempts: nil,
// engine.ErrLate (posted, after its hold had expired) or engine.ErrSettled
// (nothing has changed).
func (g *Grant) Settle(a engine.Actual) error {
	if g.ended {
		return engine.ErrSettled
	}
	g.ended = true
	gate := g.gate
	gate.mu.Lock()
	now := time.Now()
	err := gate.eng.Settle(now, g.call.ID, a)
	told := gate.advance(now)
	gate.mu.Unlock()
	gate.tell(told)
	if gate.hooks.Settled != nil {
		gate.hooks.Settled(g.call, a, err)
	}
	return err
}

// Release ends a request that used nothing; all it held is returned. After
// Settle it does nothing.
func (g *Grant) Release(why sluice.Reason) {
	if g.ended {
		return
	}
	g.ended = true
	gate := g.gate
	gate.mu.Lock()
	now := time.Now()
	gate.eng.Cancel(now, g.call.ID, why)
	told := gate.advance(now)
	gate.mu.Unlock()
	gate.tell(told)
	if gate.hooks.Released != nil {
		gate.hooks.Released(g.call, why)
	}
}

// Limits are the caller's counters as of the last dispatch.
func (g *Grant) Limits() []engine.LimitState { return g.place.Limits }
