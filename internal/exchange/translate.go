package exchange

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice"
	"sluice/internal/dialect"
	"sluice/internal/engine"
	"sluice/internal/route"
	"sluice/internal/upstream"
	"sluice/internal/wire"
)

// translate puts the request into each other dialect that a backend of its model
// speaks, once. A model of one dialect, asked in that, costs nothing here.
func (t *turn) translate(table *route.Table, m *route.Model) {
	own, p := string(t.r.Head.Op.Dialect()), t.r.Principal.Policy
	permitted(table, m, p, t.risk(), func(b *route.Backend) bool {
		to := wire.Dialect(b.Dialect)
		if b.Dialect == own || t.into(b.Dialect) != nil {
			return false
		}
		if _, ok := dialect.Operation(t.r.Head.Op, to); ok {
			t.others = append(t.others, dialect.Translate(t.r.Head, t.r.Body, t.r.Header, to, dialect.Options{
				Warn: p != nil && p.WarnDropped, MaxOutput: int64(t.unnamed(b)),
			}))
		}
		return false
	})
}

// unnamed is the output bound of a request that names none, for a backend whose
// dialect needs one.
func (t *turn) unnamed(b *route.Backend) sluice.Tokens {
	return t.unasked(reach{named: b.MaxOutput})
}

// into is the translation into a dialect, nil if there is none.
func (t *turn) into(d string) *dialect.Translation {
	for _, x := range t.others {
		if string(x.To) == d {
			return x
		}
	}
	return nil
}

// routes is the translations as routing sees them.
func (t *turn) routes() []route.Translation {
	if len(t.others) == 0 {
		return nil
	}
	out := make([]route.Translation, len(t.others))
	for i, x := range t.others {
		out[i] = x.Route()
	}
	return out
}

// understands reports whether a backend can be sent the request, as it is or
// translated.
func (t *turn) understands(b *route.Backend) bool {
	if b.Dialect == string(t.r.Head.Op.Dialect()) {
		return true
	}
	x := t.into(b.Dialect)
	return x != nil && x.Err == nil
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
	x := t.into(a.place.Backend.Dialect)
	if a.place.Backend.Dialect == string(t.r.Head.Op.Dialect()) || x == nil || x.Head == nil {
		return
	}
	a.to, a.said, a.body = x, x.Head, x.Body
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
	return dialect.NewStream(a.said.Op, t.r.Head.Op, dialect.StreamOptions{
		Usage: func() sluice.Usage { return t.took(a) }, Told: t.r.Head.IncludeUsage, Now: time.Now(),
	})
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
	return dialect.Whole(a.said.Op, t.r.Head.Op, body, t.took(a), time.Now())
}

// passOn passes a backend's refusal of the client's own mistake on: as it is, or, to
// a client of another dialect, its status and message.
func (t *turn) passOn(a *attempt, ans *upstream.Answer, ref *wire.Refusal) {
	if a.to == nil {
		a.pass = &Passed{Status: ans.Status, Header: ans.Header, Body: ans.Refusal}
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

// appendTranslation tells explain into which dialect the request was put, and what
// that left out.
func appendTranslation(b []byte, a *attempt) []byte {
	if a.to == nil {
		return b
	}
	b = append(b, `,"translated":`...)
	b = appendWord(b, string(a.to.To))
	if lost := a.to.Report.Paths(); lost != "" {
		b = append(b, `,"dropped":`...)
		b = appendWord(b, lost)
	}
	return b
}

// countsHere reports whether the tokens of a request are counted here: none of its
// model's backends that it may go to speaks its dialect, and one speaks another into
// which messages are translated.
func (t *turn) countsHere() bool {
	if t.r.Head.Op != wire.CountTokens {
		return false
	}
	table, other := t.x.o.Table(), false
	m := table.Models[sluice.ModelID(t.r.Head.Model)]
	permitted(table, m, t.r.Principal.Policy, t.risk(), func(b *route.Backend) bool {
		if b.Dialect == string(wire.Anthropic) {
			other = false
			return true
		}
		_, ok := dialect.Operation(wire.Messages, wire.Dialect(b.Dialect))
		other = other || ok
		return false
	})
	return other
}

// count answers a count of tokens with the estimate of the request's input.
func (t *turn) count() Result {
	table := t.x.o.Table()
	m := table.Models[sluice.ModelID(t.r.Head.Model)]
	t.plan.backend = Representative(table, m, t.r.Head.Op.Dialect(), t.r.Principal.Policy, t.risk())
	n := t.input(t.plan.backend)
	t.plan.work.Input = n
	e := t.entry(nil, sluice.Usage{Source: sluice.UsageNone}, 0, 0)
	e.Final, e.Outcome, e.Status, e.Queued = true, sluice.Completed, http.StatusOK, 0
	t.finished = true
	t.head = &Head{Status: http.StatusOK, Grant: engine.Grant{Policy: table.Version}}
	t.result = Result{Head: t.head, Final: e}
	t.record(&e)
	body := strconv.AppendInt([]byte(`{"input_tokens":`), int64(n), 10)
	if err := t.client.Answer(t.head, append(body, '}')); err != nil {
		t.result.Err = &sluice.Error{Kind: sluice.KindCancelled, Reason: sluice.ClientGone, Msg: "the client left", Err: err}
	}
	return t.result
}
