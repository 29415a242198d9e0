package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"sluice/internal/admin"
)

const routesPath = "/admin/v1/routes"

type routeCmd struct {
	List    routeListCmd    `cmd:"" help:"List where requests go, by model."`
	Show    routeShowCmd    `cmd:"" help:"Show where the requests for a model go."`
	Set     routeSetCmd     `cmd:"" help:"Change a model's weights, canary and fallbacks in one step, as a new version."`
	Drain   routeDrainCmd   `cmd:"" help:"Give backends no new requests; those that run there end there."`
	Undrain routeUndrainCmd `cmd:"" help:"Give backends requests again, at the weight that the file has."`

	Shadow routeShadowCmd `cmd:"" help:"Compare what shadows came to with the requests that they are copies of."`

	Versions routeVersionsCmd `cmd:"" help:"List what has been in force, or show one version whole."`
	Diff     routeDiffCmd     `cmd:"" help:"In what two versions differ, by what they mean."`
	DryRun   routeDryRunCmd   `cmd:"" help:"What would have become of recent requests under a file or another version."`
	Rollback routeRollbackCmd `cmd:"" help:"Put an earlier version in force again, until the configuration file is changed."`
}

// by is the flags of who changes something and why.
type by struct {
	Author string `help:"Who changes it; the name of the admin token if left out." placeholder:"NAME"`
	Reason string `required:"" help:"Why, for whoever reads the history." placeholder:"TEXT"`
}

func (b by) body() admin.By { return admin.By{Author: b.Author, Reason: b.Reason} }

type routeListCmd struct {
	connection
	output
}

// Run lists routes.
func (c *routeListCmd) Run(ctx context.Context, env *Env) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	var out admin.RouteList
	if err := api.get(ctx, routesPath, nil, &out); err != nil {
		return err
	}
	if out.OffFile != "" {
		warn(env, []string{out.OffFile})
	}
	v := view{data: out, columns: routeColumns}
	for i := range out.Routes {
		v.rows = append(v.rows, routeRows(&out.Routes[i])...)
	}
	return c.print(env.Stdout, v)
}

var routeColumns = []string{"model", "pool", "role", "weight", "share%", "canary%", "for", "backend", "backend weight", "region", "domain"}

// routeRows is a line for each backend of a route.
func routeRows(r *admin.ModelRoute) (rows [][]string) {
	add := func(role string, p *admin.PoolRoute) {
		if len(p.Backends) == 0 {
			rows = append(rows, []string{r.Model, p.Pool, role, some64(p.Weight), some64(p.Share), some64(p.Canary), forWhom(p), "", "", "", ""})
		}
		for _, b := range p.Backends {
			weight := count(b.Weight)
			if b.Drained {
				weight = "drained"
			}
			rows = append(rows, []string{r.Model, p.Pool, role, some64(p.Weight), some64(p.Share), some64(p.Canary), forWhom(p), b.Backend, weight, b.Region, b.Domain})
		}
	}
	for i := range r.Pools {
		role := "first"
		if r.Pools[i].Canary > 0 {
			role = "canary"
		}
		add(role, &r.Pools[i])
	}
	for i := range r.Fallback {
		add("fallback", &r.Fallback[i])
	}
	return rows
}

func some64(n int64) string {
	if n == 0 {
		return ""
	}
	return count(n)
}

// forWhom is the conditions of a pool.
func forWhom(p *admin.PoolRoute) string {
	return strings.Join(slices.Concat(p.Tenants, p.Classes), " ")
}

type routeShowCmd struct {
	Model string `arg:"" help:"Its public name."`
	connection
	output
}

// Run shows a route.
func (c *routeShowCmd) Run(ctx context.Context, env *Env) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	var r admin.ModelRoute
	if err := api.get(ctx, routesPath+"/"+seg(c.Model), nil, &r); err != nil {
		return err
	}
	return c.print(env.Stdout, view{data: r, columns: routeColumns, rows: routeRows(&r)})
}

type routeSetCmd struct {
	Model    string            `arg:"" help:"Its public name."`
	Weight   map[string]int64  `mapsep:"," help:"Share of the requests that try a pool first; 0 for none." placeholder:"POOL=N"`
	Canary   map[string]string `mapsep:"," help:"Part of the requests that try a pool first, such as 5%; 0% makes it a pool like the others." placeholder:"POOL=P%"`
	Fallback []string          `help:"Pools to fall back to, in order, in place of those that it has; none for none. One that it has keeps its evaluation." placeholder:"POOL"`
	Allow    bool              `name:"allow-unevaluated" help:"Let fallbacks that it has not had stand in without an evaluation."`
	Sticky   *string           `enum:"request,run,user,session" help:"What goes one way together: ${enum}." placeholder:"WHAT"`
	MaxSpend *string           `help:"Most that one attempt may hold of a budget, such as $$0.05; $$0 for no bound." placeholder:"AMOUNT"`
	Drain    []string          `help:"Backends to drain in the same step." placeholder:"BACKEND"`
	Undrain  []string          `help:"Backends to give requests again in the same step." placeholder:"BACKEND"`
	Backend  map[string]int64  `name:"backend-weight" mapsep:"," help:"Share of its pool's requests that a backend has." placeholder:"BACKEND=N"`
	by
	dryRun
	connection
	output
}

func (c *routeSetCmd) change() admin.RouteChange {
	m := admin.ModelRouteChange{Pools: make(map[string]admin.PoolRouteChange), Sticky: c.Sticky, MaxSpend: c.MaxSpend}
	for pool, w := range c.Weight {
		p := m.Pools[pool]
		p.Weight = &w
		m.Pools[pool] = p
	}
	for pool, share := range c.Canary {
		p := m.Pools[pool]
		p.Canary = &share
		m.Pools[pool] = p
	}
	if len(c.Fallback) > 0 {
		list := []admin.RouteFallback{}
		for _, pool := range c.Fallback {
			if pool != "none" {
				list = append(list, admin.RouteFallback{Pool: pool})
			}
		}
		m.Fallback = &list
	}
	out := admin.RouteChange{Backends: backendChanges(c.Drain, c.Undrain)}
	for name, w := range c.Backend {
		out.Backends[name] = admin.BackendRouteChange{Weight: &w}
	}
	if len(m.Pools) > 0 || m.Fallback != nil || m.Sticky != nil || m.MaxSpend != nil {
		out.Models = map[string]admin.ModelRouteChange{c.Model: m}
	}
	return out
}

// backendChanges drains backends and undrains others.
func backendChanges(drain, undrain []string) map[string]admin.BackendRouteChange {
	out := make(map[string]admin.BackendRouteChange)
	for _, name := range drain {
		out[name] = admin.BackendRouteChange{Weight: new(int64)}
	}
	for _, name := range undrain {
		out[name] = admin.BackendRouteChange{Reset: true}
	}
	return out
}

// Run changes a route.
func (c *routeSetCmd) Run(ctx context.Context, env *Env) error {
	to := c.change()
	if c.Allow {
		if err := c.allowUnevaluated(ctx, &to); err != nil {
			return err
		}
	}
	return changeRoutes(ctx, env, routeChanging{conn: &c.connection, by: c.by, dry: c.dryRun, out: c.output}, to)
}

// allowUnevaluated marks the fallbacks that the model does not have yet: those that it
// has keep what says that they can stand in.
func (c *routeSetCmd) allowUnevaluated(ctx context.Context, to *admin.RouteChange) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	var r admin.ModelRoute
	if err := api.get(ctx, routesPath+"/"+seg(c.Model), nil, &r); err != nil {
		return err
	}
	if m := to.Models[c.Model]; m.Fallback != nil {
		for i := range *m.Fallback {
			f := &(*m.Fallback)[i]
			f.AllowUnevaluated = !slices.ContainsFunc(r.Fallback, func(p admin.PoolRoute) bool { return p.Pool == f.Pool && p.Evaluated != "" })
		}
	}
	return nil
}

// routeChanging is how a change of routes is asked for.
type routeChanging struct {
	conn *connection
	by   by
	dry  dryRun
	out  output
}

// changeRoutes sends a change and prints what it came to.
func changeRoutes(ctx context.Context, env *Env, how routeChanging, to admin.RouteChange) error {
	body := struct {
		admin.RouteChange
		admin.By
	}{to, how.by.body()}
	r, err := change[admin.Changed](ctx, how.conn, request{http.MethodPatch, routesPath, how.dry.DryRun, body})
	if err != nil {
		return err
	}
	how.dry.said(env.Stderr, "%s is in force", versionName(&r.Version))
	return printChanged(env, how.out, &r)
}

// printChanged prints what a change put in force: the differences are the data.
func printChanged(env *Env, out output, r *admin.Changed) error {
	warn(env, r.Warnings)
	if r.OffFile != "" {
		warn(env, []string{r.OffFile})
	}
	return out.print(env.Stdout, view{data: r, columns: differenceColumns, rows: differenceRows(r.Differences), text: differenceText(r.Differences)})
}

func versionName(v *admin.Version) string {
	if v.Number > 0 {
		return fmt.Sprintf("version %d (%s)", v.Number, v.Hash)
	}
	return "version " + v.Hash
}

type routeDrainCmd struct {
	Backend []string `arg:"" help:"Their names."`
	by
	dryRun
	connection
	output
}

// Run drains backends.
func (c *routeDrainCmd) Run(ctx context.Context, env *Env) error {
	return changeRoutes(ctx, env, routeChanging{&c.connection, c.by, c.dryRun, c.output}, admin.RouteChange{Backends: backendChanges(c.Backend, nil)})
}

type routeUndrainCmd struct {
	Backend []string `arg:"" help:"Their names."`
	by
	dryRun
	connection
	output
}

// Run gives backends requests again.
func (c *routeUndrainCmd) Run(ctx context.Context, env *Env) error {
	return changeRoutes(ctx, env, routeChanging{&c.connection, c.by, c.dryRun, c.output}, admin.RouteChange{Backends: backendChanges(nil, c.Backend)})
}

// differenceColumns head what differenceRows makes.
var differenceColumns = []string{"area", "path", "was", "now"}

func differenceRows(found []admin.Difference) (rows [][]string) {
	for _, d := range found {
		rows = append(rows, []string{d.Area, d.Path, d.Was, d.Now})
	}
	return rows
}

// differenceText is differences for eyes: what is gone, what is new, what has changed.
func differenceText(found []admin.Difference) string {
	if len(found) == 0 {
		return "no difference\n"
	}
	var b strings.Builder
	area := ""
	for _, d := range found {
		if d.Area != area {
			area = d.Area
			io.WriteString(&b, area+"\n")
		}
		switch {
		case d.Was == "":
			fmt.Fprintf(&b, "  + %s: %s\n", d.Path, d.Now)
		case d.Now == "":
			fmt.Fprintf(&b, "  - %s: %s\n", d.Path, d.Was)
		default:
			fmt.Fprintf(&b, "  ~ %s: %s → %s\n", d.Path, d.Was, d.Now)
		}
	}
	return plain(b.String())
}
