package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"sluice/internal/ledger"
)

// entryKey is what makes an entry one.
type entryKey struct {
	request string
	attempt int
}

func keyOf(e *ledger.Entry) entryKey { return entryKey{string(e.Request), e.Attempt} }

// Append adds the entries that are new and rolls them up, in one transaction. Of
// two with the same request and attempt the first stands. What no database could
// hold (NUL bytes, figures beyond 2⁵³) is mended rather than refused.
func (db *DB) Append(ctx context.Context, entries []ledger.Entry) error {
	seen := make(map[entryKey]*ledger.Entry, len(entries))
	rows := make([]*ledger.Entry, 0, len(entries))
	for _, e := range entries {
		e = bounded(e)
		if seen[keyOf(&e)] == nil {
			seen[keyOf(&e)] = &e
			rows = append(rows, &e)
		}
	}
	slices.SortFunc(rows, func(a, b *ledger.Entry) int {
		return cmp.Or(cmp.Compare(a.Request, b.Request), cmp.Compare(a.Attempt, b.Attempt))
	})
	err := db.tx(ctx, func(tx *sql.Tx) error {
		var added []*ledger.Entry
		for chunk := range slices.Chunk(rows, insertRows) {
			keys, err := insertEntries(ctx, tx, chunk)
			if err != nil {
				return err
			}
			for _, k := range keys {
				added = append(added, seen[k])
			}
		}
		if len(added) == 0 {
			return nil
		}
		for _, r := range rollups {
			if err := r.add(ctx, tx, r.roll(added)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("append %d entries: %w", len(rows), err)
	}
	return nil
}

// insertEntries inserts those that are new and tells which they are.
func insertEntries(ctx context.Context, tx *sql.Tx, rows []*ledger.Entry) ([]entryKey, error) {
	args := make([]any, 0, len(rows)*len(entryColumns))
	for _, e := range rows {
		args = entryValues(args, e)
	}
	found, err := tx.QueryContext(ctx, insertSQL("entries", entryColumns, len(rows))+
		" ON CONFLICT (request_id, attempt) DO NOTHING RETURNING request_id, attempt", args...)
	if err != nil {
		return nil, err
	}
	return collect(found, func(r scanner) (k entryKey, err error) {
		err = r.Scan(&k.request, &k.attempt)
		return k, err
	})
}

// collect scans all rows and closes them.
func collect[T any](rows *sql.Rows, scan func(scanner) (T, error)) ([]T, error) {
	defer rows.Close()
	var out []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// conditions are the parts of a WHERE clause and their arguments.
type conditions struct {
	parts []string
	args  []any
}

// add adds a condition whose argument is written as $?.
func (c *conditions) add(part string, arg any) {
	c.args = append(c.args, arg)
	c.parts = append(c.parts, strings.ReplaceAll(part, "$?", fmt.Sprintf("$%d", len(c.args))))
}

// owner restricts rows to those that the owner may see.
func (c *conditions) owner(o ledger.Owner) {
	t, all := o.Tenant()
	switch {
	case all:
	case t == "":
		c.parts = append(c.parts, "1 = 0")
	default:
		c.add("tenant = $?", string(t))
	}
}

// where is the clause, empty if there is no condition.
func (c *conditions) where() string {
	if len(c.parts) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(c.parts, " AND ")
}
