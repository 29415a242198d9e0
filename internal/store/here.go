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
	columns map[string][]column // by table
	values  values
}

// column is what is known of a column.
type column struct {
	filled bool // a row has had something in it
	text   bool // and not a figure
}

// values are those of rows, as parameters of a statement: of all columns, or of those that
// are filled. What a place had from the rows before is kept if it is the same: of two rows
// most values are, and an allocation for each would be the most of a batch.
type values struct {
	columns []column // of a row; nil has a parameter for each value
	at      int      // the column of the next value
	n       int      // of params that are in use
	params  []driver.NamedValue
	more    bool // a column that was not filled is now, and has no parameter in rows before
}

// begin is before the first row.
func (v *values) begin(columns []column) { v.columns, v.at, v.n, v.more = columns, 0, 0, false }

// skips reports whether the next value has no parameter.
func (v *values) skips(empty, text bool) bool {
	if v.columns == nil {
		return false
	}
	c := &v.columns[v.at]
	if v.at++; v.at == len(v.columns) {
		v.at = 0
	}
	if !c.filled && empty {
		c.text = text
		return true
	}
	if !c.filled {
		c.filled, v.more = true, true
	}
	return false
}

// next is the place of the next parameter.
func (v *values) next() *driver.NamedValue {
	if v.n == len(v.params) {
		v.params = append(v.params, driver.NamedValue{Ordinal: v.n + 1})
	}
	v.n++
	return &v.params[v.n-1]
}

func (v *values) texts(values ...string) {
	for _, s := range values {
		if v.skips(s == "", true) {
			continue
		}
		p := v.next()
		if old, ok := p.Value.(string); !ok || old != s {
			p.Value = s
		}
	}
}

func (v *values) figures(values ...int64) {
	for _, n := range values {
		if v.skips(n == 0, false) {
			continue
		}
		p := v.next()
		if old, ok := p.Value.(int64); !ok || old != n {
			p.Value = n
		}
	}
}

// any appends the parameters as database/sql takes them.
func (v *values) any(args []any) []any {
	for i := range v.n {
		args = append(args, v.params[i].Value)
	}
	return args
}

// insertHere inserts n rows, so many with one statement, and returns how many changed
// the table. It is for an engine in this process: there a statement costs no round
// trip, but a numbered parameter a look-up by name, a result its own bookkeeping, a
// context that can end a goroutine, and database/sql a copy of the arguments. So it is
// the driver that is asked, and ctx between statements.
func (in *inserter) insertHere(ctx context.Context, n, most int, row func(v *values, i int)) (changed int64, err error) {
	endless := context.WithoutCancel(ctx)
	err = in.conn.Raw(func(conn any) error {
		var stmt driver.Stmt
		defer func() {
			if stmt != nil {
				_ = stmt.Close() // it has run, or failed and told so
			}
		}()
		columns, v := in.here.of(in.table, len(in.columns)), &in.here.values
		for i, size := 0, 0; i < n; i += size {
			if err := ctx.Err(); err != nil {
				return err
			}
			fits := min(most, n)
			if fits > n-i {
				fits = 1 // what is left over is run sooner than a statement for it is parsed
			}
			more := v.rows(columns, i, fits, row)
			if more {
				v.rows(columns, i, fits, row)
			}
			if more || fits != size {
				if stmt != nil {
					_ = stmt.Close()
				}
				size = fits
				if stmt, err = conn.(driver.ConnPrepareContext).PrepareContext(endless, in.sqlHere(columns, fits)+in.tail); err != nil {
					return err
				}
			}
			res, err := stmt.(driver.StmtExecContext).ExecContext(endless, v.params[:v.n])
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

// rows are the values of n rows from i on. more is true if there is a parameter that not
// all of them have.
func (v *values) rows(columns []column, i, n int, row func(v *values, i int)) (more bool) {
	v.begin(columns)
	for k := range n {
		row(v, i+k)
	}
	return v.more
}

// of are the columns of a table.
func (h *here) of(table string, n int) []column {
	if h.columns == nil {
		h.columns = map[string][]column{}
	}
	if h.columns[table] == nil {
		h.columns[table] = make([]column, n)
	}
	return h.columns[table]
}

// sqlHere is insertSQL with parameters that have no numbers, and none for columns in
// which no row has had anything yet, two in five of entries: to bind a value takes as
// long as to insert it. OR FAIL: what fails has the whole transaction rolled back, so
// that SQLite need not keep what a statement changed in order to take back that one
// alone.
func (in *inserter) sqlHere(columns []column, rows int) string {
	row := make([]string, len(columns))
	for i, c := range columns {
		switch {
		case c.filled:
			row[i] = "?"
		case c.text:
			row[i] = "''"
		default:
			row[i] = "0"
		}
	}
	values := "(" + strings.Join(row, ", ") + ")"
	return "INSERT OR FAIL INTO " + in.table + " (" + strings.Join(in.columns, ", ") + ") VALUES " + strings.Repeat(values+", ", rows-1) + values
}
