package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"sluice/internal/ledger"
)

// maxDifferences bounds what an audit lists for each roll-up.
const maxDifferences = 20

// Verify compares the roll-ups with the sums of the entries, as of one moment.
// It reads everything.
func (db *DB) Verify(ctx context.Context) (ledger.Audit, error) {
	var a ledger.Audit
	err := db.view(ctx, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM entry_rows").Scan(&a.Entries); err != nil {
			return err
		}
		for _, r := range rollups {
			var n int64
			if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+r.table).Scan(&n); err != nil {
				return err
			}
			a.Rows += n
			diffs, err := r.differences(ctx, tx)
			if err != nil {
				return err
			}
			a.Differences = append(a.Differences, diffs...)
		}
		return nil
	})
	if err != nil {
		return a, fmt.Errorf("verify ledger: %w", err)
	}
	return a, nil
}

// differences finds rows that the entries say and the roll-up does not, and the
// other way round.
func (r rollup) differences(ctx context.Context, tx *sql.Tx) ([]string, error) {
	key, sums := r.columns()
	exprs := []string{hourExpr + " AS hour_us"}
	for _, d := range r.dims {
		exprs = append(exprs, dims[d].expr)
	}
	for _, m := range measures {
		exprs = append(exprs, "CAST(SUM("+m.expr+") AS BIGINT)")
	}
	group := strings.Join(append([]string{hourExpr}, key[1:]...), ", ")
	summed := fmt.Sprintf("SELECT %s FROM entries WHERE %s GROUP BY %s", strings.Join(exprs, ", "), counted(r.shadow), group)
	kept := fmt.Sprintf("SELECT %s FROM %s", strings.Join(append(key, sums...), ", "), r.table)
	var out []string
	for _, side := range []struct{ what, query string }{
		{"entries say, " + r.table + " does not", summed + " EXCEPT " + kept},
		{r.table + " says, entries do not", kept + " EXCEPT " + summed},
	} {
		rows, err := tx.QueryContext(ctx, fmt.Sprintf("SELECT * FROM (%s) AS d LIMIT %d", side.query, maxDifferences))
		if err != nil {
			return nil, err
		}
		found, err := collect(rows, func(row scanner) (string, error) {
			vals := make([]string, len(key)+len(sums))
			dest := make([]any, len(vals))
			for i := range vals {
				dest[i] = &vals[i]
			}
			err := row.Scan(dest...)
			return side.what + ": " + strings.Join(vals, " "), err
		})
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}
