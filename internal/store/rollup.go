package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice"
	"sluice/internal/ledger"
)

// measure is one sum over entries: a column of the roll-ups.
type measure struct {
	column string
	expr   string // over the columns of entries
	of     func(*ledger.Entry) int64
	into   func(*ledger.Totals) any // where a query puts it
}

func tokens(column string, of func(*ledger.Entry) int64, into func(*ledger.Totals) any) measure {
	return measure{column, column, of, into}
}

// measures are the sums in the order of the roll-ups' columns.
var measures = []measure{
	{"entries", "1", func(*ledger.Entry) int64 { return 1 }, func(t *ledger.Totals) any { return &t.Entries }},
	{"requests", "final", func(e *ledger.Entry) int64 { return flag(e.Final) }, func(t *ledger.Totals) any { return &t.Requests }},
	{
		"attempts", "CASE WHEN attempt > 0 THEN 1 ELSE 0 END",
		func(e *ledger.Entry) int64 { return flag(e.Attempt > 0) },
		func(t *ledger.Totals) any { return &t.Attempts },
	},
	{
		"estimated", "CASE WHEN usage_source NOT IN ('none', 'reported', 'drained', 'cached') THEN 1 ELSE 0 END",
		func(e *ledger.Entry) int64 {
			return flag(e.Usage.Source != sluice.UsageNone && e.Usage.Source != sluice.UsageCached && !e.Usage.Source.Final())
		},
		func(t *ledger.Totals) any { return &t.Estimated },
	},
	{"anomalous", "anomalous", func(e *ledger.Entry) int64 { return flag(e.Usage.Anomalous) }, func(t *ledger.Totals) any { return &t.Anomalous }},
	{"late", "late", func(e *ledger.Entry) int64 { return flag(e.Late) }, func(t *ledger.Totals) any { return &t.Late }},
	tokens("input", func(e *ledger.Entry) int64 { return int64(e.Usage.Input) }, func(t *ledger.Totals) any { return &t.Input }),
	tokens("cache_read", func(e *ledger.Entry) int64 { return int64(e.Usage.CacheRead) }, func(t *ledger.Totals) any { return &t.CacheRead }),
	tokens("cache_write", func(e *ledger.Entry) int64 { return int64(e.Usage.CacheWrite) }, func(t *ledger.Totals) any { return &t.CacheWrite }),
	tokens("cache_write_1h", func(e *ledger.Entry) int64 { return int64(e.Usage.CacheWrite1h) }, func(t *ledger.Totals) any { return &t.CacheWrite1h }),
	tokens("audio_input", func(e *ledger.Entry) int64 { return int64(e.Usage.AudioInput) }, func(t *ledger.Totals) any { return &t.AudioInput }),
	tokens("output", func(e *ledger.Entry) int64 { return int64(e.Usage.Output) }, func(t *ledger.Totals) any { return &t.Output }),
	tokens("reasoning", func(e *ledger.Entry) int64 { return int64(e.Usage.Reasoning) }, func(t *ledger.Totals) any { return &t.Reasoning }),
	tokens("audio_output", func(e *ledger.Entry) int64 { return int64(e.Usage.AudioOutput) }, func(t *ledger.Totals) any { return &t.AudioOutput }),
	tokens("tool_calls", func(e *ledger.Entry) int64 { return e.Usage.ToolCalls }, func(t *ledger.Totals) any { return &t.ToolCalls }),
	tokens("web_searches", func(e *ledger.Entry) int64 { return e.Usage.WebSearches }, func(t *ledger.Totals) any { return &t.WebSearches }),
	tokens("units", func(e *ledger.Entry) int64 { return e.Usage.Units }, func(t *ledger.Totals) any { return &t.Units }),
	tokens("cost", func(e *ledger.Entry) int64 { return int64(e.Cost) }, func(t *ledger.Totals) any { return &t.Cost }),
	tokens("cost_high", func(e *ledger.Entry) int64 { return int64(e.CostHigh) }, func(t *ledger.Totals) any { return &t.CostHigh }),
	{
		"queued_us", "final * queued_us",
		func(e *ledger.Entry) int64 { return flag(e.Final) * e.Queued.Microseconds() },
		func(t *ledger.Totals) any { return micros{&t.Queued} },
	},
	{
		"first_token_us", "first_token_us",
		func(e *ledger.Entry) int64 { return e.FirstToken.Microseconds() },
		func(t *ledger.Totals) any { return micros{&t.FirstToken} },
	},
	{
		"first_tokens", "CASE WHEN first_token_us > 0 THEN 1 ELSE 0 END",
		func(e *ledger.Entry) int64 { return flag(e.FirstToken.Microseconds() > 0) },
		func(t *ledger.Totals) any { return &t.FirstTokens },
	},
	{
		"duration_us", "final * duration_us",
		func(e *ledger.Entry) int64 { return flag(e.Final) * e.Duration.Microseconds() },
		func(t *ledger.Totals) any { return micros{&t.Duration} },
	},
}

// micros scans microseconds into a duration.
type micros struct{ into *time.Duration }

func (m micros) Scan(v any) error {
	us, ok := v.(int64)
	if !ok {
		return fmt.Errorf("%T is not a number of microseconds", v)
	}
	*m.into = span(us)
	return nil
}

// dim is one column that roll-ups and queries group by.
type dim struct {
	column string
	expr   string // over the columns of entries
	of     func(*ledger.Entry) string
}

func dimOf(column string, of func(*ledger.Entry) string) dim { return dim{column, column, of} }

var dims = map[ledger.Dimension]dim{
	ledger.ByTenant:   dimOf("tenant", func(e *ledger.Entry) string { return string(e.Tenant) }),
	ledger.ByProject:  dimOf("project", func(e *ledger.Entry) string { return string(e.Project) }),
	ledger.ByKey:      dimOf("key_id", func(e *ledger.Entry) string { return string(e.Key) }),
	ledger.ByUser:     dimOf("user_id", func(e *ledger.Entry) string { return string(e.User) }),
	ledger.ByTask:     dimOf("task", func(e *ledger.Entry) string { return e.Task }),
	ledger.ByModel:    dimOf("model", func(e *ledger.Entry) string { return string(e.Model) }),
	ledger.ByBackend:  dimOf("backend", func(e *ledger.Entry) string { return string(e.Backend) }),
	ledger.ByProvider: dimOf("provider", func(e *ledger.Entry) string { return string(e.Provider) }),
	ledger.ByClass:    dimOf("class", func(e *ledger.Entry) string { return e.Class.String() }),
	ledger.ByOutcome:  dimOf("outcome", func(e *ledger.Entry) string { return e.Outcome.String() }),
	ledger.ByReason:   dimOf("reason", func(e *ledger.Entry) string { return e.Reason.String() }),
}

const (
	hourMicros = int64(time.Hour / time.Microsecond)
	dayMicros  = 24 * hourMicros
	hourExpr   = "at_us - at_us % 3600000000"
)

func hourOf(e *ledger.Entry) int64 {
	us := e.At.UnixMicro()
	return us - us%hourMicros
}

// rollup is a table of hourly sums.
type rollup struct {
	table  string
	dims   []ledger.Dimension // besides the hour
	shadow bool               // of shadows, and else of what clients asked
}

// of reports whether an entry counts in the table.
func (r rollup) of(e *ledger.Entry) bool { return r.shadow == (e.ShadowOf != "") && !e.Voided }

// counted is the condition on entries that are in the sums of shadows, or in those of what
// clients asked.
func counted(shadow bool) string { return shadowed(shadow) + " AND voided = 0" }

// shadowed is the condition on entries that are shadows, or are none.
func shadowed(shadow bool) string {
	if shadow {
		return "shadow_of <> ''"
	}
	return "shadow_of = ''"
}

// rollups are the tables of hourly sums, the one that answers most first. In the
// second is what has no bound: the caller's own user labels.
var rollups = []rollup{
	{"usage_hours", boundedDims, false},
	{"user_hours", []ledger.Dimension{ledger.ByTenant, ledger.ByProject, ledger.ByUser, ledger.ByModel}, false},
	{"shadow_hours", boundedDims, true},
}

// boundedDims are the dimensions whose values have bounds of their own.
var boundedDims = []ledger.Dimension{
	ledger.ByTenant, ledger.ByProject, ledger.ByKey, ledger.ByTask, ledger.ByModel, ledger.ByBackend,
	ledger.ByProvider, ledger.ByClass, ledger.ByOutcome, ledger.ByReason,
}

// columns are the key columns and the measure columns.
func (r rollup) columns() (key, sums []string) {
	key = []string{"hour_us"}
	for _, d := range r.dims {
		key = append(key, dims[d].column)
	}
	for _, m := range measures {
		sums = append(sums, m.column)
	}
	return key, sums
}

// group is entries that are in one row of each roll-up, if they are in any.
type group struct {
	of   *ledger.Entry // one of them
	sums []int64
}

// groupsOf sums entries up, so that roll-ups are made of few sums.
func groupsOf(rows []member) []group {
	type key struct {
		kind           int
		hour           int64
		tenant         sluice.TenantID
		user           sluice.UserID
		shadow, voided bool
	}
	var groups []group
	index := map[key]int{}
	for i := range rows {
		e := rows[i].Entry
		k := key{rows[i].kind, hourOf(e), e.Tenant, e.User, e.ShadowOf != "", e.Voided}
		n, ok := index[k]
		if !ok {
			n = len(groups)
			index[k] = n
			groups = append(groups, group{e, make([]int64, len(measures))})
		}
		sums := groups[n].sums
		for m := range measures {
			sums[m] += measures[m].of(e)
		}
	}
	return groups
}

// rollupRow is the sums of one key.
type rollupRow struct {
	hour int64
	key  []string // the dimensions
	sums []int64
}

// roll sums groups by the roll-up's key, in the order of the keys, so that two
// replicas lock rows in one order.
func (r rollup) roll(groups []group) []rollupRow {
	found := map[string]*rollupRow{}
	for _, g := range groups {
		if !r.of(g.of) {
			continue
		}
		hour := hourOf(g.of)
		dimensions := make([]string, len(r.dims))
		for i, d := range r.dims {
			dimensions[i] = dims[d].of(g.of)
		}
		key := strconv.FormatInt(hour, 10) + "\x00" + strings.Join(dimensions, "\x00")
		row := found[key]
		if row == nil {
			row = &rollupRow{hour, dimensions, make([]int64, len(measures))}
			found[key] = row
		}
		for m := range row.sums {
			row.sums[m] += g.sums[m]
		}
	}
	rows := make([]rollupRow, 0, len(found))
	for _, key := range slices.Sorted(maps.Keys(found)) {
		rows = append(rows, *found[key])
	}
	return rows
}

// add adds rows to the table.
func (r rollup) add(ctx context.Context, in *inserter, rows []rollupRow) error {
	key, sums := r.columns()
	set := make([]string, len(sums))
	for i, c := range sums {
		set[i] = fmt.Sprintf("%s = %s.%[1]s + excluded.%[1]s", c, r.table)
	}
	in.table, in.columns = r.table, append(slices.Clone(key), sums...)
	in.tail = fmt.Sprintf(" ON CONFLICT (%s) DO UPDATE SET %s", strings.Join(key, ", "), strings.Join(set, ", "))
	row := func(v *values, i int) {
		v.figures(rows[i].hour)
		v.texts(rows[i].key...)
		v.figures(rows[i].sums...)
	}
	var err error
	if in.rows == 1 {
		_, err = in.insertHere(ctx, len(rows), 1, row)
	} else {
		err = in.insert(ctx, len(rows), row, nil)
	}
	if err != nil {
		return fmt.Errorf("add to %s: %w", r.table, err)
	}
	return nil
}

// insertSQL is INSERT INTO table (columns) VALUES ($1, …), …
func insertSQL(table string, columns []string, rows int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "INSERT INTO %s (%s) VALUES ", table, strings.Join(columns, ", "))
	n := 0
	for i := range rows {
		if i > 0 {
			b.WriteString(", ")
		}
		for c := range columns {
			n++
			sep := ", "
			if c == 0 {
				sep = "("
			}
			fmt.Fprintf(&b, "%s$%d", sep, n)
		}
		b.WriteByte(')')
	}
	return b.String()
}
