package admin

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/auth"
)

// full reports the fields of v that a sample leaves empty, but for those excepted.
func full(t *testing.T, v any, except ...string) {
	t.Helper()
	s := reflect.ValueOf(v)
	for i := range s.NumField() {
		if name := s.Type().Field(i).Name; s.Field(i).IsZero() && !slices.Contains(except, name) {
			t.Errorf("the sample leaves %s.%s empty: give it a value, and see that the API has the field", s.Type().Name(), name)
		}
	}
}

func each(d sluice.Dimension, w sluice.Window, n int64) []sluice.Limit {
	return []sluice.Limit{{Dimension: d, Window: w, Amount: n}}
}

// TestTheAPIHasAllOfARecord shows a record that says all that there is, gives what is
// shown to a record that says nothing, and wants the same record: a field that the API
// does not show or does not take is lost on the way.
func TestTheAPIHasAllOfARecord(t *testing.T) {
	where := auth.Residency{Regions: []string{"eu"}, Providers: []sluice.ProviderID{"openai"}, Risk: sluice.RiskHigh}
	kept := &auth.OutputCache{TTL: time.Minute, Percent: 20, Asked: true, PerUser: true, Apart: true}
	full(t, where)
	full(t, *kept)
	smaller, shadow := sluice.ModelID("small"), sluice.Shadow
	t.Run("plan", func(t *testing.T) {
		want := auth.Plan{
			ID: "gold", Class: sluice.Standard, Classes: []sluice.Class{sluice.Interactive}, Weight: 3, Models: []sluice.ModelID{"fast"},
			MaxWait: time.Second, MaxOutput: 5, Spend: auth.SpendSoft, LimitsMode: shadow, InputCeiling: 7, OutputCeiling: 8,
			BudgetStatus: 402, JournalSync: auth.SyncGroup, Translation: "warn", ForeignIDs: "allow", FetchMedia: "allow", Hooks: []string{"pii"},
			Degrade: smaller, OutputCache: kept, EngineFields: []string{"priority"}, Residency: where,
			Limits: each(sluice.Requests, sluice.PerMinute, 1), PerProject: each(sluice.Requests, sluice.PerMinute, 2), PerKey: each(sluice.Requests, sluice.PerMinute, 3),
			PerUser: each(sluice.Requests, sluice.PerMinute, 4), PerRun: each(sluice.Requests, sluice.PerRun, 5),
			PerModel: map[sluice.ModelID][]sluice.Limit{auth.AnyModel: each(sluice.Spend, sluice.PerDay, 6)},
		}
		full(t, want, "Origin", "Created", "Updated")
		got, fields := auth.DefaultPlan("gold"), wired(t, planView(&want).PlanFields)
		err := fields.apply(&got)
		hooked(t, err, &got.Hooks, fields.Hooks)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
	t.Run("tenant", func(t *testing.T) {
		want := auth.Tenant{
			ID: "acme", Name: "Acme", Plan: "gold", Suspended: true, Models: []sluice.ModelID{"fast"}, Limits: each(sluice.Requests, sluice.PerMinute, auth.Unlimited),
			LimitsMode: &shadow, Translation: "warn", ForeignIDs: "allow", FetchMedia: "allow", Hooks: []string{"pii"}, OutputCache: kept, Degrade: &smaller, Residency: where,
		}
		full(t, want, "Projects", "Origin", "Created", "Updated")
		got, fields := auth.Tenant{ID: "acme"}, wired(t, tenantView(&want).TenantFields)
		err := fields.apply(&got)
		hooked(t, err, &got.Hooks, fields.Hooks)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
	t.Run("project", func(t *testing.T) {
		want := auth.Project{
			ID: "web", Name: "Web", Models: []sluice.ModelID{"fast"}, Limits: each(sluice.Requests, sluice.PerMinute, 1),
			Translation: "warn", Hooks: []string{"pii"}, Residency: where,
		}
		full(t, want)
		got, fields := auth.Project{ID: "web"}, wired(t, projectView(&want, auth.Origin{}).ProjectFields)
		err := fields.apply(&got)
		hooked(t, err, &got.Hooks, fields.Hooks)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
	t.Run("key", func(t *testing.T) {
		b := newBench(t)
		ends := b.now.Add(time.Hour).UTC()
		want := auth.Key{
			ID: "k", Env: "prod", Name: "ci", Tenant: "acme", Project: "web", Models: []sluice.ModelID{"fast"}, Limits: each(sluice.Requests, sluice.PerMinute, 1),
			PerRun: each(sluice.Requests, sluice.PerRun, 2), InputCeiling: 3, OutputCeiling: 4, Residency: where, NotAfter: ends, Disabled: true,
		}
		full(t, want, "Secrets", "Revoked", "Origin", "Created", "Updated")
		seen := b.api.keyView(&want)
		expires, disabled := seen.Expires.Format(time.RFC3339Nano), seen.State == "disabled"
		fields := KeyFields{
			Name: &seen.Name, Models: &seen.Models, Limits: seen.Limits, PerRun: seen.PerRun, InputCeiling: seen.InputCeiling, OutputCeiling: seen.OutputCeiling,
			Residency: seen.Residency, Expires: &expires, Disabled: &disabled,
		}
		full(t, fields)
		fields = wired(t, fields)
		got := auth.Key{ID: "k", Env: seen.Env, Tenant: sluice.TenantID(seen.Tenant), Project: sluice.ProjectID(seen.Project)}
		if err := fields.apply(&got, b.now); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}

// wired is v as it comes back from JSON.
func wired[T any](t *testing.T, v T) (out T) {
	t.Helper()
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// hooked is what the API does with hooks beside the other fields.
func hooked(t *testing.T, err error, to, hooks *[]string) {
	t.Helper()
	if err == nil {
		err = (&API{}).applyHooks(to, hooks)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestDegradeOfStoredRecords gives and takes back the consent to a smaller model, and
// looks at what a key of the tenant then has.
func TestDegradeOfStoredRecords(t *testing.T) {
	b := newBench(t, func(o *Options) { o.HasModel = func(m string) bool { return m != "gone" } })
	var k NewKey
	b.do("POST", "/admin/v1/tenants/acme/keys", `{}`, 201, &k)
	for _, c := range []struct {
		target, body    string
		want            sluice.ModelID
		shown, warnings string
	}{
		{"plans/std", `{"degrade":"small"}`, "small", `"degrade":"small"`, ""},
		{"tenants/acme", `{"degrade":"tiny"}`, "tiny", `"degrade":"tiny"`, ""},
		{"tenants/acme", `{"name":"Acme"}`, "tiny", `"degrade":"tiny"`, ""},
		{"tenants/acme", `{"degrade":"off"}`, "", `"degrade":"off"`, ""},
		{"tenants/acme", `{"degrade":""}`, "small", "", ""},
		{"plans/std", `{"degrade":"gone"}`, "gone", `"degrade":"gone"`, `no model \"gone\" is configured now`},
		{"plans/std", `{"degrade":"tiny","models":["large"]}`, "tiny", `"degrade":"tiny"`, "it never serves"},
		{"plans/std", `{"degrade":"off"}`, "", "", ""},
	} {
		text := b.do("PATCH", "/admin/v1/"+c.target, c.body, 200, nil)
		if c.shown == "" && strings.Contains(text, `"degrade"`) || !strings.Contains(text, c.shown) || !strings.Contains(text, c.warnings) || c.warnings == "" && strings.Contains(text, "warnings") {
			t.Errorf("%s %s: %s", c.target, c.body, text)
		}
		p, err := b.keeper.Identify(k.Credential, b.now)
		if err != nil {
			t.Fatal(err)
		}
		if p.Policy.Degrade != c.want {
			t.Errorf("%s %s: the key's requests may be served by %q, want %q", c.target, c.body, p.Policy.Degrade, c.want)
		}
	}
}
