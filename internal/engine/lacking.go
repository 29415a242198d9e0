package engine

import (
	"fmt"
	"strings"

	"sluice"
	"sluice/internal/route"
)

// maxLacking bounds the backends that a refusal lists.
const maxLacking = 8

// lacking lists the backends of a model and why each cannot serve a request, for
// the one who asked.
type lacking struct {
	text   strings.Builder
	n      int
	untold *sluice.Error // why the request may not be translated, of the first backend where that is so
}

// add takes one backend. Those of dialects into which nothing is translated were no
// choice to begin with.
func (l *lacking) add(r *request, b *route.Backend, left route.Left) {
	var why string
	ask := r.spoken()
	switch left {
	case route.LeftLacks:
		why = "lacks " + (ask.NeedsOf(b) & b.Lacks).String()
	case route.LeftTranslate:
		err := ask.Untranslated(b)
		why = fmt.Sprintf("speaks the %s dialect, and %s %s", b.Dialect, err.Param, err.Msg)
		if l.untold == nil {
			l.untold = err
		}
	case route.LeftContext:
		why = fmt.Sprintf("takes at most %d input tokens", b.LongestInput())
	case route.LeftRegion:
		why = "is in no region that this key may use"
	case route.LeftProvider:
		why = "is of no provider that this key may use"
	case route.LeftRisk:
		why = "takes no request of risk " + r.call.Risk.String()
	case route.LeftTooDear:
		why = fmt.Sprintf("may cost %v", r.price(b.Row(), r.call.Work.OutputBound))
	case route.LeftUnpriced:
		why = "has no price"
	case route.LeftDrained:
		why = "takes no new requests"
	default:
		return
	}
	if l.n++; l.n > maxLacking {
		return
	}
	if l.n > 1 {
		l.text.WriteString("; ")
	}
	l.text.WriteString(string(b.ID) + " " + why)
}

func (l *lacking) String() string {
	if more := l.n - maxLacking; more > 0 {
		return fmt.Sprintf("%s; and %d more", l.text.String(), more)
	}
	return l.text.String()
}

// capability refuses a request that asks for what no backend can do.
func (l *lacking) capability(m sluice.ModelID) *sluice.Error {
	return &sluice.Error{
		Kind: sluice.KindInvalid, Reason: sluice.CapabilityMissing,
		Msg:  fmt.Sprintf("no backend of model %s can do all that is asked: %s", m, l),
		Hint: "leave out what they lack, or use a model that has it",
	}
}

// tooDear refuses a request that may cost more than its model allows wherever it
// goes.
func (l *lacking) tooDear(m *route.Model) *sluice.Error {
	return &sluice.Error{
		Kind: sluice.KindInvalid, Reason: sluice.NeverFits,
		Msg:  fmt.Sprintf("a request to model %s may cost at most %v, and this one may cost more: %s", m.ID, m.MaxSpend, l),
		Hint: "lower the bound of its output, or send less input",
	}
}

// permission refuses a request that may go to no backend.
func (l *lacking) permission(m sluice.ModelID) *sluice.Error {
	return &sluice.Error{
		Kind: sluice.KindForbidden, Reason: sluice.ModelNotAllowed, Param: "model",
		Msg:  fmt.Sprintf("names %s, which has no backend that this key's requests may go to: %s", m, l),
		Hint: "use a model that is served there, or ask the operator",
	}
}
