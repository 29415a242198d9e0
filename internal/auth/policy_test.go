package auth

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice"
)

func lim(d sluice.Dimension, w sluice.Window, n int64) sluice.Limit {
	return sluice.Limit{Dimension: d, Window: w, Amount: n}
}

func TestNarrow(t *testing.T) {
	for _, tc := range []struct {
		name       string
		a, b, want []sluice.ModelID
	}{
		{"both all", nil, nil, nil},
		{"one list", nil, []sluice.ModelID{"x"}, []sluice.ModelID{"x"}},
		{"common", []sluice.ModelID{"x", "y"}, []sluice.ModelID{"y", "z"}, []sluice.ModelID{"y"}},
		{"nothing in common allows nothing", []sluice.ModelID{"x"}, []sluice.ModelID{"y"}, nothing[sluice.ModelID]()},
		{"nothing stays nothing", nothing[sluice.ModelID](), []sluice.ModelID{"y"}, nothing[sluice.ModelID]()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, narrow(tc.a, tc.b)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if (&sluice.Policy{Models: nothing[sluice.ModelID]()}).Allows("x") {
		t.Error("a list narrowed to nothing allows a model")
	}
}

func TestPolicyOf(t *testing.T) {
	plan := DefaultPlan("gold")
	plan.Models = []sluice.ModelID{"a", "b", "c"}
	plan.Limits = []sluice.Limit{lim(sluice.Spend, sluice.PerMonth, 100), lim(sluice.Requests, sluice.PerMinute, 600)}
	plan.PerProject = []sluice.Limit{lim(sluice.Spend, sluice.PerDay, 10)}
	plan.PerKey = []sluice.Limit{lim(sluice.Requests, sluice.PerMinute, 60), lim(sluice.Concurrency, sluice.NoWindow, 4)}
	plan.PerModel = map[sluice.ModelID][]sluice.Limit{
		AnyModel: {lim(sluice.Concurrency, sluice.NoWindow, 8)},
		"a":      {lim(sluice.InputTokens, sluice.PerMinute, 1000)},
	}
	tenant := &Tenant{ID: "acme", Plan: "gold", Limits: []sluice.Limit{lim(sluice.Requests, sluice.PerMinute, 1200)}}
	project := &Project{ID: "p", Models: []sluice.ModelID{"b", "c"}, Limits: []sluice.Limit{lim(sluice.Spend, sluice.PerDay, 20)}}
	key := &Key{Models: []sluice.ModelID{"c"}, Limits: []sluice.Limit{lim(sluice.Requests, sluice.PerMinute, 5), lim(sluice.KVTokens, sluice.NoWindow, 0)}}
	want := &sluice.Policy{
		Plan: "gold", Class: sluice.Standard, Weight: 1, Models: []sluice.ModelID{"c"}, HardSpend: true, JournalSync: true,
		ByModel: map[sluice.ModelID][]sluice.Limit{"a": {lim(sluice.InputTokens, sluice.PerMinute, 1000), lim(sluice.Concurrency, sluice.NoWindow, 8)}},
	}
	want.Limits[sluice.ScopeTenant] = []sluice.Limit{lim(sluice.Requests, sluice.PerMinute, 1200), lim(sluice.Spend, sluice.PerMonth, 100)}
	want.Limits[sluice.ScopeProject] = []sluice.Limit{lim(sluice.Spend, sluice.PerDay, 20)}
	want.Limits[sluice.ScopeKey] = []sluice.Limit{lim(sluice.Requests, sluice.PerMinute, 5), lim(sluice.Concurrency, sluice.NoWindow, 4)}
	want.Limits[sluice.ScopeTenantModel] = []sluice.Limit{lim(sluice.Concurrency, sluice.NoWindow, 8)}
	if diff := cmp.Diff(want, policyOf(&plan, tenant, project, key)); diff != "" {
		t.Error(diff)
	}
}

// Plan, tenant, project and key only ever narrow where requests may go.
func TestResidencyNarrows(t *testing.T) {
	in := func(regions ...string) Residency { return Residency{Regions: regions} }
	for _, tc := range []struct {
		plan, tenant, project, key Residency
		want                       []string
	}{
		{want: nil},
		{plan: in("eu", "us"), want: []string{"eu", "us"}},
		{plan: in("eu", "us"), tenant: in("eu"), want: []string{"eu"}},
		{plan: in("eu"), tenant: in("us"), want: nothing[string]()},
		{plan: in("eu"), tenant: in("us"), key: in("us"), want: nothing[string]()},
		{project: in("eu", "us"), key: in("us", "asia"), want: []string{"us"}},
	} {
		got := policyOf(&Plan{Residency: tc.plan}, &Tenant{Residency: tc.tenant}, &Project{Residency: tc.project}, &Key{Residency: tc.key})
		if diff := cmp.Diff(tc.want, got.Regions); diff != "" {
			t.Errorf("%+v: %s", tc, diff)
		}
	}
	got := policyOf(&Plan{Residency: Residency{Providers: []sluice.ProviderID{"a", "b"}}}, &Tenant{}, nil, &Key{Residency: Residency{Providers: []sluice.ProviderID{"b"}}})
	if diff := cmp.Diff([]sluice.ProviderID{"b"}, got.Providers); diff != "" {
		t.Error(diff)
	}
	at := func(r sluice.Risk) Residency { return Residency{Risk: r} }
	for _, tc := range []struct{ plan, tenant, project, key, want sluice.Risk }{
		{0, 0, 0, 0, sluice.RiskNone},
		{sluice.RiskHigh, sluice.RiskLow, 0, sluice.RiskNormal, sluice.RiskHigh},
		{sluice.RiskLow, 0, sluice.RiskNormal, 0, sluice.RiskNormal},
		{0, 0, 0, sluice.RiskLow, sluice.RiskLow},
	} {
		if got := policyOf(&Plan{Residency: at(tc.plan)}, &Tenant{Residency: at(tc.tenant)}, &Project{Residency: at(tc.project)}, &Key{Residency: at(tc.key)}); got.Risk != tc.want {
			t.Errorf("%+v: got risk %v", tc, got.Risk)
		}
	}
}

// The last of plan, tenant and project that says what becomes of losses decides.
func TestTranslationOverrides(t *testing.T) {
	for _, tc := range []struct {
		plan, tenant, project Translation
		want                  bool
	}{
		{want: false},
		{plan: TranslationWarn, want: true},
		{plan: TranslationWarn, tenant: TranslationStrict, want: false},
		{plan: TranslationStrict, tenant: TranslationStrict, project: TranslationWarn, want: true},
		{tenant: TranslationWarn, project: TranslationStrict, want: false},
	} {
		got := policyOf(&Plan{Translation: tc.plan}, &Tenant{Translation: tc.tenant}, &Project{Translation: tc.project}, &Key{})
		if got.WarnDropped != tc.want {
			t.Errorf("%+v: got %v", tc, got.WarnDropped)
		}
	}
	if got := policyOf(&Plan{Translation: TranslationWarn}, &Tenant{}, nil, &Key{}); !got.WarnDropped {
		t.Error("a key of the default project does not have what its plan says")
	}
}

func TestJournalSyncFollowsSpend(t *testing.T) {
	budget := []sluice.Limit{lim(sluice.Spend, sluice.PerMonth, 1)}
	for _, tc := range []struct {
		name string
		plan Plan
		want bool
	}{
		{"no budget", Plan{}, false},
		{"hard budget", Plan{Limits: budget}, true},
		{"hard budget of a model", Plan{PerModel: map[sluice.ModelID][]sluice.Limit{"m": budget}}, true},
		{"soft budget", Plan{Spend: SpendSoft, Limits: budget}, false},
		{"asked for", Plan{JournalSync: SyncAlways}, true},
		{"waived", Plan{JournalSync: SyncGroup, Limits: budget}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := policyOf(&tc.plan, &Tenant{}, nil, &Key{}).JournalSync; got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// Every field of a policy is part of its identity: a field added to Policy and
// forgotten in encodePolicy would keep stale counters.
func TestEncodePolicySeesEveryField(t *testing.T) {
	variants := map[string]func(*sluice.Policy){
		"Plan":          func(p *sluice.Policy) { p.Plan = "x" },
		"Class":         func(p *sluice.Policy) { p.Class = sluice.Batch },
		"Classes":       func(p *sluice.Policy) { p.Classes = []sluice.Class{0} },
		"Weight":        func(p *sluice.Policy) { p.Weight = 9 },
		"Models":        func(p *sluice.Policy) { p.Models = nothing[sluice.ModelID]() },
		"Regions":       func(p *sluice.Policy) { p.Regions = []string{"eu"} },
		"Providers":     func(p *sluice.Policy) { p.Providers = []sluice.ProviderID{"x", "y"} },
		"Risk":          func(p *sluice.Policy) { p.Risk = sluice.RiskHigh },
		"MaxWait":       func(p *sluice.Policy) { p.MaxWait = 9 },
		"MaxOutput":     func(p *sluice.Policy) { p.MaxOutput = 9 },
		"InputCeiling":  func(p *sluice.Policy) { p.InputCeiling = 9 },
		"OutputCeiling": func(p *sluice.Policy) { p.OutputCeiling = 9 },
		"EngineFields":  func(p *sluice.Policy) { p.EngineFields = []string{"x"} },
		"Mode":          func(p *sluice.Policy) { p.Mode = sluice.Off },
		"HardSpend":     func(p *sluice.Policy) { p.HardSpend = true },
		"Budget402":     func(p *sluice.Policy) { p.Budget402 = true },
		"Hooks":         func(p *sluice.Policy) { p.Hooks = []string{"h"} },
		"Degrade":       func(p *sluice.Policy) { p.Degrade = "small" },
		"WarnDropped":   func(p *sluice.Policy) { p.WarnDropped = true },
		"ForeignState":  func(p *sluice.Policy) { p.ForeignState = true },
		"FetchMedia":    func(p *sluice.Policy) { p.FetchMedia = true },
		"JournalSync":   func(p *sluice.Policy) { p.JournalSync = true },
		"CacheTTL":      func(p *sluice.Policy) { p.CacheTTL = 9 },
		"CachePercent":  func(p *sluice.Policy) { p.CachePercent = 9 },
		"CacheAsked":    func(p *sluice.Policy) { p.CacheAsked = true },
		"CachePerUser":  func(p *sluice.Policy) { p.CachePerUser = true },
		"CacheApart":    func(p *sluice.Policy) { p.CacheApart = true },
		"Limits":        func(p *sluice.Policy) { p.Limits[2] = []sluice.Limit{{}} },
		"ByModel":       func(p *sluice.Policy) { p.ByModel = map[sluice.ModelID][]sluice.Limit{"m": nil} },
	}
	seen := map[string]string{string(encodePolicy(nil, &sluice.Policy{})): "the zero policy"}
	fields := cmpFields(sluice.Policy{})
	for _, name := range fields {
		change, ok := variants[name]
		if !ok {
			t.Errorf("field %s has no variant here: add it to encodePolicy, then here", name)
			continue
		}
		var p sluice.Policy
		change(&p)
		code := string(encodePolicy(nil, &p))
		if seen[code] != "" {
			t.Errorf("%s encodes as %s does", name, seen[code])
		}
		seen[code] = name
	}
}
