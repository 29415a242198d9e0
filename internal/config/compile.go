package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"slices"
	"time"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/auth/jwt"
	"sluice/internal/hook"
	"sluice/internal/idempotency"
	"sluice/internal/jobs"
	"sluice/internal/price"
	"sluice/internal/route"
	"sluice/internal/upstream"
)

// Snapshot is a configuration ready to be put in force: names are resolved, and
// nothing that follows can fail. It is immutable.
type Snapshot struct {
	// Version identifies the content of the configuration, without its secrets:
	// 12 hexadecimal digits. It is recorded with every request. A change of a
	// secret alone does not change it.
	Version string

	Table    *route.Table
	Targets  map[sluice.BackendID]*upstream.Target
	Records  auth.Records // what the file declares
	Hooks    []hook.Spec  // by name
	Issuers  []jwt.Spec   // of tokens that are taken in the place of keys
	Settings Settings
	State    StateBounds
	Batch    jobs.Bounds
	Keys     idempotency.Limits
	Groups   map[sluice.TenantID]string // in which tenants share their kept answers
	Warnings Problems                   // what is questionable; none stops the gateway
}

// Settings are the values that belong to the process.
type Settings struct {
	Listen, AdminListen string
	OpenMetrics         bool // /metrics needs no token
	Data                string
	Store               sluice.Secret // sqlite:PATH or postgres://…; empty takes SQLite below Data
	BodyLimit           int64         // bytes
	EventLimit          int           // bytes of one event of a backend's stream
	KeepaliveAfter      time.Duration
	LameDuck, Drain     time.Duration
	LogLevel            slog.Level
	LogJSON             bool
	Pepper              sluice.Secret // of auth.NewHasher
	KeyPoll, StaleMax   time.Duration // of auth.KeeperOptions
	Cache               CacheSettings
	PublicURL           string // of batch.Options
}

// Fixed lists the settings, by their path, in which s differs from those that a
// process was started with and that it cannot change while it runs: all but the
// times of stopping.
func (s Settings) Fixed(old Settings) []string {
	var out []string
	for _, f := range []struct {
		path    string
		changed bool
	}{
		{"listen", s.Listen != old.Listen},
		{"admin.listen", s.AdminListen != old.AdminListen},
		{"admin.open_metrics", s.OpenMetrics != old.OpenMetrics},
		{"data", s.Data != old.Data},
		{"store", s.Store != old.Store},
		{"body_limit", s.BodyLimit != old.BodyLimit},
		{"event_limit", s.EventLimit != old.EventLimit},
		{"keepalive_after", s.KeepaliveAfter != old.KeepaliveAfter},
		{"log.level", s.LogLevel != old.LogLevel},
		{"log.format", s.LogJSON != old.LogJSON},
		{"keys.pepper", s.Pepper != old.Pepper},
		{"keys.poll", s.KeyPoll != old.KeyPoll},
		{"keys.stale_max", s.StaleMax != old.StaleMax},
		{"cache", s.Cache != old.Cache},
		{"batch.public_url", s.PublicURL != old.PublicURL},
	} {
		if f.changed {
			out = append(out, f.path)
		}
	}
	return out
}

// Known is what a catalogue knows of a model.
type Known struct {
	Price              *price.Row // nil if it has none
	Context, MaxOutput sluice.Tokens
	Lacks              route.Needs // what it is known not to do
}

// CompileOptions is what a configuration is compiled with.
type CompileOptions struct {
	// Lookup finds a provider's model in the catalogue; nil knows nothing.
	Lookup func(provider, model string) (Known, bool)
	// Hasher is the one in force, for a reload; nil makes one of the file's
	// pepper. A pepper changes with a restart only: hashes made with another
	// would make every key unknown.
	Hasher *auth.Hasher
	// SimulatedURL is the address of the fleet simulated in this process, up to
	// and with /v1. Providers marked simulated need it.
	SimulatedURL string
}

// Compile resolves a configuration. The error is Problems. It changes nothing:
// a caller that gets an error keeps the Snapshot that it has.
func Compile(c *Config, o CompileOptions) (*Snapshot, error) {
	version, err := c.version()
	if err != nil {
		return nil, err
	}
	b := &builder{c: c, o: o, s: &Snapshot{
		Version:  version,
		Table:    &route.Table{Version: version, Models: make(map[sluice.ModelID]*route.Model), Pools: make(map[sluice.PoolID]*route.Pool), Fleet: c.inForce(c.Limits), Retries: c.retries(), Breaker: c.breaker(), NoBreakers: c.Policy == Naive},
		Targets:  make(map[sluice.BackendID]*upstream.Target),
		Settings: c.settings(),
		State:    c.State.bounds(),
		Batch:    c.Batch.bounds(),
		Groups:   c.Cache.groups(),
		Keys:     c.Idempotency.limits(),
	}}
	for _, name := range sorted(c.Pools) {
		b.pool(name, c.Pools[name])
	}
	for _, name := range sorted(c.Models) {
		b.model(name, c.Models[name])
	}
	b.s.Table.Headroom = b.headrooms()
	if len(c.Models) == 0 {
		// A file that was cut short must not empty a running gateway.
		b.problem("models", "declare at least one: models: {fast: {pools: [NAME]}}", "there are no models, so that nothing could be asked for")
	}
	hasher := auth.NewHasher(b.s.Settings.Pepper)
	if o.Hasher != nil {
		hasher = *o.Hasher
	}
	b.s.Records = c.records(hasher)
	b.s.Hooks, b.s.Issuers = c.HookSpecs(), c.IssuerSpecs()
	if len(b.problems) > 0 {
		b.problems.sort()
		return nil, b.problems
	}
	b.s.Warnings = append(b.s.Warnings, c.Lint()...)
	b.s.Warnings.sort()
	return b.s, nil
}

// version hashes the effective configuration, secrets hidden.
func (c *Config) version() (string, error) {
	text, err := c.JSON()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6]), nil
}

func (c *Config) settings() Settings {
	reveal := func(s *Secret) sluice.Secret {
		if s == nil {
			return sluice.Secret{}
		}
		return s.Secret
	}
	return Settings{
		Listen: string(c.Listen), AdminListen: string(c.Admin.Listen), OpenMetrics: c.Admin.OpenMetrics, Data: c.Data, Store: reveal(c.Store),
		BodyLimit: int64(c.BodyLimit), EventLimit: int(c.EventLimit), KeepaliveAfter: time.Duration(c.KeepaliveAfter),
		LameDuck: time.Duration(c.LameDuck), Drain: time.Duration(c.Drain),
		LogLevel: slog.Level(c.Log.Level), LogJSON: c.Log.Format == "json",
		Pepper: reveal(c.Keys.Pepper), KeyPoll: time.Duration(c.Keys.Poll), StaleMax: time.Duration(c.Keys.StaleMax),
		Cache:     c.Cache.settings(),
		PublicURL: c.Batch.PublicURL,
	}
}

// builder makes one Snapshot.
type builder struct {
	c        *Config
	o        CompileOptions
	s        *Snapshot
	problems Problems
}

func (b *builder) problem(path, fix, cause string) {
	b.problems = append(b.problems, b.c.problem(path, fix, cause))
}

func (c *Config) problem(path, fix, cause string) Problem {
	return Problem{File: c.file, Pos: near(c.pos, path), Path: path, Cause: cause, Fix: fix}
}

func (b *builder) pool(name string, p *Pool) {
	out := &route.Pool{ID: sluice.PoolID(name), Queue: route.QueueBounds{
		Requests: int64(p.Queue.Requests), Bytes: int64(p.Queue.Bytes), Work: sluice.Tokens(p.Queue.Work), MaxWait: time.Duration(p.Queue.MaxWait),
	}, Sharing: p.sharing(b.c.Policy), Cost: route.Cost{Input: p.Work.Input, Output: p.Work.Output}, Choice: p.choice(), Affinity: p.affinity(), Scale: p.Scale.policy(), Ladder: p.ladder(b.c.Policy)}
	if b.c.Policy == Naive {
		out.Choice = route.ByLoad
	} else {
		out.Queue.PerTenant = p.Queue.PerTenant.thousandths()
	}
	for i := range p.Backends {
		out.Backends = append(out.Backends, b.backend(index(join(join("pools", name), "backends"), i), &p.Backends[i]))
		if t := b.s.Targets[sluice.BackendID(p.Backends[i].Name)]; t != nil && p.Affinity != nil && p.Affinity.CacheSalt != nil {
			t.SaltKey = p.Affinity.CacheSalt.Secret
		}
	}
	b.s.Table.Pools[out.ID] = out
	b.bounded(join("pools", name), p, out)
}

func (b *builder) model(name string, m *Model) {
	out := &route.Model{ID: sluice.ModelID(name), Limits: b.c.inForce(m.Limits), Terms: m.terms(), Sticky: m.Sticky.record(), Prefer: route.PreferNamed(string(m.Prefer)), MaxRisk: m.maxRisk(), MaxSpend: sluice.Nano(m.MaxSpend), Hedge: m.hedge(b.c.Policy), Locality: b.locality(name), Hooks: slices.Clone(m.Hooks)}
	for _, p := range m.Pools {
		out.Pools = append(out.Pools, sluice.PoolID(p.Pool))
	}
	for _, f := range m.Fallback {
		out.Fallback = append(out.Fallback, sluice.PoolID(f.Pool))
		if f.Evaluated != nil {
			if out.Evaluated == nil {
				out.Evaluated = make(map[sluice.PoolID]*route.Evaluation)
			}
			out.Evaluated[sluice.PoolID(f.Pool)] = f.Evaluated.record()
		}
	}
	for i := range m.Shadow {
		out.Shadows = append(out.Shadows, m.Shadow[i].record())
	}
	b.s.Table.Models[out.ID] = out
}

func (b *builder) backend(path string, x *Backend) *route.Backend {
	p := b.c.Providers[x.Provider]
	out := &route.Backend{
		ID: sluice.BackendID(x.Name), Provider: sluice.ProviderID(x.Provider), Model: x.Model, Dialect: string(p.Dialect),
		Region: x.Region, Domain: x.domain(), Weight: x.Weight, MaxRisk: tighter(x.MaxRisk.label(), p.MaxRisk.label()),
		Capacity: route.Capacity{
			Concurrency: int64(x.Capacity.Concurrency), KVTokens: sluice.Tokens(x.Capacity.KVTokens), PrefillTokens: sluice.Tokens(x.Capacity.PrefillTokens), PrefillRate: int64(x.Capacity.PrefillRate), DecodeRate: int64(x.Capacity.DecodeRate),
			Adaptive: x.Capacity.Adaptive, TokenTime: time.Duration(x.Capacity.TokenTime), QueueDelay: time.Duration(x.Capacity.QueueDelay),
			Rates: route.Rates{
				route.RateRequests: int64(x.Capacity.RequestsPerMinute), route.RateInput: int64(x.Capacity.InputTokensPerMinute),
				route.RateOutput: int64(x.Capacity.OutputTokensPerMinute), route.RateTokens: int64(x.Capacity.TokensPerMinute),
			},
		},
		Context: sluice.Tokens(x.Context), MaxOutput: sluice.Tokens(x.MaxOutput),
		StopsOnCancel: first(x.StopsOnCancel, p.StopsOnCancel, p.Engine != "" || p.Simulated),
		Replica:       p.replicas(),
		Longest:       p.Timeouts.upstream().Longest(), Silence: p.Timeouts.upstream().Silence(),
	}
	out.Keys = x.credentials(p).keys
	b.price(path, out, x, p)
	b.s.Targets[out.ID] = b.target(path, x, p)
	out.Site = x.site(p, b.s.Targets[out.ID])
	return out
}

// metricsEvery is how often an engine is asked for its load.
func (p *Provider) metricsEvery() time.Duration {
	switch {
	case p.Metrics != nil:
		return time.Duration(*p.Metrics)
	case p.Engine == "vllm", p.Engine == "sglang":
		return time.Second
	}
	return 0
}

// domain is the backend's failure domain.
func (x *Backend) domain() string {
	if x.Domain == "" {
		return x.Provider
	}
	return x.Domain
}

func first(a, b *bool, otherwise bool) bool {
	switch {
	case a != nil:
		return *a
	case b != nil:
		return *b
	}
	return otherwise
}

// price finds the backend's price: its own, that of prices, its provider's, the
// catalogue's; and the ceiling for when there is none.
func (b *builder) price(path string, out *route.Backend, x *Backend, p *Provider) {
	version := "config " + b.s.Version
	known, found := b.lookup(x, p, cmp.Or(x.Catalog, x.Model))
	out.Lacks = b.lacks(x, p, known)
	switch override := b.c.Prices[x.Provider+"/"+x.Model]; {
	case x.Price != nil:
		out.Price = x.Price.row(x.Provider, x.Model, version)
	case override != nil:
		out.Price = override.row(x.Provider, x.Model, version)
	case p.Price != nil:
		out.Price = p.Price.row(x.Provider, x.Model, version)
	case found:
		out.Price = known.Price
	}
	if out.Context == 0 {
		out.Context = known.Context
	}
	if out.MaxOutput == 0 {
		out.MaxOutput = known.MaxOutput
	}
	policy := b.c.UnknownPrice
	if p.UnknownPrice != nil {
		policy = *p.UnknownPrice
	}
	if x.UnknownPrice != nil {
		policy = *x.UnknownPrice
	}
	if policy.Ceiling != nil {
		ceiling := Price{Rates: *policy.Ceiling}
		out.Ceiling = ceiling.row(x.Provider, x.Model, version+" ceiling")
	}
	if out.Price == nil {
		effect := "requests to it are refused"
		if out.Ceiling != nil {
			effect = "requests to it are charged the ceiling"
		}
		b.s.Warnings = append(b.s.Warnings, b.c.problem(path, "add price: {input: $0.10, output: $0.40} in dollars per million tokens, or price: free",
			"backend "+x.Name+" has no price: "+effect))
	}
}

// served finds the price of a model that the provider serves in place of the backend's:
// that of prices, and the catalogue's where the backend's own is from there. A price
// that the file gives to the backend, or to all of the provider's, is what it says.
func (b *builder) served(x *Backend, p *Provider) func(model string) *price.Row {
	version := "config " + b.s.Version
	declared := x.Catalog != "" || x.Price != nil || p.Price != nil || b.c.Prices[x.Provider+"/"+x.Model] != nil
	return func(model string) *price.Row {
		if own := b.c.Prices[x.Provider+"/"+model]; own != nil {
			return own.row(x.Provider, model, version)
		}
		if declared {
			return nil
		}
		known, _ := b.lookup(x, p, model)
		return known.Price
	}
}

// lookup asks the catalogue, under the name that the provider is declared to
// have there, else that of its service or host, else its own.
func (b *builder) lookup(x *Backend, p *Provider, model string) (Known, bool) {
	if b.o.Lookup == nil {
		return Known{}, false
	}
	return b.o.Lookup(cmp.Or(x.known(p), x.Provider), model)
}
