package admin

import (
	"context"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"sluice"
)

// RouteList is the routing in force.
type RouteList struct {
	Version string       `json:"version" doc:"Hash of the version in force"`
	OffFile string       `json:"off_file,omitempty" doc:"Why the file on disk is not what is in force; left out where it is"`
	Routes  []ModelRoute `json:"routes" doc:"By model"`
}

// ModelRoute is where the requests for one model go.
type ModelRoute struct {
	Model    string      `json:"model"`
	Pools    []PoolRoute `json:"pools" doc:"First choice, in order, or by share"`
	Fallback []PoolRoute `json:"fallback,omitempty" doc:"Tried in order after a failure"`
	Sticky   string      `json:"sticky,omitempty" doc:"What goes one way together: run, user or session; each request by itself if left out"`
	MaxSpend string      `json:"max_spend,omitempty" doc:"Most that one attempt may hold of a budget"`
}

// PoolRoute is one pool of a model.
type PoolRoute struct {
	Pool      string         `json:"pool"`
	Weight    int64          `json:"weight,omitempty" doc:"Against those of the model's other pools; 0 where their order counts"`
	Share     int64          `json:"share_percent,omitempty" doc:"What the weight comes to, before conditions and canaries"`
	Canary    int64          `json:"canary_percent,omitempty" doc:"Part of the requests that try it first; the others do not get it"`
	Tenants   []string       `json:"tenants,omitempty" doc:"That it is for; all if left out"`
	Classes   []string       `json:"classes,omitempty" doc:"That it is for; all if left out"`
	Evaluated string         `json:"evaluated,omitempty" doc:"What says that a fallback can stand in"`
	Backends  []BackendRoute `json:"backends"`
}

// BackendRoute is one backend of a pool.
type BackendRoute struct {
	Backend  string `json:"backend"`
	Provider string `json:"provider"`
	Region   string `json:"region,omitempty"`
	Domain   string `json:"domain,omitempty" doc:"Failure domain"`
	Weight   int64  `json:"weight" doc:"Share of the pool's requests"`
	Drained  bool   `json:"drained,omitempty" doc:"It takes no new requests: its weight is 0"`
}

// RouteChange is a change of routing, in one step. What is left out stays.
type RouteChange struct {
	Models   map[string]ModelRouteChange   `json:"models,omitempty" maxProperties:"1000" doc:"By model"`
	Backends map[string]BackendRouteChange `json:"backends,omitempty" maxProperties:"1000" doc:"By backend"`
}

// ModelRouteChange is what changes of one model.
type ModelRouteChange struct {
	Pools    map[string]PoolRouteChange `json:"pools,omitempty" maxProperties:"1000" doc:"By pool: first ones that the model has"`
	Fallback *[]RouteFallback           `json:"fallback,omitempty" maxItems:"100" doc:"In place of those that it has; one that it has already keeps its evaluation"`
	Sticky   *string                    `json:"sticky,omitempty" enum:"request,run,user,session" doc:"What goes one way together"`
	MaxSpend *string                    `json:"max_spend,omitempty" doc:"Most that one attempt may hold of a budget, such as $0.05; $0 for no bound"`
}

// PoolRouteChange is what changes of one pool of a model.
type PoolRouteChange struct {
	Weight *int64  `json:"weight,omitempty" minimum:"0" maximum:"1000000" doc:"Share of the requests that try it first; 0 for none"`
	Canary *string `json:"canary,omitempty" pattern:"^[0-9]{1,3}%$" doc:"Part of the requests that try it first, such as 5%; 0% makes it a pool like the others"`
}

// BackendRouteChange is what changes of one backend.
type BackendRouteChange struct {
	Weight *int64 `json:"weight,omitempty" minimum:"0" maximum:"1000000" doc:"Share of the pool's requests; 0 drains it: it takes no new ones"`
	Reset  bool   `json:"reset,omitempty" doc:"In place of a weight: that of the file"`
}

// RouteFallback is a pool to fall back to.
type RouteFallback struct {
	Pool             string      `json:"pool"`
	Evaluated        *Evaluation `json:"evaluated,omitempty" doc:"What says that it can stand in"`
	AllowUnevaluated bool        `json:"allow_unevaluated,omitempty" doc:"Stand in without an evaluation"`
}

// Routing is what is done about routing and its versions. The zero Routing leaves it
// out of the API.
type Routing struct {
	// Routes is the routing in force.
	Routes func() RouteList
	// Change changes it, as a new version.
	Change func(ctx context.Context, c RouteChange, by Change) (Changed, error)
	// Rollback puts an earlier version in force again: the one before where ref is
	// empty.
	Rollback func(ctx context.Context, ref string, by Change) (Changed, error)
	// Versions is a page of what has been in force, newest first, below a number;
	// before 0 is the first page.
	Versions func(ctx context.Context, before int64, limit int) (VersionList, error)
	// Version is one of them: the one in force where ref is empty.
	Version func(ctx context.Context, ref string) (VersionText, error)
	// Compare tells in what two versions differ; an empty ref is the one before, and
	// the one in force.
	Compare func(ctx context.Context, from, to string) (Comparison, error)
	// DryRun tells what would have become of recent requests under another version.
	DryRun func(ctx context.Context, q DryRunQuery) (DryRun, error)
}

type (
	routesIn  struct{}
	routesOut struct{ Body RouteList }
	routeIn   struct {
		Model string `path:"model" maxLength:"128" doc:"Its public name"`
	}
	routeOut      struct{ Body ModelRoute }
	changeRouteIn struct {
		Mutation
		Body struct {
			RouteChange
			By
		}
	}
)

func (a *API) registerRoutes(api huma.API) {
	if a.o.Routing.Routes == nil {
		return
	}
	tags := []string{"routing"}
	register(a, api, huma.Operation{OperationID: "list-routes", Method: http.MethodGet, Path: "/admin/v1/routes", Summary: "Where requests go, by model", Tags: tags},
		func(context.Context, *routesIn) (*routesOut, error) { return &routesOut{a.o.Routing.Routes()}, nil })
	register(a, api, huma.Operation{OperationID: "get-route", Method: http.MethodGet, Path: "/admin/v1/routes/{model}", Summary: "Where requests for one model go", Tags: tags, Errors: []int{404}}, a.route)
	register(a, api, huma.Operation{
		OperationID: "change-routes", Method: http.MethodPatch, Path: "/admin/v1/routes", Tags: tags, Errors: []int{409},
		Summary: "Change weights, canaries, fallbacks and drained backends in one step, as a new version; it holds until the configuration file is changed",
	}, a.changeRoutes)
}

func (a *API) route(_ context.Context, in *routeIn) (*routeOut, error) {
	all := a.o.Routing.Routes().Routes
	i := slices.IndexFunc(all, func(r ModelRoute) bool { return r.Model == in.Model })
	if i < 0 {
		return nil, missing("model", in.Model)
	}
	return &routeOut{all[i]}, nil
}

func (a *API) changeRoutes(ctx context.Context, in *changeRouteIn) (*changedOut, error) {
	if len(in.Body.Models)+len(in.Body.Backends) == 0 {
		return nil, hinted(sluice.Invalid("models", "is empty, and so is backends: nothing would change"), "name a model's pools, or backends")
	}
	by, err := a.by(ctx, &in.Body.By, in.DryRun)
	if err != nil {
		return nil, err
	}
	out, err := a.o.Routing.Change(ctx, in.Body.RouteChange, by)
	return a.answerChange(ctx, "routes changed", out, err)
}
