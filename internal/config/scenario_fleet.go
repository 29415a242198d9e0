package config

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"sluice"
	"sluice/internal/fleet"
	"sluice/internal/route"
	"sluice/internal/tabletop"
)

// Machine is what plays a backend: an engine replica, by a profile and what
// differs, or an account at a hosted provider.
type Machine struct {
	Profile        string    `json:"profile,omitempty" jsonschema:"a model on a GPU, illustrative: sluice capacity profiles lists them"`
	PrefillRate    Count     `json:"prefill_rate,omitempty" jsonschema:"input tokens per second"`
	PrefillPerPair Fine      `json:"prefill_per_pair,omitempty" jsonschema:"what each pair of a token of the prompt with one before it adds, such as 4.1ns: the part that grows with the square"`
	Chunk          Count     `json:"chunk,omitempty" jsonschema:"most input tokens of one step"`
	StepBase       Fine      `json:"step_base,omitempty" jsonschema:"a decode step, empty"`
	StepPerRequest Fine      `json:"step_per_request,omitempty" jsonschema:"what a running request adds to a step"`
	StepPerToken   Fine      `json:"step_per_token,omitempty" jsonschema:"what a token of context adds to a step, such as 76.3ns"`
	KVTokens       Count     `json:"kv_tokens,omitempty" jsonschema:"key-value memory"`
	BlockTokens    Count     `json:"block_tokens,omitempty" jsonschema:"tokens of a block of its prefix cache, which holds what memory is left; no cache if left out. Those of a trace with hash_ids are 512"`
	Slots          Count     `json:"slots,omitempty" jsonschema:"most running requests; 256 if left out"`
	Queue          Count     `json:"queue,omitempty" jsonschema:"most waiting requests of its own; no bound if left out"`
	PrefixHit      *Share    `json:"prefix_hit,omitempty" jsonschema:"share of input in its prefix cache, where sources say nothing of prefixes"`
	StartUp        *Duration `json:"start_up,omitempty" jsonschema:"from coming back until it serves"`

	Hosted *Hosted `json:"hosted,omitempty" jsonschema:"an account at a provider, in place of all else"`
}

// Hosted is an account at a provider.
type Hosted struct {
	Latency           Duration `json:"latency" jsonschema:"until the first token of an empty prompt"`
	LatencyTail       Duration `json:"latency_tail,omitempty" jsonschema:"mean of an exponential part on top"`
	PrefillRate       Count    `json:"prefill_rate" jsonschema:"input tokens per second of one request"`
	TokenTime         Duration `json:"token_time" jsonschema:"between two output tokens"`
	PrefixHit         Share    `json:"prefix_hit,omitempty" jsonschema:"share of input in its prefix cache"`
	Concurrency       Count    `json:"concurrency,omitempty" jsonschema:"most requests in flight; no bound if left out"`
	RequestsPerMinute Count    `json:"requests_per_minute,omitempty" jsonschema:"more are answered 429; no bound if left out"`
	TokensPerMinute   Count    `json:"tokens_per_minute,omitempty" jsonschema:"likewise, input and output together"`
	Overloaded        Share    `json:"overloaded,omitempty" jsonschema:"share of requests answered 529, at any time"`
	Errors            Share    `json:"errors,omitempty" jsonschema:"share that fails in place of a first token"`
	Breaks            Share    `json:"breaks,omitempty" jsonschema:"share that breaks off in mid-answer"`
	RetryAfter        Duration `json:"retry_after,omitempty" jsonschema:"what a 529 asks to wait"`
	StartUp           Duration `json:"start_up,omitempty" jsonschema:"from coming back until it serves"`
}

// Fine is a time span with decimals, to a picosecond: 76.3ns, 7.86ms. Its value is
// in picoseconds.
type Fine int64

var finePicos = map[string]int64{"ps": 1, "ns": 1e3, "us": 1e6, "µs": 1e6, "ms": 1e9, "s": 1e12}

// UnmarshalText reads a span of at most an hour.
func (f *Fine) UnmarshalText(b []byte) error {
	const fix = "write a number and a unit: 76.3ns, 4.4us, 7.86ms"
	digits := strings.TrimRight(string(b), "pnuµms")
	unit, ok := finePicos[string(b)[len(digits):]]
	v, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || !(v >= 0 && v*float64(unit) <= 3600e12) {
		return wrong(fix, "%q is not a time", b)
	}
	*f = Fine(v*float64(unit) + 0.5)
	return nil
}

func (f Fine) duration() time.Duration { return time.Duration(f / 1000) }

// machines finds what plays each backend.
func (r *reader) machines() {
	ids, pools, of := r.backends()
	r.known = make(map[string][]sluice.BackendID)
	for _, id := range sorted(pools) {
		r.known[string(id)] = pools[id]
	}
	for _, id := range ids {
		if both := r.known[string(id)]; len(both) > 1 {
			r.fail("gateway", "rename one", "%q is a pool of several backends and a backend: an event that names it would mean either", id)
		}
		r.known[string(id)] = []sluice.BackendID{id}
	}
	for _, name := range sorted(r.in.Fleet) {
		if r.known[name] == nil {
			r.fail(join("fleet", name), suggest(name, sorted(r.known)), "%q is neither a backend nor a pool of the gateway", name)
		}
	}
	poolOf := make(map[sluice.BackendID]string)
	for _, p := range sorted(pools) {
		for _, id := range pools[p] {
			poolOf[id] = string(p)
		}
	}
	for _, id := range ids {
		name := string(id)
		if r.in.Fleet[name] == nil {
			name = poolOf[id]
		}
		m := r.in.Fleet[name]
		if m == nil {
			if !r.brokenAt("fleet") {
				r.fail("fleet", "add it, or its pool "+poolOf[id]+": "+string(id)+": {profile: llama-3.1-8b-1xh100}", "backend %q has nothing that plays it", id)
			}
			continue
		}
		if b := of[id]; b.Price == nil && b.Ceiling == nil {
			r.fail("gateway", "add price: free, or a price, to its provider", "backend %q has no price: every request to it would be refused", id)
		}
		r.out.Machines = append(r.out.Machines, r.machine(join("fleet", name), of[id], m))
	}
}

func (r *reader) machine(at string, b *route.Backend, in *Machine) tabletop.Machine {
	out := tabletop.Machine{Backend: b.ID, Scrape: r.scrape(b.Provider)}
	if in.Hosted == nil {
		out.Replica = r.replica(at, in)
		return out
	}
	if in.Profile != "" || in.PrefillRate > 0 || in.StepBase > 0 {
		r.fail(at, "keep one of them", "is a replica and hosted at once")
	}
	h := in.Hosted
	if h.PrefillRate == 0 {
		r.fail(join(join(at, "hosted"), "prefill_rate"), "write a number such as 50k", "0 would never answer")
	}
	out.Hosted = &fleet.Service{
		Latency: time.Duration(h.Latency), LatencyTail: time.Duration(h.LatencyTail), PrefillRate: int64(h.PrefillRate), TokenTime: time.Duration(h.TokenTime), HitPermille: int64(h.PrefixHit),
		Concurrency: int(h.Concurrency), RequestsPerMinute: int64(h.RequestsPerMinute), TokensPerMinute: sluice.Tokens(h.TokensPerMinute), StartUp: time.Duration(h.StartUp),
		Faults: fleet.Faults{OverloadPermille: int64(h.Overloaded), ErrorPermille: int64(h.Errors), BreakPermille: int64(h.Breaks), RetryAfter: time.Duration(h.RetryAfter)},
	}
	return out
}

// scrape is how often the gateway asks a provider's engines for their load.
func (r *reader) scrape(id sluice.ProviderID) time.Duration {
	for i := range r.policies {
		if p := r.policies[i].config.Providers[string(id)]; p != nil {
			return p.metricsEvery()
		}
	}
	return 0
}

func (r *reader) replica(at string, in *Machine) *fleet.Profile {
	var p fleet.Profile
	if in.Profile != "" {
		known, ok := fleet.ProfileNamed(in.Profile)
		if !ok {
			r.fail(join(at, "profile"), suggest(in.Profile, fleet.ProfileNames()), "%q is not a profile", in.Profile)
			return &p
		}
		p = known
	}
	p.PrefillRate = cmp.Or(int64(in.PrefillRate), p.PrefillRate)
	p.PrefillPerPair = cmp.Or(int64(in.PrefillPerPair), p.PrefillPerPair)
	p.ChunkTokens = cmp.Or(sluice.Tokens(in.Chunk), p.ChunkTokens)
	p.StepBase = cmp.Or(in.StepBase.duration(), p.StepBase)
	p.StepPerJob = cmp.Or(in.StepPerRequest.duration(), p.StepPerJob)
	p.StepPerToken = cmp.Or(int64(in.StepPerToken), p.StepPerToken)
	p.KVCapacity = cmp.Or(sluice.Tokens(in.KVTokens), p.KVCapacity)
	p.BlockTokens = cmp.Or(sluice.Tokens(in.BlockTokens), p.BlockTokens)
	p.Slots = cmp.Or(int(in.Slots), p.Slots)
	p.Queue = cmp.Or(int(in.Queue), p.Queue)
	if in.PrefixHit != nil {
		p.HitPermille = int64(*in.PrefixHit)
	}
	if in.StartUp != nil {
		p.StartUp = time.Duration(*in.StartUp)
	}
	if p.PrefillRate == 0 || p.StepBase == 0 {
		r.fail(at, "name a profile, or give it prefill_rate and step_base", "says nothing of how fast it is")
	}
	return &p
}
