package exchange

import (
	"context"
	"time"

	"sluice"
	"sluice/internal/ledger"
	"sluice/internal/price"
)

// journal records the attempt before the dial. Hard spend is not dispatched
// without a record; others are while the journal cannot write.
func (t *turn) journal(ctx context.Context, a *attempt) *sluice.Error {
	if t.stored() {
		return nil
	}
	x, p := t.x, t.r.Principal.Policy
	d := t.dispatch(a)
	op, err := "begin", error(nil)
	if a.place.Attempt <= 1 {
		err = x.o.Journal.Begin(t.reserve(a), d)
	} else {
		op, err = "dispatch", x.o.Journal.Dispatch(d)
	}
	if err == nil && p != nil && p.JournalSync {
		op, err = "sync", x.o.Journal.Sync(ctx)
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return t.why(ctx, err)
	}
	t.journalFailed(op, err)
	if p != nil && p.HardSpend {
		return &sluice.Error{
			Kind: sluice.KindOverloaded, Reason: sluice.LedgerBusy, RetryAfter: time.Second,
			Msg: "spend cannot be recorded now", Hint: "try again shortly", Err: err,
		}
	}
	return nil
}

func (t *turn) journalFailed(op string, err error) {
	if t.x.o.Hooks.Journal != nil {
		t.x.o.Hooks.Journal(op, err)
	}
}

// reserve is the journal's record of the request.
func (t *turn) reserve(a *attempt) ledger.Reserve {
	r := t.r
	return ledger.Reserve{
		Request: r.ID, At: r.Arrived, Principal: r.Principal, Task: r.Task, Labels: r.Labels, Class: r.Class,
		Model: t.asks(), Stream: r.Head.Stream, Operation: r.Head.Op.String(), Dialect: string(r.Head.Op.Dialect()),
		Policy: a.place.Policy, ShadowOf: r.ShadowOf, EstimatedInput: t.plan.work.Input, OutputBound: t.plan.work.OutputBound, HeldSpend: a.place.HeldSpend,
	}
}

// dispatch is the journal's record of the attempt, charged if nothing more is
// ever known of it.
func (t *turn) dispatch(a *attempt) ledger.Dispatch {
	b := a.place.Backend
	u := sluice.Usage{Source: sluice.UsageNone}
	if !t.r.Free {
		u = sluice.Usage{Input: a.input, Output: t.plan.work.Output, Units: t.plan.work.Units, Source: sluice.UsageEstimated}
		if a.lostBound() {
			u.Units = t.plan.work.UnitsBound
			u.Input, u.Output = t.plan.work.InputBound, t.held(a)
		}
	}
	cost, high := t.price(a, u)
	return ledger.Dispatch{
		Request: t.r.ID, Attempt: a.place.Attempt, At: a.began, Pool: a.place.Pool, Backend: b.ID, Provider: b.Provider,
		UpstreamModel: b.Model, PriceVersion: a.priceVersion(), Estimate: u, Cost: cost, CostHigh: high,
	}
}

// served is a model that a provider serves in place of the one that it was asked for.
type served struct {
	model string
	price *price.Row // nil if it has none of its own
}

// billed is the price of what is served: of the model that the provider names, where
// that has one, else of the one that was asked for.
func (a *attempt) billed() *price.Row {
	if a.price == nil || a.target == nil || a.target.Served == nil {
		return a.price
	}
	model := a.tap.ServedModel()
	if model == "" || model == a.place.Backend.Model {
		return a.price
	}
	if a.served.model != model {
		a.served = served{model, a.target.Served(model)}
	}
	if a.served.price == nil {
		return a.price
	}
	return a.served.price
}

func (a *attempt) priceVersion() string {
	if p := a.billed(); p != nil {
		return p.Version
	}
	return ""
}
