package store

import (
	"cmp"
	"context"
	"fmt"
	"math"
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
// entries, with Detail where it is asked for, and what each took over all its
// attempts.
func (db *DB) Recent(ctx context.Context, q ledger.RecentQuery) (ledger.RecentPage, error) {
	limit := cmp.Or(q.Limit, 100)
	if limit < 1 || limit > ledger.MaxRecent {
		return ledger.RecentPage{}, sluice.Invalid("limit", "is %d: use 1 to %d", q.Limit, ledger.MaxRecent)
	}
	var c conditions
	c.owner(q.Owner)
	c.parts = append(c.parts, "final = 1", shadowed(false))
	for _, m := range q.Where {
		d, ok := dims[m.By]
		if !ok {
			return ledger.RecentPage{}, sluice.Invalid("where", "names %v, by which requests are not filtered", m.By)
		}
		c.add(d.column+" = $?", m.Value)
	}
	since := int64(math.MinInt64) // without a bound an analysed SQLite would rather sort all entries than use an index
	if !q.Since.IsZero() {
		since = q.Since.UnixMicro()
	}
	c.add("at_us >= $?", since)
	if !q.Before.IsZero() {
		c.add("at_us <= $?", q.Before.At.UnixMicro())
		at := len(c.args)
		c.add(fmt.Sprintf("(at_us < $%d OR request_id < $?)", at), string(q.Before.Request))
	}
	columns := plainColumns
	if q.Detail {
		columns = strings.Join(entryColumns, ", ")
	}
	rows, err := db.read.QueryContext(ctx, recentSQL(columns, c.where(), limit+1), c.args...)
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
	page.Whole, err = db.whole(ctx, page.Entries)
	return page, err
}

func recentSQL(columns, where string, limit int) string {
	return fmt.Sprintf("SELECT %s FROM entries%s ORDER BY at_us DESC, request_id DESC LIMIT %d", columns, where, limit)
}

// plainColumns are an entry's columns with an empty detail.
var plainColumns = strings.Join(entryColumns[:len(entryColumns)-1], ", ") + ", ''"

// whole adds to each final entry the request's other attempts, which few have.
func (db *DB) whole(ctx context.Context, finals []ledger.Entry) ([]ledger.Sum, error) {
	sums := make([]ledger.Sum, len(finals))
	at := make(map[sluice.RequestID]int)
	var marks []string
	var ids []any
	for i := range finals {
		sums[i].Add(&finals[i])
		if finals[i].Attempt > 0 { // a hedge that lost has a number after it
			at[finals[i].Request] = i
			ids = append(ids, string(finals[i].Request))
			marks = append(marks, fmt.Sprintf("$%d", len(ids)))
		}
	}
	if len(ids) == 0 {
		return sums, nil
	}
	rows, err := db.read.QueryContext(ctx, fmt.Sprintf(
		"SELECT %s FROM entries WHERE final = 0 AND request_id IN (%s) ORDER BY request_id, attempt", plainColumns, strings.Join(marks, ", "),
	), ids...)
	if err != nil {
		return nil, fmt.Errorf("read earlier attempts: %w", err)
	}
	earlier, err := collect(rows, scanEntry)
	if err != nil {
		return nil, err
	}
	for i := range earlier {
		sums[at[earlier[i].Request]].Add(&earlier[i])
	}
	return sums, nil
}
