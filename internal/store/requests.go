package store

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"sluice"
	"sluice/internal/ledger"
)

// Explain returns the entries of a request by attempt, with their Detail. A
// request that is unknown, or another owner's, is KindNotFound: the two are not
// told apart.
func (db *DB) Explain(ctx context.Context, o ledger.Owner, id sluice.RequestID) ([]ledger.Entry, error) {
	var c conditions
	c.owner(o)
	c.add("request_id = $?", string(id))
	rows, err := db.read.QueryContext(ctx,
		"SELECT "+strings.Join(entryColumns, ", ")+" FROM entries"+c.where()+" ORDER BY attempt", c.args...)
	if err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	entries, err := collect(rows, scanEntry)
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, &sluice.Error{
			Kind: sluice.KindNotFound, Reason: sluice.NotFound, Msg: fmt.Sprintf("there is no request %q", id),
			Hint: "a request that runs, or ended less than a second ago, is not in the ledger yet",
		}
	}
	return entries, nil
}

// Recent lists requests that have ended, newest arrival first, by their final
// entries without Detail.
func (db *DB) Recent(ctx context.Context, q ledger.RecentQuery) (ledger.RecentPage, error) {
	limit := cmp.Or(q.Limit, 100)
	if limit < 1 || limit > ledger.MaxRecent {
		return ledger.RecentPage{}, sluice.Invalid("limit", "is %d: use 1 to %d", q.Limit, ledger.MaxRecent)
	}
	var c conditions
	c.owner(q.Owner)
	c.parts = append(c.parts, "final = 1")
	for _, m := range q.Where {
		d, ok := dims[m.By]
		if !ok {
			return ledger.RecentPage{}, sluice.Invalid("where", "cannot filter requests by %v", m.By)
		}
		c.add(d.column+" = $?", m.Value)
	}
	if !q.Before.IsZero() {
		c.add("at_us <= $?", q.Before.At.UnixMicro())
		at := len(c.args)
		c.add(fmt.Sprintf("(at_us < $%d OR request_id < $?)", at), string(q.Before.Request))
	}
	columns := strings.Join(entryColumns[:len(entryColumns)-1], ", ") + ", ''"
	rows, err := db.read.QueryContext(ctx, fmt.Sprintf(
		"SELECT %s FROM entries%s ORDER BY at_us DESC, request_id DESC LIMIT %d", columns, c.where(), limit+1,
	), c.args...)
	if err != nil {
		return ledger.RecentPage{}, fmt.Errorf("list requests: %w", err)
	}
	entries, err := collect(rows, scanEntry)
	if err != nil {
		return ledger.RecentPage{}, err
	}
	page := ledger.RecentPage{Entries: entries[:min(len(entries), limit)]}
	if len(entries) > limit {
		last := entries[limit-1]
		page.Next = ledger.Cursor{At: last.At, Request: last.Request}
	}
	return page, nil
}
