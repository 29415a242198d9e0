package engine

import (
	"errors"
	"time"

	"sluice"
	"sluice/internal/ladder"
	"sluice/internal/price"
	"sluice/internal/quota"
	"sluice/internal/route"
)

// Call is one request as the engine sees it: who, what for, and its shape. It
// holds no body and no true output length.
type Call struct {
	ID        sluice.RequestID // unique; an id that is still open is refused
	Principal sluice.Principal // Policy may be nil: no limits
	Model     sluice.ModelID
	Dialect   string              // the client's; backends that speak another are eligible only by one of Others
	Others    []route.Translation // all tried, or none
	Needs     route.Needs         // only backends that lack none of it are eligible
	Class     sluice.Class
	Risk      sluice.Risk // its label, if that is higher than what Principal.Policy says: see sluice.Policy.Raise
	Task      string
	Work      sluice.Work
	Least     sluice.Tokens  // the smallest Work.OutputBound that is worth the request: below it a budget refuses and does not clamp. 0 takes MinOutput
	Bytes     int64          // body size: a queue is bounded by bytes too
	MaxWait   time.Duration  // longest wait in a queue; 0 does not queue, negative takes the policy's or the pool's
	Billing   price.Billing  // how it may be billed: only backends that have a price for that are eligible
	Free      bool           // counts requests only: no tokens, no spend, no gauge; a slot of a backend for the attempt (count_tokens)
	Owed      bool           // its work is being done already, and has to be paid: limits count it and refuse it nothing, and no ladder does
	Streaming bool           // its activity renews its hold
	Choices   int64          // answers that are generated side by side; 0 is 1
	RunLimits []sluice.Limit // what the request asks its run to be bounded by, beside the policy: it only tightens
	Session   route.Session  // the conversation that it is part of; 0 is that of its run, if it has one
	Prefix    route.Prefix   // of its prompt; empty where no pool of its model reads it
	Pin       *route.Pin     // where what it refers to is kept: it goes nowhere else; nil if it refers to nothing
	Single    bool           // it is not to run twice at a time: that may have an effect twice, or depends on what only one backend has
	Shadow    *route.Shadow  // of a copy: see Copy. Nil of what a client asks
	Whole     bool           // no smaller model may serve it, whatever its policy says: it is one, or that was tried
	Counted   bool           // every token that is billed shows in the stream as it comes: hard spend may hold the output in steps, see Step
}

// Verdict answers an arrival.
type Verdict struct {
	// Translate says that nothing was decided, and nothing is held or counted: no
	// backend of the request's own dialect has room now where it would go first, so
	// that it has to be known which of Others may serve it.
	Translate bool
	// Smaller, if it is not empty, says that nothing was decided either: the ladder of
	// Pool has a smaller model serve those who consent. The call is to be made for that
	// one, and Whole, or Whole as it is.
	Smaller  sluice.ModelID
	Tier     ladder.Tier   // of the pool's ladder, as the request feels it
	Felt     *Felt         // of that; nil on the ground
	Err      *sluice.Error // nil when queued; then nothing is held
	Pool     sluice.PoolID
	Position int           // requests ahead of it in that queue
	Wait     time.Duration // predicted; 0 if it starts at once or nothing is known yet
	Policy   string        // version of the routing table that decided
	Limits   Limits        // on a refusal, and of Take, the caller's counters; else empty: the Grant has them
	Would    *sluice.Error // of Take, why it would have been refused, were the limit not a shadow; else nil
	// Candidates is, on a refusal since no pool serves the request, why each backend was
	// left out, of mostLeftOut at most.
	Candidates []Candidate
}

// LimitState is one counter of the caller, as the rate-limit headers show it.
// Those of the model and the fleet are not the caller's and are left out.
type LimitState = quota.LimitState

// Limits are the caller's counters of one moment.
type Limits = quota.Limits

// Grant is a place on one backend for one attempt, or, with Err, the end of a
// wait without one.
type Grant struct {
	ID      sluice.RequestID
	Handle  Handle
	Attempt int // from 1; with Err, how many there were
	// Err ends the wait without a place: queue_timeout, deadline_unmet,
	// concurrency_limited, no_backend, budget_held, budget_spent, never_fits or
	// hold_expired. After Attempt 0 all was returned and the id is gone; after
	// a later one the request stays open, in no queue, for its owner to settle.
	// hold_expired comes to requests that do not wait: their owner may still
	// settle, late.
	Err         *sluice.Error
	Pool        sluice.PoolID
	Backend     *route.Backend
	Key         string            // the credential to be used
	Fallback    bool              // not of the model's first pools
	Evaluated   *route.Evaluation // of a fallback, what says that it can stand in; nil if nothing does
	Canary      bool              // the pool is one, and it is the turn of this request
	Away        bool              // in another region than its home, which is lost or cannot serve it in time
	Queued      time.Duration     // since arrival, or since the last attempt ended
	OutputBound sluice.Tokens     // what may be asked of the backend
	Tier        ladder.Tier       // of the pool's ladder, as it has felt it, of a wait that ended too
	Felt        *Felt             // of that; nil on the ground
	Degraded    bool              // that has lowered OutputBound
	Clamped     bool              // OutputBound is less than the client's bound: name it in sluice-dropped
	Whole       bool              // its run holds OutputBound and relies on it: the backend is to be told
	HeldSpend   sluice.Nano       // the hold on spend budgets for this attempt
	HeldTo      sluice.Tokens     // the output that it covers, where a hard budget holds it in steps: call Step as it comes; else 0
	Policy      string            // version of the routing table
	Candidates  []Candidate
	Prefer      route.Prefer  // the model's
	Stay        route.Stay    // what became of its session
	Preferred   []PoolFigure  // its first pools, canaries aside, in the order and by the figures that Prefer gave; empty without one
	Limits      Limits        // as of then
	Denied      route.Denied  // with Err, after an attempt: the rule for retries that its turn in the queue did not pass
	HedgeAfter  time.Duration // without content by then its owner asks for a hedge; 0: it gets none
	Would       *sluice.Error // why the request would have been refused, or would have waited, were the limit not a shadow; else nil
}

// Handle is by what a request that this engine has granted a place is found without a
// look-up, for who keeps it. Of one that is no longer open it is of no use and does no harm,
// as is the zero value.
type Handle struct{ r *request }

// String is empty: a handle is an address, and what is printed of a grant is the same in
// every run.
func (Handle) String() string { return "" }

// Candidate is a backend that was considered and why it was left out.
type Candidate struct {
	Pool    sluice.PoolID
	Backend sluice.BackendID
	Left    string        // empty for the one chosen, else the word of a route.Left
	Lacks   route.Needs   // of what the request needs, where Left says that it lacks any
	Field   string        // of the request, which its dialect cannot say, where Left says that
	Cached  sluice.Tokens // of the input, believed to be in its prefix cache
	Cost    time.Duration // by which it was compared, 0 if it was not: until its first token, and what else counts

	Expected time.Duration // where the model prefers something, until an answer there was expected to be whole
	Price    sluice.Nano   // likewise, what it was expected to cost
}

// Result is how one attempt ended.
type Result struct {
	Reason     sluice.Reason // ReasonNone when it completed
	Content    bool          // content has reached the client: no further attempt
	RetryAfter time.Duration // what was asked for, 0 if nothing; it only lengthens: the pause of the credential for UpstreamLimited, else the backend's
	Overload   bool          // of UpstreamLimited: the backend is short of capacity (529), and it is the backend that pauses
	Credential bool          // it failed for its credential: with another the same backend may serve
	Usage      sluice.Usage  // billable work of a failed attempt, posted now
	Cost       sluice.Nano
	Others     []route.Translation // in place of the call's, if not nil: what an attempt that failed makes worth knowing
}

// Step is what follows a failed attempt.
type Step uint8

// The steps.
const (
	Fail  Step = iota // no further attempt: settle the request
	Queue             // it waits again: for another backend of its pool, or in another pool's queue
	Race              // the other of two attempts goes on: its end decides
)

// Next answers AttemptEnded.
type Next struct {
	Step   Step
	Denied route.Denied  // why there is no further attempt
	Err    *sluice.Error // why not, when the fallback itself was refused (rate, budget); else nil
}

// Actual is what a request really took, over all its attempts, those included
// that AttemptEnded has posted already.
type Actual struct {
	Handle  Handle // of its last grant, or none
	Usage   sluice.Usage
	Cost    sluice.Nano
	Outcome sluice.Outcome
	Reason  sluice.Reason
}

// Directive answers Progress.
type Directive struct {
	Stop    bool // end the stream: the hold has expired or the request is not open
	Advance bool // something became free for others: call Advance
}

// OpenHold is a reservation found open at start, and what it is charged.
type OpenHold struct {
	Principal sluice.Principal
	Model     sluice.ModelID
	At        time.Time // when it was reserved: budgets are charged in that window
	Spend     sluice.Nano
	Usage     sluice.Usage
}

// Spent is what one fixed window had taken before this process started, so that
// a restart does not refill it.
type Spent struct {
	Scope   sluice.Scope
	Tenant  sluice.TenantID  // of a tenant and everything within one
	Project sluice.ProjectID // of a project
	Key     sluice.KeyID     // of a key
	User    sluice.UserID    // of a user
	Run     sluice.RunID     // of a run
	Model   sluice.ModelID   // of a model, tenant × model or a model's shadow
	Pool    sluice.PoolID    // of a shadow

	Dimension sluice.Dimension
	Window    sluice.Window // a fixed one, or PerRun
	At        time.Time     // any moment in the window; of RunTime the run's first request
	Amount    int64         // added to what is posted already
}

// Signal is what the world tells about a backend beside its attempts.
type Signal struct {
	Backend sluice.BackendID
	Probed  bool // it was probed outside of requests, Healthy being the outcome: a success takes it back through the ramp
	Healthy bool
	Pause   time.Duration // it asked for none for so long, 0 if it did not: of Limited and Spent, with the credential

	Key        string // the credential that an answer tells of
	Refused    bool   // the provider refuses it: at this backend (403), or Everywhere (401)
	Everywhere bool
	Spent      bool // its allowance is spent, until Pause has passed if that is known

	// Hints of what others tell. They lower and never raise; see route.
	Rates      []route.Hint // what a provider's headers say is left
	Limited    bool         // it refused for a rate (429), Pause being its Retry-After
	Overloaded bool         // it refused for want of capacity (529, 503)
	Load       *route.Load  // an engine's own metrics
}

// What Settle answers beside nil.
var (
	// ErrSettled: the request is not open. It was settled, released or failed
	// already, and nothing has changed.
	ErrSettled = errors.New("request is not open: settled or released already")
	// ErrLate: the hold had expired. The actual was posted once, in the window
	// of the reservation, in place of what the expiry had charged.
	ErrLate = errors.New("hold had expired: settled late")
)
