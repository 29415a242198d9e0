package admin

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"sluice"
	"sluice/internal/auth"
)

// Tenant holds projects and has a plan.
type Tenant struct {
	ID string `json:"id"`
	TenantFields
	Projects []Project  `json:"projects" doc:"The project default exists without being listed"`
	Declared string     `json:"declared,omitempty" doc:"file:line that owns it; empty when it can be changed here"`
	Created  *time.Time `json:"created,omitempty"`
	Updated  *time.Time `json:"updated,omitempty"`
	Warned
}

// TenantFields is what a tenant says. In an update, fields that are left out
// stay.
type TenantFields struct {
	Name       *string   `json:"name,omitempty" maxLength:"200" doc:"For humans"`
	Plan       *string   `json:"plan,omitempty" maxLength:"64" doc:"Empty: no limits, class standard"`
	Suspended  *bool     `json:"suspended,omitempty" doc:"None of its keys is admitted"`
	Models     *[]string `json:"models,omitempty" maxItems:"1000" doc:"Narrows the plan's; empty changes nothing"`
	Limits     Limits    `json:"limits,omitempty" doc:"Each replaces the plan's of the same name"`
	LimitsMode *string   `json:"limits_mode,omitempty" enum:",enforce,shadow,off" doc:"In place of the plan's; empty takes the plan's"`

	Translation *string `json:"translation,omitempty" enum:",strict,warn" doc:"In place of the plan's; empty takes the plan's"`
	ForeignIDs  *string `json:"foreign_ids,omitempty" enum:",refuse,allow" doc:"In place of the plan's; empty takes the plan's"`
	FetchMedia  *string `json:"fetch_media,omitempty" enum:",refuse,allow" doc:"In place of the plan's; empty takes the plan's"`

	OutputCache *string `json:"output_cache,omitempty" maxLength:"200" doc:"In place of the plan's; empty takes the plan's, and ttl=0s keeps none"`

	Degrade *string `json:"degrade,omitempty" maxLength:"200" doc:"Consent to a smaller model while a pool is short of capacity, in place of the plan's: the model that may serve in place of the one asked for, or off; empty takes the plan's"`

	Hooks *[]string `json:"hooks,omitempty" maxItems:"20" doc:"Hooks that look into requests and answers, by name, after the plan's; empty names none"`
	Residency
}

func tenantView(t *auth.Tenant) Tenant {
	out := Tenant{ID: string(t.ID), Declared: place(t.Origin), Created: moment(t.Created), Updated: moment(t.Updated), Projects: []Project{}}
	plan := string(t.Plan)
	out.Plan = &plan
	if t.Name != "" {
		out.Name = &t.Name
	}
	if t.Suspended {
		out.Suspended = &t.Suspended
	}
	if len(t.Models) > 0 {
		names := words(t.Models)
		out.Models = &names
	}
	out.Limits, out.Residency, out.Translation, out.ForeignIDs = limitsOf(t.Limits), residencyOf(t.Residency), translationOf(t.Translation), foreignOf(t.ForeignIDs)
	out.FetchMedia, out.Degrade = fetchOf(t.FetchMedia), degradeOf(t.Degrade)
	out.Hooks, out.OutputCache = hooksOf(t.Hooks), outputCacheOf(t.OutputCache)
	if t.LimitsMode != nil {
		mode := t.LimitsMode.String()
		out.LimitsMode = &mode
	}
	for i := range t.Projects {
		out.Projects = append(out.Projects, projectView(&t.Projects[i], t.Origin))
	}
	return out
}

func (f *TenantFields) apply(t *auth.Tenant) (err error) {
	set(&t.Name, f.Name)
	set(&t.Suspended, f.Suspended)
	if f.Plan != nil {
		t.Plan = sluice.PlanID(*f.Plan)
	}
	if f.Models != nil {
		t.Models = ids[sluice.ModelID](*f.Models)
	}
	f.Residency.apply(&t.Residency)
	applyDegrade(&t.Degrade, f.Degrade)
	if f.LimitsMode != nil {
		t.LimitsMode = nil
		if *f.LimitsMode != "" {
			t.LimitsMode = new(sluice.LimitMode)
			if err := t.LimitsMode.UnmarshalText([]byte(*f.LimitsMode)); err != nil {
				return sluice.Invalid("limits_mode", "is wrong: %s", err)
			}
		}
	}
	if err := applyTranslation(&t.Translation, f.Translation); err != nil {
		return err
	}
	if err := applyFetch(&t.FetchMedia, f.FetchMedia); err != nil {
		return err
	}
	if err := applyOutputCache(&t.OutputCache, f.OutputCache); err != nil {
		return err
	}
	if err := applyForeign(&t.ForeignIDs, f.ForeignIDs); err != nil {
		return err
	}
	t.Limits, err = f.Limits.apply(t.Limits, "limits")
	return err
}

// The inputs and outputs of the tenant and project operations.
type (
	// TenantPath is the tenant that a path names.
	TenantPath struct {
		Tenant string `path:"tenant" maxLength:"64"`
	}
	// ProjectPath is the project that a path names.
	ProjectPath struct {
		TenantPath
		Project string `path:"project" maxLength:"64"`
	}
	createTenantIn struct {
		Mutation
		Body struct {
			ID string `json:"id" maxLength:"64" doc:"1 to 64 of a-z, 0-9, dot, underscore and hyphen"`
			TenantFields
		}
	}
	updateTenantIn struct {
		TenantPath
		Mutation
		Body TenantFields
	}
	tenantRef struct {
		TenantPath
		Mutation
	}
	createProjectIn struct {
		TenantPath
		Mutation
		Body struct {
			ID string `json:"id" maxLength:"64" doc:"1 to 64 of a-z, 0-9, dot, underscore and hyphen"`
			ProjectFields
		}
	}
	updateProjectIn struct {
		ProjectPath
		Mutation
		Body ProjectFields
	}
	projectRef struct {
		ProjectPath
		Mutation
	}
	tenantOut  struct{ Body Tenant }
	tenantsOut struct {
		Body struct {
			Tenants []Tenant `json:"tenants"`
		}
	}
	projectOut  struct{ Body Project }
	projectsOut struct {
		Body struct {
			Projects []Project `json:"projects"`
		}
	}
)

func (a *API) registerTenants(api huma.API) {
	tags := []string{"tenants"}
	const all, one = "/admin/v1/tenants", "/admin/v1/tenants/{tenant}"
	register(a, api, huma.Operation{OperationID: "list-tenants", Method: http.MethodGet, Path: all, Summary: "List tenants", Tags: tags}, a.listTenants)
	register(a, api, huma.Operation{OperationID: "show-tenant", Method: http.MethodGet, Path: one, Summary: "Show a tenant", Tags: tags, Errors: []int{404}},
		func(ctx context.Context, in *TenantPath) (*tenantOut, error) {
			t, err := a.records.tenant(ctx, sluice.TenantID(in.Tenant))
			return &tenantOut{Body: tenantView(&t)}, err
		})
	register(a, api, huma.Operation{OperationID: "create-tenant", Method: http.MethodPost, Path: all, Summary: "Create a tenant", Tags: tags, DefaultStatus: 201, Errors: []int{409}}, a.createTenant)
	register(a, api, huma.Operation{OperationID: "update-tenant", Method: http.MethodPatch, Path: one, Summary: "Change a tenant", Tags: tags, Errors: []int{404, 409}}, a.updateTenant)
	register(a, api, huma.Operation{OperationID: "delete-tenant", Method: http.MethodDelete, Path: one, Summary: "Delete a tenant without keys; its ledger stays", Tags: tags, DefaultStatus: 204, Errors: []int{404, 409}}, a.deleteTenant)
	a.registerProjects(api)
}

func (a *API) listTenants(ctx context.Context, _ *struct{}) (*tenantsOut, error) {
	all, err := a.records.tenants(ctx)
	if err != nil {
		return nil, err
	}
	out := &tenantsOut{}
	out.Body.Tenants = make([]Tenant, 0, len(all))
	for i := range all {
		out.Body.Tenants = append(out.Body.Tenants, tenantView(&all[i]))
	}
	return out, nil
}

// knownPlan refuses a tenant's plan that does not exist.
func (a *API) knownPlan(ctx context.Context, id sluice.PlanID) error {
	if id == "" {
		return nil
	}
	if _, err := a.records.plan(ctx, id); err != nil {
		if sluice.AsError(err).Kind != sluice.KindNotFound {
			return err
		}
		return hinted(sluice.Invalid("plan", "names %q, which does not exist", id), "create it first, or see GET /admin/v1/plans")
	}
	return nil
}

func (a *API) createTenant(ctx context.Context, in *createTenantIn) (*tenantOut, error) {
	a.records.mu.Lock()
	defer a.records.mu.Unlock()
	if err := sluice.ValidName(in.Body.ID); err != nil {
		return nil, sluice.Invalid("id", "is wrong: %s", err)
	}
	old, err := a.records.tenant(ctx, sluice.TenantID(in.Body.ID))
	switch {
	case err == nil:
		if err := owned("tenant", in.Body.ID, old.Origin); err != nil {
			return nil, err
		}
		return nil, exists("tenant", in.Body.ID)
	case sluice.AsError(err).Kind != sluice.KindNotFound:
		return nil, err
	}
	t := auth.Tenant{ID: sluice.TenantID(in.Body.ID)}
	if err := in.Body.TenantFields.apply(&t); err != nil {
		return nil, err
	}
	if err := a.applyHooks(&t.Hooks, in.Body.Hooks); err != nil {
		return nil, err
	}
	if err := a.knownPlan(ctx, t.Plan); err != nil {
		return nil, err
	}
	if !in.DryRun {
		if err := a.o.Tenants.CreateTenant(ctx, t); err != nil {
			return nil, err
		}
		if err := a.tenantChanged(ctx, &t, "tenant created"); err != nil {
			return nil, err
		}
	}
	out := &tenantOut{Body: tenantView(&t)}
	out.Body.Warned = a.unknownModels(in.Body.Models).and(a.idleConsent(in.Body.Degrade, t.Models))
	return out, nil
}

func (a *API) updateTenant(ctx context.Context, in *updateTenantIn) (*tenantOut, error) {
	a.records.mu.Lock()
	defer a.records.mu.Unlock()
	t, err := a.records.writable(ctx, sluice.TenantID(in.Tenant))
	if err != nil {
		return nil, err
	}
	if err := in.Body.apply(&t); err != nil {
		return nil, err
	}
	if err := a.applyHooks(&t.Hooks, in.Body.Hooks); err != nil {
		return nil, err
	}
	if err := a.knownPlan(ctx, t.Plan); err != nil {
		return nil, err
	}
	if err := a.storeTenant(ctx, &t, in.DryRun, "tenant updated"); err != nil {
		return nil, err
	}
	out := &tenantOut{Body: tenantView(&t)}
	out.Body.Warned = a.unknownModels(in.Body.Models).and(a.idleConsent(in.Body.Degrade, t.Models))
	return out, nil
}

// storeTenant replaces a tenant, unless it is a dry run, and reads it again. The
// store finds a change by somebody else in between by t.Updated.
func (a *API) storeTenant(ctx context.Context, t *auth.Tenant, dry bool, what string) error {
	if dry {
		return nil
	}
	if err := a.o.Tenants.UpdateTenant(ctx, *t); err != nil {
		return err
	}
	return a.tenantChanged(ctx, t, what)
}

// tenantChanged makes a change take effect and reads what the store has now.
func (a *API) tenantChanged(ctx context.Context, t *auth.Tenant, what string) (err error) {
	if err := a.changed(ctx, what, string(t.ID)); err != nil {
		return err
	}
	*t, err = a.records.tenant(ctx, t.ID)
	return err
}

func (a *API) deleteTenant(ctx context.Context, in *tenantRef) (*noneOut, error) {
	a.records.mu.Lock()
	defer a.records.mu.Unlock()
	t, err := a.records.writable(ctx, sluice.TenantID(in.Tenant))
	if err != nil {
		return nil, err
	}
	if err := a.withoutKeys(ctx, t.ID, ""); err != nil {
		return nil, err
	}
	if in.DryRun {
		return &noneOut{}, nil
	}
	if err := a.o.Tenants.DeleteTenant(ctx, t.ID); err != nil {
		return nil, err
	}
	return &noneOut{}, a.changed(ctx, "tenant deleted", in.Tenant)
}

// withoutKeys refuses to delete a tenant, or one project of it, that has keys. A
// revoked key counts: its history would lose its owner.
func (a *API) withoutKeys(ctx context.Context, t sluice.TenantID, p sluice.ProjectID) error {
	keys, err := a.records.keys(ctx, t)
	if err != nil {
		return err
	}
	for i := range keys {
		if p == "" || projectOf(&keys[i]) == p {
			return &sluice.Error{
				Kind: sluice.KindConflict, Reason: sluice.InvalidRequest,
				Msg: fmt.Sprintf("tenant %q still has keys, such as %q", t, keys[i].ID), Hint: "suspend the tenant instead, or revoke its keys: both stop it within seconds",
			}
		}
	}
	return nil
}
