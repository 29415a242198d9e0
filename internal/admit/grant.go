package admit

import (
	"context"
	"errors"

	"sluice"
	"sluice/internal/engine"
)

// ErrNoAttempt is what Next returns when no further attempt follows and the
// reason is the attempt's own: settle with that.
var ErrNoAttempt = errors.New("no further attempt")

// Grant is a request that has a place on a backend, or had one and waits for the
// next. One goroutine owns it; Progress alone may be called from another.
type Grant struct{}

// Grant is the current place.
func (g *Grant) Grant() engine.Grant { return engine.Grant{} }

// Next ends the attempt and waits for the following place. Nil: there is a new
// Grant. Else no further attempt follows, and the request is still open: settle
// it. The error is ErrNoAttempt, or a *sluice.Error if a fallback was refused,
// found no place in time, or ctx ended.
func (g *Grant) Next(ctx context.Context, r engine.Result) error { return nil }

// Progress renews the hold; see engine.Engine.Progress.
func (g *Grant) Progress(u sluice.Usage) engine.Directive { return engine.Directive{} }

// Settle ends the request with what it took, over all its attempts: nil,
// engine.ErrLate (posted, after its hold had expired) or engine.ErrSettled
// (nothing has changed).
func (g *Grant) Settle(a engine.Actual) error { return nil }

// Release ends a request that used nothing; all it held is returned. After
// Settle it does nothing.
func (g *Grant) Release(why sluice.Reason) {}

// Limits are the caller's counters as of the last dispatch.
func (g *Grant) Limits() []engine.LimitState { return nil }
