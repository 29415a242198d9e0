package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/ledger"
	"sluice/internal/store"
)

var shadowTests = []namedTest{
	{"accounted apart", testShadowApart},
	{"beside their requests", testShadowPairs},
	{"spend", testShadowSpend},
}

// shadow is a copy of a request.
func shadow(of, pool string) ledger.Entry {
	e := entry(of+"."+pool, 1)
	e.ShadowOf, e.Pool, e.Backend, e.Class, e.Cost, e.CostHigh = sluice.RequestID(of), sluice.PoolID(pool), "n1", sluice.Batch, 900, 950
	return e
}

// What shadows use is in no sum but their own.
func testShadowApart(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	es := varied(60)
	var copies []ledger.Entry
	for i := range es {
		if e := es[i]; e.Final && e.Attempt > 0 {
			e.ShadowOf, e.Request, e.Attempt, e.Pool = e.Request, e.Request+".next", 1, "next"
			copies = append(copies, e)
		}
	}
	must(t, db.Append(t.Context(), append(copies, es...)), db.Append(t.Context(), copies))
	verified(t, db, len(es)+len(copies))
	for _, by := range [][]ledger.Dimension{nil, {ledger.ByTenant, ledger.ByModel}, {ledger.ByUser}, {ledger.ByUser, ledger.ByTask}, {ledger.ByLabel}, {ledger.ByDay, ledger.ByBackend}} {
		q := ledger.UsageQuery{Owner: ledger.Everyone(), By: by, Label: "feature"}
		checkUsageOf(t, db, q, es)
		q.Shadow = true
		checkUsageOf(t, db, q, copies)
	}
	page, err := db.Recent(t.Context(), ledger.RecentQuery{Owner: ledger.Everyone(), Limit: ledger.MaxRecent})
	must(t, err)
	for _, e := range page.Entries {
		if e.ShadowOf != "" {
			t.Errorf("%s is a shadow and listed as a request", e.Request)
		}
	}
	got, err := db.Shadows(t.Context(), ledger.Everyone(), copies[3].ShadowOf)
	must(t, err)
	if d := cmp.Diff([]ledger.Entry{copies[3]}, got); d != "" {
		t.Errorf("shadows (-want +got):\n%s", d)
	}
	got, err = db.Shadows(t.Context(), ledger.Of("nobody"), copies[3].ShadowOf)
	must(t, err)
	if len(got) > 0 {
		t.Error("another tenant sees them")
	}
}

func testShadowPairs(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{ScanMax: 3})
	failed, served, open := entry("a", 1), entry("a", 2), shadow("gone", "next")
	failed.Final, failed.Outcome, failed.Reason = false, sluice.Failed, sluice.UpstreamError
	copied := shadow("a", "next")
	copied.Finish, copied.FirstToken, copied.Queued = "length", 0, 0
	must(t, db.Append(t.Context(), []ledger.Entry{failed, copied, served, open})) // the request of one still runs
	got, err := db.Pairs(t.Context(), ledger.PairQuery{Owner: ledger.Everyone(), Model: "fast", Since: noon.Truncate(time.Second), Until: noon.Add(time.Second)})
	must(t, err)
	out := served.Usage.OutputTotal()
	want := []ledger.Pair{{
		Model: "fast", Pool: "next",
		Request: ledger.Side{
			Finish: "stop", Retried: true, FirstToken: served.FirstToken - served.Queued, Took: served.Duration - served.Queued,
			Output: out, Cost: failed.Cost + served.Cost,
		},
		Shadow: ledger.Side{Finish: "length", Took: copied.Duration, Output: out, Cost: copied.Cost},
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for name, q := range map[string]ledger.PairQuery{
		"another tenant":     {Owner: ledger.Of("globex")},
		"a forgotten tenant": {},
		"another model":      {Owner: ledger.Everyone(), Model: "large"},
		"before":             {Owner: ledger.Everyone(), Until: noon},
		"after":              {Owner: ledger.Everyone(), Since: noon.Add(time.Second)},
	} {
		if got, err := db.Pairs(t.Context(), q); len(got) > 0 || err != nil {
			t.Errorf("%s: %d pairs, %v", name, len(got), err)
		}
	}
	must(t, db.Append(t.Context(), []ledger.Entry{shadow("a", "n2"), shadow("a", "n3"), shadow("a", "n4")}))
	_, err = db.Pairs(t.Context(), ledger.PairQuery{Owner: ledger.Everyone()})
	wantKind(t, err, sluice.KindInvalid)
}

// Their own accounts are seeded from what they took, wherever that is; those of
// tenants and of the fleet are not.
func testShadowSpend(t *testing.T, fresh Fresh) {
	now, yesterday, before := shadow("a", "next"), shadow("b", "next"), shadow("c", "next")
	yesterday.At, before.At = noon.AddDate(0, 0, -1), noon.AddDate(0, -1, 0)
	other := shadow("d", "gpus")
	all := []ledger.Entry{now, yesterday, before, other}
	took := func(pool string, n int64, w sluice.Window, start time.Time) ledger.Spend {
		in, out := now.Usage.InputTotal(), now.Usage.OutputTotal()
		return ledger.Spend{
			Scope: sluice.ScopeShadow, Model: "fast", Pool: sluice.PoolID(pool), Window: w, Start: start,
			Requests: n, Input: sluice.Tokens(n) * in, Output: sluice.Tokens(n) * out, Cost: sluice.Nano(n) * now.Cost, CostHigh: sluice.Nano(n) * now.CostHigh,
		}
	}
	hour, day, month := noon.Truncate(time.Hour), noon.Truncate(24*time.Hour), time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	want := []ledger.Spend{
		took("gpus", 1, sluice.PerHour, hour), took("gpus", 1, sluice.PerDay, day), took("gpus", 1, sluice.PerMonth, month),
		took("next", 1, sluice.PerHour, hour), took("next", 1, sluice.PerDay, day), took("next", 2, sluice.PerMonth, month),
	}
	for name, split := range map[string]int{"in the store": len(all), "in the journal": 0, "in either": 2} {
		t.Run(name, func(t *testing.T) {
			db := Open(t, fresh(t), store.Options{})
			must(t, db.Append(t.Context(), all[:split]))
			undrained := func(visit func([]ledger.Entry) error) error { return visit(all) }
			got, err := db.ShadowSpend(t.Context(), noon, undrained)
			must(t, err)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			spends, err := db.Spend(t.Context(), noon, undrained)
			must(t, err)
			labelled, err := db.LabelledSpend(t.Context(), noon, store.Labelled{Users: true, RunsSince: before.At}, undrained)
			must(t, err)
			if len(spends)+len(labelled) > 0 {
				t.Errorf("limits of callers are charged for shadows: %+v %+v", spends, labelled)
			}
		})
	}
}
