package jobs

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/handover"
	"sluice/internal/wire"
)

// The waits of lines that were refused.
const (
	leastWait = time.Second
	mostWait  = 5 * time.Minute
)

// Why the request of a line is ended before it has ended by itself.
var (
	errStopping  = &sluice.Error{Kind: sluice.KindCancelled, Reason: sluice.ShuttingDown, Msg: "the gateway is shutting down"}
	errCancelled = &sluice.Error{Kind: sluice.KindCancelled, Reason: sluice.ClientGone, Msg: "the batch was cancelled"}
	errOverdue   = &sluice.Error{Kind: sluice.KindCancelled, Reason: sluice.DeadlineUnmet, Msg: "the batch's time is over"}
)

// errStreamed is of a request that nobody asked to stream.
var errStreamed = errors.New("a line was answered by a stream")

// collect takes an answer whole.
type collect struct {
	of       Kind
	answered bool
	status   int
	kind     string
	body     []byte
	told     Told
}

var _ exchange.Client = (*collect)(nil)

// Events implements exchange.Client.
func (c *collect) Events(*exchange.Head, []byte) error { return errStreamed }

// Answer implements exchange.Client.
func (c *collect) Answer(h *exchange.Head, body []byte) error {
	c.answered, c.status, c.kind, c.body, c.told = true, h.Status, h.Type, append([]byte(nil), body...), toldOf(c.of, h)
	return nil
}

// Committed implements exchange.Client.
func (c *collect) Committed() bool { return c.answered }

// outcome is what became of a line that ran.
type outcome struct {
	Posting
	refused *sluice.Error // why it is to wait; nil if it has a result
	handed  bool          // its provider had it
	weight  int64         // of its tenant; 0 if its caller is none any more
	queued  time.Duration // that its request waited for capacity
	began   time.Time     // zero if it did not
}

// attempt is one run of a line.
type attempt struct {
	d      *Desk
	job    *Job
	line   Line
	body   []byte // of the line, as it is in the input
	class  sluice.Class
	taken  func(expected time.Time) // it has been handed over
	handed bool
	// unwanted is closed when the job is cancelled.
	unwanted <-chan struct{}

	id        sluice.RequestID
	principal sluice.Principal
	req       *exchange.Request // as far as it could be made
	ran       bool              // it was handed over to be run, and is recorded
}

// run takes a line to its result, or says why it is to wait. A panic is the line's error.
func (a *attempt) run(ctx context.Context) (out outcome) {
	defer func() {
		if v := recover(); v != nil {
			e := &sluice.Error{Kind: sluice.KindInternal, Reason: sluice.InternalError, Msg: "internal error", Err: fmt.Errorf("panic: %v\n%s", v, debug.Stack())}
			a.d.o.Log.Error("a line of a batch panicked", "job", string(a.job.ID), "line", a.line.Line, "error", e.Err)
			out = a.refused(e)
		}
	}()
	if err := a.request(); err != nil {
		return a.refused(sluice.AsError(err))
	}
	c := &collect{of: a.job.Kind}
	a.ran = true
	res := a.d.o.Run(ctx, a.req, c)
	out = a.ended(context.Cause(ctx), &res, c)
	if out.refused == nil || !out.Void {
		a.told(&res)
	}
	return out
}

// told tells the hooks of a request that has ended.
func (a *attempt) told(res *exchange.Result) {
	if a.d.o.Hooks.Ran != nil {
		a.d.o.Hooks.Ran(res)
	}
}

// request makes the line's request. The error says why it may not be run; as much of it as
// is known is there then, too.
func (a *attempt) request() (err error) {
	a.begin()
	r := a.req
	if a.principal, err = a.d.o.Principal(a.job.Caller); err != nil {
		return err
	}
	a.principal.Run = a.job.Terms.Run
	r.Principal = a.principal
	if r.Body, err = bodyOf(a.job.Kind, a.body); err != nil {
		return sluice.Invalid("", "the line is not as it was checked: %s", plain(err))
	}
	head, err := headOf(a.job.Op, r.Body, a.principal.Policy, a.d.o.Table())
	if err != nil {
		return err
	}
	if a.principal.User == "" { // else it was verified
		a.principal.User = sluice.UserID(head.User)
	}
	r.Head, r.Principal = head, a.principal
	if a.job.Kind != Async {
		r.Line = &handover.Line{Job: string(a.job.ID), Number: a.line.Line, Open: a.job.Counts.Open(), Deadline: a.job.Deadline, Taken: a.given, Unwanted: a.unwanted}
	}
	if p := a.principal.Policy; p != nil && p.AllowsClass(a.class) {
		r.Class = a.class
	}
	return nil
}

// begin makes what of the request its job tells.
func (a *attempt) begin() {
	t := &a.job.Terms
	a.id = RequestOf(a.job.ID, a.line.Line, a.line.Claim)
	a.req = &exchange.Request{
		ID: a.id, Arrived: time.Now(), Principal: a.job.Caller, Head: &wire.Head{Op: a.job.Op, Model: a.job.Model}, Header: t.Header.Clone(),
		Class: sluice.Batch, Risk: t.Risk, Task: t.Task, Labels: t.Labels, MaxWait: -1, Cache: t.Cache,
	}
}

// refused is the outcome of a line whose request is not run: it waits, or has its result
// and is recorded, as what is refused elsewhere is.
func (a *attempt) refused(e *sluice.Error) outcome {
	var res exchange.Result
	if _, again := waits(e, a.d.now(), a.job.Deadline); !again && !a.ran {
		res = a.d.o.Refuse(a.req, &collect{of: a.job.Kind}, e)
		a.told(&res)
	}
	return a.failed(e, &res)
}

// given notes that the line has been handed over: it takes nobody's place any more.
func (a *attempt) given(expected time.Time) {
	a.handed, a.body = true, nil
	if a.taken != nil {
		a.taken(expected)
	}
}

// unread is the outcome of a line whose input the store does not give: it waits, unless
// the input is gone.
func (a *attempt) unread(err error) outcome {
	a.begin()
	e := sluice.AsError(err)
	if e.Kind == sluice.KindInternal {
		e = &sluice.Error{Kind: sluice.KindOverloaded, Reason: sluice.NotReady, Msg: "the input cannot be read now", Err: err}
	}
	return a.refused(e)
}

// ended is the outcome of a request that was run.
// cause is why it was ended, if it was.
func (a *attempt) ended(cause error, res *exchange.Result, c *collect) outcome {
	switch {
	case res.Err == nil && c.answered:
		out := a.result(res, c.status, c.kind, c.body)
		out.Result.Told = c.told
		return out
	case res.Err == nil:
		return a.failed(sluice.AsError(errors.New("a line was answered by nothing")), res)
	case cause == errStopping, a.handed && res.Err.Reason == sluice.ShuttingDown:
		out := a.outcome()
		out.Void = true
		return out
	case cause == errCancelled || cause == errOverdue:
		out := a.result(res, 0, "", nil)
		out.Result.State = LineCancelled
		if cause == errOverdue {
			out.Result.State = LineExpired
		}
		return out
	}
	return a.failed(res.Err, res)
}

func (a *attempt) outcome() outcome {
	out := outcome{Posting: Posting{Line: a.line.Line, Claim: a.line.Claim}, handed: a.handed}
	if p := a.principal.Policy; p != nil {
		out.weight = p.Weight
	}
	if a.req != nil {
		out.began = a.req.Arrived
	}
	return out
}

func (a *attempt) result(res *exchange.Result, status int, kind string, body []byte) outcome {
	out := a.outcome()
	out.queued = res.Final.Queued
	out.Result = &Result{
		Line: a.line.Line, CustomID: a.line.CustomID, State: LineSucceeded, Status: status, Request: a.id,
		Type: kind, Body: body, Usage: res.Usage, Cost: res.Cost, Ended: a.d.now(),
	}
	if status >= 400 {
		out.Result.State = LineFailed
	}
	return out
}

// failed is the outcome of a request that ended with an error, as far as it had come: the
// line waits, or has its result.
func (a *attempt) failed(e *sluice.Error, res *exchange.Result) outcome {
	now := a.d.now()
	if wait, ok := waits(e, now, a.job.Deadline); ok {
		out := a.outcome()
		out.refused, out.Due = e, now.Add(wait)
		// The line counts as one request, however often it is refused; what a try has cost
		// is its tenant's all the same, but not what a provider's batch has lost.
		out.Void = a.handed || a.ran && res.Cost == 0 && res.Usage.Total() == 0
		return out
	}
	var o wire.ErrorOptions
	if p := a.principal.Policy; p != nil {
		o.Budget402 = p.Budget402
	}
	status, header, body := wire.Error(a.job.Op.Dialect(), e, a.id, o)
	out := a.result(res, status, "", body)
	out.Result.State = LineFailed
	if res.Pass != nil {
		out.Result.Status, out.Result.Type, out.Result.Body = res.Pass.Status, res.Pass.Header.Get("Content-Type"), res.Pass.Body
		header = nil
	}
	out.Result.Told.refusedBy(a.job.Kind, e, res, header)
	return out
}

// waits reports whether what a line was refused for passes before the deadline, and how
// long it waits for that.
func waits(e *sluice.Error, now, deadline time.Time) (time.Duration, bool) {
	wait := e.RetryAfter
	switch e.Kind {
	case sluice.KindRateLimited, sluice.KindOverloaded:
		if e.Reason == sluice.NeverFits || e.Reason == sluice.HookFailed {
			return 0, false
		}
		wait = min(wait, mostWait)
	case sluice.KindBudgetExhausted: // a window that begins anew
		if e.Reason == sluice.BudgetHeld {
			wait = min(wait, mostWait)
			break
		}
		if e.Refusal != nil && !e.Refusal.Reset.IsZero() {
			wait = e.Refusal.Reset.Sub(now)
		}
		if wait <= 0 || !now.Add(wait).Before(deadline) {
			return 0, false
		}
		wait = min(wait, mostWait) // it may be raised before
	default:
		return 0, false
	}
	return max(wait, leastWait), true
}
