package config

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/sched"
)

// validator checks what a single value cannot tell: names that refer to each
// other, and rules over several fields. It reports through the decoder and is
// silent about values that have been reported.
type validator struct {
	*decoder
	c *Config
}

// fail reports at a path, or at the nearest section around it that stands in
// the file.
func (v *validator) fail(path, fix, cause string, args ...any) {
	if !v.broken[path] {
		v.report(v.near(path), path, fix, cause, args...)
	}
}

func (d *decoder) near(path string) Pos { return near(d.pos, path) }

func near(pos map[string]Pos, path string) Pos {
	for path != "" {
		if p, ok := pos[path]; ok {
			return p
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return Pos{1, 1}
}

func (v *validator) validate() {
	v.settings()
	v.auth()
	v.state()
	v.batch()
	v.cache()
	v.idempotency()
	v.retries()
	v.breaker()
	for _, name := range sorted(v.c.Providers) {
		v.provider(join("providers", name), name, v.c.Providers[name])
	}
	seen := make(map[string]string)
	for _, name := range sorted(v.c.Pools) {
		v.pool(join("pools", name), name, v.c.Pools[name], seen)
	}
	for _, name := range sorted(v.c.Models) {
		v.model(join("models", name), name, v.c.Models[name])
	}
	v.located()
	for _, name := range sorted(v.c.Hooks) {
		v.hook(join("hooks", name), name, v.c.Hooks[name])
	}
	for _, name := range sorted(v.c.Plans) {
		v.plan(join("plans", name), name, v.c.Plans[name])
	}
	ids := make(map[sluice.KeyID]string)
	for _, name := range sorted(v.c.Tenants) {
		v.tenant(join("tenants", name), name, v.c.Tenants[name], ids)
	}
}

func (v *validator) settings() {
	c := v.c
	if c.Listen == c.Admin.Listen && !strings.HasSuffix(string(c.Listen), ":0") {
		v.fail("admin.listen", "give the admin plane a port of its own", "%s is the address of the data plane too", c.Listen)
	}
	if c.Data == "" {
		v.fail("data", "name a directory that the process may write to", "is empty")
	}
	if c.BodyLimit == 0 {
		v.fail("body_limit", "write an amount such as 32MiB", "0 would refuse every request")
	}
	if c.EventLimit < 64<<10 || c.EventLimit > 32<<20 {
		v.fail("event_limit", "write an amount from 64KiB to 32MiB", "%s is not within what an answer may need and the gateway can hold", c.EventLimit)
	}
	if c.Keys.Poll > Duration(auth.MaxPoll) || c.Keys.Poll == 0 {
		v.fail("keys.poll", "write a time from 100ms to 2s", "a revoked key must stop within 5s, %s is too long or none", c.Keys.Poll)
	}
	if c.Store != nil {
		if scheme, _, ok := strings.Cut(c.Store.Reveal(), ":"); !ok || scheme != "sqlite" && scheme != "postgres" && scheme != "postgresql" {
			v.fail("store", "write sqlite:PATH or postgres://USER@HOST/DATABASE", "is not an address of a store")
		}
	}
	for _, key := range sorted(c.Prices) {
		provider, model, ok := strings.Cut(key, "/")
		at := join("prices", key)
		if !ok || model == "" {
			v.fail(at, "write PROVIDER/MODEL, such as openai/gpt-5.6-luna", "names no model")
		} else if c.Providers[provider] == nil {
			v.fail(at, suggest(provider, sorted(c.Providers)), "provider %q is not declared", provider)
		}
	}
}

func (v *validator) name(path, what, name string) {
	if err := sluice.ValidName(name); err != nil {
		v.fail(path, "rename the "+what, "%s", err)
	}
}

func (v *validator) provider(path, name string, p *Provider) {
	v.name(path, "provider", name)
	switch {
	case p.Simulated && p.BaseURL != "":
		v.fail(join(path, "base_url"), "remove base_url, or simulated", "a simulated provider has no address of its own")
	case p.BaseURL != "":
		v.baseURL(join(path, "base_url"), p.BaseURL)
	}
	v.capabilities(join(path, "capabilities"), p.Capabilities)
	v.apiKeys(path, p.APIKey, p.APIKeys)
	v.service(path, p)
	v.drain(path, p)
	v.handOver(path, p)
	v.charge(path, p)
	v.probe(join(path, "probe"), p.Probe)
	for _, h := range sorted(p.Headers) {
		if !validHeader(h) {
			v.fail(join(join(path, "headers"), h), "use letters, digits and hyphens; the provider's key goes into api_key", "%q cannot be set as a header", h)
		}
	}
}

// validHeader reports whether an operator may set a header: a plain token that
// neither carries the credential nor frames the message.
func validHeader(name string) bool {
	switch strings.ToLower(name) {
	case "", "authorization", "x-api-key", "api-key", "x-goog-api-key", "x-amz-date", "x-amz-security-token", "host", "content-length", "content-encoding", "transfer-encoding", "connection", "te", "trailer", "upgrade", "accept-encoding":
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

func (v *validator) baseURL(path, s string) {
	const fix = "write one such as https://api.openai.com/v1"
	u, err := url.Parse(s)
	switch {
	case err != nil:
		v.fail(path, fix, "is not an address")
	case u.Scheme == "" || u.Opaque != "" && u.Opaque[0] >= '0' && u.Opaque[0] <= '9': // HOST:PORT reads as SCHEME:OPAQUE
		v.fail(path, "did you mean https://"+strings.TrimLeft(redact(s), "/")+"?", "the scheme is missing")
	case u.Scheme != "http" && u.Scheme != "https":
		v.fail(path, fix, "scheme %q is neither http nor https", u.Scheme)
	case u.Hostname() == "":
		v.fail(path, fix, "the host is missing")
	case u.Port() != "" && !validPort(u.Port()):
		v.fail(path, "write a port from 1 to 65535, or none", "there is no port %s", u.Port())
	case u.User != nil:
		v.fail(path, "put the credential into api_key", "holds a credential")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		v.fail(path, "end it at the version, such as /v1", "has a query or a fragment")
	}
}

func validPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// redact keeps what may be a credential out of a suggestion.
func redact(s string) string {
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		s = s[i+1:]
	}
	s, _, _ = strings.Cut(s, "?")
	return s
}

func (v *validator) pool(path, name string, p *Pool, seen map[string]string) {
	v.name(path, "pool", name)
	if len(p.Backends) == 0 {
		v.fail(join(path, "backends"), "list at least one backend", "the pool has no backend")
		return
	}
	weights, negative := int64(0), false
	for i := range p.Backends {
		b := &p.Backends[i]
		v.backend(index(join(path, "backends"), i), b, seen)
		weights += max(b.Weight, 0)
		negative = negative || b.Weight < 0 // reported there
	}
	if weights == 0 && !negative {
		v.fail(join(path, "backends"), "give at least one of them a weight of 1 or more", "every backend of the pool has weight 0: it could serve nothing")
	}
	if n := len(p.Backends); n > sched.MaxBackends {
		v.fail(join(path, "backends"), "split it into pools, and name them all at the model", "the pool has %d backends, more than %d", n, sched.MaxBackends)
	}
	v.sharing(path, p)
	v.ladder(path, p)
	v.affinity(path, p)
	v.scale(path, &p.Scale)
}

func (v *validator) backend(path string, b *Backend, seen map[string]string) {
	if b.Name != "" {
		v.name(join(path, "name"), "backend", b.Name)
		if first, dup := seen[b.Name]; dup {
			v.fail(join(path, "name"), "give each backend a name of its own", "%q is the name of %s too", b.Name, first)
		}
		seen[b.Name] = path
	}
	if b.Weight < 0 {
		v.fail(join(path, "weight"), "write 0 to take no new requests, or 1 and more", "%d is negative", b.Weight)
	}
	if b.BaseURL != "" {
		v.baseURL(join(path, "base_url"), b.BaseURL)
	}
	v.capabilities(join(path, "capabilities"), b.Capabilities)
	v.apiKeys(path, b.APIKey, b.APIKeys)
	v.probe(join(path, "probe"), b.Probe)
	v.maxRisk(path, b)
	if b.Provider == "" {
		return // reported as missing
	}
	p := v.c.Providers[b.Provider]
	switch {
	case p == nil:
		v.fail(join(path, "provider"), suggest(b.Provider, sorted(v.c.Providers)), "provider %q is not declared", b.Provider)
	case p.Simulated && b.BaseURL != "":
		v.fail(join(path, "base_url"), "remove it", "provider %q is simulated and has no address", b.Provider)
	case p.BaseURL == "" && b.BaseURL == "" && !p.Simulated && !p.Service.placed() && !v.broken[join(join("providers", b.Provider), "base_url")] && !v.broken[join(path, "base_url")]:
		v.fail(join(path, "base_url"), "add it here or at the provider", "neither the backend nor its provider %q has an address", b.Provider)
	}
	if p != nil {
		v.serviced(path, b, p)
	}
}

func (v *validator) model(path, name string, m *Model) {
	if name == "" || len(name) > sluice.MaxLabel || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		v.fail(path, "use 1 to 128 bytes without spaces", "%q cannot be a model's name", name)
	}
	if len(m.Pools) == 0 {
		v.fail(join(path, "pools"), "list at least one of "+strings.Join(sorted(v.c.Pools), ", "), "the model has no pool")
	}
	place := make(map[string]string)
	for i, p := range m.Pools {
		at := index(join(path, "pools"), i)
		if _, given := v.pos[join(at, "pool")]; given {
			at = join(at, "pool")
		}
		if p.Pool == "" {
			continue
		}
		v.poolName(at, p.Pool)
		if place[p.Pool] != "" {
			v.fail(at, "remove it", "pool %q stands twice", p.Pool)
		}
		place[p.Pool] = "a first choice"
	}
	v.terms(path, m)
	v.hookNames(path, m.Hooks)
	v.hedge(path, m)
	v.shadows(path, m)
	for i, f := range m.Fallback {
		at := index(join(path, "fallback"), i)
		if _, given := v.pos[join(at, "pool")]; given {
			at = join(at, "pool")
		}
		if f.Pool == "" {
			continue
		}
		v.poolName(at, f.Pool)
		if place[f.Pool] != "" {
			v.fail(at, "fall back to another pool, in another failure domain", "pool %q is %s already: the model would fall back to what has just failed", f.Pool, place[f.Pool])
		}
		place[f.Pool] = "a fallback"
		v.evaluated(index(join(path, "fallback"), i), at, &f)
	}
}

func (v *validator) poolName(path, name string) {
	if v.c.Pools[name] != nil {
		return
	}
	if m := v.c.Models[name]; m != nil && len(m.Pools) > 0 {
		v.fail(path, "name its pool: "+strings.Join(m.names(), ", "), "%q is a model, a pool is needed here", name)
		return
	}
	v.fail(path, suggest(name, sorted(v.c.Pools)), "pool %q is not declared", name)
}

func (v *validator) models(path string, models []string) {
	for i, m := range models {
		if v.c.Models[m] == nil {
			v.fail(index(path, i), suggest(m, sorted(v.c.Models)), "model %q is not declared", m)
		}
	}
}

// maxWeight is the largest weight of a plan, here and in the API.
const maxWeight = 1_000_000

func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
