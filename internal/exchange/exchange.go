package exchange

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"sluice"
	"sluice/internal/admit"
	"sluice/internal/dialect"
	"sluice/internal/engine"
	"sluice/internal/estimate"
	"sluice/internal/handover"
	"sluice/internal/hook"
	"sluice/internal/ladder"
	"sluice/internal/ledger"
	"sluice/internal/route"
	"sluice/internal/stateful"
	"sluice/internal/upstream"
)

// Journal records what may not be lost. *ledger.Journal is one; tests have
// another in memory.
type Journal interface {
	Begin(ledger.Reserve, ledger.Dispatch) error
	Dispatch(ledger.Dispatch) error
	Checkpoint(ledger.Checkpoint) error
	Settle(ledger.Entry) error
	Sync(context.Context) error
}

// Options is what an Exchange works with. All but Fetch, Inspect, Hooks and EventLimit are
// needed.
type Options struct {
	Gate     *admit.Gate
	Journal  Journal
	Learned  *estimate.Model // the exchange guards it and nobody else may touch it
	Upstream *upstream.Client
	Table    func() *route.Table                             // the routing table in force
	Target   func(sluice.BackendID) (*upstream.Target, bool) // how a backend is called

	// State remembers what backends keep for tenants; nil knows nothing, so that requests
	// that refer to it are refused.
	State *stateful.Keeper

	HandOver   *handover.Agent // gives lines of batches to providers' batch APIs; nil gives none
	Fetch      Fetch           // gets what requests name by URL; nil fetches nothing
	Inspect    *hook.Inspector // the hooks that look into requests and answers; nil has none
	EventLimit int             // bytes of one event; 0 takes wire's
	Hooks      Hooks
}

// Exchange runs requests.
type Exchange struct {
	o  Options
	mu sync.Mutex // guards o.Learned

	copies copies
	drains drains

	background *background

	key uint64 // of the hashes of prompts, so that nobody outside can make two that are alike
}

// New makes an Exchange. Close ends it.
func New(o Options) *Exchange {
	var key [8]byte
	_, _ = rand.Read(key[:]) // it does not fail
	x := &Exchange{o: o, background: newBackground(), key: binary.LittleEndian.Uint64(key[:])}
	x.drains.running = make(map[sluice.ProviderID]int)
	x.copies.ctx, x.copies.cancel = context.WithCancelCause(context.Background())
	return x
}

// Run takes one request from admission to its record. When it returns the
// reservation has ended, unless its response is still made in the background, and what
// the client must still be told is in the Result.
func (x *Exchange) Run(ctx context.Context, r *Request, c Client) (res Result) {
	t := &turn{x: x, r: r, client: c}
	if t.behind() {
		if e := x.background.enter(r.Principal.Tenant, t.mostBehind()); e != nil {
			return t.refused(e, &admit.Refused{})
		}
		defer t.departs()
	}
	defer t.x.drains.leave(t)
	defer t.recovered(&res)
	defer func() { res.Risk, res.Altered = t.risk(), t.hooks.Altered() }()
	if t.stored() {
		if e := t.recall(ctx); e != nil {
			return t.refused(e, &admit.Refused{})
		}
	}
	if e := t.inspect(ctx); e != nil {
		return t.refused(e, &admit.Refused{})
	}
	if t.countsHere() {
		return t.count()
	}
	if refusal := t.locate(ctx); refusal != nil {
		return t.refused(refusal, &admit.Refused{})
	}
	if refusal := t.findHanded(ctx); refusal != nil {
		return t.refused(refusal, &admit.Refused{})
	}
	grant, refusal, err := t.admit(ctx)
	if refusal != nil {
		return t.refused(refusal, &admit.Refused{})
	}
	if err != nil {
		r, ok := errors.AsType[*admit.Refused](err)
		if !ok {
			r = &admit.Refused{}
		}
		t.policy = cmp.Or(r.Policy, t.policy)
		return t.refused(t.why(ctx, err), r)
	}
	t.grant = grant
	t.copy()
	for {
		a := t.attempt(ctx)
		t.nobodyWaits(a)
		if a.failure == nil {
			return t.result
		}
		if !a.again || !t.next(ctx, a) {
			return t.failed(ctx, a)
		}
	}
}

// turn is one Run.
type turn struct {
	x      *Exchange
	r      *Request
	client Client
	plan   plan
	policy string         // version of the routing table under which it got no place
	model  sluice.ModelID // that serves in place of the one that was asked for; empty if that one does
	asIs   bool           // no smaller model may serve it
	tier   ladder.Tier    // of the ladder that moved it to model, or refused it
	felt   *engine.Felt   // of that ladder; nil if none did
	others others
	media  map[string]dialect.Media // what URLs in the request have led to
	pin    *route.Pin               // where what the request refers to is kept
	grant  *admit.Grant
	hooks  *hook.Run       // that look into the request and its answer; nil if none does
	shadow *route.Shadow   // whose copy this is; nil if it is what a client asks
	copied []copied        // of the shadows whose turn it was
	handed *handover.Batch // the batch of its provider's that has it already; nil if none does
	alone  bool            // it is not handed over
	later  *later          // its response, where that is made after the request is over; nil if it is not
	served []byte          // what the detail tells of an answer that needed no backend

	last     *attempt      // the one that runs or ran last
	head     *Head         // of last
	queued   time.Duration // in all
	first    time.Duration // from arrival to first content; 0 until then
	total    sum           // of attempts that have ended
	own      sum           // of those, what grant holds for
	late     sluice.BackendID
	rival    *racer // that races with last; nil if none does
	finished bool
	lesson   sluice.Usage // of the last attempt
	untaught bool         // it has not been learned from yet
	kept     bool         // a transport may still read the body
	result   Result
}

// next ends a failed attempt and waits for the following place. It reports
// whether there is one.
func (t *turn) next(ctx context.Context, a *attempt) bool {
	u, cost, high := t.spent(a)
	res := a.result(u, high)
	if a.again {
		res.Others = t.made(ctx)
	}
	err := a.grant.Next(ctx, res)
	a.denied = denied(err)
	if h := t.x.o.Hooks.Retry; h != nil {
		h(a.place.Backend.ID, a.denied)
	}
	if err != nil {
		if !errors.Is(err, admit.ErrNoAttempt) {
			a.failure.Err = errors.Join(a.failure.Err, fmt.Errorf("no further attempt: %w", err))
		}
		return false
	}
	t.add(a, u, cost, high)
	e := t.entry(a, u, cost, high)
	e.Outcome, e.Reason = sluice.Failed, a.failure.Reason
	t.record(&e)
	return true
}

// result is what the engine is told of a failed attempt.
func (a *attempt) result(u sluice.Usage, high sluice.Nano) engine.Result {
	why := a.failure.Reason
	if a.parked || a.unkeyed { // to the engine it is a backend that has refused for its credential
		why = sluice.UpstreamLimited
	}
	return engine.Result{Reason: why, RetryAfter: a.retryAfter, Overload: a.overload, Credential: a.keyed, Usage: u, Cost: high}
}

// denied is the word for why no further attempt follows: a rule for retries, or
// the reason for which the hold could not be raised or the wait ended; empty if one
// does.
func denied(err error) string {
	if err == nil {
		return ""
	}
	if n, ok := errors.AsType[*admit.NoAttempt](err); ok {
		return string(n.Why)
	}
	if errors.Is(err, admit.ErrNoAttempt) { // its hold has expired
		return sluice.HoldExpired.String()
	}
	return sluice.AsError(err).Reason.String()
}

// why is the error that ends a request: that of the context, if it ended, since
// everything else follows from that.
func (t *turn) why(ctx context.Context, err error) *sluice.Error {
	if ctx.Err() == nil {
		return sluice.AsError(err)
	}
	if e, ok := errors.AsType[*sluice.Error](context.Cause(ctx)); ok {
		return e
	}
	return &sluice.Error{Kind: sluice.KindCancelled, Reason: sluice.ClientGone, Msg: "the client left", Err: context.Cause(ctx)}
}

// refused records a request that got no place; by is what the gate told of it.
func (t *turn) refused(e *sluice.Error, by *admit.Refused) Result {
	t.tier, t.felt = max(t.tier, by.Tier), cmp.Or(by.Felt, t.felt)
	entry := t.entry(nil, sluice.Usage{}, 0, 0)
	entry.Final, entry.Outcome, entry.Reason, entry.Status = true, outcome(e), e.Reason, t.status(e, nil)
	if entry.Outcome == sluice.Failed {
		entry.Outcome = sluice.Rejected
	}
	t.finished = true
	entry.Detail = withRefusal(withMessage(withCandidates(entry.Detail, by.Candidates), e), e.Refusal)
	t.result = Result{Err: e, Limits: by.Limits, Final: entry}
	t.record(&entry)
	return t.result
}

// failed settles a request whose last attempt did not complete.
func (t *turn) failed(ctx context.Context, a *attempt) Result {
	e := a.failure
	if ctx.Err() != nil && e.Kind != sluice.KindCancelled {
		e = t.why(ctx, e)
	}
	if t.outlives(a, e) {
		t.putOff(a, e)
	} else {
		t.finish(a, e)
		t.taught(a)
	}
	a.head.Sequence = a.sequence()
	t.result.Err, t.result.Denied = e, a.denied
	if a.pass != nil && ctx.Err() == nil {
		t.result.Pass = a.pass
	}
	return t.result
}

// recovered turns a panic into a failure: what was held is settled by the rule
// of what was seen, and the error reaches the client. Should even that fail,
// nothing stays held.
func (t *turn) recovered(res *Result) {
	defer func() {
		if t.grant != nil && (t.later == nil || t.finished) {
			t.grant.Release(sluice.InternalError)
		}
		if t.rival != nil {
			t.rival.grant.Release(sluice.InternalError)
		}
	}()
	p := recover()
	if p == nil {
		res.BodyKept = t.kept
		return
	}
	stack := debug.Stack()
	if t.x.o.Hooks.Panic != nil {
		t.x.o.Hooks.Panic(t.r.ID, p, stack)
	}
	e := &sluice.Error{Kind: sluice.KindInternal, Reason: sluice.InternalError, Msg: "internal error", Err: fmt.Errorf("panic: %v", p)}
	if !t.finished && t.last != nil {
		if t.rival != nil {
			t.ends(t.rival, e)
		}
		t.last.failure = e
		t.finish(t.last, e)
		t.taught(t.last)
	} else if !t.finished {
		t.refused(e, &admit.Refused{})
	}
	t.result.Err, t.result.BodyKept = e, true
	*res = t.result
}

// outcome is how a request ended that ended with e; nil is success.
func outcome(e *sluice.Error) sluice.Outcome {
	switch {
	case e == nil:
		return sluice.Completed
	case e.Kind == sluice.KindCancelled:
		return sluice.Cancelled
	case e.Reason == sluice.HoldExpired:
		return sluice.Expired
	}
	return sluice.Failed
}
