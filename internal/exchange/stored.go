package exchange

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"sluice"
	"sluice/internal/route"
	"sluice/internal/stateful"
	"sluice/internal/upstream"
	"sluice/internal/wire"
)

// What is asked of a stored answer goes to the place that keeps it, under the model that
// made it. It generates nothing: it counts as a request, costs nothing and has no entry in
// the ledger, where the answer itself has one.

// stored reports whether the request is about a stored answer.
func (t *turn) stored() bool { return t.r.Head.Op.Stored() }

// recall finds where the stored answer is that the request is about, and gives the request
// the model that made it. Of one that is not the tenant's nobody else is asked.
func (t *turn) recall(ctx context.Context) *sluice.Error {
	refs := t.r.Head.Refs
	f := stateful.Found{Unknown: &refs[0]}
	if t.x.o.State != nil {
		f = t.x.o.State.Find(ctx, t.r.Principal.Tenant, refs)
	}
	if f.Unknown != nil {
		t.toldState(f.Unknown.Kind, stateUnknown)
		return unknownState(f.Unknown, "response_id")
	}
	t.toldState(refs[0].Kind, statePinned)
	t.pin = f.Pin
	model, refusal := t.modelAt(f.Pin, f.Model)
	if refusal != nil {
		return refusal
	}
	changed, head := *t.r, *t.r.Head // the caller's stay as they are
	head.Model = string(model)
	changed.Head, t.r = &head, &changed
	return nil
}

// modelAt is the model that a stored answer is asked for under: the one that made it, or,
// where that is not known or is served there no more, the first that is.
func (t *turn) modelAt(pin *route.Pin, made sluice.ModelID) (sluice.ModelID, *sluice.Error) {
	table, p := t.x.o.Table(), t.r.Principal.Policy
	if m := table.Models[made]; m != nil && reaches(table, m, pin) {
		if p != nil && !p.Allows(made) {
			return "", &sluice.Error{Kind: sluice.KindForbidden, Reason: sluice.ModelNotAllowed, Param: "response_id", Msg: "names a response of a model that is not allowed for this key", Hint: "GET /v1/models lists what is"}
		}
		return made, nil
	}
	for _, id := range slices.Sorted(maps.Keys(table.Models)) {
		if (p == nil || p.Allows(id)) && reaches(table, table.Models[id], pin) {
			return id, nil
		}
	}
	return "", &sluice.Error{
		Kind: sluice.KindNotFound, Reason: sluice.NotFound, Param: "response_id",
		Msg:  fmt.Sprintf("names a response that is kept where nothing is served any more: %q", t.r.Head.Refs[0].ID),
		Hint: "ask for it when a model is served there again",
	}
}

// reaches reports whether requests for a model may come to where something is kept.
func reaches(table *route.Table, m *route.Model, pin *route.Pin) (found bool) {
	m.Visit("", func(id sluice.PoolID, _ bool) bool {
		p := table.Pools[id]
		found = p != nil && slices.ContainsFunc(p.Backends, pin.Holds)
		return found
	})
	return found
}

// prepareStored makes what the backend is sent.
func (t *turn) prepareStored(a *attempt) outgoing {
	a.sent, a.times.sent = true, time.Now()
	h := t.r.Head
	if h.Stream && t.hooks.Events(a.about()) != nil { // which have to see all of a text
		h = h.FromStart()
	}
	return outgoing{Request: t.storedRequest(a, a.target, h)}
}

// storedRequest asks the backend of an attempt about a stored answer.
func (t *turn) storedRequest(a *attempt, target *upstream.Target, h *wire.Head) upstream.Request {
	at := target.At(upstream.Call{Op: wire.Responses, Model: a.place.Backend.Model})
	return upstream.Request{Method: h.Op.Method(), Path: h.StoredPath(at.Path), Header: t.header(a), Stream: h.Stream, Key: a.place.Key}
}

// toldStored takes what an answer about a stored one tells: that it is deleted, or has come
// to its end.
func (t *turn) toldStored(a *attempt, body []byte) {
	of := responseOf{t.r.Principal.Tenant, t.r.Head.Refs[0].ID}
	switch op := t.r.Head.Op; {
	case op == wire.ResponseDelete:
		t.x.o.State.Forget(of.tenant, t.r.Head.Refs)
		t.x.background.hurry(of)
		return
	case op != wire.ResponseItems && !a.tap.Pending():
		t.x.background.saw(of, body)
	}
	t.keeps(a)
}
