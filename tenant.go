package sluice

import "slices"

// Principal is the identified caller of one request.
type Principal struct {
	Tenant  TenantID
	Project ProjectID
	Key     KeyID
	User    UserID // the end-user label of the request, empty if it has none
	Run     RunID  // the caller's run of many requests, empty if it has none
	Policy  *Policy
}

// Policy is what applies to one key: its plan, narrowed by what tenant, project and key say themselves. It is
// immutable and shared by all requests of the key; a change of the plan is a new Policy.
type Policy struct {
	Plan      PlanID
	Class     Class     // the class of a request that asks for none
	Classes   []Class   // further classes that a request may ask for; a lower one than Class always may
	Weight    int64     // share between tenants, at least 1
	Models    []ModelID // allowed public names; empty allows all
	Regions   []string  // where requests may go, fallbacks too; empty allows all
	Providers []ProviderID
	Risk      Risk     // least label of each request
	Hooks     []string // that look into requests and answers, by name, in order
	Degrade   ModelID  // may serve its requests while a pool's ladder stands on "smaller"; empty: none may
	MaxWait   int64    // longest time in a queue, in nanoseconds; 0 means the pool's
	MaxOutput Tokens   // output bound of a request that names none; 0 means the model's

	InputCeiling  Tokens    // most input of one request; 0 means no bound
	OutputCeiling Tokens    // most output of one request, over all its answers; 0 means no bound
	EngineFields  []string  // members of a body that steer a self-run engine and that requests may have all the same
	Mode          LimitMode // of all bounds here; those of models and the fleet are always enforced
	HardSpend     bool      // spend budgets hold upper bounds and are never exceeded
	Budget402     bool      // a spent budget is 402 in the OpenAI dialect too
	ForeignState  bool      // requests may refer to what a provider keeps and no tenant here has
	FetchMedia    bool      // what requests name by URL is fetched for backends that take bytes alone
	WarnDropped   bool      // what a translation between dialects leaves out is told; else it refuses the request
	JournalSync   bool      // wait for the journal's fsync before the dial

	// How answers are kept and given again to the same request: for how many nanoseconds (0: they are not), and for what percentage of
	// what their usage would cost. Only of requests that ask for it; of each end user by itself; without joining those in flight.
	CacheTTL, CachePercent               int64
	CacheAsked, CachePerUser, CacheApart bool

	// Limits by scope. Those of ScopeModel and ScopeFleet come from the configuration and are
	// empty here. ScopeTenantModel applies to each model by itself, unless ByModel names it.
	Limits  [NumScopes][]Limit
	ByModel map[ModelID][]Limit
}

// LimitMode is what becomes of a request that does not fit a limit.
type LimitMode uint8

// The modes.
const (
	Enforce       LimitMode = iota // it is refused or waits
	Shadow                         // it runs, is counted, and what would have become of it is told
	Off                            // nothing is counted
	NumLimitModes = iota
)

var limitModeNames = []string{"enforce", "shadow", "off"}

func (m LimitMode) String() string               { return enumText(limitModeNames, m) }
func (m LimitMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }
func (m *LimitMode) UnmarshalText(b []byte) error {
	return enumParse("limit mode", limitModeNames, b, m)
}

// Allows reports whether the key may ask for the model.
func (p *Policy) Allows(m ModelID) bool {
	return len(p.Models) == 0 || slices.Contains(p.Models, m)
}

// AllowsClass reports whether a request may wait as c.
func (p *Policy) AllowsClass(c Class) bool {
	return c >= p.Class || slices.Contains(p.Classes, c)
}
