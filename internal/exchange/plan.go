package exchange

import (
	"context"
	"fmt"
	"slices"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/estimate"
	"sluice/internal/price"
	"sluice/internal/route"
	"sluice/internal/wire"
)

// unknownMaxOutput bounds the output of a request where neither client, plan nor
// model says anything.
const unknownMaxOutput sluice.Tokens = 32_768

// believedMaxOutput bounds the output of one choice where the backend says
// nothing: no model writes more, and no product of it overflows.
const believedMaxOutput sluice.Tokens = 1 << 24

// plan is the shape of a request before it runs.
type plan struct {
	work    sluice.Work
	backend *route.Backend // whose model the estimate is for; nil if the model is unknown
	least   sluice.Tokens  // the smallest output bound that is worth the request
	relied  bool           // a hard budget relies on the output's bound
}

// call estimates the request and is what the engine is asked. The error refuses
// what no hold can cover.
func (t *turn) call(ctx context.Context) (engine.Call, *sluice.Error) {
	r, h := t.r, t.r.Head
	table := t.x.o.Table()
	t.policy = table.Version
	m := table.Models[t.asks()]
	if m != nil && t.shadow != nil {
		m = m.Alone(t.shadow)
	}
	t.look(ctx, table, m)
	t.plan.relied = t.hard() && t.budgeted(m)
	t.plan.backend = Representative(table, m, h.Op.Dialect(), r.Principal.Policy, t.risk())
	all := t.reach(table, m)
	w := sluice.Work{InputBound: all.input}
	w.Input = min(t.input(t.plan.backend), w.InputBound)
	if h.ServerTools > 0 { // each result of one goes in again, with all that was there
		w.Searches = max(h.Searches, 0)
		w.InputBound *= sluice.Tokens(1 + max(h.ServerUses, 0))
	}
	w.Units, w.UnitsBound = h.Units, h.UnitsBound
	if h.Op.Generates() || all.tokens && h.Op.Outputs() {
		w = t.withOutput(w, all)
	}
	t.plan.work = w
	c := engine.Call{
		ID: r.ID, Principal: r.Principal, Model: t.asks(), Whole: t.asIs, Dialect: string(h.Op.Dialect()), Others: t.routes(), Needs: h.Needs | h.Op.Surface(),
		Class: r.Class, Risk: t.risk(), Task: r.Task, Work: w, Least: t.plan.least, Bytes: int64(len(r.Body)), MaxWait: r.MaxWait,
		Billing: h.Billing(), Free: r.Free, Owed: t.handed != nil, Streaming: h.Stream, Choices: int64(t.choices()), RunLimits: r.RunLimits, Session: r.Session,
		Pin: t.pin, Single: h.ServerTools > 0 || h.Unbounded || h.Store || h.Background || len(h.Refs) > 0, // it may act elsewhere, or names what only one provider has
		Counted: t.showsAll(table, m), Prefix: t.prefix(table, m, w.Input),
	}
	if e := t.aboveCeiling(w.Input); e != nil {
		return c, e
	}
	if h.ServerTools > 0 && h.ServerUses < 0 && t.plan.relied {
		e := sluice.Invalid("", "the request has tools that the provider runs as often as it likes, and the budget of this key is hard")
		e.Hint = "give each of them max_uses, or leave them out; or a plan with spend: soft, which lets what they cost show as debt"
		return c, e
	}
	return c, nil
}

// prefix is what can be shared of the request's prompt; empty where no pool of its
// model asks for it.
func (t *turn) prefix(table *route.Table, m *route.Model, input sluice.Tokens) (p route.Prefix) {
	h := t.r.Head
	if m == nil || t.r.Free || !h.Op.Generates() {
		return p
	}
	m.Visit("", func(id sluice.PoolID, _ bool) bool {
		pool := table.Pools[id]
		if pool == nil || !pool.Choice.Prefixed() {
			return false
		}
		size := pool.Affinity.WithDefaults().BlockBytes
		room := min(int64(len(t.r.Body))/size, route.MaxBlocks)
		var n int
		if p.Blocks, n = h.Prefix(t.r.Body, t.x.key, int(size), route.MaxBlocks, make([]uint64, 0, room)); n > 0 {
			p.Tokens = max(1, input*sluice.Tokens(size)/sluice.Tokens(n))
		}
		return true
	})
	return p
}

// ceilings are the most input and output that the policy lets one request have,
// output over all its answers; 0 is no bound.
func (t *turn) ceilings() (input, output sluice.Tokens) {
	if p := t.r.Principal.Policy; p != nil && p.Mode == sluice.Enforce && !t.r.Free {
		return p.InputCeiling, p.OutputCeiling
	}
	return 0, 0
}

// aboveCeiling refuses more input than one request may have.
func (t *turn) aboveCeiling(input sluice.Tokens) *sluice.Error {
	most, _ := t.ceilings()
	if most <= 0 || input <= most {
		return nil
	}
	return &sluice.Error{
		Kind: sluice.KindInvalid, Reason: sluice.NeverFits,
		Msg:  fmt.Sprintf("prompt is too long: %d tokens > %d maximum", input, most), // clients look for these words
		Hint: "that is an estimate, and the most that this key may send in one request: send less input",
	}
}

// risk is the label of the request.
func (t *turn) risk() sluice.Risk { return t.r.Principal.Policy.Raise(t.r.Risk) }

// budgeted reports whether any limit of spend applies to the request.
func (t *turn) budgeted(m *route.Model) bool {
	spend := func(l sluice.Limit) bool { return l.Dimension == sluice.Spend }
	p := t.r.Principal.Policy
	if p != nil {
		for _, limits := range p.Limits {
			if slices.ContainsFunc(limits, spend) {
				return true
			}
		}
		if slices.ContainsFunc(p.ByModel[t.asks()], spend) {
			return true
		}
	}
	return slices.ContainsFunc(t.r.RunLimits, spend) || m != nil && slices.ContainsFunc(m.Limits, spend) || slices.ContainsFunc(t.x.o.Table().Fleet, spend)
}

// hard reports whether spend is held by bounds and never exceeded.
func (t *turn) hard() bool {
	p := t.r.Principal.Policy
	return p != nil && p.HardSpend && !t.r.Free
}

// Representative is the backend that a caller's requests for a model most likely go
// to: of those that are permitted what carries such a label the first that speaks the
// dialect, else the first that speaks another. It is nil if there is none, or no model.
// The policy may be nil.
func Representative(t *route.Table, m *route.Model, d wire.Dialect, policy *sluice.Policy, risk sluice.Risk) (found *route.Backend) {
	permitted(t, m, policy, risk, func(b *route.Backend) bool {
		own := b.Dialect == string(d)
		if own || found == nil {
			found = b
		}
		return own
	})
	return found
}

// input is the estimate of a request's input on a backend, which may be nil.
func (t *turn) input(b *route.Backend) sluice.Tokens {
	h := t.r.Head
	raw := h.Estimate
	if b != nil {
		raw, _ = h.For(b.Model)
	}
	if h.Exact {
		return raw
	}
	t.x.mu.Lock()
	defer t.x.mu.Unlock()
	return t.x.o.Learned.Input(t.key(b), raw)
}

// reach is what the backends of a model can be asked for, whichever serves: the
// input and the output of one choice, as far as they say, and by what is believed
// of those that say nothing.
type reach struct {
	input  sluice.Tokens // bound
	output sluice.Tokens // bound
	named  sluice.Tokens // the largest max_output; 0 if none says
	tokens bool          // one is billed by tokens, not by another unit
}

func (t *turn) reach(table *route.Table, m *route.Model) (all reach) {
	h := t.r.Head
	of, input := string(t.asks()), max(h.Bound, h.Estimate)
	add := func(model string, b *route.Backend) {
		if h.Media > 0 && model != of {
			estimate, bound := h.For(model)
			of, input = model, max(bound, estimate)
		}
		all.input, all.output = max(all.input, input), max(all.output, mostOutput(b))
		if h.Unbounded {
			all.input = max(all.input, contextOf(b))
		}
		if b != nil {
			all.named = max(all.named, b.MaxOutput)
			row := b.Row()
			all.tokens = all.tokens || row != nil && row.Per == price.NoUnit
		}
	}
	permitted(table, m, t.r.Principal.Policy, t.risk(), func(b *route.Backend) bool {
		if t.understands(b) {
			add(b.Model, b)
		}
		return false
	})
	if all.output == 0 { // the engine refuses it
		add(string(t.asks()), nil)
	}
	return all
}

// mostOutput is what one choice can be asked for of a backend.
func mostOutput(b *route.Backend) sluice.Tokens {
	n := believedMaxOutput
	if b != nil && b.Context > 0 {
		n = min(n, b.Context)
	}
	if b != nil && b.MaxOutput > 0 {
		n = min(n, b.MaxOutput)
	}
	return n
}

// withOutput adds the output.
func (t *turn) withOutput(w sluice.Work, all reach) sluice.Work {
	h, n := t.r.Head, t.choices()
	per := h.MaxOutput
	if !h.HasMaxOutput {
		per = t.unasked(all)
	}
	// What bounds nothing by 0 makes one token at least of it, here and there.
	per = min(per, all.output)
	if _, most := t.ceilings(); most > 0 {
		per = min(per, (most-h.Prediction)/n)
	}
	per = max(per, 1)
	w.OutputBound = per*n + h.Prediction
	if t.plan.least = min(per, engine.MinOutput)*n + h.Prediction; h.Op.Aside() {
		t.plan.least = w.OutputBound // nothing that it is told makes it less
	}
	t.x.mu.Lock()
	defer t.x.mu.Unlock()
	w.Output, w.OutputHold = t.x.o.Learned.Output(t.key(t.plan.backend), w.OutputBound)
	return w
}

// contextOf bounds an input whose size the body does not tell.
func contextOf(b *route.Backend) sluice.Tokens {
	if b == nil || b.Context <= 0 {
		return 1 << 20
	}
	return b.Context
}

// key is what the estimate is learned by.
func (t *turn) key(b *route.Backend) estimate.Key {
	k := estimate.Key{Tenant: t.r.Principal.Tenant, Model: string(t.asks()), Task: t.r.Task}
	if b != nil {
		k.Model = b.Model
	}
	return k
}

// unasked is the bound of one choice where the client names none.
func (t *turn) unasked(all reach) sluice.Tokens {
	if p := t.r.Principal.Policy; p != nil && p.MaxOutput > 0 {
		return p.MaxOutput
	}
	if all.named > 0 {
		return all.named
	}
	return unknownMaxOutput
}

// maxOutput is the bound of one choice to write into the body, 0 to leave it as
// the client wrote it. What a backend is asked for is never more than what is held,
// nor than it can do. Where the client names no bound, one is named if a plan or a
// hard budget relies on it, and it leaves room for the input, since engines refuse what
// exceeds their context; and a hard budget does not rely on a 0, which servers read in
// several ways. Bounds of a run on tokens are relied on as a hard budget is.
func (t *turn) maxOutput(a *attempt) sluice.Tokens {
	h, p := a.said, t.r.Principal.Policy
	if !h.Op.Generates() || t.r.Free {
		return 0
	}
	per := max((t.bound(a)-h.Prediction)/t.choices(), 1)
	per = min(per, mostOutput(a.place.Backend))
	if !t.r.Head.HasMaxOutput {
		per = min(per, t.room(a.place.Backend))
	}
	relied := t.plan.relied || a.place.Whole
	switch {
	case h.HasMaxOutput && h.MaxOutput == 0 && relied, h.MaxOutput > per:
		return per
	case !h.HasMaxOutput && (relied || p != nil && p.MaxOutput > 0 || t.capped() || a.place.Degraded):
		return per
	}
	return 0
}

// room is the output for which a backend's context has room beside the input: what is
// left by the input's bound, or, of a prompt whose bound comes near to the context or
// exceeds it, half of what the estimate leaves. It is 1 at least: what has no room is
// the backend's to refuse.
func (t *turn) room(b *route.Backend) sluice.Tokens {
	if b.Context <= 0 {
		return believedMaxOutput
	}
	w := &t.plan.work
	return max(b.Context-w.InputBound, (b.Context-w.Input)/2, 1)
}

// capped reports whether the policy bounds the output of one request.
func (t *turn) capped() bool {
	_, output := t.ceilings()
	return output > 0
}

// learn takes what the provider reported into the estimates.
func (t *turn) learn(a *attempt, u sluice.Usage) {
	if !u.Source.Final() || u.Anomalous || t.r.Free {
		return
	}
	x, k := t.x, t.key(a.place.Backend)
	x.mu.Lock()
	defer x.mu.Unlock()
	if !t.r.Head.Exact && a.raw > 0 && u.InputTotal() > 0 {
		x.o.Learned.ObserveInput(k, a.raw, u.InputTotal())
	}
	if op := t.r.Head.Op; op.Generates() || op.Outputs() && u.OutputTotal() > 0 {
		if x.o.Hooks.Output != nil {
			x.o.Hooks.Output(t.asks(), t.plan.work.Output, u.OutputTotal())
		}
		if !a.place.Degraded || u.OutputTotal() < t.bound(a) { // what a ladder has cut tells nothing of how long answers are
			x.o.Learned.ObserveOutput(k, u.OutputTotal())
		}
		n := a.tap.Delivered()
		if u.Reasoning > 0 { // told by itself, and shown in full, in part or not at all
			n -= a.tap.Reasoned()
		}
		if n > 0 && u.Output > 0 {
			x.o.Learned.ObserveCounted(k, n, u.Output)
		}
	}
}

// counted is n tokens of the output that was seen in the provider's tokens.
func (t *turn) counted(a *attempt, n sluice.Tokens) sluice.Tokens {
	if n <= 0 {
		return 0
	}
	t.x.mu.Lock()
	defer t.x.mu.Unlock()
	return t.x.o.Learned.Counted(t.key(a.place.Backend), n)
}
