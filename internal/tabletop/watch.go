package tabletop

import (
	"fmt"
	"strings"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/tabletop/control"
)

// watched is the request that somebody follows.
type watched struct {
	number int64 // 0: none
	to     func(Step)
}

func (p *play) follows(q *request) bool {
	return p.number != 0 && (q.number == p.number || p.number < 0) && p.to != nil
}

// tell tells what happens to the request that is followed.
func (p *play) tell(q *request, format string, args ...any) {
	if p.follows(q) {
		p.to(Step{At: p.now, Request: q.number, Text: fmt.Sprintf(format, args...)})
	}
}

func (p *play) tellArrival(q *request, x *source) {
	if !p.follows(q) {
		return
	}
	p.tell(q, "request %d comes up: the %d. of source %s, tenant %s, model %s, class %s, %d input tokens; its answer will have %d, which the gateway does not know",
		q.number, q.index+1, x.Name, x.Tenant, x.Model, x.Class, q.truth.input, q.truth.output)
}

func (p *play) tellQueued(q *request, v engine.Verdict) {
	if !p.follows(q) {
		return
	}
	w := &q.call.Work
	p.tell(q, "submission %d: estimated at %d input tokens, at most %d, and %d of output; holds %d of at most %d", q.submissions, w.Input, w.InputBound, w.Output, w.OutputHold, w.OutputBound)
	p.tell(q, "it joins the queue of pool %s behind %d, predicted to wait %v", v.Pool, v.Position, v.Wait.Round(time.Millisecond))
}

func (p *play) tellRefused(q *request, e *sluice.Error) {
	if !p.follows(q) {
		return
	}
	text := fmt.Sprintf("submission %d is refused: %v, %s", q.submissions, e.Reason, e.Msg)
	if f := e.Refusal; f != nil {
		text += fmt.Sprintf("; %v %s has a limit of %d %v, of which %d are used and %d held, and this asks for %d",
			f.Scope, f.ID, f.Limit.Amount, f.Limit.Dimension, f.Used, f.Held, f.Requested)
	}
	if e.RetryAfter > 0 {
		text += fmt.Sprintf("; it may come again in %v", e.RetryAfter.Round(time.Millisecond))
	}
	p.tell(q, "%s", text)
}

func (p *play) tellGrant(q *request, g *engine.Grant) {
	if !p.follows(q) {
		return
	}
	p.tell(q, "attempt %d gets a place on %s of pool %s after %v, policy %s", g.Attempt, g.Backend.ID, g.Pool, g.Queued.Round(time.Microsecond), g.Policy)
	if g.Clamped {
		p.tell(q, "its output is bounded to %d tokens by what the budget has room for", g.OutputBound)
	}
	var left []string
	for _, c := range g.Candidates {
		if c.Left != "" {
			left = append(left, fmt.Sprintf("%s (%s)", c.Backend, c.Left))
		}
	}
	if len(left) > 0 {
		p.tell(q, "left out: %s", strings.Join(left, ", "))
	}
}

func (p *play) tellSettled(q *request, e *control.Ended) {
	if !p.follows(q) {
		return
	}
	if e.Reason == sluice.ReasonNone {
		p.tell(q, "settled as %v: %d input tokens, %d of them from a cache, %d of output, %v", e.Outcome, e.Usage.InputTotal(), e.Usage.CacheRead, e.Usage.OutputTotal(), e.Cost)
		return
	}
	p.tell(q, "settled as %v, %v: %d input tokens, %d of output, %v", e.Outcome, e.Reason, e.Usage.InputTotal(), e.Usage.OutputTotal(), e.Cost)
}
