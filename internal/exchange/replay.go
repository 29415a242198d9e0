package exchange

import (
	"context"
	"strconv"

	"sluice"
	"sluice/internal/admit"
)

// Replay is an answer that another request got, given again to one that repeats it.
type Replay struct {
	Of   sluice.RequestID // whose answer it is
	Head *Head

	Deliver func() error // gives the answer to the client; nil where Pass is it
	Pass    *Passed      // a backend's refusal, for whoever runs the request to pass on
}

// Refuse records a request that something in front of Run refuses, as Run does those that
// get no place.
func (x *Exchange) Refuse(r *Request, c Client, e *sluice.Error) Result {
	t := &turn{x: x, r: r, client: c}
	return t.refused(e, &admit.Refused{})
}

// Replayed delivers the answer of another request and records that it did: one entry
// without an attempt, without usage and without cost, since nothing ran.
func (x *Exchange) Replayed(ctx context.Context, r *Request, of Replay) Result {
	t := &turn{x: x, r: r, policy: of.Head.Grant.Policy}
	e := t.entry(nil, sluice.Usage{}, 0, 0)
	e.Final, e.Outcome, e.Status, e.Queued = true, sluice.Completed, of.Head.Status, 0
	e.Detail = append(e.Detail[:len(e.Detail)-1], `,"replayed":`...)
	e.Detail = append(strconv.AppendQuoteToASCII(e.Detail, string(of.Of)), '}')
	t.result = Result{Head: of.Head, Risk: t.risk()}
	if of.Pass != nil {
		t.result.Pass = of.Pass
		t.result.Err = &sluice.Error{Kind: sluice.KindInvalid, Reason: sluice.UpstreamRefused, Msg: "the backend refused the request"}
		e.Outcome, e.Reason = sluice.Failed, sluice.UpstreamRefused
	} else if err := of.Deliver(); err != nil {
		t.result.Err = t.undelivered(ctx, err)
		e.Outcome, e.Reason, e.Status = outcome(t.result.Err), t.result.Err.Reason, statusLeft
	}
	t.result.Final = e
	t.record(&e)
	return t.result
}
