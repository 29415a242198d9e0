package exchange

import (
	"context"
	"errors"
	"net/http"
	"time"

	"sluice"
	"sluice/internal/admit"
	"sluice/internal/dialect"
	"sluice/internal/engine"
	"sluice/internal/price"
	"sluice/internal/upstream"
	"sluice/internal/wire"
)

// parkedFor is what a client is told to wait for where the operator's credential is
// refused or spent, at least: that does not mend itself in a moment.
const parkedFor = time.Minute

// attempt is one call to one backend.
type attempt struct {
	grant  *admit.Grant // what it holds of the engine
	place  engine.Grant
	head   *Head
	target *upstream.Target
	to     *dialect.Translation // of the request, for a backend of another dialect; nil for one of the client's
	body   []byte               // for the backend
	said   *wire.Head           // what is found in it
	stream *dialect.Stream      // of its events, likewise
	lost   []string             // of its answer, what the client's dialect has no place for
	price  *price.Row           // of the model that was asked for; nil where nothing is charged. See billed
	served served               // the price of the one that is served in its place
	raw    sluice.Tokens
	input  sluice.Tokens // learned ratio applied
	began  time.Time
	tap    *wire.Tap
	times  times

	sent       bool          // the backend can have begun to work
	refused    bool          // it answered an error: it did not
	least      sluice.Tokens // that the output had come to when it was cut, as far as is known
	kept       int           // of the ids in its answer, those that are remembered
	renewed    bool          // what the request refers to has been found there
	content    bool          // content has reached the client
	heldTo     sluice.Tokens // the output that a hard budget holds by now, in steps; 0 if whole
	stepping   time.Time     // when the first of it was seen
	short      bool          // it was ended for want of budget
	hedge      bool          // it began beside another
	hedged     time.Duration // when it got one beside it, or was to get one; 0 if it was not late
	unhedged   string        // why it got none
	told       bool          // it told of an error of its own inside its answer
	provider   string
	failure    *sluice.Error // nil when it completed
	retryAfter time.Duration
	again      bool   // another attempt may follow
	denied     string // why none did all the same
	added      int64  // events of the hooks' own, by which the numbers of its events are higher
	batched    bool   // its provider's batch API has run it
	stopped    bool   // its response was cancelled: nothing more is generated
	parked     bool   // the operator's account or credential is of no use for now
	call       *call  // goes on where the client leaves; nil if it ends with it
	keyed      bool   // it failed for its credential, and another may do
	unkeyed    bool   // it was not made: there was no credential
	drained    bool   // it came whole after the client had left
	overload   bool   // the backend is short of capacity
	pass       *Passed
}

// attempt runs one attempt at the granted place. When its failure is nil the
// request is settled and delivered.
func (t *turn) attempt(ctx context.Context) *attempt {
	a := t.begin(t.grant)
	req, ok := t.prepare(ctx, a)
	if !ok {
		return a
	}
	if a.place.HedgeAfter > 0 && t.r.Head.Stream {
		return t.race(ctx, a, &req)
	}
	if t.handOver(ctx, a, &req) {
		return a
	}
	defer a.times.end()
	ans := t.send(ctx, a, &req)
	defer a.call.hangUp()
	t.head = a.head
	if ans == nil {
		return a
	}
	defer ans.Close()
	if t.r.Head.Stream {
		t.stream(ctx, a, ans).pump()
	} else {
		t.whole(ctx, a, ans)
	}
	return a
}

// send sends an attempt and judges the headers of its answer, nil if there is nothing
// to be read: the attempt's failure is set then.
func (t *turn) send(ctx context.Context, a *attempt, req *outgoing) *upstream.Answer {
	if a.call = t.newCall(ctx, a, req); a.call != nil {
		ctx = a.call.ctx
	}
	ans, err := t.x.o.Upstream.Do(ctx, a.target, req.Request)
	if err != nil {
		t.lost(ctx, a, err)
		return nil
	}
	a.times.head = since(a.times.sent)
	a.provider = wire.ProviderRequestID(ans.Header)
	a.head.Status, a.head.Upstream, a.head.Dropped = ans.Status, t.answered(a, ans), req.dropped
	hints := t.hints(a, ans)
	if ans.Status < 400 {
		t.tell(hints)
	}
	switch {
	case ans.Status >= 400:
		t.refusedBy(a, ans, hints)
	case t.r.Head.Stream && !ans.Events:
		t.fail(a, &upstream.Error{Reason: sluice.UpstreamMalformed, Sent: true, What: "no event stream"})
	default:
		return ans
	}
	ans.Close()
	return nil
}

// outgoing is what a backend is sent, and what that dropped of the client's request.
type outgoing struct {
	upstream.Request
	dropped string
}

// prepare sees that an attempt is on file and makes what its backend is sent. Where it
// cannot be called the attempt's failure is set.
func (t *turn) prepare(ctx context.Context, a *attempt) (req outgoing, ok bool) {
	if err := t.journal(ctx, a); err != nil {
		a.failure = err
		return req, false
	}
	if a.target == nil {
		a.failure = &sluice.Error{Kind: sluice.KindOverloaded, Reason: sluice.NoBackend, Msg: "the backend is not configured any more"}
		a.again = true
		return req, false
	}
	if t.stored() {
		return t.prepareStored(a), true
	}
	edit := t.edit(a)
	path, header := t.address(a, &edit)
	t.kept = t.kept || a.target.KeepsBody()
	req = outgoing{dropped: t.dropped(a, edit), Request: upstream.Request{
		Path: path, Pieces: a.pieces(edit), Header: header, Stream: t.r.Head.Stream, Key: a.place.Key, Any: a.said.Op.Aside(),
	}}
	if a.said.Op.Form() {
		req.Type = t.r.Header["Content-Type"]
	} else {
		req.Pieces = a.target.Said(req.Pieces)
	}
	a.sent = true
	a.times.sent = time.Now()
	return req, true
}

// begin takes the granted place.
func (t *turn) begin(grant *admit.Grant) *attempt {
	a := &attempt{grant: grant, place: grant.Grant(), began: time.Now()}
	b := a.place.Backend
	a.target, _ = t.x.o.Target(b.ID)
	t.speak(a)
	a.heldTo = a.place.HeldTo
	if !t.r.Free {
		a.price = b.Row()
	}
	a.raw, _ = t.r.Head.For(b.Model)
	a.input = t.plan.work.Input
	if t.plan.backend != nil && b.Model != t.plan.backend.Model {
		a.input = min(t.input(b), t.plan.work.InputBound)
	}
	a.tap = wire.NewTap(a.said.Op, t.tapOptions(a))
	a.stream = t.translated(a)
	t.queued += a.place.Queued
	a.head = &Head{Grant: a.place, Queued: t.queued, Tier: max(t.tier, a.place.Tier), Lesser: t.lesser(a)}
	t.last, t.head = a, a.head
	return a
}

// tapOptions is how the answer of an attempt is read.
func (t *turn) tapOptions(a *attempt) wire.TapOptions {
	credible := a.place.Backend.Context
	if t.r.Head.ServerTools > 0 { // a provider that runs tools bills the context over and over
		credible = 0
	}
	return wire.TapOptions{
		StripUsage:      a.to == nil && t.r.Head.Stream && !t.r.Head.IncludeUsage,
		StripContinuous: a.to == nil && t.r.Head.IncludeUsage && a.target != nil && a.target.ContinuousUsage(),
		Stored:          t.r.Head.Store,
		Input:           a.input, Ceiling: credible,
	}
}

// edit is what this backend is sent in another way than the client wrote it.
func (t *turn) edit(a *attempt) wire.Edit {
	h := a.said
	e := wire.Edit{Model: a.place.Backend.Model, MaxOutput: t.maxOutput(a), LegacyMaxTokens: a.target.LegacyMaxTokens()}
	if h.Op.Generates() {
		e.CacheSalt = a.target.CacheSalt(t.r.Principal.Tenant)
	}
	if h.Stream && h.Op.TellsUsage() {
		e.IncludeUsage, e.ContinuousUsage = true, a.target.ContinuousUsage()
	}
	return e
}

// dropped names what was changed of the client's request: a bound that became
// another, or that came where the backend's own would have been larger; and what its
// translation left out.
func (t *turn) dropped(a *attempt, e wire.Edit) string {
	e.MaxOutput = t.named(a, e)
	bound := ""
	if most := a.place.Backend.MaxOutput; t.r.Head.HasMaxOutput || most <= 0 || e.MaxOutput < most {
		bound = t.r.Head.Changed(e)
	}
	if a.to == nil || len(a.to.Report) == 0 {
		return bound
	}
	if bound != "" {
		bound += ", "
	}
	return bound + a.to.Dropped()
}

// lost notes an attempt that ended without an answer, or in the middle of one.
func (t *turn) lost(ctx context.Context, a *attempt, err error) {
	if ctx.Err() != nil {
		a.sent = !errors.Is(err, upstream.ErrUnsent)
		a.failure = t.why(ctx, err)
		return
	}
	if e, ok := errors.AsType[*upstream.Error](err); ok {
		t.fail(a, e)
		return
	}
	a.failure = sluice.AsError(err)
}

// fail notes a failure of the backend; before content another may be tried.
func (t *turn) fail(a *attempt, e *upstream.Error) {
	a.sent = e.Sent
	a.failure = e.Public()
	a.unkeyed, a.keyed = e.Credential, e.Credential
	a.again = !a.content && (e.Reason != sluice.UpstreamTooLarge || t.r.Head.Stream) // another would answer as much in one piece
}

// refusedBy notes a backend's own error answer.
func (t *turn) refusedBy(a *attempt, ans *upstream.Answer, hints engine.Signal) {
	ref := wire.Refused(a.said.Op.Dialect(), ans.Status, ans.Header, ans.Refusal)
	t.tell(refused(hints, &ref))
	a.refused, a.failure = true, ref.Err()
	if ans.Status >= 500 {
		a.tap.Body(ans.Refusal) // some tell what was billed all the same
	}
	a.retryAfter, a.again, a.overload = ref.RetryAfter, ref.Retryable, ref.Overload
	a.keyed = ref.Park || ref.Reason == sluice.UpstreamLimited && !ref.Overload
	if ref.Park {
		a.parked, a.retryAfter = true, 0
		a.failure.RetryAfter = max(ref.RetryAfter, parkedFor)
		if t.x.o.Hooks.Parked != nil {
			t.x.o.Hooks.Parked(a.place.Backend.ID, a.place.Key, ref.Code)
		}
	}
	if ref.Pass {
		t.passOn(a, ans, &ref)
	}
}

// whole delivers an answer in one piece.
func (t *turn) whole(ctx context.Context, a *attempt, ans *upstream.Answer) {
	raw, err := ans.ReadAll()
	if err != nil {
		t.lost(ctx, a, err)
		return
	}
	t.deliver(ctx, a, ans.Header, raw)
}

// deliver delivers an answer in one piece that has been read.
func (t *turn) deliver(ctx context.Context, a *attempt, h http.Header, raw []byte) {
	out, err := a.tap.Body(raw)
	if err == nil {
		out, err = t.wholeOf(a, out)
	}
	if err != nil {
		a.failure, a.again = sluice.AsError(err), true
		a.told = a.failure.Reason != sluice.UpstreamMalformed
		return
	}
	if !a.call.hangUp() {
		a.drained = true
		return
	}
	if a.said.Op.Aside() {
		t.head.Type = h.Get("Content-Type")
	}
	if t.stored() {
		t.toldStored(a, raw)
	} else {
		t.keeps(a)
	}
	if t.hooks != nil {
		if out = t.inspectAnswer(ctx, a, out); a.failure != nil {
			return
		}
	}
	if t.pending(a) {
		t.putOff(a, nil)
	} else {
		t.finish(a, nil)
	}
	if err := t.client.Answer(t.head, out); err != nil {
		t.result.Err = t.undelivered(ctx, err)
	}
	t.taught(a)
}

// undelivered is why the client could not be written to.
func (t *turn) undelivered(ctx context.Context, err error) *sluice.Error {
	if e, ok := errors.AsType[*sluice.Error](err); ok {
		return e
	}
	if ctx.Err() != nil {
		return t.why(ctx, err)
	}
	return &sluice.Error{Kind: sluice.KindCancelled, Reason: sluice.ClientGone, Msg: "the client left", Err: err}
}
