package admin

import (
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/go-json-experiment/json"
)

// New builds the API. Every route is registered here and needs a token unless
// it is registered as open.
func New(o Options) (*API, error) {
	if o.Plans == nil || o.Tenants == nil || o.Keys == nil || o.Ledger == nil || o.Admin == nil {
		return nil, fmt.Errorf("admin: Plans, Tenants, Keys, Ledger and Admin are required")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Env == "" {
		o.Env = "live"
	}
	a := &API{o: o}
	a.records.o = &a.o
	mux := newRouter()
	mux.handleOpen("GET /livez", a.livez)
	mux.handleOpen("GET /readyz", a.readyz)
	mux.handleOpen("GET /{$}", pointer)
	if o.Metrics != nil {
		if o.OpenMetrics {
			mux.handleOpen("GET /metrics", o.Metrics.ServeHTTP)
		} else {
			mux.HandleFunc("GET /metrics", o.Metrics.ServeHTTP)
		}
	}
	api := humago.New(mux, apiConfig(o.Build.Version))
	a.registerPlans(api)
	a.registerTenants(api)
	a.registerKeys(api)
	a.registerUsage(api)
	a.registerRequests(api)
	a.registerShadows(api)
	a.registerStatus(api)
	a.registerBackends(api)
	a.registerLadder(api)
	a.registerQueue(api)
	a.registerDemand(api)
	a.registerCapacity(api)
	a.registerRoutes(api)
	a.registerVersions(api)
	a.registerCache(api)
	a.registerBatches(api)
	describeProblems(api.OpenAPI())
	doc, err := api.OpenAPI().MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("write OpenAPI document: %w", err)
	}
	a.openapi = doc
	mux.HandleFunc("GET /openapi.json", a.serveOpenAPI)
	mux.HandleFunc("GET /debug/pprof/{profile}", profile)
	a.routes = mux.routes
	slices.SortFunc(a.routes, func(x, y Route) int { return strings.Compare(x.Path+" "+x.Method, y.Path+" "+y.Method) })
	a.handler = a.guard(mux)
	return a, nil
}

// apiConfig is what the operations have in common. The library's own document
// and docs routes are off: they would be built lazily, without a lock, and load
// scripts from elsewhere.
func apiConfig(version string) huma.Config {
	c := huma.DefaultConfig("Sluice admin API", version)
	c.Info.Description = "Tenants, keys, plans, usage and status. Every call needs an admin token as Authorization: Bearer sla_…"
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "", "", ""
	c.CreateHooks = nil
	c.Transformers = []huma.Transformer{plainProblem}
	c.RejectUnknownQueryParameters = true
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}}
	strict := huma.Format{
		Marshal: huma.DefaultJSONFormat.Marshal,
		// Duplicate names and names in another case are errors: which one would
		// count must not be left to the reader.
		Unmarshal: func(b []byte, v any) error { return json.Unmarshal(b, v) },
	}
	c.Formats = map[string]huma.Format{"application/json": strict, "json": strict}
	return c
}

// describeProblems puts the shape of this API's errors where the library
// describes its own.
func describeProblems(doc *huma.OpenAPI) {
	problem := doc.Components.Schemas.Schema(reflect.TypeFor[Problem](), true, "Problem")
	for _, path := range doc.Paths {
		for _, op := range []*huma.Operation{path.Get, path.Post, path.Patch, path.Delete} {
			if op == nil {
				continue
			}
			for _, res := range op.Responses {
				if media := res.Content[problemType]; media != nil {
					media.Schema = problem
				}
			}
		}
	}
	delete(doc.Components.Schemas.Map(), "ErrorModel")
	delete(doc.Components.Schemas.Map(), "ErrorDetail")
}

func (a *API) serveOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/openapi+json")
	_, _ = w.Write(a.openapi)
}
