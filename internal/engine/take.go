package engine

import (
	"time"

	"sluice"
	"sluice/internal/quota"
)

// Take charges a request that is answered without a place, such as one whose answer is
// kept: one request at every scope, and cost where there are budgets, all or nothing and
// at once. Tokens and gauges bound what scarce compute is asked for, and it asks for none.
// Nothing is open afterwards, and the id is free. On an error nothing is charged.
func (e *Engine) Take(now time.Time, c Call, cost sluice.Nano) Verdict {
	now = e.tick(now)
	m, err := e.model(&c)
	if err != nil {
		return Verdict{Err: err, Policy: e.table.Version}
	}
	c.Free = true
	r := e.newRequest(now, &c)
	who := c.caller()
	e.open(now, r, &c, m, e.callers.of(who, e.callers.index.Hash(who), e.ns))
	need := quota.Amounts{sluice.Requests: 1, sluice.Spend: int64(max(cost, 0))}
	r.res.Bound(need)
	v := Verdict{Policy: e.table.Version}
	if f := e.book.Reserve(now, &r.res, need, need); f != nil {
		v.Err = e.refused(now, r, f)
		v.Limits = e.book.Limits(now, &r.res, nil)
		e.book.Release(now, &r.res)
		e.reuse(r)
		return v
	}
	v.Would = e.would(now, r)
	v.Limits = e.book.Limits(now, &r.res, nil) // what it holds is what it takes
	e.book.Settle(now, &r.res, need)
	e.reuse(r)
	return v
}
