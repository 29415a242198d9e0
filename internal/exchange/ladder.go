package exchange

import (
	"errors"
	"time"

	"sluice"
	"sluice/internal/admit"
	"sluice/internal/engine"
	"sluice/internal/ladder"
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
		t.model, t.tier, t.felt, t.asIs = s.Model, s.Tier, s.Felt, true
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
	t.model, t.tier, t.felt = "", 0, nil
	return other
}

// lesser reports whether an attempt serves less than was asked for.
func (t *turn) lesser(a *attempt) bool { return t.model != "" || a.place.Degraded }

// appendFelt adds what the request felt of a pool's ladder, and why that stood there.
func appendFelt(b []byte, f *engine.Felt) []byte {
	if f == nil {
		return b
	}
	b = append(b, `,"ladder":{"pool":`...)
	b = appendWord(b, string(f.Pool))
	b = appendField(b, "tier", int64(f.Tier))
	b = appendTexts(b, "did", f.Did.Words())
	b = append(b, `,"why":`...)
	b = appendWord(b, f.Raised.Cause.String())
	switch s := &f.Raised.Signal; f.Raised.Cause {
	case ladder.CauseAge:
		b = appendField(b, "age_ms", s.Age.Milliseconds())
	case ladder.CauseKV:
		b = appendField(b, "kv_permille", s.KV)
	case ladder.CauseRefused:
		b = appendField(b, "refused_permille", s.Refused)
	case ladder.CausePin:
		b = appendText(appendText(b, "by", f.Raised.By), "reason", f.Raised.Reason)
	}
	b = append(b, `,"since":`...)
	return append(appendWord(b, f.Since.UTC().Format(time.RFC3339)), '}')
}
