package exchange

import (
	"net/http"
	"strconv"

	"sluice"
	"sluice/internal/dialect"
	"sluice/internal/engine"
	"sluice/internal/route"
	"sluice/internal/wire"
)

// countsHere reports whether the tokens of a request are counted here: none of its
// model's backends that it may go to counts them, and one serves what it counts, or what
// that is translated into.
func (t *turn) countsHere() bool {
	of, ok := counted[t.r.Head.Op]
	if !ok {
		return false
	}
	table, other := t.x.o.Table(), false
	m := table.Models[sluice.ModelID(t.r.Head.Model)]
	permitted(table, m, t.r.Principal.Policy, t.risk(), func(b *route.Backend) bool {
		own := b.Dialect == string(of.op.Dialect())
		if own && !b.Lacks.Has(route.NeedCount) {
			other = false
			return true
		}
		_, ok := dialect.Operation(of.op, wire.Dialect(b.Dialect), b.Lacks)
		other = other || own || ok
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
	body := strconv.AppendInt([]byte(`{"`+counted[t.r.Head.Op].figure+`":`), int64(n), 10)
	if err := t.client.Answer(t.head, append(body, '}')); err != nil {
		t.result.Err = &sluice.Error{Kind: sluice.KindCancelled, Reason: sluice.ClientGone, Msg: "the client left", Err: err}
	}
	return t.result
}
