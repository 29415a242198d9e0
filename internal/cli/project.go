package cli

import (
	"context"
	"net/http"

	"sluice/internal/admin"
)

type projectCmd struct {
	List   projectListCmd   `cmd:"" help:"List a tenant's projects."`
	Show   projectShowCmd   `cmd:"" help:"Show a project."`
	Create projectCreateCmd `cmd:"" help:"Create a project."`
	Update projectUpdateCmd `cmd:"" help:"Change a project; what is not named stays."`
	Delete projectDeleteCmd `cmd:"" help:"Delete a project without keys."`
}

type projectFields struct {
	Name  *string  `help:"A name for humans."`
	Model []string `help:"Allowed public model names, of those that the tenant is allowed." placeholder:"MODEL"`
	residencyFlags
	Translation *string  `enum:",strict,warn" help:"In place of the tenant's: strict or warn; empty takes the tenant's." placeholder:"MODE"`
	Hooks       []string `name:"hooks" help:"Hooks that look into requests and answers, by name, after the tenant's; none removes all." placeholder:"HOOK"`

	Limit map[string]string `mapsep:"," help:"Replaces the plan's per-project limit of the same name; none lifts it, default takes the plan's." placeholder:"NAME=AMOUNT"`
}

func (f *projectFields) fields() admin.ProjectFields {
	return admin.ProjectFields{Name: f.Name, Models: names(f.Model), Limits: limitsFlag(f.Limit), Translation: f.Translation, Hooks: names(f.Hooks), Residency: f.residency()}
}

// ofTenant is the tenant whose projects or keys are meant.
type ofTenant struct {
	Tenant string `arg:"" help:"The tenant's id."`
}

func (o ofTenant) projects() string { return tenantsPath + "/" + seg(o.Tenant) + "/projects" }
func (o ofTenant) keys() string     { return tenantsPath + "/" + seg(o.Tenant) + "/keys" }

type projectListCmd struct {
	ofTenant
	connection
	output
}

// Run lists projects.
func (c *projectListCmd) Run(ctx context.Context, env *Env) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	var out struct {
		Projects []admin.Project `json:"projects"`
	}
	if err := api.get(ctx, c.projects(), nil, &out); err != nil {
		return err
	}
	v := view{data: out.Projects, columns: []string{"project", "name", "models", "limits", "declared"}}
	for i := range out.Projects {
		p := &out.Projects[i]
		v.rows = append(v.rows, []string{p.ID, deref(p.Name), join(p.Models), limitsText(p.Limits), p.Declared})
	}
	return c.print(env.Stdout, v)
}

func projectView(p *admin.Project) view {
	return view{data: p, columns: fieldColumns, rows: pairs("project", p.ID, "name", deref(p.Name), "models", join(p.Models), "regions", join(p.Regions), "providers", join(p.Providers), "risk", deref(p.Risk), "limits", limitsText(p.Limits), "translation", deref(p.Translation), "hooks", join(p.Hooks), "declared", p.Declared)}
}

type oneProject struct {
	ofTenant
	Project string `arg:"" help:"Its id."`
}

func (o oneProject) path() string { return o.projects() + "/" + seg(o.Project) }

type projectShowCmd struct {
	oneProject
	connection
	output
}

// Run shows a project.
func (c *projectShowCmd) Run(ctx context.Context, env *Env) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	var p admin.Project
	if err := api.get(ctx, c.path(), nil, &p); err != nil {
		return err
	}
	return c.print(env.Stdout, projectView(&p))
}

type projectCreateCmd struct {
	oneProject
	projectFields
	dryRun
	connection
	output
}

// Run creates a project.
func (c *projectCreateCmd) Run(ctx context.Context, env *Env) error {
	body := struct {
		ID string `json:"id"`
		admin.ProjectFields
	}{c.Project, c.fields()}
	p, err := change[admin.Project](ctx, &c.connection, request{http.MethodPost, c.projects(), c.DryRun, body})
	if err != nil {
		return err
	}
	c.said(env.Stderr, "project %s of tenant %s created", c.Project, c.Tenant)
	warn(env, p.Warnings)
	return c.print(env.Stdout, projectView(&p))
}

type projectUpdateCmd struct {
	oneProject
	projectFields
	dryRun
	connection
	output
}

// Run changes a project.
func (c *projectUpdateCmd) Run(ctx context.Context, env *Env) error {
	p, err := change[admin.Project](ctx, &c.connection, request{http.MethodPatch, c.path(), c.DryRun, c.fields()})
	if err != nil {
		return err
	}
	c.said(env.Stderr, "project %s of tenant %s updated", c.Project, c.Tenant)
	warn(env, p.Warnings)
	return c.print(env.Stdout, projectView(&p))
}

type projectDeleteCmd struct {
	oneProject
	dryRun
	connection
}

// Run deletes a project.
func (c *projectDeleteCmd) Run(ctx context.Context, env *Env) error {
	if _, err := change[struct{}](ctx, &c.connection, request{http.MethodDelete, c.path(), c.DryRun, nil}); err != nil {
		return err
	}
	c.said(env.Stderr, "project %s of tenant %s deleted", c.Project, c.Tenant)
	return nil
}
