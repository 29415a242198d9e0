package route

import (
	"time"

	"sluice"
	"sluice/internal/demand"
	"sluice/internal/ladder"
	"sluice/internal/price"
	"sluice/internal/sched"
)

// Capacity is what one backend can hold at a time. Zero means unbounded in that
// dimension, but for Concurrency.
type Capacity struct {
	// Concurrency is attempts at a time. Zero is found out, from
	// DefaultConcurrency; with Adaptive it is found out from 1 to Concurrency.
	Concurrency   int64
	Adaptive      bool
	TokenTime     time.Duration // longest time for an output token that an adaptive limit accepts; 0 is three times that of the idle backend
	QueueDelay    time.Duration // likewise, longest wait inside the backend before prefill; 0 is sched.DefaultQueueDelay
	Rates         Rates         // of the provider
	KVTokens      sluice.Tokens // input + held output of all attempts
	PrefillTokens sluice.Tokens // uncached input of attempts that have not answered yet
	DecodeRate    int64         // output tokens per second of a full batch, for what of it is asked for; zero is not known
	PrefillRate   int64         // input tokens per second, for the cost of a choice; zero takes DefaultPrefillRate
}

// DefaultConcurrency is the slots that a backend which names none starts with.
const DefaultConcurrency = sched.DefaultLimit

// bounds is what the limit on attempts keeps to.
func (c *Capacity) bounds() sched.LimitBounds {
	n := c.Concurrency
	if n > 0 && !c.Adaptive {
		return sched.LimitBounds{Start: n, Min: n, Max: n}
	}
	if n <= 0 {
		n = sched.DefaultMaxLimit
	}
	return sched.LimitBounds{Start: min(n, DefaultConcurrency), Min: 1, Max: n, Token: c.TokenTime, Queue: c.QueueDelay}
}

// Backend is one upstream model at one provider account or one engine replica,
// in one region and one failure domain. It is immutable.
type Backend struct {
	ID       sluice.BackendID
	Provider sluice.ProviderID
	Model    string // the provider's name of the model
	Dialect  string // "openai" or "anthropic": what the backend speaks
	Region   string
	Domain   string // failure domain; empty is one of its own
	Keys     []Key  // credentials; none is one that nothing is known of
	Weight   int64  // share of a pool's requests, at least 1; 0 takes no new work
	Capacity Capacity

	Price     *price.Row    // nil if the price book has none
	Ceiling   *price.Row    // charged where Price is nil; nil refuses
	Context   sluice.Tokens // context length; 0 if unknown
	MaxOutput sluice.Tokens // largest output; 0 if unknown

	Lacks   Needs       // what it cannot do; requests that need any of it never go there
	MaxRisk sluice.Risk // the highest label of what may go there; RiskNone is no bound

	// Replica says that what it keeps between requests is there alone, as with an engine;
	// else the provider keeps it for the account. See Pin.
	Replica bool
	Site    string // what of the account's state it sees: backends of one provider, site and credential see the same

	StopsOnCancel bool // generation, and billing, stop when the connection closes

	// Longest is how long an attempt can last, and Silence how long a stream can
	// show nothing, by the deadlines of its calls: a hold lasts longer. 0 if unknown.
	Longest, Silence time.Duration
}

// Row is what the backend is billed at: its price, else the configured ceiling,
// else nil.
func (b *Backend) Row() *price.Row {
	if b.Price != nil {
		return b.Price
	}
	return b.Ceiling
}

// Pool is backends that share a queue.
type Pool struct {
	ID       sluice.PoolID
	Backends []*Backend
	Queue    QueueBounds
	Sharing  sched.Policy // classes and contracts
	Cost     Cost
	Choice   Choice
	Affinity Affinity
	Scale    demand.Policy // of its replicas
	Ladder   ladder.Policy // how its service is reduced while it is short of capacity; the zero value is off
}

// Cost is what a token counts for in the work that tenants share a pool by. Zero
// takes the defaults; cached input counts nothing.
type Cost struct {
	Input  int64 // of an uncached input token
	Output int64
}

// WithDefaults fills zero fields: an output token counts twice, since decoding
// holds the backend longer than prefill.
func (c Cost) WithDefaults() Cost {
	if c.Input == 0 && c.Output == 0 {
		return Cost{Input: 1, Output: 2}
	}
	return c
}

// QueueBounds bounds a pool's queue. Zero fields take the defaults.
type QueueBounds struct {
	Requests  int64
	Bytes     int64         // request bodies held by waiting requests
	Work      sluice.Tokens // input + output of waiting requests
	PerTenant int64         // the part of each bound that one tenant may fill, in thousandths; 0 is all of it
	MaxWait   time.Duration // longest wait where neither request nor plan says less; zero is the engine's
}

// Defaults of QueueBounds.
const (
	DefaultQueueRequests = 4096
	DefaultQueueBytes    = 256 << 20
	DefaultQueueWork     = sluice.Tokens(64_000_000)
)

// WithDefaults fills the zero fields, MaxWait excepted.
func (q QueueBounds) WithDefaults() QueueBounds {
	if q.Requests == 0 {
		q.Requests = DefaultQueueRequests
	}
	if q.Bytes == 0 {
		q.Bytes = DefaultQueueBytes
	}
	if q.Work == 0 {
		q.Work = DefaultQueueWork
	}
	return q
}

// Model is a public name and the pools that serve it, in order of preference.
type Model struct {
	ID       sluice.ModelID
	Pools    []sluice.PoolID // first choice
	Fallback []sluice.PoolID // tried in order when an attempt failed before content
	// Evaluated is what says that a fallback can stand in, of those that have been
	// evaluated. Whether one may without it is for the configuration to see to.
	Evaluated map[sluice.PoolID]*Evaluation

	// Terms are the conditions and shares of first pools that have any; nil if none
	// has. Sticky is what decides between them.
	Terms  map[sluice.PoolID]*Terms
	Sticky Sticky

	// Prefer orders the first pools, canaries aside, and the backends of each.
	Prefer Prefer

	// MaxRisk is the highest label that a pool, first choice or fallback, takes of the
	// model's requests; those without have no bound.
	MaxRisk map[sluice.PoolID]sluice.Risk

	Locality *Locality // nil takes whatever region comes

	Hooks []string // names of hooks that look into its requests and answers, in order

	Shadows []Shadow // pools that get copies of its requests

	MaxSpend sluice.Nano    // most that one attempt may hold of a budget; 0 is no bound
	Hedge    *Hedging       // nil hedges nothing
	Limits   []sluice.Limit // at ScopeModel
}

// Evaluation names what says that a fallback answers well enough to stand in. It is
// recorded with each attempt there.
type Evaluation struct {
	Suite string // of the alphabet of names
	Score string // a decimal number
	Date  string // a day, as 2026-11-01
}

// Table is one version of the routing policy. It is immutable.
type Table struct {
	Version string // recorded with every request
	Models  map[sluice.ModelID]*Model
	Pools   map[sluice.PoolID]*Pool
	Fleet   []sluice.Limit // at ScopeFleet
	Retries RetryPolicy
	Breaker BreakerPolicy

	// Headroom is the part of each region's capacity, in thousandths, that requests at
	// home elsewhere may occupy; none where it is not named.
	Headroom map[string]int64

	// NoBreakers leaves backends in use whatever becomes of their attempts and
	// whatever they ask for: for the naive policy.
	NoBreakers bool
}
