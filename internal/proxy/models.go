package proxy

import (
	"net/http"
	"slices"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/route"
	"sluice/internal/wire"
)

// listModels answers with the models that the key may ask for in the dialect
// that it speaks.
func (c *call) listModels() {
	risk, ok := c.asks()
	if !ok {
		return
	}
	t := c.p.o.Table()
	var out []wire.ModelInfo
	for _, m := range t.Models {
		if info, ok := c.model(t, m, risk); ok {
			out = append(out, info)
		}
	}
	slices.SortFunc(out, func(a, b wire.ModelInfo) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	c.answer(wire.ModelsBody(c.dialect, out))
}

// oneModel answers with one of them.
func (c *call) oneModel() {
	risk, ok := c.asks()
	if !ok {
		return
	}
	t := c.p.o.Table()
	if m := t.Models[sluice.ModelID(c.r.PathValue("id"))]; m != nil {
		if info, ok := c.model(t, m, risk); ok {
			c.answer(wire.ModelBody(c.dialect, info))
			return
		}
	}
	c.reject(&sluice.Error{Kind: sluice.KindNotFound, Reason: sluice.ModelNotFound, Param: "model", Msg: "names a model that this key does not have", Hint: "GET /v1/models lists what there is"})
}

// model is what the client may know of a model; false if it may not ask for it with
// requests of that label.
func (c *call) model(t *route.Table, m *route.Model, risk sluice.Risk) (wire.ModelInfo, bool) {
	if p := c.principal.Policy; p != nil && !p.Allows(m.ID) {
		return wire.ModelInfo{}, false
	}
	b := exchange.Representative(t, m, c.dialect, c.principal.Policy, risk)
	if b == nil {
		return wire.ModelInfo{}, false
	}
	return wire.ModelInfo{ID: m.ID, Context: b.Context, MaxOutput: b.MaxOutput}, true
}

// known identifies the caller. What it asks for is free of limits: client
// libraries poll it.
func (c *call) known() bool {
	err := c.identify()
	if err != nil {
		c.reject(err)
	}
	return err == nil
}

// asks is the label that requests with the header of this one carry.
func (c *call) asks() (risk sluice.Risk, ok bool) {
	if !c.known() {
		return 0, false
	}
	risk, err := c.risk()
	if err != nil {
		c.reject(err)
	}
	return c.principal.Policy.Raise(risk), err == nil
}

// answer ends a request that no backend was asked for.
func (c *call) answer(body []byte) {
	c.record.Final.Outcome, c.record.Final.Status = sluice.Completed, http.StatusOK
	c.sink.own(http.StatusOK, body)
}
