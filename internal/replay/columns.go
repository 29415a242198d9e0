package replay

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Columns names the columns of a CSV trace, or the members of a JSONL one, that
// is of no known format.
type Columns struct {
	At     string // when, as a number of Unit or as a date and time
	Input  string
	Output string
	Client string        // empty for a trace without clients
	Unit   time.Duration // of At; 0 is a second
}

func (c *Columns) names() []string {
	out := []string{c.At, c.Input, c.Output}
	if c.Client != "" {
		out = append(out, c.Client)
	}
	return out
}

// readColumns reads a trace by the columns that its reader names. Its first row
// is at 0.
func readColumns(l *lines, first []byte, o ReadOptions) ([]Row, error) {
	pick := l.members
	line, ok := first, true
	if first[0] != '{' {
		header := split(string(first))
		at, found := columnsOf(header, o.Columns.names())
		if !found {
			return nil, l.at(fmt.Errorf("the columns %q are wanted, there are %q", o.Columns.names(), header))
		}
		pick = func(line []byte, _ []string) (fields, error) { return l.pick(line, at) }
		line, ok = l.next()
	}
	var rows []Row
	base := time.Duration(-1)
	for ; ok; line, ok = l.next() {
		f, err := pick(line, o.Columns.names())
		if err != nil {
			return nil, err
		}
		row, err := o.Columns.row(f)
		if err != nil {
			return nil, l.at(err)
		}
		if base < 0 {
			base = row.At
		}
		row.At = max(row.At-base, 0)
		if rows, err = l.add(rows, row); err != nil {
			return nil, err
		}
		if done(rows, o) {
			break
		}
	}
	return rows, l.err()
}

// members takes the named members out of a line of JSON.
func (l *lines) members(line []byte, names []string) (fields, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(line, &all); err != nil {
		return nil, l.at(fmt.Errorf("not a trace row: %w", err))
	}
	out := make(fields, len(names))
	for i, name := range names {
		v, ok := all[name]
		if !ok {
			return nil, l.at(fmt.Errorf("%q is missing", name))
		}
		out[i] = strings.Trim(string(v), `"`)
	}
	return out, nil
}

func (c *Columns) row(f fields) (Row, error) {
	at, err := c.moment(f[0])
	if err != nil {
		return Row{}, err
	}
	row, err := tokensRow(at, f[1], f[2])
	if err != nil {
		return Row{}, err
	}
	if len(f) > 3 {
		row.Client = f[3]
	}
	row.Input, row.Output = max(row.Input, 1), max(row.Output, 1)
	return row, nil
}

// layouts are how a date and time may be written.
var layouts = []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999"}

func (c *Columns) moment(s string) (time.Duration, error) {
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t.Sub(time.Unix(0, 0)), nil
		}
	}
	v, err := floats(s)
	if err != nil {
		return 0, fmt.Errorf("time %q: write a number that is not negative, or a date and time such as 2026-11-01T12:00:00Z", s)
	}
	unit := c.Unit
	if unit <= 0 {
		unit = time.Second
	}
	return span(v[0] * unit.Seconds())
}
