package exchange

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"sluice"
	"sluice/internal/admit"
	"sluice/internal/engine"
	"sluice/internal/route"
	"sluice/internal/upstream"
)

// How a hedge came out, beside the words of route.Denied and of the reasons for which
// there was none.
const (
	hedgeWon    = "won"    // it had content first
	hedgeLost   = "lost"   // the attempt that it was beside had
	hedgeFailed = "failed" // it failed before either had
	hedgeEnded  = "ended"  // neither had: the client left, or the request was refused for what it is
)

// racer is an attempt whose call runs on a goroutine of its own until what decides: its
// first content, its end, or its failure. From then on it belongs to Run's goroutine.
type racer struct {
	*attempt
	t      *turn
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the goroutine has ended
	caught string        // a panic of it
	ans    *upstream.Answer
	s      *stream
	first  reading // that decided
}

// launch starts an attempt's call. The racer is to be stopped.
func (t *turn) launch(ctx context.Context, a *attempt, req *outgoing) *racer {
	r := &racer{attempt: a, t: t, done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	go r.run(req)
	return r
}

func (r *racer) run(req *outgoing) {
	defer close(r.done)
	defer func() {
		if p := recover(); p != nil {
			r.caught = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
	}()
	if r.ans = r.t.send(r.ctx, r.attempt, req); r.ans == nil {
		return
	}
	r.s = r.t.stream(r.ctx, r.attempt, r.ans)
	for {
		next, ok := r.s.next()
		switch {
		case !ok:
			return
		case r.s.decides(&next):
			r.first = next
			return
		}
		r.s.take(&next)
	}
}

// join waits for the goroutine. It panics if that did.
func (r *racer) join() {
	<-r.done
	if r.caught != "" {
		panic(r.caught)
	}
}

// stop ends the call, for the reason given, and closes its answer: of one that has
// come to its end first, so that its connection can serve again.
func (r *racer) stop(why error) {
	select {
	case <-r.done:
		r.call.hangUp()
	default:
		r.cancel(why)
		<-r.done
	}
	if r.ans != nil {
		r.ans.Close()
		r.ans = nil
	}
	r.cancel(why)
	r.times.end()
}

// race runs an attempt and, where its first content is late, another beside it. It
// returns the one that decides: its failure is nil when the request is settled and
// delivered.
func (t *turn) race(ctx context.Context, a *attempt, req *outgoing) *attempt {
	first := t.launch(ctx, a, req)
	defer first.stop(nil)
	late := time.NewTimer(a.place.HedgeAfter)
	defer late.Stop()
	select {
	case <-first.done:
		return t.finishRace(first)
	case <-late.C:
	}
	second := t.hedge(ctx, first)
	if second == nil {
		first.join()
		return t.finishRace(first)
	}
	defer second.stop(nil)
	t.last, t.rival = first.attempt, second
	select {
	case <-first.done:
		first.join()
		return t.leads(ctx, first, second)
	case <-second.done:
		second.join()
		return t.leads(ctx, second, first)
	}
}

// hedge starts a second attempt beside one that is late, nil if there is to be none.
func (t *turn) hedge(ctx context.Context, first *racer) *racer {
	first.hedged, t.late = since(first.began), first.place.Backend.ID
	grant, err := t.grant.Hedge()
	if err != nil {
		if first.unhedged = denied(err); first.unhedged != string(route.DeniedOver) {
			t.toldHedge(first.unhedged)
		}
		return nil
	}
	a := t.begin(grant)
	a.hedge = true
	req, ok := t.prepare(ctx, a)
	if !ok {
		r := &racer{attempt: a, t: t, ctx: ctx, done: make(chan struct{}), cancel: func(error) {}}
		close(r.done)
		return r
	}
	return t.launch(ctx, a, &req)
}

// leads goes on with the one of two attempts that has decided first.
func (t *turn) leads(ctx context.Context, lead, other *racer) *attempt {
	switch {
	case lead.failure == nil:
		t.ends(other, lostRace())
		return t.finishRace(lead)
	case ctx.Err() != nil:
		if lead.hedge {
			other.join()
			lead, other = other, lead
		}
		t.ends(other, t.why(ctx, lead.failure))
		return t.finishRace(lead)
	case !lead.again && !lead.hedge: // whatever the hedge would say, this is the answer
		t.ends(other, lostRace())
		return t.finishRace(lead)
	}
	t.falls(lead)
	other.join()
	switch {
	case lead.hedge:
	case other.failure == nil:
		t.closes(lead)
	default:
		t.toldHedge(hedgeFailed)
	}
	return t.finishRace(other)
}

func lostRace() *sluice.Error {
	return &sluice.Error{Kind: sluice.KindCancelled, Reason: sluice.LostRace, Msg: "the other attempt had content first"}
}

// finishRace goes on with the attempt that is left, as with any.
func (t *turn) finishRace(r *racer) *attempt {
	r.join()
	t.rival = nil
	t.last, t.head = r.attempt, r.head
	if r.failure != nil {
		return r.attempt
	}
	r.call.alone()
	if r.grant != t.grant { // the request's own reservation has ended
		t.grant, t.own = r.grant, sum{}
	}
	if r.s.take(&r.first) {
		r.s.pump()
	}
	r.times.end()
	return r.attempt
}

// ends cancels the attempt that has not decided, and settles what it took. Where that
// is the request's first, its reservation ends, and the hedge's is what is left of it.
func (t *turn) ends(r *racer, why *sluice.Error) {
	t.rival = nil
	r.stop(why)
	if r.failure == nil || r.caught != "" { // it had content too, or no word of its own
		r.failure = why
	}
	u, cost, high := t.spent(r.attempt)
	t.add(r.attempt, u, cost, high)
	e := t.entry(r.attempt, u, cost, high)
	e.Outcome, e.Reason = outcome(r.failure), r.failure.Reason
	actual := engine.Actual{Usage: u, Cost: high, Outcome: e.Outcome, Reason: e.Reason}
	result := hedgeLost
	switch {
	case !r.hedge:
		actual.Usage, actual.Cost = t.own.usage, t.own.high
		result = hedgeWon
	case why.Reason != sluice.LostRace:
		result = hedgeEnded
	}
	t.settle(r.grant, actual)
	t.record(&e)
	t.learnCut(r.attempt)
	t.toldHedge(result)
}

// falls ends an attempt that failed while the other goes on.
func (t *turn) falls(r *racer) {
	t.rival = nil
	u, cost, high := t.spent(r.attempt)
	over, cancel := context.WithCancel(r.ctx)
	cancel() // it does not wait: the other goes on
	_ = r.grant.Next(over, r.result(u, high))
	t.add(r.attempt, u, cost, high)
	e := t.entry(r.attempt, u, cost, high)
	e.Outcome, e.Reason = sluice.Failed, r.failure.Reason
	t.record(&e)
	if r.hedge {
		t.toldHedge(hedgeFailed)
	}
}

// closes settles the request's own reservation, whose attempt has failed and whose
// hedge has content.
func (t *turn) closes(first *racer) {
	t.settle(first.grant, engine.Actual{Usage: t.own.usage, Cost: t.own.high, Outcome: sluice.Failed, Reason: first.failure.Reason})
	t.toldHedge(hedgeWon)
}

// settle ends a reservation that is not the last of the request.
func (t *turn) settle(g *admit.Grant, a engine.Actual) {
	if err := g.Settle(a); err != nil && t.x.o.Hooks.Settle != nil {
		t.x.o.Hooks.Settle(t.r.ID, err)
	}
}

// toldHedge tells how the hedge came out, or why there was none.
func (t *turn) toldHedge(result string) {
	if h := t.x.o.Hooks.Hedge; h != nil {
		h(t.late, result)
	}
}
