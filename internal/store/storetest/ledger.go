package storetest

import (
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/ledger"
	"sluice/internal/store"
)

var ledgerTests = []namedTest{
	{"append and explain", testAppend},
	{"append is idempotent", testIdempotent},
	{"absurd entries are taken", testAbsurd},
	{"appends at the same time", testConcurrentAppend},
	{"tenants are walls", testWalls},
	{"recent requests", testRecent},
	{"spend", testSpend},
	{"spend of users and runs", testLabelledSpend},
	{"verify finds differences", testVerify},
}

func testAppend(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	first, second := entry("a", 1), entry("a", 2)
	first.Final, first.Outcome, first.Reason, first.Status = false, sluice.Failed, sluice.UpstreamLimited, 0
	bare := ledger.Entry{Request: "b", At: noon, Ended: noon, Tenant: "acme", Final: true, Outcome: sluice.Rejected, Reason: sluice.QueueFull}
	must(t, db.Append(t.Context(), []ledger.Entry{second, bare, first}), db.Append(t.Context(), nil))
	for id, want := range map[sluice.RequestID][]ledger.Entry{"a": {first, second}, "b": {bare}} {
		got, err := db.Explain(t.Context(), ledger.Of("acme"), id)
		must(t, err)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("explain %s (-want +got):\n%s", id, d)
		}
	}
	_, err := db.Explain(t.Context(), ledger.Everyone(), "none")
	wantKind(t, err, sluice.KindNotFound)
	verified(t, db, 3)
}

func testIdempotent(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	es := varied(120)
	must(t, db.Append(t.Context(), es[:70]), db.Append(t.Context(), es[50:]), db.Append(t.Context(), es))
	must(t, db.Append(t.Context(), slices.Concat(es[:3], es[:3])))
	again := es[5]
	again.Cost += 1_000_000 // of two the first stands
	must(t, db.Append(t.Context(), []ledger.Entry{again}))
	verified(t, db, 120)
	rows, err := db.Usage(t.Context(), ledger.UsageQuery{Owner: ledger.Everyone()})
	must(t, err)
	if d := cmp.Diff(sum(es), rows[0].Totals); d != "" {
		t.Errorf("totals (-want +got):\n%s", d)
	}
}

// What no database could hold must not stop the ledger.
func testAbsurd(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	es := []ledger.Entry{entry("a", 1), entry("b", 1), entry("c", 1)}
	for i := range es {
		e := &es[i]
		e.User, e.Task, e.UpstreamRequestID = "nul\x00nul", "\xff\xfe", "\u202eok"
		e.Detail = []byte("{\"a\":\"\x00\xff\"}")
		e.Cost, e.CostHigh = math.MaxInt64, math.MaxInt64
		e.Usage.Input, e.Usage.Output = math.MaxInt64, -5
		e.Duration = math.MaxInt64
		e.Labels = []sluice.Label{{Key: "k", Value: "\x00"}}
	}
	es[2].At = time.Time{}
	must(t, db.Append(t.Context(), es), db.Append(t.Context(), es))
	verified(t, db, 3)
	got, err := db.Explain(t.Context(), ledger.Everyone(), "a")
	must(t, err)
	e := got[0]
	if e.User != "nul�nul" || !e.Usage.Anomalous || e.Usage.Output != 0 || e.Cost != 1<<53 || e.UpstreamRequestID != "\u202eok" || e.Labels != nil {
		t.Errorf("got %+v", e)
	}
}

func testConcurrentAppend(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	es := varied(200)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := 0; i < len(es); i += 40 {
				lo := (i + w*50) % len(es)
				hi := min(lo+60, len(es))
				for { // a deadlock or a lock is an error, and the journal tries again
					if err := db.Append(t.Context(), es[lo:hi]); err == nil {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	must(t, db.Append(t.Context(), es))
	verified(t, db, 200)
}

// Another tenant's request does not exist, a forgotten owner sees nothing.
func testWalls(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	mine, theirs := entry("mine", 1), entry("theirs", 1)
	theirs.Tenant = "other"
	must(t, db.Append(t.Context(), []ledger.Entry{mine, theirs}))
	_, err := db.Explain(t.Context(), ledger.Of("acme"), "theirs")
	wantKind(t, err, sluice.KindNotFound)
	_, err = db.Explain(t.Context(), ledger.Owner{}, "mine")
	wantKind(t, err, sluice.KindNotFound)
	for _, tt := range []struct {
		owner ledger.Owner
		want  int64
	}{{ledger.Of("acme"), 1}, {ledger.Everyone(), 2}, {ledger.Owner{}, 0}, {ledger.Of(""), 0}} {
		rows, err := db.Usage(t.Context(), ledger.UsageQuery{Owner: tt.owner})
		must(t, err)
		scanned, err := db.Usage(t.Context(), ledger.UsageQuery{Owner: tt.owner, By: []ledger.Dimension{ledger.ByUser, ledger.ByTask}})
		must(t, err)
		page, err := db.Recent(t.Context(), ledger.RecentQuery{Owner: tt.owner})
		must(t, err)
		var n int64
		for _, r := range scanned {
			n += r.Entries
		}
		if rows[0].Entries != tt.want || n != tt.want || int64(len(page.Entries)) != tt.want {
			t.Errorf("%+v sees %d, %d, %d entries, want %d", tt.owner, rows[0].Entries, n, len(page.Entries), tt.want)
		}
	}
}

func testRecent(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	es := varied(60)
	for i := range es {
		es[i].At = noon.Add(time.Duration(i/4) * time.Second) // ties
	}
	must(t, db.Append(t.Context(), es))
	var want []sluice.RequestID
	for _, e := range es {
		if e.Final {
			want = append(want, e.Request)
		}
	}
	at := func(id sluice.RequestID) time.Time {
		return es[slices.IndexFunc(es, func(e ledger.Entry) bool { return e.Request == id && e.Final })].At
	}
	slices.SortFunc(want, func(a, b sluice.RequestID) int {
		if c := at(b).Compare(at(a)); c != 0 {
			return c
		}
		return -cmpID(a, b)
	})
	var got []sluice.RequestID
	var before ledger.Cursor
	for {
		page, err := db.Recent(t.Context(), ledger.RecentQuery{Owner: ledger.Everyone(), Before: before, Limit: 7})
		must(t, err)
		for i, e := range page.Entries {
			if len(e.Detail) > 0 || e.Tenant == "" {
				t.Errorf("entry %+v", e)
			}
			if whole := wholeOf(es, e.Request); page.Whole[i] != whole {
				t.Errorf("%s took %+v, want %+v", e.Request, page.Whole[i], whole)
			}
			got = append(got, e.Request)
		}
		if page.Next.IsZero() {
			break
		}
		before = page.Next
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("requests (-want +got):\n%s", d)
	}
	page, err := db.Recent(t.Context(), ledger.RecentQuery{Owner: ledger.Of("t2"), Where: []ledger.Match{{By: ledger.ByReason, Value: "queue_timeout"}}})
	must(t, err)
	for _, e := range page.Entries {
		if e.Tenant != "t2" || e.Reason != sluice.QueueTimeout {
			t.Errorf("filter let %+v through", e)
		}
	}
	if len(page.Entries) == 0 {
		t.Error("filter let nothing through")
	}
	_, err = db.Recent(t.Context(), ledger.RecentQuery{Limit: ledger.MaxRecent + 1})
	wantKind(t, err, sluice.KindInvalid)
}

// wholeOf adds up a request's attempts.
func wholeOf(es []ledger.Entry, id sluice.RequestID) (s ledger.Sum) {
	for i := range es {
		if es[i].Request == id {
			s.Add(&es[i])
		}
	}
	return s
}

func cmpID(a, b sluice.RequestID) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func testSpend(t *testing.T, fresh Fresh) {
	hour, today, month, before := entry("hour", 1), entry("today", 1), entry("month", 1), entry("before", 1)
	today.At = noon.Add(-2 * time.Hour)
	month.At, month.Key, month.Model = noon.AddDate(0, 0, -3), "k2", "large"
	before.At = noon.AddDate(0, -1, 0)
	shed := ledger.Entry{Request: "shed", At: noon, Tenant: "acme", Project: "web", Key: "k1", Model: "fast", Final: true, Outcome: sluice.Rejected}
	retried := entry("hour", 2)
	hour.Final = false
	all := []ledger.Entry{hour, retried, today, month, before, shed}
	for name, c := range map[string]struct{ stored, undrained []ledger.Entry }{
		"in the store":   {all, nil},
		"in the journal": {nil, all},
		"in either":      {all[:3], all[3:]},
		"in both":        {all[:4], append(all[1:], today)},
	} {
		t.Run(name, func(t *testing.T) {
			db := Open(t, fresh(t), store.Options{})
			must(t, db.Append(t.Context(), c.stored))
			spends, err := db.Spend(t.Context(), noon, func(visit func([]ledger.Entry) error) error { return visit(c.undrained) })
			must(t, err)
			spendsAre(t, spends, &hour)
			some, err := db.Spend(t.Context(), noon, func(visit func([]ledger.Entry) error) error { return visit(c.undrained) }, sluice.PerDay)
			must(t, err)
			spends = slices.DeleteFunc(spends, func(s ledger.Spend) bool { return s.Window != sluice.PerDay })
			if len(some) == 0 || !slices.Equal(some, spends) {
				t.Errorf("of the day alone: %+v, want %+v", some, spends)
			}
		})
	}
}

// spendsAre wants what the entries of testSpend add up to, each of which took as
// much as hour.
func spendsAre(t *testing.T, spends []ledger.Spend, hour *ledger.Entry) {
	t.Helper()
	find := func(want ledger.Spend) ledger.Spend {
		for _, s := range spends {
			if s.Scope == want.Scope && s.Tenant == want.Tenant && s.Project == want.Project && s.Key == want.Key && s.Model == want.Model && s.Window == want.Window {
				return s
			}
		}
		return ledger.Spend{}
	}
	in, out := hour.Usage.InputTotal(), hour.Usage.OutputTotal()
	for _, tt := range []struct {
		key      ledger.Spend
		requests int64
		entries  int64
	}{
		{ledger.Spend{Scope: sluice.ScopeKey, Tenant: "acme", Project: "web", Key: "k1", Window: sluice.PerHour}, 1, 2},
		{ledger.Spend{Scope: sluice.ScopeKey, Tenant: "acme", Project: "web", Key: "k1", Window: sluice.PerDay}, 2, 3},
		{ledger.Spend{Scope: sluice.ScopeKey, Tenant: "acme", Project: "web", Key: "k2", Window: sluice.PerMonth}, 1, 1},
		{ledger.Spend{Scope: sluice.ScopeProject, Tenant: "acme", Project: "web", Window: sluice.PerMonth}, 3, 4},
		{ledger.Spend{Scope: sluice.ScopeTenant, Tenant: "acme", Window: sluice.PerMonth}, 3, 4},
		{ledger.Spend{Scope: sluice.ScopeTenantModel, Tenant: "acme", Model: "large", Window: sluice.PerMonth}, 1, 1},
		{ledger.Spend{Scope: sluice.ScopeModel, Model: "fast", Window: sluice.PerDay}, 2, 3},
		{ledger.Spend{Scope: sluice.ScopeFleet, Window: sluice.PerMonth}, 3, 4},
		{ledger.Spend{Scope: sluice.ScopeKey, Tenant: "acme", Project: "web", Key: "k2", Window: sluice.PerDay}, 0, 0},
	} {
		n := sluice.Tokens(tt.entries)
		got := find(tt.key)
		want := tt.key
		want.Start = got.Start
		want.Requests, want.Input, want.Output = tt.requests, n*in, n*out
		want.Cost, want.CostHigh = sluice.Nano(n)*hour.Cost, sluice.Nano(n)*hour.CostHigh
		if tt.entries == 0 {
			want = ledger.Spend{}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
	if got := find(ledger.Spend{Scope: sluice.ScopeFleet, Window: sluice.PerMonth}).Start; !got.Equal(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("the month starts at %v", got)
	}
}

// testLabelledSpend: users by window, and runs as a whole, each entry once wherever
// it is.
func testLabelledSpend(t *testing.T, fresh Fresh) {
	at := func(id string, user sluice.UserID, run sluice.RunID, ago time.Duration) ledger.Entry {
		e := entry(id, 1)
		e.At, e.User, e.Run = noon.Add(-ago), user, run
		return e
	}
	failed := at("r2", "u1", "deep", 40*time.Minute)
	failed.Final = false
	all := []ledger.Entry{
		at("r1", "u1", "deep", 26*time.Hour), failed, at("r3", "u2", "deep", 5*time.Minute),
		at("r4", "u1", "", time.Minute), at("r5", "", "idle", 30*time.Hour),
	}
	other := at("r6", "u1", "deep", time.Minute)
	other.Tenant = "globex"
	all = append(all, other)
	in, out, cost, high := all[0].Usage.InputTotal(), all[0].Usage.OutputTotal(), all[0].Cost, all[0].CostHigh
	took := func(s ledger.Spend, requests, entries int64) ledger.Spend {
		s.Requests, s.Input, s.Output = requests, in*sluice.Tokens(entries), out*sluice.Tokens(entries)
		s.Cost, s.CostHigh = cost*sluice.Nano(entries), high*sluice.Nano(entries)
		return s
	}
	for name, split := range map[string]int{"in the store": len(all), "in the journal": 0, "in either": 2} {
		t.Run(name, func(t *testing.T) {
			db := Open(t, fresh(t), store.Options{})
			must(t, db.Append(t.Context(), all[:split]))
			got, err := db.LabelledSpend(t.Context(), noon, store.Labelled{Users: true, RunsSince: noon.Add(-24 * time.Hour)},
				func(visit func([]ledger.Entry) error) error { return visit(all) })
			must(t, err)
			user := func(tenant sluice.TenantID, u sluice.UserID, w sluice.Window) ledger.Spend {
				i := slices.IndexFunc(got, func(s ledger.Spend) bool { return s.Tenant == tenant && s.User == u && s.Window == w })
				if i < 0 {
					return ledger.Spend{}
				}
				s := got[i]
				s.Start = time.Time{}
				return s
			}
			for _, want := range []ledger.Spend{
				took(ledger.Spend{Scope: sluice.ScopeUser, Tenant: "acme", User: "u1", Window: sluice.PerMonth}, 2, 3),
				took(ledger.Spend{Scope: sluice.ScopeUser, Tenant: "acme", User: "u1", Window: sluice.PerDay}, 1, 2),
				took(ledger.Spend{Scope: sluice.ScopeUser, Tenant: "acme", User: "u2", Window: sluice.PerHour}, 1, 1),
			} {
				if d := cmp.Diff(want, user(want.Tenant, want.User, want.Window)); d != "" {
					t.Errorf("user (-want +got):\n%s", d)
				}
			}
			runs := slices.DeleteFunc(got, func(s ledger.Spend) bool { return s.Scope != sluice.ScopeRun })
			want := []ledger.Spend{
				took(ledger.Spend{Scope: sluice.ScopeRun, Tenant: "acme", Run: "deep", Window: sluice.PerRun, Start: noon.Add(-26 * time.Hour)}, 2, 3),
				took(ledger.Spend{Scope: sluice.ScopeRun, Tenant: "globex", Run: "deep", Window: sluice.PerRun, Start: noon.Add(-time.Minute)}, 1, 1),
			}
			if d := cmp.Diff(want, runs); d != "" {
				t.Errorf("runs (-want +got):\n%s", d)
			}
		})
	}
}

func testVerify(t *testing.T, fresh Fresh) {
	dsn := fresh(t)
	db := Open(t, dsn, store.Options{})
	must(t, db.Append(t.Context(), varied(50)))
	verified(t, db, 50)
	for _, damage := range []string{
		"UPDATE usage_hours SET cost = cost + 1 WHERE model = 'large'",
		"DELETE FROM user_hours WHERE user_id = 'u3'",
	} {
		raw(t, dsn, damage)
		a, err := db.Verify(t.Context())
		must(t, err)
		if a.OK() || len(a.Differences) > 4*20 {
			t.Errorf("%s: %d differences found", damage, len(a.Differences))
		}
	}
}
