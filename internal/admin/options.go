package admin

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/engine"
	"sluice/internal/ledger"
)

// Plans keeps plans.
type Plans interface {
	Plans(ctx context.Context) ([]auth.Plan, error)
	Plan(ctx context.Context, id sluice.PlanID) (auth.Plan, error)
	CreatePlan(ctx context.Context, p auth.Plan) error
	UpdatePlan(ctx context.Context, p auth.Plan) error
	DeletePlan(ctx context.Context, id sluice.PlanID) error
}

// Tenants keeps tenants and their projects.
type Tenants interface {
	Tenants(ctx context.Context) ([]auth.Tenant, error)
	Tenant(ctx context.Context, id sluice.TenantID) (auth.Tenant, error)
	CreateTenant(ctx context.Context, t auth.Tenant) error
	UpdateTenant(ctx context.Context, t auth.Tenant) error
	DeleteTenant(ctx context.Context, id sluice.TenantID) error
}

// Keys keeps keys. Every look-up names the tenant.
type Keys interface {
	Keys(ctx context.Context, t sluice.TenantID) ([]auth.Key, error)
	Key(ctx context.Context, t sluice.TenantID, id sluice.KeyID) (auth.Key, error)
	CreateKey(ctx context.Context, k auth.Key) error
	UpdateKey(ctx context.Context, k auth.Key) error
}

// Ledger answers what was used and why.
type Ledger interface {
	Usage(ctx context.Context, q ledger.UsageQuery) ([]ledger.UsageRow, error)
	Explain(ctx context.Context, o ledger.Owner, id sluice.RequestID) ([]ledger.Entry, error)
	Shadows(ctx context.Context, o ledger.Owner, id sluice.RequestID) ([]ledger.Entry, error)
	Pairs(ctx context.Context, q ledger.PairQuery) ([]ledger.Pair, error)
	Recent(ctx context.Context, q ledger.RecentQuery) (ledger.RecentPage, error)
	Verify(ctx context.Context) (ledger.Audit, error)
}

// Options is what the API stands on. Plans, Tenants, Keys, Ledger and Admin are
// required; of the rest a nil field leaves its part out.
type Options struct {
	Plans   Plans
	Tenants Tenants
	Keys    Keys
	Ledger  Ledger

	// Admin finds whose token it is (auth.Keeper.Admin).
	Admin func(token string, now time.Time) (auth.AdminToken, error)
	// Declared is what the configuration file owns (auth.Keeper.Declared).
	Declared func() auth.Records
	// Changed makes the snapshot that admits requests see what was just written
	// (auth.Keeper.Refresh). It is called after every change.
	Changed func(ctx context.Context) error
	// Hasher hashes the secrets of new keys: the one that identifies them.
	Hasher auth.Hasher
	// HasModel reports whether the configuration in force has a public model
	// name, to warn of those that it does not; nil warns of none.
	HasModel func(name string) bool
	// HasHook reports whether the configuration in force has a hook of that name; nil
	// takes every name.
	HasHook func(name string) bool
	// Env is the environment label of new keys that name none; empty is "live".
	Env string

	// View is the engine's picture with at most limit rows of each kind
	// (admit.Gate.Dump).
	View func(limit int) engine.View
	// Look is a closer picture of one pool, tenant or request (admit.Gate.Look).
	Look func(z engine.Zoom, limit int) engine.View
	// Operate carries out an order about a backend or a credential and reports whether
	// that changed anything (admit.Gate.Operate).
	Operate func(o engine.Order) (changed bool, err error)
	// Pin carries out an order about a ladder and records it for restarts and other replicas;
	// kept reports whether that succeeded (pins.Keeper.Order). nil leaves ladders to their
	// signals.
	Pin func(ctx context.Context, o engine.Order) (changed, kept bool, err error)
	// Preview plays the last requests of a pool with a tier of its ladder pinned and
	// without.
	Preview func(ctx context.Context, pool sluice.PoolID, tier int, last time.Duration) (LadderPreview, error)
	// Runtime is the rest of the status.
	Runtime func() Runtime
	// Flush waits until everything settled so far is in the ledger
	// (ledger.Journal.Flush), so that a question right after a request finds it.
	Flush func(ctx context.Context) error
	// Reload reads the configuration again. A failed reload changes nothing; its
	// error is shown to the operator, as single mistakes if it is a Problems.
	Reload func(ctx context.Context, by Reload) (Reloaded, error)
	// Batches shows batches and cancels them.
	Batches Batches
	// Routing shows and changes routes, and goes back to earlier versions.
	Routing Routing
	Cache   OutputCache // of answers

	Metrics     http.Handler // nil: no /metrics
	OpenMetrics bool         // /metrics needs no token

	Build Build
	Log   *slog.Logger     // nil discards; one line per change
	Now   func() time.Time // nil is time.Now
}

// Problems is an error that is several, each with its place in a file.
type Problems interface {
	error
	Details() []ProblemDetail
}

// Reloaded says what a reload put in force.
type Reloaded struct {
	Version  string   `json:"version" doc:"Version of the configuration in force"`
	Number   int64    `json:"number,omitempty" doc:"Its number; left out while the store has not recorded it"`
	OffFile  bool     `json:"off_file,omitempty" doc:"Something else than the file on disk holds"`
	Changed  bool     `json:"changed" doc:"Whether it differs from the one before"`
	Warnings []string `json:"warnings,omitempty" doc:"What is valid but looks wrong"`
}

// Runtime is what the process knows of itself beside the engine.
type Runtime struct {
	Started    time.Time
	Ready      bool // admits requests
	Draining   bool // asked to stop
	Config     ConfigStatus
	Snapshot   SnapshotStatus
	Journal    JournalStatus
	Dependency []Dependency
}

// Dependency is something outside of the process.
type Dependency struct {
	Name   string `json:"name"`
	State  string `json:"state" enum:"ok,degraded,down" doc:"degraded: late or partial, requests go on"`
	Detail string `json:"detail,omitempty" doc:"What is wrong and what it means"`
}

// API serves the admin plane.
type API struct {
	o       Options
	handler http.Handler
	routes  []Route
	openapi []byte
	records records
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

// Routes lists every route that is registered, for the test that walks them and
// for docs.
func (a *API) Routes() []Route { return a.routes }

// OpenAPI is the document served at /openapi.json.
func (a *API) OpenAPI() []byte { return a.openapi }

// NewServer makes an HTTP server with the bounds that the admin plane needs. The
// caller serves and shuts it down.
func NewServer(h http.Handler, log *slog.Logger) *http.Server {
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      requestTimeout + 15*time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    32 << 10,
	}
	if log != nil {
		s.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	}
	return s
}
