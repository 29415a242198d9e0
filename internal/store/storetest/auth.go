package storetest

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/store"
)

var authTests = []namedTest{
	{"plans", testPlans},
	{"tenants", testTenants},
	{"keys", testKeys},
	{"admin tokens", testAdmins},
	{"load and version", testLoad},
	{"changes at the same time", testLostUpdate},
}

// unstamped compares records without the times that the store sets.
var unstamped = cmp.Options{
	cmpopts.IgnoreFields(auth.Plan{}, "Created", "Updated"),
	cmpopts.IgnoreFields(auth.Tenant{}, "Created", "Updated"),
	cmpopts.IgnoreFields(auth.Key{}, "Created", "Updated"),
	cmpopts.IgnoreFields(auth.AdminToken{}, "Created"),
}

func plan(id sluice.PlanID) auth.Plan {
	p := auth.DefaultPlan(id)
	p.Classes = []sluice.Class{sluice.Interactive}
	p.Models = []sluice.ModelID{"fast", "large"}
	p.MaxWait, p.MaxOutput, p.Spend, p.JournalSync = 3*time.Second, 4096, auth.SpendSoft, auth.SyncGroup
	p.Limits = []sluice.Limit{{Dimension: sluice.Spend, Window: sluice.PerMonth, Amount: int64(100 * sluice.Dollar)}}
	p.PerKey = []sluice.Limit{{Dimension: sluice.Concurrency, Amount: 4}}
	p.PerModel = map[sluice.ModelID][]sluice.Limit{auth.AnyModel: {{Dimension: sluice.Requests, Window: sluice.PerMinute, Amount: 60}}}
	p.Degrade = "small"
	return p
}

func tenant(id sluice.TenantID) auth.Tenant {
	none := sluice.ModelID("") // takes the plan's consent back, which is not to say nothing
	return auth.Tenant{
		Degrade: &none, ID: id, Name: "Acme Ltd", Plan: "gold", Models: []sluice.ModelID{"fast"},
		Limits:   []sluice.Limit{{Dimension: sluice.Requests, Window: sluice.PerMinute, Amount: 600}},
		Projects: []auth.Project{{ID: "app", Name: "the app"}, {ID: "web", Models: []sluice.ModelID{"fast"}}},
	}
}

func key(t sluice.TenantID, id sluice.KeyID) auth.Key {
	return auth.Key{
		ID: id, Env: "prod", Name: "ci", Tenant: t, Project: "web",
		Secrets: []auth.SecretHash{{Hash: auth.Hash{1, 2, 3}}, {Hash: auth.Hash{9}, NotAfter: noon}},
		Models:  []sluice.ModelID{"fast"}, Limits: []sluice.Limit{{Dimension: sluice.Concurrency, Amount: 2}},
		NotAfter: noon.AddDate(1, 0, 0), Disabled: true,
	}
}

func testPlans(t *testing.T, fresh Fresh) {
	ctx, db := t.Context(), Open(t, fresh(t), store.Options{})
	must(t, db.CreatePlan(ctx, plan("gold")), db.CreatePlan(ctx, plan("basic")))
	wantKind(t, db.CreatePlan(ctx, plan("gold")), sluice.KindConflict)
	got, err := db.Plan(ctx, "gold")
	must(t, err)
	if d := cmp.Diff(plan("gold"), got, unstamped); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got.Created.IsZero() || got.Updated.Location() != time.UTC {
		t.Errorf("created %v, updated %v", got.Created, got.Updated)
	}
	stale := got
	got.Weight = 7
	must(t, db.UpdatePlan(ctx, got))
	after, err := db.Plan(ctx, "gold")
	must(t, err)
	if after.Weight != 7 || !after.Created.Equal(got.Created) || !after.Updated.After(got.Updated) {
		t.Errorf("after the update: %+v", after)
	}
	wantKind(t, db.UpdatePlan(ctx, stale), sluice.KindConflict)
	wantKind(t, db.UpdatePlan(ctx, plan("none")), sluice.KindNotFound)
	_, err = db.Plan(ctx, "none")
	wantKind(t, err, sluice.KindNotFound)
	must(t, db.CreateTenant(ctx, tenant("acme")))
	wantKind(t, db.DeletePlan(ctx, "gold"), sluice.KindConflict)
	must(t, db.DeletePlan(ctx, "basic"))
	wantKind(t, db.DeletePlan(ctx, "basic"), sluice.KindNotFound)
	all, err := db.Plans(ctx)
	must(t, err)
	if len(all) != 1 || all[0].ID != "gold" {
		t.Errorf("plans %+v", all)
	}
}

func testTenants(t *testing.T, fresh Fresh) {
	ctx, db := t.Context(), Open(t, fresh(t), store.Options{})
	must(t, db.CreateTenant(ctx, tenant("acme")), db.CreateTenant(ctx, auth.Tenant{ID: "zen"}))
	wantKind(t, db.CreateTenant(ctx, tenant("acme")), sluice.KindConflict)
	got, err := db.Tenant(ctx, "acme")
	must(t, err)
	if d := cmp.Diff(tenant("acme"), got, unstamped); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	all, err := db.Tenants(ctx)
	must(t, err)
	if d := cmp.Diff([]auth.Tenant{tenant("acme"), {ID: "zen"}}, all, unstamped); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	must(t, db.CreateKey(ctx, key("acme", "k1")))
	got.Projects = got.Projects[:1] // "web" has a key
	wantKind(t, db.UpdateTenant(ctx, got), sluice.KindConflict)
	got.Projects = []auth.Project{{ID: "web"}, {ID: "new"}}
	got.Suspended, got.Plan = true, ""
	must(t, db.UpdateTenant(ctx, got))
	after, err := db.Tenant(ctx, "acme")
	must(t, err)
	if !after.Suspended || len(after.Projects) != 2 || after.Projects[0].ID != "new" {
		t.Errorf("after the update: %+v", after)
	}
	wantKind(t, db.UpdateTenant(ctx, auth.Tenant{ID: "none"}), sluice.KindNotFound)
	wantKind(t, db.UpdateTenant(ctx, auth.Tenant{}), sluice.KindNotFound)
	wantKind(t, db.CreateTenant(ctx, auth.Tenant{}), sluice.KindInvalid)
	wantKind(t, db.DeleteTenant(ctx, "acme"), sluice.KindConflict)
	must(t, db.DeleteKey(ctx, "acme", "k1"), db.DeleteTenant(ctx, "acme"))
	_, err = db.Tenant(ctx, "acme")
	wantKind(t, err, sluice.KindNotFound)
	wantKind(t, db.DeleteTenant(ctx, "acme"), sluice.KindNotFound)
}

func testKeys(t *testing.T, fresh Fresh) {
	ctx, db := t.Context(), Open(t, fresh(t), store.Options{})
	must(t, db.CreateKey(ctx, key("acme", "k1")), db.CreateKey(ctx, key("acme", "k0")), db.CreateKey(ctx, key("other", "k2")))
	wantKind(t, db.CreateKey(ctx, key("other", "k1")), sluice.KindConflict)
	got, err := db.Key(ctx, "acme", "k1")
	must(t, err)
	if d := cmp.Diff(key("acme", "k1"), got, unstamped); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, wrong := range []sluice.TenantID{"other", ""} {
		_, err = db.Key(ctx, wrong, "k1")
		wantKind(t, err, sluice.KindNotFound)
		stolen := key(wrong, "k1")
		wantKind(t, db.UpdateKey(ctx, stolen), sluice.KindNotFound)
		wantKind(t, db.DeleteKey(ctx, wrong, "k1"), sluice.KindNotFound)
	}
	mine, err := db.Keys(ctx, "acme")
	must(t, err)
	if len(mine) != 2 || mine[0].ID != "k0" || mine[1].ID != "k1" || len(mine[1].Secrets) != 2 {
		t.Errorf("keys of acme: %+v", mine)
	}
	got.Rotate(auth.Hash{42}, noon.Add(-time.Hour), time.Minute)
	got.Revoked = noon
	must(t, db.UpdateKey(ctx, got))
	after, err := db.Key(ctx, "acme", "k1")
	must(t, err)
	if d := cmp.Diff(got, after, unstamped); d != "" {
		t.Errorf("after the rotation (-want +got):\n%s", d)
	}
	must(t, db.DeleteKey(ctx, "acme", "k1"))
	wantKind(t, db.CreateKey(ctx, auth.Key{ID: "x"}), sluice.KindInvalid)
	must(t, db.CreateKey(ctx, key("acme", "k1"))) // its old secrets are gone with it
}

func testAdmins(t *testing.T, fresh Fresh) {
	ctx, db := t.Context(), Open(t, fresh(t), store.Options{})
	a := auth.AdminToken{ID: "boot", Name: "bootstrap", Hash: auth.Hash{5}, NotAfter: noon}
	must(t, db.CreateAdmin(ctx, a))
	wantKind(t, db.CreateAdmin(ctx, a), sluice.KindConflict)
	a.Revoked = noon
	must(t, db.UpdateAdmin(ctx, a))
	got, err := db.Admins(ctx)
	must(t, err)
	if d := cmp.Diff([]auth.AdminToken{a}, got, unstamped); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	wantKind(t, db.UpdateAdmin(ctx, auth.AdminToken{ID: "none"}), sluice.KindNotFound)
	wantKind(t, db.CreateAdmin(ctx, auth.AdminToken{}), sluice.KindInvalid)
}

func testLoad(t *testing.T, fresh Fresh) {
	ctx, db := t.Context(), Open(t, fresh(t), store.Options{})
	v0, err := db.Version(ctx)
	must(t, err)
	version := func(changed bool) {
		t.Helper()
		v, err := db.Version(ctx)
		must(t, err)
		if (v > v0) != changed {
			t.Errorf("version went from %d to %d", v0, v)
		}
		v0 = v
	}
	must(t, db.CreatePlan(ctx, plan("gold")))
	version(true)
	must(t, db.CreateTenant(ctx, tenant("acme")))
	version(true)
	must(t, db.CreateKey(ctx, key("acme", "k1")))
	version(true)
	must(t, db.CreateAdmin(ctx, auth.AdminToken{ID: "boot", Hash: auth.Hash{5}}))
	version(true)
	wantKind(t, db.CreatePlan(ctx, plan("gold")), sluice.KindConflict)
	version(false)
	declared := plan("declared")
	declared.Origin = auth.Origin{File: "sluice.yaml", Line: 3}
	must(t, db.CreatePlan(ctx, declared))
	version(true)
	r, err := db.Load(ctx)
	must(t, err)
	want := auth.Records{
		Version: v0, Plans: []auth.Plan{plan("declared"), plan("gold")}, Tenants: []auth.Tenant{tenant("acme")},
		Keys: []auth.Key{key("acme", "k1")}, Admins: []auth.AdminToken{{ID: "boot", Hash: auth.Hash{5}}},
	}
	if d := cmp.Diff(want, r, unstamped); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	must(t, db.DeleteKey(ctx, "acme", "k1"))
	version(true)
}

// Of changes made from one reading, one wins and the others are told.
func testLostUpdate(t *testing.T, fresh Fresh) {
	ctx, db := t.Context(), Open(t, fresh(t), store.Options{})
	must(t, db.CreatePlan(ctx, plan("gold")))
	read, err := db.Plan(ctx, "gold")
	must(t, err)
	var won atomic.Int64
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			p := read
			p.Weight = int64(i + 10)
			p.Models = slices.Clone(p.Models)
			if err := db.UpdatePlan(ctx, p); err == nil {
				won.Add(1)
			} else {
				wantKind(t, err, sluice.KindConflict)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d changes won", won.Load())
	}
}
