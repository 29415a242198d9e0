package engine

import (
	"time"

	"sluice"
	"sluice/internal/ladder"
	"sluice/internal/quota"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// Zoom says how close a Dump looks. The zero value is all pools.
type Zoom struct {
	// Request is one open request, and what is in its way.
	Request sluice.RequestID // and its hedge
	// Pool is one pool: its flows, and the requests that wait, the oldest first.
	Pool sluice.PoolID
	// Tenant is one tenant's flows and requests, of the pool or, without one, of
	// all pools in which it has any.
	Tenant sluice.TenantID
	// Flows is how many tenants of each class are shown of each pool where all pools
	// are, at most 100; 0: 10.
	Flows int
	// Levels leaves out flows and accounts: what metrics are made of.
	Levels bool
}

// View is a bounded picture of the engine, for `sluice status`. Its slices are
// copies.
type View struct {
	At       time.Time
	Policy   string // routing table version
	Open     int    // requests that wait or run
	Running  int    // requests on a backend
	Expired  int    // expired holds whose late settlement is still possible
	Accounts int    // accounts in memory

	Retries        int64 // that the budget of all has room for
	RetriesBounded bool  // else there is no budget

	Domains     []DomainView     // by name; of the zoom on all pools
	Credentials []CredentialView // likewise
	Cooling     []CredentialView // that one backend has asked to be left alone with (429), until RetryIn
	Regions     []RegionView     // by name, where some model has a locality; likewise

	Pools    []PoolView
	Top      []AccountView // busiest first, by requests that wait or run; of the zoom on all pools
	Requests []RequestView // of the zooms on a request, a pool or a tenant
}

// PoolView is one pool and its queue.
type PoolView struct {
	ID        sluice.PoolID
	Waiting   int
	ByClass   [sluice.NumClasses]int
	Bytes     int64
	Work      sluice.Tokens
	Failed    bool          // none of its backends takes requests
	Oldest    time.Duration // how long its oldest request has waited
	Wait      time.Duration // predicted for an arrival; 0: at once, or Unknown
	Unknown   bool          // it would wait, and nothing is known that tells for how long
	Counts    sched.Counts
	Classes   [sluice.NumClasses]sched.ClassView
	Flows     []sched.FlowView // by class; first those that fill most of the queue
	Contracts []sched.ContractView
	Demand    DemandView
	Gathering *GatherView // nil if what becomes free is kept for nothing
	Backends  []BackendView
	Affinity  *route.ChoiceCounts // nil where the pool does not look at prefixes
	Ladder    *LadderView         // nil where it is off
}

// GatherView is the request for which what becomes free is kept.
type GatherView struct {
	Request sluice.RequestID
	Tenant  sluice.TenantID
	Class   sluice.Class
	Backend sluice.BackendID // that is kept; empty for a part of the pool
	Passed  int64            // work of later requests that were served before it
	Most    int64            // of that, until what is free was kept for it

	// Overtaken is, for each class, a request that does not fit and which those of the
	// class that are ahead of it may not pass meanwhile; empty if none was held back.
	Overtaken [sluice.NumClasses]sluice.RequestID
}

// BackendView is one backend's load and health.
type BackendView struct {
	ID             sluice.BackendID
	Running        int64
	Concurrency    int64
	KVTokens       sluice.Tokens
	Prefill        sluice.Tokens
	Health         string        // a word of route.Place.State
	RetryIn        time.Duration // until a backend that is out may be given something
	Share          int64         // of its share that it may have, in thousandths: less than 1000 while it comes back
	Domain         string        // failure domain; empty is its own
	Adaptive       bool          // Concurrency is found from its answers
	TokenTime      time.Duration // objective of an adaptive limit, 0 while it is not known
	KVCapacity     sluice.Tokens // memory, 0 if it is not known
	KVPermille     int64         // used part of it as the engine told last, -1 if it does not tell
	LoadAge        time.Duration // how old that is
	Rates          []RateView    // of the provider, those that are known
	Retries        int64         // that it may be given, other budgets aside
	RetriesBounded bool          // else there is no budget
	Retired        bool          // no longer in the table; it finishes what it runs
}

// RateView is what is left of one of a provider's rates; negative is debt.
type RateView struct {
	Rate      route.Rate
	Left, All int64
}

// AccountView is one scope's counters.
type AccountView struct {
	Scope    sluice.Scope
	ID       string // of the key, user, run, project, tenant or model
	Tenant   string // of what is part of one; else empty
	Open     int    // requests that wait or run
	Counters []quota.CounterView
}

// Phase is what an open request does.
type Phase string

// The phases of a RequestView.
const (
	Waiting Phase = "waiting"
	Running Phase = "running"
	Idle    Phase = "ending"  // its last wait ended without a place, or its attempt has failed: it is being settled
	Expired Phase = "expired" // charged what it held; it may still settle, late
)

// RequestView is one open request.
type RequestView struct {
	ID      sluice.RequestID
	Phase   Phase
	Hedge   bool // its second attempt, beside the first or, that having lost, alone
	Owner   sluice.Principal
	Model   sluice.ModelID
	Class   sluice.Class
	Pool    sluice.PoolID
	Region  string        // in which it is to be served, where its model has a locality
	Away    bool          // that is not its home
	Age     time.Duration // since arrival
	Attempt int           // that runs, or how many there were

	// While it waits.
	Waited    time.Duration // in this queue, or since its last attempt ended
	MaxWait   time.Duration // of it
	Position  int           // requests served before it, about
	Wait      time.Duration // predicted from now on; 0: nothing is known
	Predicted time.Duration // at arrival; 0: at once, or nothing was known
	Passed    int64         // work of later requests that were served before it
	Most      int64         // of that, until what is free is kept for it
	Gathering bool          // what becomes free is kept for it
	Lacks     []LackView    // of the zoom on a request; what is in its way

	// While it runs.
	Backend sluice.BackendID
	Ran     time.Duration
	Inside  bool          // of a contract's reserve
	Expires time.Duration // until its hold does, without activity

	Tier ladder.Tier // of the pool's ladder, as it has felt it

	Work  sluice.Work   // its output bound perhaps clamped
	Cost  int64         // expected work as its tenant is charged for it
	Needs sched.Amounts // of one backend
	Holds quota.Amounts // of its caller's limits: gauges only while it runs
}

// LackView is one thing in the way of a request.
type LackView struct {
	sched.Lack
	What    string           // the word: see the constants
	Refusal *quota.Refusal   // of LackLimit
	Request sluice.RequestID // of LackGathered
	Wait    time.Duration    // of LackRate: until there is room, if nothing else takes it; of LackLadder: at least
}

// What can be in the way of a request that waits.
const (
	LackLimit     = "limit"          // a limit on its caller's requests in flight
	LackBackend   = "backend"        // none of its backends is fit to be used
	LackFlow      = "flow"           // requests of its own flow that came before
	LackTurn      = "turn"           // nothing but that others are due first
	LackRoom      = "room"           // no backend has as much free
	LackRate      = "rate"           // the rates of its backends' providers are used up
	LackSplit     = "room_together"  // no one backend has all of it free
	LackPool      = "pool"           // the pool has not as much free
	LackCeiling   = "class_ceiling"  // of its class
	LackHeadroom  = "class_headroom" // kept free for another class
	LackReserve   = "contract"       // kept for a contract
	LackGathering = "gathered"       // kept for another request
	LackLadder    = "ladder"         // its class waits until the pool's ladder comes down
)
