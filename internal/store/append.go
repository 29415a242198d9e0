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
	if len(entries) == 0 {
		return nil
	}
	rows := boundedAll(entries)
	if db.engine.insertRows > 1 {
		rows = ordered(rows)
	}
	err := db.txOn(ctx, func(conn *sql.Conn, tx *sql.Tx) error {
		in := inserter{conn: conn, tx: tx, rows: db.engine.insertRows, here: &db.here}
		if err := markVoided(ctx, tx, rows); err != nil {
			return err
		}
		of := kindsOf(rows)
		if err := of.find(ctx, db, tx); err != nil {
			return err
		}
		added, err := in.entries(ctx, of)
		if err != nil || len(added) == 0 {
			return err
		}
		groups := groupsOf(added)
		for _, r := range rollups {
			sums := r.roll(groups)
			if len(sums) == 0 {
				continue
			}
			if err := r.add(ctx, &in, sums); err != nil {
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

// ordered are the entries without those whose key another has before them, since one
// statement cannot have a row twice, in the order of their keys, so that two replicas
// touch rows in one order.
func ordered(rows []*ledger.Entry) []*ledger.Entry {
	seen := make(map[entryKey]bool, len(rows))
	rows = slices.DeleteFunc(rows, func(e *ledger.Entry) bool {
		k := keyOf(e)
		again := seen[k]
		seen[k] = true
		return again
	})
	slices.SortFunc(rows, func(a, b *ledger.Entry) int {
		return cmp.Or(cmp.Compare(a.Request, b.Request), cmp.Compare(a.Attempt, b.Attempt))
	})
	return rows
}

// entries inserts those that are new and returns them.
func (in *inserter) entries(ctx context.Context, of *kinds) (added []member, err error) {
	in.table, in.columns = "entry_rows", rowColumns
	in.tail = " ON CONFLICT (request_id, attempt) DO NOTHING"
	row := func(v *values, i int) { v.row(of.rows[i].Entry, of.ids[of.rows[i].kind]) }
	if in.rows == 1 {
		return in.entriesHere(ctx, of.rows, row)
	}
	byKey := make(map[entryKey]member, len(of.rows))
	for _, m := range of.rows {
		byKey[keyOf(m.Entry)] = m
	}
	added = make([]member, 0, len(of.rows))
	in.tail += " RETURNING request_id, attempt"
	err = in.insert(ctx, len(of.rows), row, func(r scanner) error {
		var k entryKey
		err := r.Scan(&k.request, &k.attempt)
		added = append(added, byKey[k])
		return err
	})
	return added, err
}

// entriesHere inserts entries into SQLite, whose rowids tell which are new: they come
// after all others.
func (in *inserter) entriesHere(ctx context.Context, rows []member, row func(v *values, i int)) (added []member, err error) {
	var last int64
	if err := in.tx.QueryRowContext(ctx, "SELECT COALESCE(MAX(rowid), 0) FROM entry_rows").Scan(&last); err != nil {
		return nil, err
	}
	changed, err := in.insertHere(ctx, len(rows), rowsHere, row)
	if err != nil || changed == int64(len(rows)) { // as nearly always
		return rows, err
	}
	found, err := in.tx.QueryContext(ctx, "SELECT request_id, attempt FROM entry_rows WHERE rowid > $1", last)
	if err != nil {
		return nil, err
	}
	keys, err := collect(found, func(r scanner) (k entryKey, err error) {
		err = r.Scan(&k.request, &k.attempt)
		return k, err
	})
	fresh := make(map[entryKey]bool, len(keys))
	for _, k := range keys {
		fresh[k] = true
	}
	for _, m := range rows { // of two with one key the first
		if k := keyOf(m.Entry); fresh[k] {
			added = append(added, m)
			delete(fresh, k)
		}
	}
	return added, err
}

// inserter inserts many rows into a table, so many with one statement.
type inserter struct {
	conn    *sql.Conn // that tx is on
	tx      *sql.Tx
	rows    int
	table   string
	columns []string
	tail    string
	here    *here
}

// insert inserts n rows, whose values row gives, and scans what the statement returns.
func (in *inserter) insert(ctx context.Context, n int, row func(v *values, i int), scan func(scanner) error) error {
	stmt, err := in.tx.PrepareContext(ctx, insertSQL(in.table, in.columns, min(n, in.rows))+in.tail)
	if err != nil {
		return err
	}
	defer stmt.Close()
	var v values
	args := make([]any, 0, in.rows*len(in.columns))
	for i := 0; i < n; i += in.rows {
		end := min(i+in.rows, n)
		v.rows(nil, i, end-i, row)
		args = v.any(args[:0])
		query := func() (*sql.Rows, error) { return stmt.QueryContext(ctx, args...) }
		if end-i < min(n, in.rows) {
			query = func() (*sql.Rows, error) {
				return in.tx.QueryContext(ctx, insertSQL(in.table, in.columns, end-i)+in.tail, args...)
			}
		}
		found, err := query()
		if err != nil {
			return err
		}
		if _, err := collect(found, func(r scanner) (struct{}, error) { return struct{}{}, scan(r) }); err != nil {
			return err
		}
	}
	return nil
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
