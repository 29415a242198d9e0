package admin

import (
	"context"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"sluice"
	"sluice/internal/auth"
)

// Project holds keys; its id is unique within its tenant.
type Project struct {
	ID string `json:"id"`
	ProjectFields
	Declared string `json:"declared,omitempty" doc:"file:line of its tenant; empty when it can be changed here"`
	Warned
}

// ProjectFields is what a project says. In an update, fields that are left out
// stay.
type ProjectFields struct {
	Name   *string   `json:"name,omitempty" maxLength:"200" doc:"For humans"`
	Models *[]string `json:"models,omitempty" maxItems:"1000" doc:"Narrows the tenant's; empty changes nothing"`
	Limits Limits    `json:"limits,omitempty" doc:"Each replaces the plan's per_project of the same name"`

	Translation *string `json:"translation,omitempty" enum:",strict,warn" doc:"In place of the tenant's; empty takes the tenant's"`

	Hooks *[]string `json:"hooks,omitempty" maxItems:"20" doc:"Hooks that look into requests and answers, by name, after the tenant's; empty names none"`
	Residency
}

func projectView(p *auth.Project, o auth.Origin) Project {
	out := Project{ID: string(p.ID), Declared: place(o)}
	if p.Name != "" {
		out.Name = &p.Name
	}
	if len(p.Models) > 0 {
		names := words(p.Models)
		out.Models = &names
	}
	out.Hooks = hooksOf(p.Hooks)
	out.Limits, out.Residency, out.Translation = limitsOf(p.Limits), residencyOf(p.Residency), translationOf(p.Translation)
	return out
}

func (f *ProjectFields) apply(p *auth.Project) (err error) {
	set(&p.Name, f.Name)
	if f.Models != nil {
		p.Models = ids[sluice.ModelID](*f.Models)
	}
	f.Residency.apply(&p.Residency)
	if err := applyTranslation(&p.Translation, f.Translation); err != nil {
		return err
	}
	p.Limits, err = f.Limits.apply(p.Limits, "limits")
	return err
}

func (a *API) registerProjects(api huma.API) {
	tags := []string{"projects"}
	const all, one = "/admin/v1/tenants/{tenant}/projects", "/admin/v1/tenants/{tenant}/projects/{project}"
	register(a, api, huma.Operation{OperationID: "list-projects", Method: http.MethodGet, Path: all, Summary: "List a tenant's projects", Tags: tags, Errors: []int{404}}, a.listProjects)
	register(a, api, huma.Operation{OperationID: "show-project", Method: http.MethodGet, Path: one, Summary: "Show a project", Tags: tags, Errors: []int{404}},
		func(ctx context.Context, in *ProjectPath) (*projectOut, error) {
			t, i, err := a.project(ctx, in)
			if err != nil {
				return nil, err
			}
			return &projectOut{Body: projectView(&t.Projects[i], t.Origin)}, nil
		})
	register(a, api, huma.Operation{OperationID: "create-project", Method: http.MethodPost, Path: all, Summary: "Create a project", Tags: tags, DefaultStatus: 201, Errors: []int{404, 409}}, a.createProject)
	register(a, api, huma.Operation{OperationID: "update-project", Method: http.MethodPatch, Path: one, Summary: "Change a project", Tags: tags, Errors: []int{404, 409}}, a.updateProject)
	register(a, api, huma.Operation{OperationID: "delete-project", Method: http.MethodDelete, Path: one, Summary: "Delete a project without keys", Tags: tags, DefaultStatus: 204, Errors: []int{404, 409}}, a.deleteProject)
}

func (a *API) listProjects(ctx context.Context, in *TenantPath) (*projectsOut, error) {
	t, err := a.records.tenant(ctx, sluice.TenantID(in.Tenant))
	if err != nil {
		return nil, err
	}
	out := &projectsOut{}
	out.Body.Projects = tenantView(&t).Projects
	return out, nil
}

// project finds a project and its place in its tenant.
func (a *API) project(ctx context.Context, in *ProjectPath) (auth.Tenant, int, error) {
	t, err := a.records.tenant(ctx, sluice.TenantID(in.Tenant))
	if err != nil {
		return t, 0, err
	}
	i := slices.IndexFunc(t.Projects, func(p auth.Project) bool { return string(p.ID) == in.Project })
	if i < 0 {
		return t, 0, missing("project", in.Project)
	}
	t.Projects = slices.Clone(t.Projects) // a declared tenant is shared with the snapshot
	return t, i, nil
}

func (a *API) createProject(ctx context.Context, in *createProjectIn) (*projectOut, error) {
	a.records.mu.Lock()
	defer a.records.mu.Unlock()
	if err := sluice.ValidName(in.Body.ID); err != nil {
		return nil, sluice.Invalid("id", "is wrong: %s", err)
	}
	t, err := a.records.writable(ctx, sluice.TenantID(in.Tenant))
	if err != nil {
		return nil, err
	}
	p := auth.Project{ID: sluice.ProjectID(in.Body.ID)}
	if _, ok := find(t.Projects, p.ID, projectID); ok {
		return nil, exists("project", in.Body.ID)
	}
	if err := in.Body.ProjectFields.apply(&p); err != nil {
		return nil, err
	}
	if err := a.applyHooks(&p.Hooks, in.Body.Hooks); err != nil {
		return nil, err
	}
	t.Projects = append(slices.Clone(t.Projects), p)
	if err := a.storeTenant(ctx, &t, in.DryRun, "project created"); err != nil {
		return nil, err
	}
	out := &projectOut{Body: projectView(&p, t.Origin)}
	out.Body.Warned = a.unknownModels(in.Body.Models)
	return out, nil
}

func (a *API) updateProject(ctx context.Context, in *updateProjectIn) (*projectOut, error) {
	a.records.mu.Lock()
	defer a.records.mu.Unlock()
	t, i, err := a.project(ctx, &in.ProjectPath)
	if err != nil {
		return nil, err
	}
	if err := owned("project", in.Project, t.Origin); err != nil {
		return nil, err
	}
	if err := in.Body.apply(&t.Projects[i]); err != nil {
		return nil, err
	}
	if err := a.applyHooks(&t.Projects[i].Hooks, in.Body.Hooks); err != nil {
		return nil, err
	}
	p := t.Projects[i]
	if err := a.storeTenant(ctx, &t, in.DryRun, "project updated"); err != nil {
		return nil, err
	}
	out := &projectOut{Body: projectView(&p, t.Origin)}
	out.Body.Warned = a.unknownModels(in.Body.Models)
	return out, nil
}

func (a *API) deleteProject(ctx context.Context, in *projectRef) (*noneOut, error) {
	a.records.mu.Lock()
	defer a.records.mu.Unlock()
	t, i, err := a.project(ctx, &in.ProjectPath)
	if err != nil {
		return nil, err
	}
	if err := owned("project", in.Project, t.Origin); err != nil {
		return nil, err
	}
	if err := a.withoutKeys(ctx, t.ID, t.Projects[i].ID); err != nil {
		return nil, err
	}
	t.Projects = slices.Delete(t.Projects, i, i+1)
	return &noneOut{}, a.storeTenant(ctx, &t, in.DryRun, "project deleted")
}
