package admit

import (
	"context"
	"errors"
	"slices"
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

// ErrRace is what Next returns when the other of two attempts goes on: what follows
// is decided by how that ends.
var ErrRace = errors.New("the other attempt goes on")

// Grant is a request that has a place on a backend, or had one and waits for the
// next. One goroutine owns it; Progress and Leave
// alone may be called from another.
type Grant struct {
	gate  *Gate
	call  engine.Call
	place engine.Grant
	of    *Grant // of a hedge, its request's
	ended bool   // settled or released
}

// Grant is the current place.
func (g *Grant) Grant() engine.Grant { return g.place }

// Hedge begins a second attempt beside the one that runs, if there is to be one; see
// engine.Engine.Hedge. Else the error is a *NoAttempt, or the *sluice.Error of the
// limit that has no room for it. The second Grant is its caller's too, who ends both,
// each once: the loser's by Settle with sluice.LostRace.
func (g *Grant) Hedge() (*Grant, error) {
	gate := g.gate
	gate.mu.Lock()
	now := time.Now()
	h := gate.eng.Hedge(now, g.call.ID)
	h.Grant.Candidates, h.Grant.Limits = slices.Clone(h.Grant.Candidates), h.Grant.Limits.Clone() // the engine's memory
	told := gate.advance(now)
	gate.mu.Unlock()
	gate.tell(told)
	switch {
	case h.Err != nil:
		return nil, h.Err
	case h.Denied != route.Allowed:
		return nil, &NoAttempt{h.Denied}
	}
	second := &Grant{gate: gate, call: g.call, place: h.Grant, of: g}
	second.call.ID = h.Grant.ID
	if gate.hooks.Granted != nil {
		gate.hooks.Granted(g.call, h.Grant)
	}
	return second, nil
}

// Next ends the attempt and waits for the following place. Nil: there is a new
// Grant. Else no further attempt follows, and the request is still open: settle
// it. The error is ErrNoAttempt, as a *NoAttempt where a rule for retries denied
// one, or a *sluice.Error if a fallback was refused,
// found no place in time, or ctx ended; or ErrRace, and nobody waits. A hedge has
// ended by it in any case: the place that follows is its request's.
func (g *Grant) Next(ctx context.Context, r engine.Result) error {
	gate, request := g.gate, g
	if g.of != nil {
		g.ended, request = true, g.of
	}
	gate.mu.Lock()
	now := time.Now()
	next := gate.eng.AttemptEnded(now, g.call.ID, r)
	closed := gate.closed
	var ch <-chan engine.Grant
	if next.Step == engine.Queue && !closed {
		ch = gate.expect(request.call.ID)
	}
	told := gate.advance(now)
	gate.mu.Unlock()
	gate.tell(told)
	if gate.hooks.Ended != nil {
		gate.hooks.Ended(g.call, r)
	}
	switch {
	case next.Step == engine.Race:
		return ErrRace
	case next.Err != nil:
		return next.Err
	case next.Denied != route.Allowed:
		return &NoAttempt{next.Denied}
	case next.Step != engine.Queue:
		return ErrNoAttempt
	case closed:
		return shuttingDown()
	}
	place, err := gate.await(ctx, request.call.ID, ch)
	switch {
	case place.Denied != route.Allowed:
		return &NoAttempt{place.Denied}
	case err != nil:
		return err
	}
	request.place = place
	if gate.hooks.Granted != nil {
		gate.hooks.Granted(request.call, place)
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

// Leave frees the place and the caller's gauges, as the client has left and the answer is
// read on for at most d; see engine.Engine.Leave. It may be called from another goroutine.
func (g *Grant) Leave(u sluice.Usage, d time.Duration) bool {
	gate := g.gate
	gate.mu.Lock()
	now := time.Now()
	left := gate.eng.Leave(now, g.call.ID, u, d)
	var told news
	if left {
		told = gate.advance(now)
	}
	gate.mu.Unlock()
	gate.tell(told)
	return left
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
	a.Handle = g.place.Handle
	err := gate.eng.Settle(now, g.call.ID, a)
	delete(gate.copies, g.call.ID)
	told := gate.advance(now)
	gate.mu.Unlock()
	gate.tell(told)
	if gate.hooks.Settled != nil && g.call.Shadow == nil {
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
	delete(gate.copies, g.call.ID)
	told := gate.advance(now)
	gate.mu.Unlock()
	gate.tell(told)
	if gate.hooks.Released != nil && g.call.Shadow == nil {
		gate.hooks.Released(g.call, why)
	}
}

// Limits are the caller's counters as of the last dispatch.
func (g *Grant) Limits() engine.Limits { return g.place.Limits }
