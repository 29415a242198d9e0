package cli

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"sluice/internal/admin"
)

const tenantsPath = "/admin/v1/tenants"

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

type tenantCmd struct {
	List   tenantListCmd   `cmd:"" help:"List tenants."`
	Show   tenantShowCmd   `cmd:"" help:"Show a tenant."`
	Create tenantCreateCmd `cmd:"" help:"Create a tenant."`
	Update tenantUpdateCmd `cmd:"" help:"Change a tenant; what is not named stays."`
	Delete tenantDeleteCmd `cmd:"" help:"Delete a tenant without keys; its ledger stays."`
}

type tenantFields struct {
	Name      *string  `help:"A name for humans."`
	Plan      *string  `help:"Its plan; without one there are no limits." placeholder:"PLAN"`
	Suspended *bool    `negatable:"" help:"Admit none of its keys."`
	Model     []string `help:"Allowed public model names, of those that the plan allows." placeholder:"MODEL"`
	residencyFlags
	LimitsMode  *string  `enum:",enforce,shadow,off" help:"In place of the plan's: enforce, shadow or off; empty takes the plan's." placeholder:"MODE"`
	Translation *string  `enum:",strict,warn" help:"In place of the plan's: strict or warn; empty takes the plan's." placeholder:"MODE"`
	ForeignIDs  *string  `name:"foreign-ids" enum:",refuse,allow" help:"In place of the plan's: refuse or allow; empty takes the plan's." placeholder:"MODE"`
	FetchMedia  *string  `name:"fetch-media" enum:",refuse,allow" help:"In place of the plan's: refuse or allow; empty takes the plan's." placeholder:"MODE"`
	OutputCache *string  `name:"output-cache" help:"In place of the plan's; empty takes the plan's, and ttl=0s keeps none." placeholder:"SPEC"`
	Degrade     *string  `help:"Consent to a smaller model while a pool is short of capacity, in place of the plan's: the model that may serve, or off; empty takes the plan's." placeholder:"MODEL"`
	Hooks       []string `name:"hooks" help:"Hooks that look into requests and answers, by name, after the plan's; none removes all." placeholder:"HOOK"`

	Limit map[string]string `mapsep:"," help:"Replaces the plan's of the same name; none lifts it, default takes the plan's." placeholder:"NAME=AMOUNT"`
}

func (f *tenantFields) fields() admin.TenantFields {
	return admin.TenantFields{Name: f.Name, Plan: f.Plan, Suspended: f.Suspended, Models: names(f.Model), Limits: limitsFlag(f.Limit), LimitsMode: f.LimitsMode, Translation: f.Translation, ForeignIDs: f.ForeignIDs, FetchMedia: f.FetchMedia, Degrade: f.Degrade, Hooks: names(f.Hooks), OutputCache: f.OutputCache, Residency: f.residency()}
}

type tenantListCmd struct {
	connection
	output
}

// tenants lists all tenants.
func (c *client) tenants(ctx context.Context) ([]admin.Tenant, error) {
	var out struct {
		Tenants []admin.Tenant `json:"tenants"`
	}
	return out.Tenants, c.get(ctx, tenantsPath, nil, &out)
}

// Run lists tenants.
func (c *tenantListCmd) Run(ctx context.Context, env *Env) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	all, err := api.tenants(ctx)
	if err != nil {
		return err
	}
	v := view{data: all, columns: []string{"tenant", "plan", "projects", "state", "limits", "declared"}}
	for i := range all {
		t := &all[i]
		state := "active"
		if deref(t.Suspended) {
			state = "suspended"
		}
		v.rows = append(v.rows, []string{t.ID, deref(t.Plan), projectIDs(t), state, limitsText(t.Limits), t.Declared})
	}
	return c.print(env.Stdout, v)
}

func projectIDs(t *admin.Tenant) string {
	out := make([]string, 0, len(t.Projects))
	for i := range t.Projects {
		out = append(out, t.Projects[i].ID)
	}
	return strings.Join(out, " ")
}

func tenantView(t *admin.Tenant) view {
	suspended := ""
	if deref(t.Suspended) {
		suspended = "yes"
	}
	return view{data: t, columns: fieldColumns, rows: pairs("tenant", t.ID, "name", deref(t.Name), "plan", deref(t.Plan), "suspended", suspended,
		"models", join(t.Models), "regions", join(t.Regions), "providers", join(t.Providers), "risk", deref(t.Risk), "limits", limitsText(t.Limits), "limits mode", deref(t.LimitsMode), "translation", deref(t.Translation), "foreign ids", deref(t.ForeignIDs), "fetch media", deref(t.FetchMedia), "degrade", deref(t.Degrade), "hooks", join(t.Hooks), "output cache", deref(t.OutputCache), "projects", projectIDs(t), "declared", t.Declared, "created", stamp(t.Created), "updated", stamp(t.Updated))}
}

type tenantShowCmd struct {
	Tenant string `arg:"" help:"Its id."`
	connection
	output
}

// Run shows a tenant.
func (c *tenantShowCmd) Run(ctx context.Context, env *Env) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	var t admin.Tenant
	if err := api.get(ctx, tenantsPath+"/"+seg(c.Tenant), nil, &t); err != nil {
		return err
	}
	return c.print(env.Stdout, tenantView(&t))
}

type tenantCreateCmd struct {
	Tenant string `arg:"" help:"Its id."`
	tenantFields
	dryRun
	connection
	output
}

// Run creates a tenant.
func (c *tenantCreateCmd) Run(ctx context.Context, env *Env) error {
	body := struct {
		ID string `json:"id"`
		admin.TenantFields
	}{c.Tenant, c.fields()}
	t, err := change[admin.Tenant](ctx, &c.connection, request{http.MethodPost, tenantsPath, c.DryRun, body})
	if err != nil {
		return err
	}
	c.said(env.Stderr, "tenant %s created; give it a key: sluice key create %s", c.Tenant, c.Tenant)
	warn(env, t.Warnings)
	return c.print(env.Stdout, tenantView(&t))
}

type tenantUpdateCmd struct {
	Tenant string `arg:"" help:"Its id."`
	tenantFields
	dryRun
	connection
	output
}

// Run changes a tenant.
func (c *tenantUpdateCmd) Run(ctx context.Context, env *Env) error {
	t, err := change[admin.Tenant](ctx, &c.connection, request{http.MethodPatch, tenantsPath + "/" + seg(c.Tenant), c.DryRun, c.fields()})
	if err != nil {
		return err
	}
	c.said(env.Stderr, "tenant %s updated", c.Tenant)
	warn(env, t.Warnings)
	return c.print(env.Stdout, tenantView(&t))
}

type tenantDeleteCmd struct {
	Tenant string `arg:"" help:"Its id."`
	dryRun
	connection
}

// Run deletes a tenant.
func (c *tenantDeleteCmd) Run(ctx context.Context, env *Env) error {
	if _, err := change[struct{}](ctx, &c.connection, request{http.MethodDelete, tenantsPath + "/" + seg(c.Tenant), c.DryRun, nil}); err != nil {
		return err
	}
	c.said(env.Stderr, "tenant %s deleted", c.Tenant)
	return nil
}
