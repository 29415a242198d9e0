package exchange

import (
	"errors"

	"sluice"
	"sluice/internal/admit"
)

// asks is the model whose backends serve the request: the client's, unless a pool's
// ladder has a smaller one serve it, with its caller's consent.
func (t *turn) asks() sluice.ModelID {
	if t.model != "" {
		return t.model
	}
	return sluice.ModelID(t.r.Head.Model)
}

// smaller takes what the gate says of a smaller model. It reports whether the request is
// to be brought to the gate once more: for that model, or, where that one does not take
// it, for its own, whatever the wait. So nobody is worse off for having consented.
func (t *turn) smaller(err error) bool {
	if s, ok := errors.AsType[*admit.Smaller](err); ok {
		t.model, t.tier, t.asIs = s.Model, s.Tier, true
		return true
	}
	r, refused := errors.AsType[*admit.Refused](err)
	if !refused || r.Err.Kind == sluice.KindCancelled || r.Err.Reason == sluice.QueueTimeout || r.Err.Reason == sluice.ShuttingDown {
		return false
	}
	return t.itself()
}

// itself has the client's own model serve the request after all. It reports whether
// another one was to.
func (t *turn) itself() bool {
	other := t.model != ""
	t.model, t.tier = "", 0
	return other
}

// lesser reports whether an attempt serves less than was asked for.
func (t *turn) lesser(a *attempt) bool { return t.model != "" || a.place.Degraded }
