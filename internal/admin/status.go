package admin

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"sluice"
	"sluice/internal/engine"
)

// ConfigStatus is the configuration in force.
type ConfigStatus struct {
	Version   string     `json:"version" doc:"Hash of the file, or the name of the built-in one"`
	File      string     `json:"file,omitempty"`
	Loaded    *time.Time `json:"loaded,omitempty"`
	LastError string     `json:"last_error,omitempty" doc:"Why the last reload failed; the configuration in force is the one before"`

	Number  int64      `json:"number,omitempty" doc:"Of the version in force; left out while the store has not recorded it"`
	Source  string     `json:"source,omitempty" doc:"How it came to be in force: file, api or rollback"`
	Author  string     `json:"author,omitempty" doc:"Who put it in force"`
	Reason  string     `json:"reason,omitempty" doc:"Why"`
	Since   *time.Time `json:"since,omitempty" doc:"When"`
	OffFile string     `json:"off_file,omitempty" doc:"Why the file on disk is not what is in force; left out where it is"`
}

// SnapshotStatus is the snapshot that identifies callers.
type SnapshotStatus struct {
	Keys       int      `json:"keys"`
	AgeSeconds float64  `json:"age_seconds" doc:"Since the store last confirmed it"`
	Partial    bool     `json:"partial,omitempty" doc:"A source has not loaded yet: unknown keys are answered 503"`
	Problems   []string `json:"problems,omitempty" doc:"Records that could not be used"`
}

// JournalStatus is how far the ledger is behind.
type JournalStatus struct {
	LagEntries int     `json:"lag_entries" doc:"Settled, not in the store"`
	LagSeconds float64 `json:"lag_seconds"`
	Open       int     `json:"open" doc:"Requests without an end"`
	Bytes      int64   `json:"bytes"`
	Error      string  `json:"error,omitempty"`
}

// Status is one picture of the gateway.
type Status struct {
	State           string             `json:"state" enum:"ready,degraded,starting,draining"`
	Build           Build              `json:"build"`
	At              time.Time          `json:"at"`
	UptimeSeconds   float64            `json:"uptime_seconds"`
	Config          ConfigStatus       `json:"config"`
	Policy          string             `json:"policy" doc:"Version of the routing table"`
	Snapshot        SnapshotStatus     `json:"snapshot"`
	Journal         JournalStatus      `json:"journal"`
	Dependencies    []Dependency       `json:"dependencies"`
	Open            int                `json:"open" doc:"Requests that wait or run"`
	Running         int                `json:"running" doc:"Requests on a backend"`
	Expired         int                `json:"expired" doc:"Expired holds that may still settle late"`
	Pools           []PoolStatus       `json:"pools" doc:"Those with a backend that is not healthy first, then the busiest"`
	MorePools       int                `json:"more_pools,omitempty" doc:"Pools beyond the limit, of at most 1000"`
	Regions         []RegionStatus     `json:"regions,omitempty" doc:"Where some model has a locality"`
	Domains         []DomainStatus     `json:"domains,omitempty" doc:"Failure domains, those that have failed first"`
	MoreDomains     int                `json:"more_domains,omitempty" doc:"Beyond the limit"`
	Credentials     []CredentialStatus `json:"credentials,omitempty" doc:"Of providers, those that are out first"`
	MoreCredentials int                `json:"more_credentials,omitempty" doc:"Beyond the limit"`
	Top             []Account          `json:"top" doc:"The busiest counters"`
	MoreTop         int                `json:"more_top,omitempty" doc:"Scopes with requests beyond the limit, of at most 1000"`
}

// PoolStatus is one pool and its queue.
type PoolStatus struct {
	Pool          string           `json:"pool"`
	Failed        bool             `json:"failed,omitempty" doc:"None of its backends takes requests"`
	Waiting       int              `json:"waiting"`
	ByClass       map[string]int   `json:"by_class"`
	QueuedBytes   int64            `json:"queued_bytes"`
	QueuedWork    sluice.Tokens    `json:"queued_work_tokens"`
	OldestSeconds float64          `json:"oldest_seconds" doc:"How long its oldest request has waited"`
	WaitSeconds   float64          `json:"wait_seconds" doc:"Predicted for an arrival; 0: none, or not known yet"`
	WaitUnknown   bool             `json:"wait_unknown,omitempty" doc:"An arrival would wait, and nothing has been served yet that tells for how long"`
	Enqueued      int64            `json:"enqueued"`
	Dispatched    int64            `json:"dispatched"`
	Cancelled     int64            `json:"cancelled"`
	Rejected      int64            `json:"rejected"`
	Moved         int64            `json:"moved"`
	Demand        PoolDemand       `json:"demand"`
	Classes       []ClassStatus    `json:"classes"`
	Flows         []FlowStatus     `json:"flows" doc:"Tenants by class, those first of which most waits; in the picture of all pools at most 100 of each class"`
	MoreFlows     int              `json:"more_flows,omitempty" doc:"Flows of tenants that wait, run or are ahead of the others, beyond the limit"`
	Contracts     []ContractStatus `json:"contracts,omitempty"`
	Gathering     *Gathering       `json:"gathering,omitempty" doc:"The request for which what becomes free is kept"`
	Ladder        *LadderStatus    `json:"ladder,omitempty" doc:"Its degradation ladder; left out where that is off"`
	Backends      []BackendStatus  `json:"backends" doc:"Those that are not healthy first"`
	MoreBackends  int              `json:"more_backends,omitempty" doc:"Backends beyond the limit"`
}

// BackendStatus is one backend's load and health.
type BackendStatus struct {
	Backend        string        `json:"backend"`
	Health         string        `json:"health" doc:"healthy, cooling, probing, ramping, held, avoided, parked, disabled or drained"`
	Share          float64       `json:"share" doc:"Part of its share of requests that it may have, less than 1 while it comes back"`
	Domain         string        `json:"domain,omitempty" doc:"Failure domain"`
	Running        int64         `json:"running"`
	Concurrency    int64         `json:"concurrency" doc:"Its capacity"`
	KVTokens       sluice.Tokens `json:"kv_tokens"`
	PrefillTokens  sluice.Tokens `json:"prefill_tokens"`
	RetryInSeconds float64       `json:"retry_in_seconds,omitempty" doc:"Until a backend that is out may be given something"`
	Retired        bool          `json:"retired,omitempty" doc:"No longer configured; it finishes what it runs"`
}

// Account is the counters of one scope.
type Account struct {
	Scope    string    `json:"scope"`
	ID       string    `json:"id"`
	Tenant   string    `json:"tenant,omitempty" doc:"Of a project, or of a tenant on one model"`
	Open     int       `json:"open" doc:"Its requests that wait or run"`
	Counters []Counter `json:"counters"`
}

// Counter is one limit's figures.
type Counter struct {
	Limit     string `json:"limit" doc:"By its name, such as requests_per_minute"`
	Amount    Amount `json:"amount"`
	Used      Amount `json:"used"`
	Held      Amount `json:"held" doc:"By requests in flight"`
	Remaining Amount `json:"remaining"`
	Exposed   Amount `json:"exposed" doc:"How much further requests in flight can take it into debt: their bounds less what they hold"`
}

type (
	statusIn struct {
		Limit int `query:"limit" minimum:"0" maximum:"1000" doc:"Most rows of each kind; 0: 20"`
	}
	statusOut struct{ Body Status }
	reloadIn  struct {
		Mutation
		Body *struct {
			Author string `json:"author,omitempty" maxLength:"128" doc:"Who; the name of the admin token if left out"`
			Reason string `json:"reason,omitempty" maxLength:"1024" doc:"Why"`
			Follow bool   `json:"follow,omitempty" doc:"Put what the file says in force although a rollback or a change of routes holds"`
		}
	}
	reloadOut struct{ Body Reloaded }
)

func (a *API) registerStatus(api huma.API) {
	tags := []string{"operate"}
	register(a, api, huma.Operation{OperationID: "status", Method: http.MethodGet, Path: "/admin/v1/status", Summary: "What waits, what runs, what is broken", Tags: tags}, a.status)
	register(a, api, huma.Operation{OperationID: "reload-config", Method: http.MethodPost, Path: "/admin/v1/config/reload", Summary: "Read the configuration again; a failed reload changes nothing", Tags: tags, Errors: []int{409}}, a.reload)
}

func (a *API) status(_ context.Context, in *statusIn) (*statusOut, error) {
	return &statusOut{Body: a.statusNow(cmp.Or(in.Limit, defaultRows))}, nil
}

// defaultRows is the most rows of each kind where nothing else is asked for.
const defaultRows = 20

func (a *API) statusNow(limit int) Status {
	run := a.runtime()
	s := Status{
		State: stateOf(&run), Build: a.o.Build, At: a.o.Now().UTC(), Config: run.Config, Snapshot: run.Snapshot, Journal: run.Journal,
		Dependencies: run.Dependency, Pools: []PoolStatus{}, Top: []Account{},
	}
	if !run.Started.IsZero() {
		s.UptimeSeconds = a.o.Now().Sub(run.Started).Seconds()
	}
	if s.Dependencies == nil {
		s.Dependencies = []Dependency{}
	}
	if a.o.View == nil {
		return s
	}
	v := a.picture(limit)
	s.Policy, s.Open, s.Running, s.Expired = v.Policy, v.Open, v.Running, v.Expired
	for i := range v.Pools {
		s.Pools = append(s.Pools, poolView(&v.Pools[i], limit))
	}
	slices.SortStableFunc(s.Pools, func(p, q PoolStatus) int {
		return cmp.Or(cmp.Compare(q.broken(), p.broken()), cmp.Compare(q.Waiting, p.Waiting), cmp.Compare(q.running(), p.running()))
	})
	s.Pools, s.MorePools = cut(s.Pools, limit)
	s.health(&v, limit)
	s.regions(&v)
	for i := range v.Top {
		s.Top = append(s.Top, accountView(&v.Top[i]))
	}
	s.Top, s.MoreTop = cut(s.Top, limit)
	return s
}

// picture is all pools, with so many tenants of each class.
func (a *API) picture(limit int) engine.View {
	if a.o.Look == nil {
		return a.o.View(maxRows)
	}
	return a.o.Look(engine.Zoom{Flows: limit}, maxRows)
}

// maxRows is the most rows of each kind that a status has. As many are looked at,
// so that what is broken is shown wherever it stands.
const maxRows = 1000

// cut is the first n rows, and how many more there are.
func cut[T any](rows []T, n int) ([]T, int) {
	n = min(n, len(rows))
	return rows[:n], len(rows) - n
}

// broken is how many backends of those shown are not healthy.
func (p *PoolStatus) broken() (n int) {
	for i := range p.Backends {
		if p.Backends[i].Health != healthy {
			n++
		}
	}
	return n
}

func (p *PoolStatus) running() (n int64) {
	for i := range p.Backends {
		n += p.Backends[i].Running
	}
	return n
}

const healthy = "healthy"

func (a *API) runtime() Runtime {
	if a.o.Runtime == nil {
		return Runtime{Ready: true}
	}
	return a.o.Runtime()
}

func stateOf(r *Runtime) string {
	switch {
	case r.Draining:
		return "draining"
	case !r.Ready:
		return "starting"
	}
	for _, d := range r.Dependency {
		if d.State != "ok" {
			return "degraded"
		}
	}
	return "ready"
}

func poolView(p *engine.PoolView, limit int) PoolStatus {
	out := PoolStatus{
		Pool: string(p.ID), Failed: p.Failed, Waiting: p.Waiting, ByClass: make(map[string]int, sluice.NumClasses), QueuedBytes: p.Bytes, QueuedWork: p.Work,
		OldestSeconds: p.Oldest.Seconds(), WaitSeconds: p.Wait.Seconds(), WaitUnknown: p.Unknown,
		Enqueued: p.Counts.Enqueued, Dispatched: p.Counts.Dispatched, Cancelled: p.Counts.Cancelled, Rejected: p.Counts.Rejected, Moved: p.Counts.Moved,
		Demand: demandView(&p.Demand), Backends: make([]BackendStatus, 0, len(p.Backends)),
	}
	out.queueView(p)
	out.Ladder = ladderStatus(p.Ladder)
	for c, n := range p.ByClass {
		out.ByClass[sluice.Class(c).String()] = n
	}
	for i := range p.Backends {
		b := &p.Backends[i]
		out.Backends = append(out.Backends, BackendStatus{
			Backend: string(b.ID), Health: b.Health, Share: float64(b.Share) / 1000, Domain: b.Domain, Running: b.Running, Concurrency: b.Concurrency, KVTokens: b.KVTokens, PrefillTokens: b.Prefill,
			RetryInSeconds: b.RetryIn.Seconds(), Retired: b.Retired,
		})
	}
	slices.SortStableFunc(out.Backends, func(x, y BackendStatus) int {
		return cmp.Compare(rank(x.Health), rank(y.Health))
	})
	out.Backends, out.MoreBackends = cut(out.Backends, limit)
	return out
}

// rank puts what is not healthy first.
func rank(health string) int {
	if health == healthy {
		return 1
	}
	return 0
}

func accountView(v *engine.AccountView) Account {
	out := Account{Scope: v.Scope.String(), ID: v.ID, Tenant: v.Tenant, Open: v.Open, Counters: make([]Counter, 0, len(v.Counters))}
	for _, c := range v.Counters {
		if c.Limit.Amount == 0 { // counted since a start, for a limit that may come
			continue
		}
		of := c.Limit.Dimension
		out.Counters = append(out.Counters, Counter{
			Limit: LimitName(c.Limit.Dimension, c.Limit.Window), Amount: amount(c.Limit.Amount, of),
			Used: amount(c.Used, of), Held: amount(c.Held, of), Remaining: amount(c.Remaining, of), Exposed: amount(c.Exposed, of),
		})
	}
	return out
}

// reload reads the configuration again.
func (a *API) reload(ctx context.Context, in *reloadIn) (*reloadOut, error) {
	if a.o.Reload == nil {
		return nil, &sluice.Error{
			Kind: sluice.KindConflict, Reason: sluice.InvalidRequest,
			Msg: "the gateway was started without a configuration file", Hint: "start it with --config FILE",
		}
	}
	if in.DryRun {
		return nil, hinted(sluice.Invalid("dry_run", "is not known here"), "check the file with sluice check FILE")
	}
	var by Reload
	if in.Body != nil {
		by = Reload{Author: in.Body.Author, Reason: in.Body.Reason, Follow: in.Body.Follow}
	}
	var err error
	if by.Author, by.Reason, err = a.author(ctx, by.Author, by.Reason); err != nil {
		return nil, err
	}
	r, err := a.o.Reload(ctx, by)
	if err != nil {
		return nil, reloadProblem(err)
	}
	a.o.Log.LogAttrs(ctx, slog.LevelInfo, "configuration reloaded", slog.String("version", r.Version), slog.String("by", operatorOf(ctx).ID))
	return &reloadOut{Body: r}, nil
}

// reloadProblem shows an operator why the configuration was refused: the file is
// the operator's own, so the whole text is.
func reloadProblem(err error) *Problem {
	p := problemOf(&sluice.Error{
		Kind: sluice.KindInvalid, Reason: sluice.InvalidRequest,
		Msg: "the configuration is not valid and nothing has changed", Hint: "mend it and check it with sluice check FILE",
	})
	if many, ok := errors.AsType[Problems](err); ok {
		all := many.Details()
		p.Errors = all[:min(len(all), maxReloadProblems)]
		return p
	}
	p.Errors = []ProblemDetail{{Message: err.Error()}}
	return p
}

// maxReloadProblems bounds the answer to a reload of a very wrong file.
const maxReloadProblems = 100
