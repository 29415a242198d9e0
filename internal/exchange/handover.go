package exchange

import (
	"context"
	"net/http"
	"time"

	"sluice"
	"sluice/internal/handover"
	"sluice/internal/route"
	"sluice/internal/upstream"
	"sluice/internal/wire"
)

// undoneWait is how long a line waits that its provider has not run.
const undoneWait = time.Second

// leastSlack is of a line that has been handed over where nothing is configured any more.
const leastSlack = 15 * time.Minute

// takenBack is when what the provider has not done is taken back.
func (t *turn) takenBack(target *upstream.Target) time.Time {
	slack := leastSlack
	if target != nil && target.HandOver.On {
		slack = target.HandOver.Slack
	}
	return t.r.Line.Deadline.Add(-slack)
}

// findHanded looks whether a provider has the line already, which is where it goes then.
func (t *turn) findHanded(ctx context.Context) *sluice.Error {
	h, l := t.x.o.HandOver, t.r.Line
	if h == nil || l == nil || t.pin != nil {
		t.alone = true
		return nil
	}
	b, found, alone, err := h.Find(ctx, l)
	if err != nil {
		if ctx.Err() != nil {
			return t.why(ctx, err)
		}
		return &sluice.Error{Kind: sluice.KindOverloaded, Reason: sluice.NotReady, RetryAfter: undoneWait, Msg: "it is not known now where the line is", Err: err}
	}
	t.alone = alone
	if !found {
		return nil
	}
	if target, _ := t.x.o.Target(b.Backend); time.Now().After(t.takenBack(target).Add(handover.EndsIn)) {
		t.alone = true // by now nobody waits for it there any more
		if err := h.TakeBack(ctx, b.ID, l.Number); err != nil {
			return &sluice.Error{Kind: sluice.KindOverloaded, Reason: sluice.NotReady, RetryAfter: undoneWait, Msg: "it is not known now where the line is", Err: err}
		}
		return nil
	}
	pin := route.Pin{Provider: b.Provider, Site: b.Site, Key: b.Key}
	if b.Replica {
		pin = route.Pin{Provider: b.Provider, Backend: b.Backend}
	}
	if t.alone = !t.reaches(&pin); !t.alone {
		t.handed, t.pin = &b, &pin
	}
	return nil
}

// reaches reports whether the model has a backend at a place.
func (t *turn) reaches(pin *route.Pin) (found bool) {
	table := t.x.o.Table()
	m := table.Models[t.asks()]
	if m == nil {
		return false
	}
	m.Visit("", func(id sluice.PoolID, _ bool) bool {
		if p := table.Pools[id]; p != nil {
			for _, b := range p.Backends {
				found = found || pin.Holds(b)
			}
		}
		return true
	})
	return found
}

// mayHandOver reports whether the provider of an attempt is given its line.
func (t *turn) mayHandOver(a *attempt) bool {
	h, l := t.r.Head, t.r.Line
	if t.alone || l == nil || t.x.o.HandOver == nil || t.shadow != nil || t.r.Free || a.target == nil || a.to != nil || h.Stream || h.Background {
		return false
	}
	if t.handed != nil {
		return true
	}
	switch h.Op {
	case wire.Chat, wire.Completions, wire.Embeddings, wire.Responses, wire.Messages:
	default:
		return false
	}
	terms := &a.target.HandOver
	return terms.On && a.target.Service == upstream.Direct && len(h.Refs) == 0 && l.Open >= terms.LeastLines &&
		time.Until(t.takenBack(a.target)) >= terms.Window && a.price != nil && a.price.CheaperInBatch()
}

// handOver gives the attempt to its provider's batch API and waits for its end. It is
// false where that is not done: the attempt goes on as any.
func (t *turn) handOver(ctx context.Context, a *attempt, req *outgoing) bool {
	if !t.mayHandOver(a) {
		return false
	}
	c := &handover.Call{Line: t.r.Line, Path: req.Path, Header: req.Header, Pieces: req.Pieces, Until: t.takenBack(a.target)}
	if t.handed != nil {
		c.At, c.Found = *t.handed, true
		c.At.Backend, c.At.Key = a.place.Backend.ID, a.place.Key // by which the account is called now
	} else {
		pin := route.PinOf(a.place.Backend, a.place.Key)
		c.At = handover.Batch{Backend: a.place.Backend.ID, Replica: pin.Backend != "", Provider: pin.Provider, Site: pin.Site, Key: pin.Key}
		c.At.Expected = time.Now().Add(a.target.HandOver.Window)
	}
	seat := t.x.o.HandOver.Join(c)
	if seat == nil {
		return false
	}
	u := sluice.Usage{Input: a.input, Output: t.plan.work.Output, Source: sluice.UsageEstimated}
	if !a.grant.Leave(u, leftFor) {
		seat.Leave()
		return false
	}
	t.r.Body, a.body, req.Pieces, c.Pieces = nil, nil, nil, nil
	if t.r.Line.Taken != nil {
		t.r.Line.Taken(c.At.Expected)
	}
	res, why := t.awaitHanded(ctx, a, seat)
	a.times.head, a.times.whole = 0, 0
	t.cameBack(ctx, a, seat, req, res, why)
	return true
}

// awaitHanded waits for a line's result. why is that this process waits for it no more.
func (t *turn) awaitHanded(ctx context.Context, a *attempt, seat *handover.Seat) (res handover.Result, why *sluice.Error) {
	renew := time.NewTicker(leftFor / 4)
	defer renew.Stop()
	var most <-chan time.Time
	left, unwanted := ctx.Done(), t.r.Line.Unwanted
	for {
		select {
		case res = <-seat.Done():
			return res, nil
		case <-renew.C:
			a.grant.Progress(sluice.Usage{})
		case <-seat.Stopped():
			seat.Leave()
			return res, &sluice.Error{Kind: sluice.KindCancelled, Reason: sluice.ShuttingDown, Msg: "the gateway is shutting down"}
		case <-unwanted:
			unwanted = nil
			seat.Cancel()
		case <-left:
			left = nil
			if why = t.why(ctx, nil); why.Reason == sluice.ShuttingDown {
				seat.Leave()
				return res, why
			}
			seat.Cancel()
			timer := time.NewTimer(handover.EndsIn + time.Minute) // the group has its own, and tells the store
			defer timer.Stop()
			most = timer.C
		case <-most:
			seat.Leave()
			return handover.Result{Err: handover.ErrUndone, Sent: true}, nil
		}
	}
}

// cameBack takes what became of a line at its provider.
func (t *turn) cameBack(ctx context.Context, a *attempt, seat *handover.Seat, req *outgoing, res handover.Result, why *sluice.Error) {
	undone := &sluice.Error{Kind: sluice.KindOverloaded, Reason: sluice.UpstreamRefused, RetryAfter: undoneWait, Msg: "the provider's batch ended without the line", Err: res.Err}
	if ctx.Err() != nil {
		undone = t.why(ctx, res.Err)
	}
	switch {
	case why != nil: // who claims it next has its answer
		a.refused, a.failure = true, why
	case res.Err != nil:
		a.batched, a.refused, a.failure = res.Sent, !res.Sent, undone
	case res.Status >= 400:
		ref := wire.Refused(a.said.Op.Dialect(), res.Status, http.Header{}, res.Body)
		a.refused, a.failure, a.again = true, ref.Err(), ref.Retryable
		if ref.Pass {
			t.passOn(a, &upstream.Answer{Status: res.Status, Header: http.Header{"Content-Type": {"application/json"}}, Refusal: res.Body}, &ref)
		}
	default:
		a.batched = true
		a.head = &Head{Status: res.Status, Upstream: http.Header{}, Grant: a.place, Queued: a.head.Queued, Dropped: req.dropped, Tier: max(t.tier, a.place.Tier), Lesser: t.lesser(a)}
		t.head = a.head
		t.deliver(ctx, a, a.head.Upstream, res.Body)
	}
	if a.failure == nil || !a.again {
		return
	}
	a.failure, a.again = undone, false // another attempt may do: it is run by itself
	if err := t.x.o.HandOver.TakeBack(ctx, seat.Batch(), t.r.Line.Number); err != nil {
		undone.Err = err // then it comes here again
	}
}
