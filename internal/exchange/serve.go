package exchange

import (
	"bytes"
	"context"

	"sluice"
	"sluice/internal/admit"
	"sluice/internal/engine"
	"sluice/internal/hook"
)

// looked is what the hooks of the request's stage have said of a request.
type looked struct {
	hooks   *hook.Run
	policy  string
	refusal *sluice.Error
}

// Inspect asks the hooks of the request's stage, for what stands in front of Run and may
// answer in its place. What it returns is the request as they leave it; Run and Serve do
// not ask them again, and refuse it where they have. Give it to one of them, once.
func (x *Exchange) Inspect(ctx context.Context, r *Request) *Request {
	t := &turn{x: x, r: r}
	refusal := t.inspect(ctx)
	if t.hooks == nil {
		return r
	}
	out := *t.r
	out.looked = &looked{hooks: t.hooks, policy: t.policy, refusal: refusal}
	return &out
}

// Refused reports whether hooks have refused the request.
func (r *Request) Refused() bool { return r.looked != nil && r.looked.refusal != nil }

// Hooked reports whether hooks look into the request or its answer, of a request that
// Inspect has returned.
func (r *Request) Hooked() bool { return r.looked != nil }

// Label is the risk label of the request.
func (r *Request) Label() sluice.Risk { return r.Principal.Policy.Raise(r.Risk) }

// Served is an answer that needs no backend for this request.
type Served struct {
	Head   *Head
	Detail []byte      // members of the entry's detail, each with a comma before it
	Cost   sluice.Nano // what the request is charged beside being one

	// Answer is a kept answer, which the hooks of answers look into again; and how it is
	// delivered. They are nil where the answer is that of another request in flight, which
	// the same hooks look into as it comes.
	Stream  bool
	Answer  []byte
	Deliver func(h *Head, c Client, body []byte) error

	// Follow delivers an answer of another request as it comes: with the client's error,
	// or with why that request failed after its first content.
	Follow func(h *Head, c Client) (failed *sluice.Error, err error)

	// Failed is why there is no answer: that of the other request.
	Failed *sluice.Error
}

// Serve takes a request to its Result as Run does, with an answer that is there already,
// or that another request gets. It is charged as one request, and what it costs, at once
// (engine.Engine.Take), waits for nothing and takes no place; one that fails with another
// is not charged. Its one entry has no attempt and no tokens.
func (x *Exchange) Serve(ctx context.Context, r *Request, c Client, s *Served) (res Result) {
	t := &turn{x: x, r: r, client: c}
	defer t.recovered(&res)
	defer func() { res.Risk = t.risk() }()
	if l := r.looked; l != nil {
		t.hooks, t.policy = l.hooks, l.policy
	}
	t.served = s.Detail
	if s.Failed != nil {
		return t.unserved(s.Failed)
	}
	if s.Follow == nil && t.hooks.Answers() {
		body, err := t.lookAgain(ctx, s)
		if err != nil {
			return t.refused(t.why(ctx, err), &admit.Refused{})
		}
		s.Answer = body
	}
	v, err := x.o.Gate.Take(engine.Call{
		ID: r.ID, Principal: r.Principal, Model: sluice.ModelID(r.Head.Model), Class: r.Class, Risk: t.risk(), Task: r.Task, RunLimits: r.RunLimits, Free: true,
	}, s.Cost)
	if err != nil {
		return t.refused(sluice.AsError(err), &admit.Refused{Limits: v.Limits, Policy: v.Policy})
	}
	t.head, t.policy = s.Head, v.Policy
	t.head.Grant.Limits = v.Limits
	t.first = since(r.Arrived)
	if s.Follow != nil {
		return t.follow(ctx, s, v.Would)
	}
	t.concludeServed(s.Cost, nil, v.Would)
	if err := s.Deliver(t.head, c, s.Answer); err != nil {
		t.result.Err = t.undelivered(ctx, err)
	}
	return t.result
}

// follow delivers the answer of another request and records how that went.
func (t *turn) follow(ctx context.Context, s *Served, would *sluice.Error) Result {
	failed, err := s.Follow(t.head, t.client)
	if err != nil {
		failed = t.undelivered(ctx, err)
	}
	t.concludeServed(s.Cost, failed, would)
	t.result.Err = failed
	return t.result
}

// concludeServed records a request that no backend served.
func (t *turn) concludeServed(cost sluice.Nano, failed, would *sluice.Error) {
	u := sluice.Usage{Source: sluice.UsageCached}
	e := t.entry(nil, u, cost, cost)
	e.Final, e.Outcome, e.Status, e.Queued = true, outcome(failed), t.status(failed, nil), 0
	if failed != nil {
		e.Reason = failed.Reason
	}
	t.finished = true
	t.result = Result{Head: t.head, Limits: t.head.Grant.Limits, Would: would, Final: e, Usage: u, Cost: cost}
	t.record(&e)
}

// unserved records a request that fails as another one did.
func (t *turn) unserved(failed *sluice.Error) Result {
	e := t.entry(nil, sluice.Usage{Source: sluice.UsageNone}, 0, 0)
	e.Final, e.Outcome, e.Reason, e.Status, e.Queued = true, outcome(failed), failed.Reason, t.status(failed, nil), 0
	t.finished = true
	t.result = Result{Err: failed, Final: e}
	t.record(&e)
	return t.result
}

// firstShown is about how much of a kept stream hooks are shown as its first content.
const firstShown = 2 << 10

// lookAgain asks the hooks of answers about a kept one: they may have changed their mind
// since it was.
func (t *turn) lookAgain(ctx context.Context, s *Served) ([]byte, error) {
	about := hook.Reply{Status: s.Head.Status}
	if b := s.Head.Grant.Backend; b != nil {
		about.Backend = b.ID
	}
	if !s.Stream {
		return t.hooks.Answer(ctx, about, s.Answer)
	}
	if t.hooks.Commits() {
		first := len(s.Answer)
		if first > firstShown {
			if i := bytes.Index(s.Answer[firstShown:], []byte("\n\n")); i >= 0 {
				first = firstShown + i + len("\n\n")
			}
		}
		if err := t.hooks.Commit(ctx, about, s.Answer[:first]); err != nil {
			return nil, err
		}
	}
	events := t.hooks.Events(about)
	if events == nil {
		return s.Answer, nil
	}
	out, err := events.Events(ctx, s.Answer)
	if err != nil {
		return nil, err
	}
	out = bytes.Clone(out)
	end, err := events.End(ctx)
	return append(out, end...), err
}
