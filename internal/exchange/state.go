package exchange

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"sluice"
	"sluice/internal/route"
	"sluice/internal/stateful"
	"sluice/internal/wire"
)

// How a reference to what a backend keeps came out.
const (
	statePinned  = "pinned"  // the request goes where that is
	stateUnknown = "unknown" // it is not the tenant's, and the request is refused
	stateForeign = "foreign" // nobody here has it, and the tenant may refer to what nobody has
	stateSplit   = "split"   // it is at another place than something else that the request refers to
)

// stateParams names the member by which most requests refer to each kind.
var stateParams = [route.NumStateKinds]string{"container", "file_id", "previous_response_id", "conversation", "messages.audio.id", "cachedContent", "tools", "container.skills", "prompt", "tools", "input"}

// paramOf names the member by which a request of an operation refers to a kind.
func paramOf(op wire.Operation, k route.StateKind) string {
	if k == route.StateFile && op.Dialect() == wire.Gemini {
		return "fileUri"
	}
	return stateParams[k]
}

// locate finds where what the request refers to is kept: it goes there and nowhere else.
// What is another tenant's is told in the words of what does not exist.
func (t *turn) locate(ctx context.Context) *sluice.Error {
	refs := t.r.Head.Refs
	if len(refs) == 0 || t.pin != nil {
		return nil
	}
	f := stateful.Found{Unknown: &refs[0]}
	if t.x.o.State != nil {
		f = t.x.o.State.Find(ctx, t.r.Principal.Tenant, refs)
	}
	p := t.r.Principal.Policy
	switch foreign := p != nil && p.ForeignState && !f.Owned; {
	case f.Unknown != nil && !foreign:
		t.toldState(f.Unknown.Kind, stateUnknown)
		return unknownState(f.Unknown, paramOf(t.r.Head.Op, f.Unknown.Kind))
	case f.Split != nil:
		t.toldState(f.Split.Kind, stateSplit)
		e := sluice.Invalid(paramOf(t.r.Head.Op, f.Split.Kind), "names %s that is kept at another place than what else the request refers to: %q", f.Split.Kind.Noun(), f.Split.ID)
		e.Hint = "one backend has to have all of it: refer to what came from one place"
		return e
	case f.Unknown != nil:
		t.toldState(f.Unknown.Kind, stateForeign)
	default:
		t.toldState(refs[0].Kind, statePinned)
	}
	t.pin = f.Pin
	return nil
}

func unknownState(s *route.State, param string) *sluice.Error {
	return &sluice.Error{
		Kind: sluice.KindNotFound, Reason: sluice.NotFound, Param: param,
		Msg:  fmt.Sprintf("names %s that does not exist: %q", s.Kind.Noun(), s.ID),
		Hint: "refer to what an answer to a request of yours has named, as long as it is kept",
	}
}

func (t *turn) toldState(k route.StateKind, result string) {
	if h := t.x.o.Hooks.State; h != nil {
		h(k, result)
	}
}

// keeps remembers what the answer says that its backend keeps, before the client has the
// ids; and, as it begins, that what the request refers to is still there. Copies own
// nothing.
func (t *turn) keeps(a *attempt) {
	ids, refs := a.tap.State(), t.r.Head.Refs
	if len(ids) == a.kept && (a.renewed || len(refs) == 0) || t.shadow != nil || t.x.o.State == nil {
		return
	}
	pin, tenant := route.PinOf(a.place.Backend, a.place.Key), t.r.Principal.Tenant
	if !a.renewed {
		t.x.o.State.Keep(tenant, pin, refs)
		a.renewed = true
	}
	t.x.o.State.KeepOf(sluice.ModelID(t.r.Head.Model), tenant, pin, ids[a.kept:])
	a.kept = len(ids)
}

// appendState tells explain what kinds of state the request refers to, and where that is.
func (t *turn) appendState(b []byte) []byte {
	if len(t.r.Head.Refs) == 0 {
		return b
	}
	var kinds []string
	for _, s := range t.r.Head.Refs {
		if k := s.Kind.String(); !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	b = appendTexts(b, "refers_to", kinds)
	if t.pin != nil {
		if at, err := json.Marshal(t.pin); err == nil {
			b = append(append(b, `,"kept_at":`...), at...)
		}
	}
	return b
}
