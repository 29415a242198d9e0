// Package engine composes the cores into one state machine.
package engine

import (
	"time"

	"sluice"
	"sluice/internal/route"
)

// Call is one request as the engine sees it: who, what for, and its shape. It
// holds no body and no true output length.
type Call struct {
	ID        sluice.RequestID
	Principal sluice.Principal
	Model     sluice.ModelID
	Dialect   string // the client's; only backends that speak it are eligible
	Class     sluice.Class
	Task      string
	Work      sluice.Work
	Bytes     int64         // body size: a queue is bounded by bytes too
	MaxWait   time.Duration // longest wait in a queue; 0 does not queue, negative takes the policy's or the pool's
	Free      bool          // counts requests only: no tokens, no spend, no slot held beyond the attempt (models, count_tokens)
	Streaming bool          // its activity renews its hold
}

// Verdict answers an arrival.
type Verdict struct {
	Err      *sluice.Error // nil when queued
	Pool     sluice.PoolID
	Position int           // requests ahead of it in that queue
	Wait     time.Duration // predicted
	Limits   []LimitState  // the caller's counters after this step, for rate-limit headers
}

// LimitState is one counter of the caller, as the rate-limit headers show it.
type LimitState struct {
	Scope     sluice.Scope
	Limit     sluice.Limit
	Remaining int64         // never negative
	Reset     time.Duration // until the bucket is full or the window ends
}

// Grant is a place on one backend for one attempt.
type Grant struct {
	ID          sluice.RequestID
	Attempt     int // from 1
	Pool        sluice.PoolID
	Backend     *route.Backend
	Fallback    bool          // not of the model's first pools
	Queued      time.Duration // since arrival, or since the last attempt ended
	OutputBound sluice.Tokens // what may be asked of the backend
	Clamped     bool          // OutputBound is less than the client's bound: name it in sluice-dropped
	Policy      string        // version of the routing table
	Candidates  []Candidate
	Limits      []LimitState // as of dispatch
}

// Candidate is a backend that was considered and why it was left out.
type Candidate struct {
	Pool    sluice.PoolID
	Backend sluice.BackendID
	Left    string // empty for the one chosen: "unhealthy", "full", "dialect", "tried", "drained", "weight", …
}

// Result is how one attempt ended.
type Result struct {
	Reason     sluice.Reason // ReasonNone when it completed
	Content    bool          // content has reached the client: no further attempt
	RetryAfter time.Duration // what the backend asked for, 0 if nothing
	Usage      sluice.Usage  // billable work of a failed attempt, posted now
	Cost       sluice.Nano
}

// Step is what follows a failed attempt.
type Step uint8

// The steps.
const (
	Fail  Step = iota // settle the request as failed
	Queue             // it waits again: for another backend of its pool, or in a fallback pool's queue
)

// Next answers AttemptEnded.
type Next struct {
	Step Step
	Err  *sluice.Error // why there is no further attempt, when the fallback itself was refused (budget); else nil
}

// Actual is what a request really took, over all its attempts.
type Actual struct {
	Usage   sluice.Usage
	Cost    sluice.Nano
	Outcome sluice.Outcome
	Reason  sluice.Reason
}

// Directive answers Progress.
type Directive struct {
	Stop bool // end the stream: the hold cannot grow
}

// OpenHold is a reservation found open at start, and what it is charged.
type OpenHold struct {
	Principal sluice.Principal
	Model     sluice.ModelID
	At        time.Time // when it was reserved: budgets are charged in that window
	Spend     sluice.Nano
	Usage     sluice.Usage
}
