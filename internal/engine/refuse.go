package engine

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"sluice"
	"sluice/internal/quota"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// refuse counts an arrival that gets no place, for the view: in the pool that it
// would have joined or whose ladder refused it, else in its model's first.
func (e *Engine) refuse(now time.Time, r *request, m *route.Model, err *sluice.Error) {
	p := r.pool
	switch {
	case p != nil:
	case err.Reason == sluice.Degraded:
		p = e.declined.pool
	case len(m.Pools) > 0:
		p = e.poolOf(r.first(m)[0])
	}
	if p != nil {
		e.turnedAway(now, p, r, err.Reason)
		e.turnedDown(r, p, err.Reason)
	}
}

// refused is a limit's refusal as the caller sees it: the sentence, and the figures
// in Refusal. A limit that callers share is scarce capacity, not the caller's rate,
// and what others use of it is for operators: the sentence leaves it out, and so do
// the faces.
func (e *Engine) refused(now time.Time, r *request, f *quota.Refusal) *sluice.Error {
	err := &sluice.Error{
		Kind: sluice.KindRateLimited, Reason: sluice.RateLimited, RetryAfter: f.Wait,
		Msg: "too many " + strings.ReplaceAll(f.Limit.Dimension.String(), "_", " "),
		Refusal: &sluice.Refusal{
			Scope: f.Owner.Scope, ID: f.Owner.Label(), Limit: f.Limit,
			Requested: f.Requested, Used: f.Used, Held: f.Held, Reset: f.Reset,
		},
	}
	switch {
	case f.Never:
		err.Kind, err.Reason = sluice.KindInvalid, sluice.NeverFits
		err.Msg, err.Hint = "this request is larger than a limit can ever admit", smaller(f)
	case f.Limit.Window == sluice.PerRun:
		ofRun(err, f)
	case f.Limit.Dimension == sluice.Spend && f.InFlight:
		err.Kind, err.Reason = sluice.KindBudgetExhausted, sluice.BudgetHeld
		err.Msg, err.Hint = "the budget is held by requests in flight, not spent", "retry when some have ended"
	case f.Limit.Dimension == sluice.Spend:
		err.Kind, err.Reason = sluice.KindBudgetExhausted, sluice.BudgetSpent
		err.Msg = "the budget is spent until its window ends"
	case f.Limit.Dimension == sluice.Concurrency:
		err.Reason, err.Msg = sluice.ConcurrencyLimited, "too many requests in flight"
	case f.Limit.Dimension == sluice.KVTokens:
		err.Reason, err.Msg = sluice.ConcurrencyLimited, "too many tokens in flight"
	}
	if f.InFlight && f.Wait == 0 && !f.Never {
		err.RetryAfter, err.Expected = e.drain(now, r, f), true
	}
	if f.Owner.Scope >= sluice.ScopeModel && !f.Never {
		err.Kind, err.Hint = sluice.KindOverloaded, ""
		err.Msg = "a limit that all callers share is reached"
		err.Err = fmt.Errorf("%v %s: %d used, %d held", f.Owner.Scope, f.Owner.Label(), f.Used, f.Held)
	}
	return err
}

// smaller is what to do about a request that a limit can never admit.
func smaller(f *quota.Refusal) string {
	larger := "ask for a larger limit"
	if f.Limit.Window == sluice.PerRun {
		larger = "give the run a larger bound"
	}
	switch f.Limit.Dimension {
	case sluice.InputTokens:
		return "send less input, or " + larger
	case sluice.OutputTokens:
		return "ask for less output (max_tokens), or " + larger
	case sluice.AllTokens, sluice.KVTokens, sluice.Spend:
		return "send less input, ask for less output (max_tokens), or " + larger
	}
	return larger
}

// would is why a request would have been refused, or would have waited, had its
// limits not been shadows; nil if they had room.
func (e *Engine) would(now time.Time, r *request) *sluice.Error {
	if f := r.res.Would(); f != nil && !r.call.Owed {
		return e.refused(now, r, f)
	}
	return nil
}

// ofRun words the refusal of a run, which gets nothing back: its bounds are
// budgets, whatever they count.
func ofRun(err *sluice.Error, f *quota.Refusal) {
	err.Kind, err.Reason = sluice.KindBudgetExhausted, sluice.BudgetSpent
	d := f.Limit.Dimension
	of, spent, held := amountText(d, f.Limit.Amount)+unit(d), amountText(d, f.Used), amountText(d, f.Held)
	switch {
	case f.Limit.Dimension == sluice.RunTime:
		err.Msg = fmt.Sprintf("the run may last %s and began %s ago", of, spent)
	case f.InFlight:
		err.Reason = sluice.BudgetHeld
		err.Msg = fmt.Sprintf("the run may take %s, of which %s are spent and %s held by its requests in flight", of, spent, held)
		err.Hint = "retry when some have ended"
		return
	default:
		err.Msg = fmt.Sprintf("the run may take %s, of which %s are spent and %s held", of, spent, held)
	}
	err.Hint = "its bounds do not come back: end it, or begin another run"
	if f.Owner.Further() {
		err.Msg = "the tenant has more runs than are told apart, and further ones share the bounds of one: " + err.Msg
		err.Hint = "leave sluice-run out, or wait until other runs are forgotten"
	}
}

// amountText is an amount as people write it.
func amountText(d sluice.Dimension, n int64) string {
	switch d {
	case sluice.Spend:
		return sluice.Nano(n).String()
	case sluice.RunTime:
		return time.Duration(n).Round(time.Second).String()
	}
	return strconv.FormatInt(n, 10)
}

// unit is what a run's amounts are of.
func unit(d sluice.Dimension) string {
	switch d {
	case sluice.Requests:
		return " steps"
	case sluice.Spend, sluice.RunTime:
		return ""
	}
	return " " + strings.ReplaceAll(d.String(), "_", " ")
}

// drain estimates when requests in flight will have returned what the limit lacks:
// as large a part of the time that such requests take as it is of what they hold.
// That is never sooner than this request has waited for it in vain. 0 where nothing
// is known.
func (e *Engine) drain(now time.Time, r *request, f *quota.Refusal) time.Duration {
	life := e.life
	if f.Limit.Dimension.Gauge() && r.pool != nil && r.pool.queue.Service() > 0 {
		life = r.pool.queue.Service()
	}
	part := life
	if f.Requested < f.Held {
		hi, lo := bits.Mul64(uint64(life), uint64(max(f.Requested, 1)))
		q, _ := bits.Div64(hi, lo, uint64(f.Held))
		part = time.Duration(q)
	}
	return max(part, now.Sub(r.item.Since))
}

// unknownDrain paces callers of a pool of which nothing is known yet.
const unknownDrain = time.Second

// drain estimates when a pool will have served what waits, one item aside, and one
// more. It is
// never sooner than the oldest of them has waited.
func (p *pool) drain(now time.Time, without *sched.Item) time.Duration {
	if d := max(p.queue.Drain(p.running(), without), p.queue.Oldest(now)); d > 0 {
		return d
	}
	return unknownDrain
}

// keyDrain paces callers of backends that have no credential to be used for now.
const keyDrain = time.Minute

func queueFull(now time.Time, p *pool, bound string) *sluice.Error {
	return &sluice.Error{
		Kind: sluice.KindOverloaded, Reason: sluice.QueueFull,
		Msg:        fmt.Sprintf("the queue of %s is full (%s)", p.title(), bound),
		RetryAfter: p.drain(now, nil), Expected: true,
	}
}

// tooLong refuses a request on arrival: it would wait longer than it may.
func tooLong(p *pool, wait, most time.Duration) *sluice.Error {
	return &sluice.Error{
		Kind: sluice.KindOverloaded, Reason: sluice.DeadlineUnmet,
		Msg:        fmt.Sprintf("the wait in %s is predicted to be %v, and the request may wait %v", p.title(), wait.Round(time.Millisecond), most),
		Hint:       "come back later, or allow a longer wait with sluice-max-wait",
		RetryAfter: wait - most, Expected: true,
	}
}

// unserved says why no backend of a model can take a request.
func (e *Engine) unserved(now time.Time, r *request, m *route.Model) *sluice.Error {
	seen := make(map[route.Left]bool)
	var back time.Time // when the first one that cools gets a probe
	var longest sluice.Tokens
	var without lacking
	roam := r.roam
	r.roam = true
	defer func() { r.roam = roam }()
	r.visit(m, "", func(id sluice.PoolID, _ bool) bool {
		ask := r.ask(e.poolOf(id))
		for _, pl := range e.poolOf(id).places {
			left := r.eligible(pl.Backend, &ask)
			if left == route.Chosen {
				left = route.LeftUnhealthy
				if pl.Drained() { // nobody knows until when
					seen[left] = true
					continue
				}
				until, _ := pl.CoolingWith(now, r.only())
				if pl.FitWith(now, r.only()) == route.LeftParked { // an operator may mend it at any moment
					until = now.Add(min(until.Sub(now), keyDrain))
				}
				if back.IsZero() || until.Before(back) {
					back = until
				}
			}
			seen[left] = true
			if left == route.LeftContext {
				longest = max(longest, pl.Backend.LongestInput())
			}
			without.add(r, pl.Backend, left)
		}
		return false
	})
	switch {
	case seen[route.LeftUnhealthy]:
		err := r.noBackend(m.ID)
		if !back.IsZero() {
			err.RetryAfter, err.Expected = max(0, back.Sub(now)), true
		}
		return err
	case seen[route.LeftLacks]:
		return without.capability(m.ID)
	case seen[route.LeftTooDear]:
		return without.tooDear(m)
	case seen[route.LeftUnpriced]:
		return &sluice.Error{
			Kind: sluice.KindForbidden, Reason: sluice.Unpriced, Param: "model",
			Msg:  fmt.Sprintf("names %s, which has no price, and what it costs must be known", m.ID),
			Hint: "the operator can add a price or a ceiling to its backends",
		}
	case seen[route.LeftContext]:
		return &sluice.Error{
			Kind: sluice.KindInvalid, Reason: sluice.NeverFits,
			Msg:  fmt.Sprintf("prompt is too long: %d tokens > %d maximum", r.call.Work.Input, longest), // clients look for these words
			Hint: fmt.Sprintf("that is an estimate, and the context length of model %s: send less input", m.ID),
		}
	case seen[route.LeftTranslate]:
		return without.untold
	case seen[route.LeftRegion], seen[route.LeftProvider], seen[route.LeftRisk]:
		return without.permission(m.ID)
	case seen[route.LeftState] && !seen[route.LeftDrained] && !seen[route.LeftTried]:
		return stateElsewhere(m.ID)
	case seen[route.LeftDialect]:
		return &sluice.Error{
			Kind: sluice.KindInvalid, Reason: sluice.CapabilityMissing, Param: "model",
			Msg:  fmt.Sprintf("names %s, which no backend serves in the %s dialect", m.ID, r.call.Dialect),
			Hint: "use a model of this dialect, see GET /v1/models",
		}
	}
	return r.noBackend(m.ID)
}

// noBackend says that no backend is available, or the one place to which the request
// can go.
func (r *request) noBackend(m sluice.ModelID) *sluice.Error {
	err := noBackend(m)
	if r.call.Pin != nil {
		err.Msg = "what the request refers to is kept at one place, which is not available now"
		err.Hint = "try again later, or leave out what it refers to"
	}
	return err
}

// stateElsewhere refuses a request to a model that is not served where what it refers to
// is kept.
func stateElsewhere(m sluice.ModelID) *sluice.Error {
	return &sluice.Error{
		Kind: sluice.KindInvalid, Reason: sluice.CapabilityMissing, Param: "model",
		Msg:  fmt.Sprintf("names %s, which is not served where what the request refers to is kept", m),
		Hint: "use the model that made it, or leave out what it refers to",
	}
}

func noBackend(m sluice.ModelID) *sluice.Error {
	return &sluice.Error{
		Kind: sluice.KindOverloaded, Reason: sluice.NoBackend,
		Msg: fmt.Sprintf("no backend of model %s is available", m),
	}
}

// waitedTooLong says why a request found no place before its deadline: because
// of its caller's gauge, for want of a healthy backend, or because the pool is
// busy.
func (e *Engine) waitedTooLong(now time.Time, r *request) *sluice.Error {
	if f := e.book.GaugeRefusal(now, &r.res, r.hold()); f != nil {
		return e.refused(now, r, f)
	}
	p := r.pool
	if p.serves(now, r) < avoided {
		if m := e.modelOf(r); m != nil {
			return e.unserved(now, r, m)
		}
		return noBackend(r.item.Flow.Model)
	}
	err := &sluice.Error{
		Kind: sluice.KindOverloaded, Reason: sluice.QueueTimeout,
		Msg:        fmt.Sprintf("no place became free in %s within %v", p.title(), r.maxWait()),
		RetryAfter: max(p.drain(now, &r.item), now.Sub(r.item.Since)), Expected: true,
	}
	if p.defers(r) {
		err.Msg = fmt.Sprintf("%s is short of capacity and lets batch wait, and this request may wait no longer than %v", p.title(), r.maxWait())
		err.Hint = "allow a longer wait with sluice-max-wait, or send it as a batch, which waits for as long as it must"
		err.RetryAfter = max(err.RetryAfter, p.deferral(now))
	}
	if r.maxWait() <= 0 {
		err.Reason = sluice.DeadlineUnmet
		err.Msg = fmt.Sprintf("%s has no place now and the request may not wait", p.title())
	}
	return err
}
