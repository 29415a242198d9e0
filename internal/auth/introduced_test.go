package auth

import (
	"strings"
	"testing"
	"time"

	"sluice"
)

// What a tenant is bounded by anew is told, whatever brings it; what only changes is not.
func TestIntroduced(t *testing.T) {
	m := mustMint(t, "prod")
	day := func(d sluice.Dimension, n int64) []sluice.Limit { return []sluice.Limit{lim(d, sluice.PerDay, n)} }
	mode := func(m sluice.LimitMode) *sluice.LimitMode { return &m }
	bounded := func(r *Records) {
		r.Plans[0].Limits, r.Plans[0].PerKey, r.Plans[0].PerModel = day(sluice.Spend, 9), day(sluice.Requests, 9), map[sluice.ModelID][]sluice.Limit{AnyModel: day(sluice.Requests, 9)}
	}
	all := func(changes ...func(*Records)) func(*Records) {
		return func(r *Records) {
			for _, c := range changes {
				c(r)
			}
		}
	}
	const everything = "key requests_per_day of acme, tenant spend_per_day of acme, tenant_model requests_per_day of acme"
	for name, tt := range map[string]struct {
		was, is func(*Records)
		want    string
	}{
		"nothing":       {nil, nil, ""},
		"a plan's":      {nil, bounded, everything},
		"lifted":        {bounded, nil, ""},
		"other amounts": {bounded, all(bounded, func(r *Records) { r.Plans[0].Limits = day(sluice.Spend, 1) }), ""},
		"a bucket and a gauge": {nil, func(r *Records) {
			r.Plans[0].Limits = []sluice.Limit{lim(sluice.Requests, sluice.PerMinute, 1), lim(sluice.Concurrency, sluice.NoWindow, 1)}
		}, ""},
		"another window": {bounded, all(bounded, func(r *Records) {
			r.Plans[0].Limits = append(day(sluice.Spend, 9), lim(sluice.Spend, sluice.PerMonth, 9))
		}), "tenant spend_per_month of acme"},
		"of users and projects": {nil, func(r *Records) {
			r.Plans[0].PerUser, r.Plans[0].PerProject = day(sluice.Spend, 1), day(sluice.Requests, 1)
		}, "user spend_per_day of acme, project requests_per_day of acme"},
		"the tenant's own": {bounded, all(bounded, func(r *Records) { r.Tenants[0].Limits = day(sluice.OutputTokens, 1) }), "tenant output_tokens_per_day of acme"},
		"no longer lifted": {
			all(bounded, func(r *Records) { r.Tenants[0].Limits = day(sluice.Spend, Unlimited) }), bounded,
			"tenant spend_per_day of acme",
		},
		"a project's own": {nil, func(r *Records) { r.Tenants[0].Projects[0].Limits = day(sluice.Spend, 1) }, "project spend_per_day of acme"},
		"a project's lifting": {func(r *Records) {
			r.Plans[0].PerProject = day(sluice.Spend, 1)
			r.Tenants[0].Projects[0].Limits = day(sluice.Spend, Unlimited)
		}, func(r *Records) { r.Plans[0].PerProject = day(sluice.Spend, 1) }, "project spend_per_day of acme"},
		"a key's own":     {bounded, all(bounded, func(r *Records) { r.Keys[0].Limits = day(sluice.Spend, 1) }), "key spend_per_day of acme"},
		"a key's lifting": {all(bounded, func(r *Records) { r.Keys[0].Limits = day(sluice.Requests, Unlimited) }), bounded, "key requests_per_day of acme"},
		"of one model": {
			bounded, all(bounded, func(r *Records) { r.Plans[0].PerModel["m"] = day(sluice.Spend, 1) }),
			"tenant_model spend_per_day of acme",
		},
		"of a model that had its own": {func(r *Records) { r.Plans[0].PerModel = map[sluice.ModelID][]sluice.Limit{"m": day(sluice.Spend, 1)} }, func(r *Records) {
			r.Plans[0].PerModel = map[sluice.ModelID][]sluice.Limit{AnyModel: day(sluice.Spend, 1)}
		}, "tenant_model spend_per_day of acme"},
		"another plan": {nil, func(r *Records) {
			p := DefaultPlan("silver")
			p.Limits = day(sluice.Requests, 1)
			r.Plans, r.Tenants[0].Plan = append(r.Plans, p), "silver"
		}, "tenant requests_per_day of acme"},
		"a plan that was missing": {all(bounded, func(r *Records) { r.Plans = nil }), bounded, everything},
		"limits that were off":    {all(bounded, func(r *Records) { r.Plans[0].LimitsMode = sluice.Off }), bounded, everything},
		"off by the tenant":       {nil, all(bounded, func(r *Records) { r.Tenants[0].LimitsMode = mode(sluice.Off) }), ""},
		"the naive policy":        {all(func(r *Records) { r.Plans[0].Limits = day(sluice.OutputTokens, 1) }, func(r *Records) { r.Naive = true }), func(r *Records) { r.Plans[0].Limits = day(sluice.OutputTokens, 1) }, "tenant output_tokens_per_day of acme"},
		"a new key": {bounded, all(bounded, func(r *Records) {
			r.Keys = append(r.Keys, Key{ID: "other", Tenant: "acme", Limits: day(sluice.Spend, 1)})
		}), ""},
		"a new tenant": {bounded, all(bounded, func(r *Records) { r.Tenants = append(r.Tenants, Tenant{ID: "beta", Plan: "gold"}) }), ""},
		"a new tenant of the file": {bounded, all(bounded, func(r *Records) {
			r.Tenants = append(r.Tenants, Tenant{ID: "beta", Plan: "gold", Origin: Origin{File: "f"}})
		}), strings.ReplaceAll(everything, "acme", "beta")},
	} {
		t.Run(name, func(t *testing.T) {
			before := Compile(CompileOptions{}, house(m, tt.was))
			var told []string
			for _, i := range Compile(CompileOptions{Before: before}, house(m, tt.is)).Introduced(before) {
				told = append(told, i.String())
			}
			if got := strings.Join(told, ", "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// What the sources say at the start introduces nothing: its windows are seeded.
func TestNothingIsIntroducedByTheStart(t *testing.T) {
	m := mustMint(t, "prod")
	before := Compile(CompileOptions{Partial: true}, house(m, nil))
	next := Compile(CompileOptions{Before: before}, house(m, func(r *Records) { r.Plans[0].Limits = []sluice.Limit{lim(sluice.Spend, sluice.PerDay, 1)} }))
	if got := next.Introduced(before); got != nil {
		t.Errorf("got %v", got)
	}
}

// Introduce sees every new snapshot before anybody else does.
func TestIntroduceComesBefore(t *testing.T) {
	m := mustMint(t, "prod")
	var k *Keeper
	var calls int
	k = NewKeeper(KeeperOptions{Poll: time.Hour, Introduce: func(before, next *Snapshot) {
		calls++
		if k.Snapshot() != before || before == next {
			t.Errorf("call %d comes when the snapshot is in force", calls)
		}
		if got, want := next.Tenants(), calls; got != want {
			t.Errorf("call %d: %d tenants", calls, got)
		}
	}}, Records{}, &table{records: Records{Tenants: []Tenant{{ID: "stored"}}}})
	k.Declare(house(m, nil))
	if err := k.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := k.Refresh(t.Context()); err != nil { // nothing is new
		t.Fatal(err)
	}
	if calls != 2 || k.Snapshot().Tenants() != 2 {
		t.Errorf("%d calls, %d tenants", calls, k.Snapshot().Tenants())
	}
}
