package tabletop

import (
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/fleet"
	"sluice/internal/ladder"
	"sluice/internal/route"
)

// Scenario is one rehearsal, compiled: what serves, who asks for what, what
// happens meanwhile, and what is expected. It is immutable: the same Scenario,
// policy and seed give the same [Result], byte for byte.
type Scenario struct {
	Name  string
	About string // one sentence
	Seed  uint64 // where the caller names none

	Warmup time.Duration // arrivals before it are served and not judged
	Length time.Duration // arrivals end
	Drain  time.Duration // how much longer what is open may take; what is open then is counted as unfinished

	Policies []Variant // at least "sluice"; "naive" second, then the file's own variants
	Machines []Machine // by backend: what every backend of every table is played by
	Sources  []Source  // who asks
	Events   []Event   // by time
	Acts     []Act     // what an operator may do about it, chosen by name when run
	Expect   []Expectation
	Options  engine.Options

	// InputError is how far the gateway's count of a request's input is off at most,
	// evenly, in thousandths; 0 is exact.
	InputError int64
}

// Variant is one way to serve the same scenario.
type Variant struct {
	Name       string // "sluice", "naive", or the file's
	Table      *route.Table
	Principals []sluice.Principal // of each source, with the policy in force under this variant
}

// Machine is what plays a backend: one of the two.
type Machine struct {
	Backend sluice.BackendID
	Replica *fleet.Profile
	Hosted  *fleet.Service

	// Scrape is how often the gateway asks an engine for its load, as it does every
	// second of those whose metrics it knows; 0 never.
	Scrape time.Duration
}

// Steady plays a backend that answers as many at a time as it is given, all at one pace:
// what is fitted to answers whose engine is not known.
func Steady(backend sluice.BackendID, first, token time.Duration) Machine {
	return Machine{Backend: backend, Hosted: &fleet.Service{Latency: first, TokenTime: max(token, time.Microsecond), PrefillRate: 1_000_000_000}}
}

// Source is a stream of requests of one tenant's project.
type Source struct {
	Name    string // unique; shown in reports, and part of the seed of what it draws
	Tenant  sluice.TenantID
	Project sluice.ProjectID
	Model   sluice.ModelID
	Dialect string // what it speaks: openai
	Class   sluice.Class
	Task    string

	Arrivals Arrivals
	Input    Lengths // of a Trace: its rows', unless there is a law here
	Output   Lengths // true lengths: what drives the engine never sees them. Of a Trace as Input
	Prefix   Prefix
	Client   Client
	Target   Target
}

// Target is what a request must meet to count as good. A request that is
// rejected, fails or is not finished is not good, whatever its times. Zero is no target.
type Target struct {
	TTFT time.Duration // from first submission, waits and resubmissions included
	TPOT time.Duration // mean time per output token after the first
	E2E  time.Duration // from first submission to the last token
}

// Prefix is what prompts of a source have in common, and so may find in a
// replica's cache.
type Prefix struct {
	Tokens sluice.Tokens // of each prompt
	Groups int           // how many different ones there are; a request has one at random
}

// Client is how the caller behaves.
type Client struct {
	Bound    sluice.Tokens // max_tokens that it sends; 0 sends none: the model's is the bound
	MaxWait  time.Duration // sluice-max-wait: 0 leaves it to the plan and the pool, negative does not queue
	Patience time.Duration // it leaves where no first token has come by then; 0 never
	Leave    Leave
	Retry    Retry
	Streams  int // largest number of its requests at a time, a closed loop: an arrival beyond waits at the client; 0 any
}

// Leave is a share of requests that are cancelled in mid-answer.
type Leave struct {
	Permille int64
	After    time.Duration // at a random moment up to this long after submission
}

// Retry is what a client does with a refusal or a failure: a resubmission is a
// new request to the gateway, and the same one to the person who waits.
type Retry struct {
	Max     int           // resubmissions; 0 none
	Backoff time.Duration // before the first
	Factor  float64       // of each further wait to the one before; 2 if 0
	Cap     time.Duration // longest wait
	Jitter  float64       // part of a wait that is drawn at random, from 0 to 1
	Honour  bool          // waits at least as long as Retry-After says
}

// Event is something that happens at a moment. Exactly one of what follows
// Label is set.
type Event struct {
	At    time.Duration
	Label string // for the timeline
	Phase string // a phase of judgement that begins here; empty goes on with the current one. Not read of an act's, so that runs with and without it have the same

	Traffic  *Traffic
	Backends *Backends
	Pin      *Pin
	Apply    []Variant // tables and principals that come into force, one for each of Scenario.Policies
}

// Act is a named play of an operator: events that happen only in a run that
// names it.
type Act struct {
	Name   string
	About  string
	Events []Event
}

// Pin puts the ladder of a pool, whose table must not have it off, on a tier.
type Pin struct {
	Pool sluice.PoolID
	Tier ladder.Tier
	For  time.Duration
}

// Traffic changes what sources send from then on. A nil field is left as it is.
type Traffic struct {
	Sources []int    // indices
	Rate    *float64 // times the source's own
	Input   *Lengths
	Output  *Lengths
	Client  *Client
}

// Backends changes what serves.
type Backends struct {
	IDs   []sluice.BackendID
	Down  bool  // they die: what runs there fails, and connections are refused
	Up    bool  // they come back, after their start-up time, as new
	Speed int64 // permille of their own speed; 0 leaves it
	Fail  *Fail // how they answer from then on
}

// Fail is how a backend fails while it is up.
type Fail struct {
	Permille int64         // of attempts; 0 ends it
	Reason   sluice.Reason // upstream_error, upstream_limited, upstream_truncated, …: an answer that breaks off has begun, any other has not
	After    time.Duration // the failure takes so long to show
}
