package exchange

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice"
	"sluice/internal/admit"
	"sluice/internal/dialect"
	"sluice/internal/route"
	"sluice/internal/upstream"
	"sluice/internal/wire"
)

// others is the request as the other operations that backends of its model serve: none
// where all serve the client's, which costs nothing.
type others struct {
	model *route.Model // whose backends' dialects these are; nil if nobody has looked
	made  []*dialect.Translation
	into  []into // what it is to be put into, until made
}

// into is an operation that the request is to be put into, and the first backend that
// serves it.
type into struct {
	op wire.Operation
	b  *route.Backend
}

// look finds the operations. The request is not put into them before that is known to be
// worth its cost: a backend of its own dialect that has room needs none.
func (t *turn) look(ctx context.Context, table *route.Table, m *route.Model) {
	if t.others.model == m {
		return
	}
	t.others = others{model: m}
	permitted(table, m, t.r.Principal.Policy, t.risk(), func(b *route.Backend) bool {
		op, ok := t.servedBy(b)
		if ok && op != t.r.Head.Op && !slices.ContainsFunc(t.others.into, func(x into) bool { return x.op == op }) {
			t.others.into = append(t.others.into, into{op, b})
		}
		return false
	})
	if t.shadow != nil { // there is one attempt, in one pool
		t.translate(ctx)
	}
}

// servedBy is the operation by which a backend serves the request: the client's, or
// the one that it is put into; false if it is not translated.
func (t *turn) servedBy(b *route.Backend) (wire.Operation, bool) {
	op := t.r.Head.Op
	own := b.Dialect == string(op.Dialect())
	if own && op.Surface()&b.Lacks == 0 {
		return op, true
	}
	if other, ok := dialect.Operation(op, wire.Dialect(b.Dialect), b.Lacks); ok {
		return other, true
	}
	return op, own
}

// translate puts the request into the other operations, once for all attempts. It reports
// whether that had not been done.
func (t *turn) translate(ctx context.Context) bool {
	p := t.r.Principal.Policy
	for _, x := range t.others.into {
		media, err := t.mediaFor(ctx, x.op)
		if err != nil {
			t.others.made = append(t.others.made, t.unmade(ctx, x.op, err))
			continue
		}
		t.others.made = append(t.others.made, dialect.Translate(t.r.Head, t.r.Body, t.r.Header, x.op, dialect.Options{
			Warn: p != nil && p.WarnDropped, MaxOutput: int64(t.unasked(reach{named: x.b.MaxOutput})), Model: x.b.Model, Media: media,
			Thoughtless: x.b.Lacks&route.NeedReasoning != 0,
		}))
	}
	did := len(t.others.into) > 0
	t.others.into = nil
	return did
}

// made is the translations for routing after a failure, where they had not been made:
// nil if routing has them.
func (t *turn) made(ctx context.Context) []route.Translation {
	if t.r.Body == nil || !t.translate(ctx) {
		return nil
	}
	return t.routes()
}

// admit waits for a first place: at first as if there were no other dialects, as long
// as one of the client's has room.
func (t *turn) admit(ctx context.Context) (*admit.Grant, *sluice.Error, error) {
	for {
		call, refusal := t.call(ctx)
		if refusal != nil && t.itself() {
			continue
		}
		if refusal != nil {
			return nil, refusal, nil
		}
		grant, err := t.x.o.Gate.Admit(ctx, call)
		if t.smaller(err) {
			continue
		}
		again := err == admit.ErrTranslate
		if r, ok := errors.AsType[*admit.Refused](err); ok { // the room that there was is gone
			again = r.Err.Reason == sluice.NoBackend
		}
		if !again || !t.translate(ctx) {
			return grant, nil, err
		}
	}
}

// madeFor is the translation into an operation, nil if there is none yet.
func (t *turn) madeFor(op wire.Operation) *dialect.Translation {
	for _, x := range t.others.made {
		if x.Op == op {
			return x
		}
	}
	return nil
}

// routes is the translations as routing sees them.
func (t *turn) routes() []route.Translation {
	var out []route.Translation
	for _, x := range t.others.into {
		out = append(out, route.Translation{Dialect: x.b.Dialect, Needs: x.op.Surface(), Untried: true})
	}
	for _, x := range t.others.made {
		out = append(out, x.Route())
	}
	return out
}

// understands reports whether a backend can be sent the request, as it is or
// translated, as far as that is known.
func (t *turn) understands(b *route.Backend) bool {
	op, ok := t.servedBy(b)
	if !ok || op == t.r.Head.Op {
		return ok
	}
	if x := t.madeFor(op); x != nil {
		return x.Err == nil
	}
	return slices.ContainsFunc(t.others.into, func(x into) bool { return x.op == op })
}

// permitted calls f for the backends of a model that requests of such a label may go
// to, in the order of its pools, until it returns true. Model and policy may be nil.
func permitted(table *route.Table, m *route.Model, policy *sluice.Policy, risk sluice.Risk, f func(*route.Backend) (stop bool)) {
	if m == nil {
		return
	}
	m.Visit("", func(id sluice.PoolID, _ bool) bool {
		p := table.Pools[id]
		return p != nil && risk.Within(m.MaxRisk[id]) && slices.ContainsFunc(p.Backends, func(b *route.Backend) bool {
			return b.Permitted(policy, risk) == route.Chosen && f(b)
		})
	})
}

// speak sets what the backend of an attempt is sent: the client's request, or its
// translation.
func (t *turn) speak(a *attempt) {
	a.said, a.body = t.r.Head, t.r.Body
	op, ok := t.servedBy(a.place.Backend)
	if !ok || op == t.r.Head.Op {
		return
	}
	if x := t.madeFor(op); x != nil && x.Head != nil {
		a.to, a.said, a.body = x, x.Head, x.Body
	}
}

// header is the client's headers for the backend of an attempt: those that another
// dialect defines mean nothing there.
func (t *turn) header(a *attempt) http.Header {
	if a.to == nil {
		return t.r.Header
	}
	h := make(http.Header, len(t.r.Header))
	for name, v := range t.r.Header {
		if !strings.HasPrefix(name, "Anthropic-") && !strings.HasPrefix(name, "Openai-") {
			h[name] = v
		}
	}
	return h
}

// answered is the headers of an answer for the client: of those of another dialect
// the provider's id of the request, under the name that the client's has.
func (t *turn) answered(a *attempt, ans *upstream.Answer) http.Header {
	if a.to == nil {
		return ans.Header
	}
	if a.provider == "" {
		return nil
	}
	if t.r.Head.Op.Dialect() == wire.Anthropic {
		return http.Header{"Request-Id": {a.provider}}
	}
	return http.Header{"X-Request-Id": {a.provider}}
}

// translated begins the translation of an attempt's stream.
func (t *turn) translated(a *attempt) *dialect.Stream {
	if a.to == nil {
		return nil
	}
	return dialect.NewStream(a.said.Op, t.r.Head.Op, t.naming(a))
}

// naming is what a translated answer tells that is not in it.
func (t *turn) naming(a *attempt) dialect.StreamOptions {
	return dialect.StreamOptions{
		Usage: func() sluice.Usage { return t.took(a) }, Told: t.r.Head.IncludeUsage, Now: time.Now(),
		ID: string(t.r.ID), Model: string(t.asks()), Echo: a.to.Echo, Warn: t.r.Principal.Policy != nil && t.r.Principal.Policy.WarnDropped, Lost: a.loses,
	}
}

// maxLost bounds what is told of one answer that its translation left out.
const maxLost = 16

// loses notes what the client's dialect has no place for: for the header, where that has
// not gone, and for explain.
func (a *attempt) loses(what string) {
	what = "answer: " + what
	if len(a.lost) < maxLost && !slices.Contains(a.lost, what) {
		a.lost = append(a.lost, what)
		a.head.Dropped = strings.TrimPrefix(a.head.Dropped+", "+what, ", ")
	}
}

// step takes an event through the tap and, where the client speaks another dialect,
// into that.
func (a *attempt) step(ev wire.Event) wire.Step {
	s := a.tap.Event(ev)
	if a.stream == nil || s.Out == nil {
		return s
	}
	out, err := a.stream.Event(&ev, s.Terminal)
	if err != nil {
		return wire.Step{Err: sluice.AsError(err)}
	}
	s.Out = out
	return s
}

// sequence is the number that the client's next event has, where its events have one.
func (a *attempt) sequence() int64 {
	if a.stream != nil {
		return a.stream.Sequence() + a.added
	}
	return a.tap.Sequence() + a.added
}

// closing is the events by which the tap ends a stream, in the client's dialect.
func (a *attempt) closing(end []byte) []byte {
	if a.stream == nil {
		return end
	}
	var out []byte
	events := wire.NewEvents(strings.NewReader(string(end)), 0)
	for ev, err := events.Next(); err == nil; ev, err = events.Next() {
		more, err := a.stream.Event(&ev, false)
		if err != nil {
			break
		}
		out = append(out, more...)
	}
	more, err := a.stream.End()
	if err != nil {
		return out
	}
	return append(out, more...)
}

// wholeOf is a whole answer in the client's dialect.
func (t *turn) wholeOf(a *attempt, body []byte) ([]byte, error) {
	if a.to == nil {
		return body, nil
	}
	return dialect.Whole(a.said.Op, t.r.Head.Op, body, t.naming(a))
}

// passOn passes a backend's refusal of the client's own mistake on: as it is, or, to
// a client of another dialect, its status and message.
func (t *turn) passOn(a *attempt, ans *upstream.Answer, ref *wire.Refusal) {
	if a.to == nil {
		a.pass = &Passed{Status: ans.Status, Header: ans.Header, Body: ref.Body(a.said.Op.Dialect(), ans.Refusal)}
		return
	}
	switch ans.Status {
	case http.StatusForbidden:
		a.failure.Kind = sluice.KindForbidden
	case http.StatusNotFound:
		a.failure.Kind = sluice.KindNotFound
	case http.StatusRequestEntityTooLarge:
		a.failure.Kind = sluice.KindTooLarge
	}
	if ref.Message != "" {
		a.failure.Msg += ": " + ref.Message
	}
}

// named is the output bound that a translation names where the client does not; 0 if
// that is none.
func (t *turn) named(a *attempt, e wire.Edit) sluice.Tokens {
	if a.to == nil || t.r.Head.HasMaxOutput || !a.said.HasMaxOutput {
		return e.MaxOutput
	}
	if e.MaxOutput > 0 {
		return min(e.MaxOutput, a.said.MaxOutput)
	}
	return a.said.MaxOutput
}

// appendTranslation tells explain into which dialect the request was put, what that
// left out, and into which it could not be put.
func (t *turn) appendTranslation(b []byte, a *attempt) []byte {
	if a.to != nil {
		b = append(b, `,"translated":`...)
		b = appendWord(b, a.to.Into())
		if n := len(t.media); n > 0 {
			b = append(b, `,"fetched":`...)
			b = strconv.AppendInt(b, int64(n), 10)
		}
		if lost := strings.TrimPrefix(strings.Join(append([]string{a.to.Dropped()}, a.lost...), ", "), ", "); lost != "" {
			b = append(b, `,"dropped":`...)
			b = appendWord(b, lost)
		}
	}
	for _, x := range t.others.made {
		if x.Err != nil {
			b = append(b, `,"untranslated":`...)
			return appendWord(b, x.Into()+": "+x.Err.Param)
		}
	}
	return b
}

// counted are the operations whose requests are counted, by the operation that counts,
// and the member that tells the figure.
var counted = map[wire.Operation]struct {
	op     wire.Operation
	figure string
}{
	wire.CountTokens:  {wire.Messages, "input_tokens"},
	wire.CountContent: {wire.GenerateContent, "totalTokens"},
}
