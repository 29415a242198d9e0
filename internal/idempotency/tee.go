package idempotency

import (
	"context"

	"sluice"
	"sluice/internal/answer"
	"sluice/internal/exchange"
)

// tee is a client that keeps a copy of the answer of a request that has its key. It
// belongs to the goroutine of its request.
type tee struct {
	k      *Keeper
	to     exchange.Client
	tenant sluice.TenantID
	held   Held
	limit  int // bytes

	head   *exchange.Head // of what was delivered; nil while nothing was
	out    *exchange.Head // as the client gets it, where that is another
	body   []byte         // of a stream
	over   bool           // it is not kept
	failed bool           // the client did not take all
	ended  bool           // the claim has ended, with an answer or without
}

var _ exchange.Client = (*tee)(nil)

// notKept tells a client whose answer has begun that it is not kept. Comments are passed
// over by every client library.
var notKept = []byte(`: sluice {"dropped":"` + named + `"}` + "\n\n")

// Events implements exchange.Client.
func (t *tee) Events(h *exchange.Head, p []byte) error {
	first := t.head == nil
	t.head = h
	if !t.over && !t.take(p) {
		if first { // the head has not gone yet
			t.out = without(h)
		} else if err := t.to.Events(h, notKept); err != nil {
			t.failed = true
			return err
		}
	}
	if t.out != nil {
		h = t.out
	}
	err := t.to.Events(h, p)
	t.failed = t.failed || err != nil
	return err
}

// take copies a part of a stream. It reports whether there is room for it.
func (t *tee) take(p []byte) bool {
	fits := len(p) <= t.limit-len(t.body)
	if fits && t.k.buffer(len(p)) {
		t.body = append(t.body, p...)
		return true
	}
	if fits {
		t.k.o.Told(Full)
	} else {
		t.k.o.Told(TooLarge)
	}
	t.k.unbuffer(len(t.body))
	t.over, t.body = true, nil
	return false
}

// Answer implements exchange.Client. It is kept before it is delivered: whoever loses the
// connection on it finds it again.
func (t *tee) Answer(h *exchange.Head, body []byte) error {
	t.head, t.over = h, true
	switch {
	case len(body) > t.limit:
		t.k.o.Told(TooLarge)
	case t.k.keep(context.Background(), t.tenant, t.held, answer.Of(h, false, body)):
		t.ended = true
		return t.to.Answer(h, body)
	}
	return t.to.Answer(without(h), body)
}

// Committed implements exchange.Client.
func (t *tee) Committed() bool { return t.to.Committed() }

// end keeps a stream that came whole, or a refusal.
func (t *tee) end(ctx context.Context, res *exchange.Result) {
	var a *answer.Answer
	switch {
	case res.Err != nil:
		a = refusal(res)
	case t.head != nil && !t.over && !t.failed && res.Final.Reason != sluice.BudgetStop:
		a = answer.Of(t.head, true, t.body)
	}
	t.ended = a != nil && t.k.keep(ctx, t.tenant, t.held, a)
}
