package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/ledger"
	"sluice/internal/store"
)

var usageTests = []namedTest{
	{"by every set of dimensions", testUsageBy},
	{"windows", testUsageWindow},
	{"hours", testUsageHours},
	{"filters", testUsageWhere},
	{"labels", testUsageLabels},
	{"order and limit", testUsageOrder},
	{"bounds", testUsageBounds},
}

// groupOf is the oracle of a group's value.
func groupOf(e ledger.Entry, d ledger.Dimension, label string) string {
	switch d {
	case ledger.ByTenant:
		return string(e.Tenant)
	case ledger.ByProject:
		return string(e.Project)
	case ledger.ByKey:
		return string(e.Key)
	case ledger.ByUser:
		return string(e.User)
	case ledger.ByTask:
		return e.Task
	case ledger.ByModel:
		return string(e.Model)
	case ledger.ByBackend:
		return string(e.Backend)
	case ledger.ByProvider:
		return string(e.Provider)
	case ledger.ByClass:
		return e.Class.String()
	case ledger.ByOutcome:
		return e.Outcome.String()
	case ledger.ByReason:
		return e.Reason.String()
	case ledger.ByHour:
		return e.At.Truncate(time.Hour).Format(time.RFC3339)
	case ledger.ByDay:
		return e.At.Format(time.DateOnly)
	case ledger.ByLabel:
		for _, l := range e.Labels {
			if l.Key == label {
				return l.Value
			}
		}
	}
	return ""
}

// checkUsageOf compares an answer with the sums over es.
func checkUsageOf(t *testing.T, db *store.DB, q ledger.UsageQuery, es []ledger.Entry) {
	t.Helper()
	rows, err := db.Usage(t.Context(), q)
	must(t, err)
	groups := map[string][]ledger.Entry{}
	for _, e := range es {
		var g []string
		for _, d := range q.By {
			g = append(g, groupOf(e, d, q.Label))
		}
		k := strings.Join(g, "|")
		groups[k] = append(groups[k], e)
	}
	want, got := map[string]ledger.Totals{}, map[string]ledger.Totals{}
	for k, g := range groups {
		want[k] = sum(g)
	}
	for _, r := range rows {
		got[strings.Join(r.Group, "|")] = r.Totals
	}
	if d := cmp.Diff(want, got); d != "" || len(rows) != len(groups) {
		t.Errorf("by %v: %d rows, want %d (-want +got):\n%s", q.By, len(rows), len(groups), d)
	}
}

func testUsageBy(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	es := varied(150)
	must(t, db.Append(t.Context(), es))
	all := ledger.UsageQuery{Owner: ledger.Everyone(), Label: "feature"}
	checkUsageOf(t, db, all, es)
	for a := range ledger.Dimension(ledger.NumDimensions) {
		q := all
		q.By = []ledger.Dimension{a}
		checkUsageOf(t, db, q, es)
		b := (a*5 + 3) % ledger.NumDimensions
		if b == a {
			continue
		}
		q.By = []ledger.Dimension{b, a}
		checkUsageOf(t, db, q, es)
	}
	q := all
	q.By = []ledger.Dimension{
		ledger.ByTenant, ledger.ByProject, ledger.ByKey, ledger.ByTask, ledger.ByModel, ledger.ByBackend, ledger.ByProvider,
		ledger.ByClass, ledger.ByOutcome, ledger.ByReason, ledger.ByHour,
	}
	checkUsageOf(t, db, q, es)
}

// What a forecast asks: the hours of one tenant, model and class.
func testUsageHours(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	es := varied(120)
	must(t, db.Append(t.Context(), es))
	for _, of := range []ledger.Entry{es[4], es[7]} {
		q := ledger.UsageQuery{Owner: ledger.Everyone(), By: []ledger.Dimension{ledger.ByHour}}
		for _, d := range []ledger.Dimension{ledger.ByTenant, ledger.ByModel, ledger.ByClass} {
			q.Where = append(q.Where, ledger.Match{By: d, Value: groupOf(of, d, "")})
		}
		checkUsageOf(t, db, q, slices.DeleteFunc(slices.Clone(es), func(e ledger.Entry) bool {
			return e.Tenant != of.Tenant || e.Model != of.Model || e.Class != of.Class
		}))
	}
}

// Roll-ups answer for full hours, entries for the exact window.
func testUsageWindow(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	es := varied(60)
	must(t, db.Append(t.Context(), es))
	within := func(since, until time.Time) []ledger.Entry {
		return slices.DeleteFunc(slices.Clone(es), func(e ledger.Entry) bool { return e.At.Before(since) || !e.At.Before(until) })
	}
	q := ledger.UsageQuery{
		Owner: ledger.Everyone(), Since: noon.Add(90 * time.Minute), Until: noon.Add(200 * time.Minute),
		By: []ledger.Dimension{ledger.ByTenant},
	}
	since, until := q.Window()
	if since.Minute() != 0 || until.Minute() != 0 || since.After(q.Since) || until.Before(q.Until) {
		t.Errorf("window %v to %v", since, until)
	}
	checkUsageOf(t, db, q, within(since, until))
	q.By = []ledger.Dimension{ledger.ByUser, ledger.ByClass}
	checkUsageOf(t, db, q, within(q.Since, q.Until))
}

func testUsageWhere(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	es := varied(90)
	must(t, db.Append(t.Context(), es))
	for d := range ledger.Dimension(ledger.NumDimensions) {
		if d == ledger.ByHour || d == ledger.ByDay {
			_, err := db.Usage(t.Context(), ledger.UsageQuery{Owner: ledger.Everyone(), Where: []ledger.Match{{By: d}}})
			wantKind(t, err, sluice.KindInvalid)
			continue
		}
		value := groupOf(es[4], d, "feature")
		checkUsageOf(t, db, ledger.UsageQuery{
			Owner: ledger.Of("t1"), Label: "feature", By: []ledger.Dimension{ledger.ByModel},
			Where: []ledger.Match{{By: d, Value: value}},
		}, slices.DeleteFunc(slices.Clone(es), func(e ledger.Entry) bool {
			return e.Tenant != "t1" || groupOf(e, d, "feature") != value
		}))
	}
}

func testUsageLabels(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	es := varied(30)
	es[1].Labels, es[2].Labels = nil, []sluice.Label{{Key: "other", Value: "x"}, {Key: "feature", Value: "f1"}}
	must(t, db.Append(t.Context(), es))
	checkUsageOf(t, db, ledger.UsageQuery{
		Owner: ledger.Everyone(), Label: "feature", By: []ledger.Dimension{ledger.ByLabel, ledger.ByTenant},
	}, es)
	_, err := db.Usage(t.Context(), ledger.UsageQuery{Owner: ledger.Everyone(), By: []ledger.Dimension{ledger.ByLabel}})
	wantKind(t, err, sluice.KindInvalid)
}

func testUsageOrder(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	must(t, db.Append(t.Context(), varied(150)))
	rows, err := db.Usage(t.Context(), ledger.UsageQuery{Owner: ledger.Everyone(), By: []ledger.Dimension{ledger.ByKey}, Limit: 3})
	must(t, err)
	if len(rows) != 3 || !slices.IsSortedFunc(rows, func(a, b ledger.UsageRow) int { return int(b.Cost - a.Cost) }) {
		t.Errorf("not the dearest first: %+v", rows)
	}
	rows, err = db.Usage(t.Context(), ledger.UsageQuery{Owner: ledger.Everyone(), By: []ledger.Dimension{ledger.ByTenant, ledger.ByHour}})
	must(t, err)
	if !slices.IsSortedFunc(rows, func(a, b ledger.UsageRow) int { return strings.Compare(a.Group[1], b.Group[1]) }) {
		t.Error("not in the order of time")
	}
}

func testUsageBounds(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{ScanMax: 40})
	es := varied(41)
	must(t, db.Append(t.Context(), es))
	q := ledger.UsageQuery{Owner: ledger.Everyone(), By: []ledger.Dimension{ledger.ByUser, ledger.ByTask}}
	_, err := db.Usage(t.Context(), q)
	wantKind(t, err, sluice.KindInvalid)
	q.Since = es[1].At
	checkUsageOf(t, db, q, es[1:])
	for _, q := range []ledger.UsageQuery{
		{By: []ledger.Dimension{ledger.NumDimensions}},
		{By: []ledger.Dimension{ledger.ByKey, ledger.ByKey}},
		{Limit: ledger.MaxUsageRows + 1},
		{Since: noon, Until: noon},
	} {
		_, err := db.Usage(t.Context(), q)
		wantKind(t, err, sluice.KindInvalid)
	}
}
