package auth

import (
	"time"

	"sluice"
)

// Records is everything that one source knows. A source hands it over and does
// not touch it again.
type Records struct {
	// Version is the source's change counter, read in the same transaction as
	// the records. Any change of any record raises it.
	Version int64

	Plans   []Plan
	Tenants []Tenant
	Keys    []Key
	Admins  []AdminToken

	// Tokens of issuers are taken in the place of keys (package jwt).
	Tokens bool

	// Naive leaves all limits but those of requests and spend out, whichever source
	// says them.
	Naive bool
}

// Origin is where a record was declared. The zero Origin is the store.
type Origin struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"` // from 1
}

// Declared reports whether a file owns the record: it is read-only elsewhere.
func (o Origin) Declared() bool { return o.File != "" }

// Spend says what a spend budget promises.
type Spend string

// The spend modes. Empty is SpendHard.
const (
	SpendHard Spend = "hard" // holds upper bounds, never exceeded
	SpendSoft Spend = "soft" // holds the learned quantile, debt shows
)

// Sync says whether a request waits for its journal record to be on disk.
type Sync string

// The sync modes. Empty is SyncAlways where a hard spend limit applies to the
// key, else SyncGroup.
const (
	SyncAlways Sync = "always"
	SyncGroup  Sync = "group"
)

// AnyModel stands for every model in Plan.PerModel.
const AnyModel sluice.ModelID = "*"

// Plan is the limits and the class that tenants share by name; each tenant has
// its own counters. Take DefaultPlan and change what differs.
type Plan struct {
	ID      sluice.PlanID  `json:"id"`
	Class   sluice.Class   `json:"class"`             // of a request that asks for none
	Classes []sluice.Class `json:"classes,omitempty"` // further classes that it may ask for; lower ones than Class always
	Weight  int64          `json:"weight"`            // share between tenants, at least 1

	Models     []sluice.ModelID `json:"models,omitempty"`     // empty allows all
	MaxWait    time.Duration    `json:"max_wait,omitempty"`   // longest time in a queue, in nanoseconds; 0 takes the pool's
	MaxOutput  sluice.Tokens    `json:"max_output,omitempty"` // output bound of a request that names none; 0 takes the model's
	Spend      Spend            `json:"spend,omitempty"`      // empty is hard
	LimitsMode sluice.LimitMode `json:"limits_mode,omitzero"` // of limits and ceilings

	// Most input and output tokens of one request, 0 for no bound. More input is
	// refused, more output not asked for.
	InputCeiling  sluice.Tokens `json:"input_ceiling,omitempty"`
	OutputCeiling sluice.Tokens `json:"output_ceiling,omitempty"`

	BudgetStatus int  `json:"budget_status,omitempty"` // 429 or 402: the status of a spent budget in the OpenAI dialect; 0 is 429
	JournalSync  Sync `json:"journal_sync,omitempty"`  // empty follows Spend

	Translation Translation    `json:"translation,omitempty"` // empty is strict
	ForeignIDs  ForeignIDs     `json:"foreign_ids,omitempty"` // empty is refuse
	FetchMedia  FetchMedia     `json:"fetch_media,omitempty"` // empty is refuse
	Hooks       []string       `json:"hooks,omitempty"`       // that look into requests and answers, by name, in order
	Degrade     sluice.ModelID `json:"degrade,omitempty"`     // may serve its requests while a pool is short; empty: none may

	OutputCache *OutputCache `json:"output_cache,omitempty"` // nil keeps no answers

	EngineFields []string `json:"engine_fields,omitempty"` // members of wire.EngineFields that requests may have

	Residency

	Limits     []sluice.Limit                    `json:"limits,omitempty"`      // of the whole tenant
	PerProject []sluice.Limit                    `json:"per_project,omitempty"` // of each project, unless the project says otherwise
	PerKey     []sluice.Limit                    `json:"per_key,omitempty"`     // of each key, unless the key says otherwise
	PerUser    []sluice.Limit                    `json:"per_user,omitempty"`    // of each end user of the tenant
	PerRun     []sluice.Limit                    `json:"per_run,omitempty"`     // of each run of the tenant, unless the key says otherwise
	PerModel   map[sluice.ModelID][]sluice.Limit `json:"per_model,omitempty"`   // of each tenant on one model; AnyModel is each model by itself

	Origin  Origin    `json:"origin,omitzero"`
	Created time.Time `json:"created,omitzero"`
	Updated time.Time `json:"updated,omitzero"`
}

// Residency is where requests may go, fallbacks and retries too: to backends of
// these regions and of these providers, and that take what carries the label Risk.
// An empty list allows all; what a plan, a tenant, a project and a key say only ever
// narrows, so that Risk is the least label of each request.
type Residency struct {
	Regions   []string            `json:"regions,omitempty"`
	Providers []sluice.ProviderID `json:"providers,omitempty"`
	Risk      sluice.Risk         `json:"risk,omitempty"`
}

// DefaultPlan is a plan with no limits: class standard, weight 1, hard spend.
// A tenant that names no plan has it.
func DefaultPlan(id sluice.PlanID) Plan {
	return Plan{ID: id, Class: sluice.Standard, Weight: 1, Spend: SpendHard}
}

// Tenant holds projects.
type Tenant struct {
	ID        sluice.TenantID  `json:"id"`
	Name      string           `json:"name,omitempty"`      // for humans
	Plan      sluice.PlanID    `json:"plan,omitempty"`      // empty is DefaultPlan
	Suspended bool             `json:"suspended,omitempty"` // none of its keys is admitted
	Models    []sluice.ModelID `json:"models,omitempty"`    // narrows the plan's; empty changes nothing
	Limits    []sluice.Limit   `json:"limits,omitempty"`    // each replaces the plan's of the same dimension and window; Unlimited lifts it
	Projects  []Project        `json:"projects,omitempty"`  // DefaultProject exists without being listed

	LimitsMode  *sluice.LimitMode `json:"limits_mode,omitempty"`  // in place of the plan's
	Translation Translation       `json:"translation,omitempty"`  // in place of the plan's
	ForeignIDs  ForeignIDs        `json:"foreign_ids,omitempty"`  // in place of the plan's
	FetchMedia  FetchMedia        `json:"fetch_media,omitempty"`  // in place of the plan's
	Hooks       []string          `json:"hooks,omitempty"`        // after the plan's
	OutputCache *OutputCache      `json:"output_cache,omitempty"` // in place of the plan's
	Degrade     *sluice.ModelID   `json:"degrade,omitempty"`      // in place of the plan's; of an empty one, none may

	Residency

	Origin  Origin    `json:"origin,omitzero"`
	Created time.Time `json:"created,omitzero"`
	Updated time.Time `json:"updated,omitzero"`
}

// Project holds keys; its id is unique within its tenant.
type Project struct {
	ID     sluice.ProjectID `json:"id"`
	Name   string           `json:"name,omitempty"`
	Models []sluice.ModelID `json:"models,omitempty"` // narrows the tenant's
	Limits []sluice.Limit   `json:"limits,omitempty"` // each replaces the plan's per_project, likewise

	Translation Translation `json:"translation,omitempty"` // in place of the tenant's
	Hooks       []string    `json:"hooks,omitempty"`       // after the tenant's

	Residency
}

// SecretHash is one secret of a key, valid until NotAfter.
type SecretHash struct {
	Hash     Hash
	NotAfter time.Time // zero never ends
}

// MaxSecrets bounds the secrets that a key may have at a time.
const MaxSecrets = 4

// Key is a credential's record.
type Key struct {
	ID      sluice.KeyID     `json:"id"` // unique over all tenants
	Env     string           `json:"env,omitempty"`
	Name    string           `json:"name,omitempty"` // for humans
	Tenant  sluice.TenantID  `json:"tenant"`
	Project sluice.ProjectID `json:"project"` // empty is DefaultProject

	// Secrets never marshal, so that no API can leak them: a store keeps them
	// in columns of their own. Newest first; at most MaxSecrets.
	Secrets []SecretHash `json:"-"`

	Models []sluice.ModelID `json:"models,omitempty"`  // narrows the project's
	Limits []sluice.Limit   `json:"limits,omitempty"`  // each replaces the plan's per_key, likewise
	PerRun []sluice.Limit   `json:"per_run,omitempty"` // each replaces the plan's per_run, likewise

	InputCeiling  sluice.Tokens `json:"input_ceiling,omitempty"`  // lowers the plan's; 0 changes nothing
	OutputCeiling sluice.Tokens `json:"output_ceiling,omitempty"` // the same

	Residency

	NotAfter time.Time `json:"not_after,omitzero"`
	Disabled bool      `json:"disabled,omitempty"` // for now; it can be enabled again
	Revoked  time.Time `json:"revoked,omitzero"`   // for ever, since then

	Origin  Origin    `json:"origin,omitzero"`
	Created time.Time `json:"created,omitzero"`
	Updated time.Time `json:"updated,omitzero"`
}

// AdminToken is an operator's credential for the admin API.
type AdminToken struct {
	ID       string    `json:"id"` // public, as it stands in the token
	Name     string    `json:"name,omitempty"`
	Hash     Hash      `json:"-"`
	NotAfter time.Time `json:"not_after,omitzero"`
	Revoked  time.Time `json:"revoked,omitzero"`
	Created  time.Time `json:"created,omitzero"`
}

// Rotate gives the key a new secret, newest first, and lets those that it has
// end at overlap from now, or when they would have ended anyway. Secrets that
// have ended are dropped; at most MaxSecrets stay.
func (k *Key) Rotate(h Hash, now time.Time, overlap time.Duration) {
	end := now.Add(overlap)
	kept := []SecretHash{{Hash: h}}
	for _, s := range k.Secrets {
		if s.NotAfter.IsZero() || s.NotAfter.After(end) {
			s.NotAfter = end
		}
		if s.NotAfter.After(now) && len(kept) < MaxSecrets {
			kept = append(kept, s)
		}
	}
	k.Secrets = kept
}
