package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice"
	"sluice/internal/ledger"
)

// Usage answers q: by roll-ups where they have all that is asked for, else by
// reading at most Options.ScanMax entries.
func (db *DB) Usage(ctx context.Context, q ledger.UsageQuery) ([]ledger.UsageRow, error) {
	if err := checkUsage(q); err != nil {
		return nil, err
	}
	src, rolled := pickSource(q)
	p := newUsagePlan(q, src, rolled, db.scanMax)
	rows, err := db.read.QueryContext(ctx, p.sql(), p.c.args...)
	if err != nil {
		return nil, fmt.Errorf("read usage: %w", err)
	}
	out, err := collect(rows, p.scan)
	if err != nil {
		return nil, fmt.Errorf("read usage: %w", err)
	}
	if !rolled {
		if out, err = p.fold(out); err != nil {
			return nil, err
		}
	}
	for i := range out {
		p.words(out[i].Group)
	}
	p.sort(out)
	return out[:min(len(out), p.limit())], nil
}

func checkUsage(q ledger.UsageQuery) error {
	label := slices.Contains(q.By, ledger.ByLabel)
	for _, d := range q.By {
		if d >= ledger.NumDimensions {
			return sluice.Invalid("by", "has the unknown dimension %v", d)
		}
	}
	for i, d := range q.By {
		if slices.Contains(q.By[:i], d) {
			return sluice.Invalid("by", "names %v twice", d)
		}
	}
	for _, m := range q.Where {
		if m.By == ledger.ByLabel {
			label = true
		} else if _, ok := dims[m.By]; !ok {
			return sluice.Invalid("where", "names %v, by which usage is not filtered: use since and until for time", m.By)
		}
	}
	switch {
	case label && q.Label == "":
		return sluice.Invalid("label", "is empty: name the label key that usage is grouped or filtered by")
	case q.Limit < 0 || q.Limit > ledger.MaxUsageRows:
		return sluice.Invalid("limit", "is %d: use 1 to %d", q.Limit, ledger.MaxUsageRows)
	case !q.Since.IsZero() && !q.Until.IsZero() && !q.Since.Before(q.Until):
		return sluice.Invalid("since", "is not before until")
	}
	return nil
}

// pickSource finds the roll-up that has all dimensions; rolled is false if
// entries must be read.
func pickSource(q ledger.UsageQuery) (table string, rolled bool) {
	for _, r := range rollups {
		if r.shadow != q.Shadow {
			continue
		}
		has := func(d ledger.Dimension) bool {
			return d == ledger.ByHour || d == ledger.ByDay || slices.Contains(r.dims, d)
		}
		if !slices.ContainsFunc(q.By, func(d ledger.Dimension) bool { return !has(d) }) &&
			!slices.ContainsFunc(q.Where, func(m ledger.Match) bool { return !has(m.By) }) {
			return r.table, true
		}
	}
	return "entries", false
}

// usagePlan is a usage query on one table.
type usagePlan struct {
	q       ledger.UsageQuery
	table   string
	rolled  bool
	scanMax int
	groups  []string // expressions of the columns that are grouped by
	labels  bool     // the last group is all labels of an entry
	c       conditions
}

func newUsagePlan(q ledger.UsageQuery, table string, rolled bool, scanMax int) *usagePlan {
	p := &usagePlan{q: q, table: table, rolled: rolled, scanMax: scanMax}
	since, until, time := q.Since, q.Until, "at_us"
	if rolled {
		time = "hour_us"
		since, until = q.Window()
	}
	p.c.owner(q.Owner)
	if !rolled {
		p.c.parts = append(p.c.parts, counted(q.Shadow))
	}
	if !since.IsZero() {
		p.c.add(time+" >= $?", since.UnixMicro())
	}
	if !until.IsZero() {
		p.c.add(time+" < $?", until.UnixMicro())
	}
	for _, m := range q.Where {
		if m.By == ledger.ByLabel {
			p.labels = true
			continue
		}
		p.c.add(dims[m.By].column+" = $?", m.Value)
	}
	for _, d := range q.By {
		switch d {
		case ledger.ByHour:
			p.groups = append(p.groups, time+" - "+time+" % "+strconv.FormatInt(hourMicros, 10))
		case ledger.ByDay:
			p.groups = append(p.groups, time+" - "+time+" % "+strconv.FormatInt(dayMicros, 10))
		case ledger.ByLabel:
			p.labels = true
			p.groups = append(p.groups, "''")
		default:
			p.groups = append(p.groups, dims[d].column)
		}
	}
	if p.labels {
		p.groups = append(p.groups, "labels")
	}
	return p
}

func (p *usagePlan) limit() int { return cmp.Or(p.q.Limit, ledger.MaxUsageRows) }

// sql is the statement. Entries are read up to one more than the bound, so that
// fold can tell.
func (p *usagePlan) sql() string {
	var b strings.Builder
	b.WriteString("SELECT ")
	for i, g := range p.groups {
		fmt.Fprintf(&b, "%s AS g%d, ", g, i)
	}
	for i, m := range measures {
		expr := m.column
		if !p.rolled {
			expr = m.expr
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "CAST(COALESCE(SUM(%s), 0) AS BIGINT) AS s_%s", expr, m.column)
	}
	if p.rolled {
		fmt.Fprintf(&b, " FROM %s%s", p.table, p.c.where())
	} else {
		fmt.Fprintf(&b, " FROM (SELECT * FROM %s%s LIMIT %d) AS bounded", p.table, p.c.where(), p.scanMax+1)
	}
	for i := range p.groups {
		if i == 0 {
			b.WriteString(" GROUP BY g0")
			continue
		}
		fmt.Fprintf(&b, ", g%d", i)
	}
	if !p.rolled {
		return b.String()
	}
	b.WriteString(" ORDER BY " + p.order())
	fmt.Fprintf(&b, " LIMIT %d", p.limit())
	return b.String()
}

// order is by time, if that is grouped by, then by cost and tokens.
func (p *usagePlan) order() string {
	var parts []string
	for i, d := range p.q.By {
		if d == ledger.ByHour || d == ledger.ByDay {
			parts = append(parts, fmt.Sprintf("g%d", i))
		}
	}
	return strings.Join(append(parts, "s_cost DESC", "s_input DESC", "s_entries DESC"), ", ")
}

// sort puts rows in their final order: that of order, with ties by group.
func (p *usagePlan) sort(rows []ledger.UsageRow) {
	slices.SortStableFunc(rows, func(a, b ledger.UsageRow) int {
		for i, d := range p.q.By {
			if d == ledger.ByHour || d == ledger.ByDay {
				if c := strings.Compare(a.Group[i], b.Group[i]); c != 0 {
					return c
				}
			}
		}
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(b.Input, a.Input), cmp.Compare(b.Entries, a.Entries),
			slices.Compare(a.Group, b.Group))
	})
}

func (p *usagePlan) scan(row scanner) (r ledger.UsageRow, err error) {
	r.Group = make([]string, len(p.groups))
	dest := make([]any, 0, len(p.groups)+len(measures))
	for i := range r.Group {
		dest = append(dest, &r.Group[i])
	}
	for _, m := range measures {
		dest = append(dest, m.into(&r.Totals))
	}
	return r, row.Scan(dest...)
}

// fold checks the bound, and takes the wanted label out of all labels.
func (p *usagePlan) fold(rows []ledger.UsageRow) ([]ledger.UsageRow, error) {
	var read int64
	for _, r := range rows {
		read += r.Entries
	}
	if read > int64(p.scanMax) {
		return nil, &sluice.Error{
			Kind: sluice.KindInvalid, Reason: sluice.InvalidRequest, Param: "by",
			Msg:  fmt.Sprintf("needs more than %d single entries, which is the bound where no roll-up has the answer", p.scanMax),
			Hint: "narrow since and until, or group by fewer things",
		}
	}
	if !p.labels {
		return rows, nil
	}
	last := len(p.groups) - 1
	var out []ledger.UsageRow
	index := map[string]int{}
	for _, r := range rows {
		value := labelValue(r.Group[last], p.q.Label)
		if !p.matchesLabel(value) {
			continue
		}
		r.Group = r.Group[:last]
		if i := slices.Index(p.q.By, ledger.ByLabel); i >= 0 {
			r.Group[i] = value
		}
		key := strings.Join(r.Group, "\x00")
		if i, ok := index[key]; ok {
			addTotals(&out[i].Totals, &r.Totals)
			continue
		}
		index[key] = len(out)
		out = append(out, r)
	}
	return out, nil
}

func (p *usagePlan) matchesLabel(value string) bool {
	for _, m := range p.q.Where {
		if m.By == ledger.ByLabel && m.Value != value {
			return false
		}
	}
	return true
}

func labelValue(labels, key string) string {
	for _, l := range splitLabels(labels) {
		if l.Key == key {
			return l.Value
		}
	}
	return ""
}

// words writes times as text.
func (p *usagePlan) words(group []string) {
	for i, d := range p.q.By {
		layout := time.RFC3339
		switch d {
		case ledger.ByDay:
			layout = time.DateOnly
		case ledger.ByHour:
		default:
			continue
		}
		if us, err := strconv.ParseInt(group[i], 10, 64); err == nil {
			group[i] = fromMicros(us).Format(layout)
		}
	}
}

// addTotals adds b to a.
func addTotals(a, b *ledger.Totals) {
	for _, m := range measures {
		switch pa, pb := m.into(a), m.into(b); pa := pa.(type) {
		case *int64:
			*pa += *pb.(*int64)
		case *sluice.Tokens:
			*pa += *pb.(*sluice.Tokens)
		case *sluice.Nano:
			*pa += *pb.(*sluice.Nano)
		case micros:
			*pa.into += *pb.(micros).into
		}
	}
}
