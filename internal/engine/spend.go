package engine

import (
	"time"

	"sluice"
	"sluice/internal/price"
	"sluice/internal/quota"
)

// taking is quota.Book.Reserve at arrival and TopUp before a further attempt.
type taking func(now time.Time, r *quota.Reservation, need, least quota.Amounts) *quota.Refusal

// reserve takes what the request needs to be served at any of the rows.
//
// Hard spend holds the dearest bound. Where that does not fit, the output bound is
// lowered to what fits, never below what is worth it; of an output that is held in
// steps the first has to fit. Soft spend holds the dearest expectation. A run that
// bounds tokens holds the output whole, and lowers the bound likewise.
func (e *Engine) reserve(now time.Time, r *request, rows []*price.Row, take taking) *sluice.Error {
	bound := r.bound
	if r.hard && !r.call.Free && !e.firstStep(now, r, rows, bound) {
		var err *sluice.Error
		if bound, err = e.clamp(now, r, rows); err != nil {
			return err
		}
	}
	if r.call.Run != "" && !r.call.Free {
		bound = e.withinRun(now, r, bound)
	}
	spend, floor := r.dearest(rows, bound), min(bound, r.least())
	need, least := r.needs(bound, spend), r.needs(floor, r.dearest(rows, floor))
	r.res.Bound(r.most(rows, bound))
	if f := take(now, &r.res, need, least); f != nil {
		return e.refused(now, r, f)
	}
	r.spend, r.bound, r.row = spend, bound, nil
	if len(rows) == 1 && r.spendBound(bound) == bound {
		r.row = rows[0]
	}
	return nil
}

// withinRun is as much of an output bound as the request's run has tokens left for,
// and no less than is worth it: what has no room for that is refused as it is held.
func (e *Engine) withinRun(now time.Time, r *request, bound sluice.Tokens) sluice.Tokens {
	room, limited := e.book.OutputRoom(now, &r.res, int64(r.call.Work.Input))
	if !limited {
		return bound
	}
	return max(min(bound, sluice.Tokens(room)), min(bound, r.least()))
}

// hold is what the reservation is for.
func (r *request) hold() quota.Amounts { return r.needs(r.bound, r.spend) }

// needs is what the request takes in every dimension with an output bound, at a price.
func (r *request) needs(bound sluice.Tokens, spend sluice.Nano) (n quota.Amounts) {
	n[sluice.Requests] = r.requests()
	if r.call.Free {
		return n
	}
	in, out := int64(r.call.Work.Input), int64(min(r.call.Work.OutputHold, bound))
	n[sluice.InputTokens], n[sluice.OutputTokens], n[sluice.AllTokens] = in, out, in+out
	n[sluice.Concurrency], n[sluice.KVTokens] = 1, in+out
	n[sluice.Spend] = int64(spend)
	return n
}

// most is what one attempt can use at most: beyond the hold it is what may become
// debt.
func (r *request) most(rows []*price.Row, bound sluice.Tokens) (n quota.Amounts) {
	n[sluice.Requests] = r.requests()
	if r.call.Free {
		return n
	}
	in, out := int64(max(r.call.Work.InputBound, r.call.Work.Input)), int64(bound)
	n[sluice.InputTokens], n[sluice.OutputTokens], n[sluice.AllTokens] = in, out, in+out
	for _, row := range rows {
		if row != nil {
			n[sluice.Spend] = max(n[sluice.Spend], int64(row.HardHold(r.work(r.spendBound(bound)))))
		}
	}
	return n
}

func (r *request) dearest(rows []*price.Row, bound sluice.Tokens) (most sluice.Nano) {
	bound = r.spendBound(bound)
	for _, row := range rows {
		most = max(most, r.price(row, bound))
	}
	return most
}

// clamp is the largest output bound, at most the request's, whose hold fits every
// spend budget at every row.
func (e *Engine) clamp(now time.Time, r *request, rows []*price.Row) (sluice.Tokens, *sluice.Error) {
	room, limited := e.book.Room(now, &r.res)
	if !limited || r.dearest(rows, r.bound) <= room {
		return r.bound, nil
	}
	least := min(r.bound, r.least())
	if need := r.dearest(rows, least); need > room {
		return 0, e.refused(now, r, e.book.SpendRefusal(now, &r.res, int64(need)))
	}
	bound := r.bound
	for _, row := range rows {
		bound = min(bound, row.OutputWithin(r.work(r.bound), room))
	}
	return bound, nil
}
