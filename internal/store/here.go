package store

import (
	"context"
	"database/sql/driver"
	"strings"
)

// rowsHere is how many rows of entries one statement takes in this process. It saves
// looking for the place of each row in each index from the top, and must be parsed.
const rowsHere = 16

// here is what inserting into an engine in this process keeps from one batch to the
// next. Who has the connection that writes has it.
type here struct {
	filled map[string][]bool // by table, the columns in which a row has had something
	args   []any
	named  []driver.NamedValue
}

// insertHere inserts n rows, so many with one statement, and returns how many changed
// the table. It is for an engine in this process: there a statement costs no round
// trip, but a numbered parameter a look-up by name, a result its own bookkeeping, a
// context that can end a goroutine, and database/sql a copy of the arguments. So it is
// the driver that is asked, and ctx between statements.
func (in *inserter) insertHere(ctx context.Context, n, most int, arg func(args []any, i int) []any) (changed int64, err error) {
	endless := context.WithoutCancel(ctx)
	err = in.conn.Raw(func(conn any) error {
		var stmt driver.Stmt
		defer func() {
			if stmt != nil {
				_ = stmt.Close() // it has run, or failed and told so
			}
		}()
		filled := in.here.columns(in.table, len(in.columns))
		for i, size := 0, 0; i < n; i += size {
			if err := ctx.Err(); err != nil {
				return err
			}
			fits := min(most, n)
			if fits > n-i {
				fits = 1 // what is left over is run sooner than a statement for it is parsed
			}
			args := in.here.args[:0]
			for k := range fits {
				args = arg(args, i+k)
			}
			in.here.args = args
			if fill(filled, args) || fits != size {
				if stmt != nil {
					_ = stmt.Close()
				}
				size = fits
				if stmt, err = conn.(driver.ConnPrepareContext).PrepareContext(endless, in.sqlHere(filled, args)+in.tail); err != nil {
					return err
				}
			}
			res, err := stmt.(driver.StmtExecContext).ExecContext(endless, in.here.bind(filled, args))
			if err != nil {
				return err
			}
			rows, err := res.RowsAffected()
			if err != nil {
				return err
			}
			changed += rows
		}
		return nil
	})
	return changed, err
}

// columns are those of a table in which a row has had something.
func (h *here) columns(table string, n int) []bool {
	if h.filled == nil {
		h.filled = map[string][]bool{}
	}
	if h.filled[table] == nil {
		h.filled[table] = make([]bool, n)
	}
	return h.filled[table]
}

// fill notes the columns that have something in one of the rows, and reports whether
// any had nothing before.
func fill(filled []bool, args []any) (more bool) {
	for i, v := range args {
		if c := i % len(filled); !filled[c] && v != any("") && v != any(int64(0)) {
			filled[c], more = true, true
		}
	}
	return more
}

// bind is the rows as parameters: what is in columns that are filled. It is valid until
// the next call.
func (h *here) bind(filled []bool, args []any) []driver.NamedValue {
	h.named = h.named[:0]
	for i, v := range args {
		if filled[i%len(filled)] {
			h.named = append(h.named, driver.NamedValue{Ordinal: len(h.named) + 1, Value: v})
		}
	}
	return h.named
}

// sqlHere is insertSQL with parameters that have no numbers, and none for columns in
// which no row has had anything yet, two in five of entries: to bind a value takes as
// long as to insert it. OR FAIL: what fails has the whole transaction rolled back, so
// that SQLite need not keep what a statement changed in order to take back that one
// alone.
func (in *inserter) sqlHere(filled []bool, args []any) string {
	row := make([]string, len(in.columns))
	for c := range row {
		switch _, text := args[c].(string); {
		case filled[c]:
			row[c] = "?"
		case text:
			row[c] = "''"
		default:
			row[c] = "0"
		}
	}
	values := "(" + strings.Join(row, ", ") + ")"
	return "INSERT OR FAIL INTO " + in.table + " (" + strings.Join(in.columns, ", ") + ") VALUES " + strings.Repeat(values+", ", len(args)/len(row)-1) + values
}
