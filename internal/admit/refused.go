package admit

import (
	"context"
	"errors"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/ladder"
)

// Refused is why a request got no place, with its caller's counters as they were
// then; none where a limit was not looked at.
type Refused struct {
	Err    *sluice.Error
	Limits engine.Limits
	// Candidates tells why each backend was left out, where none serves the request.
	Candidates []engine.Candidate
	Policy     string      // version of the routing table that decided, or under which it waited; empty if none saw it
	Tier       ladder.Tier // of the ladder of its pool, as it felt it
	Felt       *engine.Felt
}

func (r *Refused) Error() string { return r.Err.Error() }

func (r *Refused) Unwrap() error { return r.Err }

// Smaller asks for the call of a smaller model in place of this one, or for this one
// Whole: see engine.Verdict. Nothing was decided.
type Smaller struct {
	Model sluice.ModelID
	Tier  ladder.Tier
	Felt  *engine.Felt
}

func (s *Smaller) Error() string { return "a smaller model is to serve it: " + string(s.Model) }

func shuttingDown() *sluice.Error {
	return &sluice.Error{
		Kind: sluice.KindOverloaded, Reason: sluice.ShuttingDown,
		Msg: "the gateway is shutting down", RetryAfter: time.Second,
	}
}

// gone is why a context has ended: what its owner said, a deadline, or a client
// that left.
func gone(cause error) *sluice.Error {
	if e, ok := errors.AsType[*sluice.Error](cause); ok {
		return e
	}
	if errors.Is(cause, context.DeadlineExceeded) {
		return &sluice.Error{Kind: sluice.KindTimeout, Reason: sluice.QueueTimeout, Msg: "the request's own deadline passed while it waited", Err: cause}
	}
	return &sluice.Error{Kind: sluice.KindCancelled, Reason: sluice.ClientGone, Msg: "the client left while the request waited", Err: cause}
}
