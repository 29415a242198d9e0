package exchange

import (
	"sluice"
	"sluice/internal/engine"
	"sluice/internal/estimate"
	"sluice/internal/route"
	"sluice/internal/wire"
)

// unknownMaxOutput bounds the output of a request where neither client, plan nor
// model says anything.
const unknownMaxOutput sluice.Tokens = 32_768

// plan is the shape of a request before it runs.
type plan struct {
	work    sluice.Work
	backend *route.Backend // whose model the estimate is for; nil if the model is unknown
}

// call estimates the request and is what the engine is asked.
func (t *turn) call() engine.Call {
	r := t.r
	table := t.x.o.Table()
	t.plan.backend = Representative(table, table.Models[sluice.ModelID(r.Head.Model)], r.Head.Op.Dialect())
	t.plan.work = t.estimate(t.plan.backend)
	return engine.Call{
		ID: r.ID, Principal: r.Principal, Model: sluice.ModelID(r.Head.Model), Dialect: string(r.Head.Op.Dialect()),
		Class: r.Class, Task: r.Task, Work: t.plan.work, Bytes: int64(len(r.Body)), MaxWait: r.MaxWait,
		Free: r.Free, Streaming: r.Head.Stream,
	}
}

// CountTokens is the gateway's own estimate of a request's input, for models
// whose backends cannot count.
func (x *Exchange) CountTokens(r *Request) sluice.Tokens {
	t := &turn{x: x, r: r}
	table := x.o.Table()
	return t.estimate(Representative(table, table.Models[sluice.ModelID(r.Head.Model)], "")).Input
}

// Representative is the backend that a model's requests most likely go to: the
// first of its first pool that speaks the dialect, or any where that is empty.
// It is nil if there is none, or no model.
func Representative(t *route.Table, m *route.Model, d wire.Dialect) (found *route.Backend) {
	if m == nil {
		return nil
	}
	m.Visit("", func(id sluice.PoolID, _ bool) bool {
		p := t.Pools[id]
		if p == nil {
			return false
		}
		for _, b := range p.Backends {
			if d == "" || b.Dialect == string(d) {
				found = b
				return true
			}
		}
		return false
	})
	return found
}

// estimate is the request's work on a backend; b may be nil.
func (t *turn) estimate(b *route.Backend) sluice.Work {
	h := t.r.Head
	raw, bound := h.Estimate, h.Bound
	if b != nil {
		raw, bound = h.For(b.Model)
	}
	w := sluice.Work{Input: raw, InputBound: max(bound, raw), OutputBound: t.outputBound(b)}
	if h.Unbounded {
		w.InputBound = max(w.InputBound, contextOf(b))
	}
	x, k := t.x, t.key(b)
	x.mu.Lock()
	defer x.mu.Unlock()
	if !h.Exact {
		w.Input = x.o.Learned.Input(k, raw)
	}
	w.Input = min(w.Input, w.InputBound)
	if w.OutputBound > 0 {
		w.Output, w.OutputHold = x.o.Learned.Output(k, w.OutputBound)
	}
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
	k := estimate.Key{Tenant: t.r.Principal.Tenant, Model: t.r.Head.Model, Task: t.r.Task}
	if b != nil {
		k.Model = b.Model
	}
	return k
}

// outputBound is the most that can be generated, over all choices.
func (t *turn) outputBound(b *route.Backend) sluice.Tokens {
	h := t.r.Head
	if !h.Op.Generates() {
		return 0
	}
	per := h.MaxOutput
	if !h.HasMaxOutput {
		per = t.unasked(b)
	}
	if b != nil && b.MaxOutput > 0 {
		per = min(per, b.MaxOutput)
	}
	return per*sluice.Tokens(max(h.Choices, 1)) + h.Prediction
}

// unasked is the bound of one choice where the client names none.
func (t *turn) unasked(b *route.Backend) sluice.Tokens {
	if p := t.r.Principal.Policy; p != nil && p.MaxOutput > 0 {
		return p.MaxOutput
	}
	if b != nil && b.MaxOutput > 0 {
		return b.MaxOutput
	}
	return unknownMaxOutput
}

// maxOutput is the bound of one choice to write into the body, 0 to leave it as
// the client wrote it: one that was clamped, or that a plan or a hard budget
// relies on though the client named none.
func (t *turn) maxOutput(g *engine.Grant) sluice.Tokens {
	h, p := t.r.Head, t.r.Principal.Policy
	if !h.Op.Generates() || t.r.Free {
		return 0
	}
	if !g.Clamped && (h.HasMaxOutput || p == nil || p.MaxOutput == 0 && !p.HardSpend) {
		return 0
	}
	bound := g.OutputBound
	if bound <= 0 {
		bound = t.plan.work.OutputBound
	}
	return max((bound-h.Prediction)/sluice.Tokens(max(h.Choices, 1)), 1)
}

// learn takes what the provider reported into the estimates.
func (t *turn) learn(a *attempt, u sluice.Usage) {
	if u.Source != sluice.UsageReported || u.Anomalous || t.r.Free {
		return
	}
	x, k := t.x, t.key(a.place.Backend)
	x.mu.Lock()
	defer x.mu.Unlock()
	if !t.r.Head.Exact && a.raw > 0 && u.InputTotal() > 0 {
		x.o.Learned.ObserveInput(k, a.raw, u.InputTotal())
	}
	if t.r.Head.Op.Generates() {
		x.o.Learned.ObserveOutput(k, u.OutputTotal())
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
