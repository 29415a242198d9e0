package config

import (
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"sluice"
	"sluice/internal/route"
	"sluice/internal/upstream"
)

// Breaker is when backends are left alone, and how they come back.
type Breaker struct {
	Failures   Count    `json:"failures,omitempty" jsonschema:"failures in a row after which a backend is left alone, from 1 to 1000"`
	Share      Percent  `json:"share,omitempty" jsonschema:"part of the attempts that ended within the window: where as many failed, a backend is left alone, but for the last one of its pool"`
	Volume     Count    `json:"volume,omitempty" jsonschema:"attempts within the window below which the share says nothing"`
	Window     Duration `json:"window,omitempty" jsonschema:"of the share, up to 1h"`
	Cooldown   Duration `json:"cooldown,omitempty" jsonschema:"how long it is left alone before one real request is its probe, up to 1h"`
	Ramp       Duration `json:"ramp,omitempty" jsonschema:"how long its share climbs, from 10% to all of it, once the probe went well, up to 1h"`
	Domain     Percent  `json:"domain,omitempty" jsonschema:"part of a failure domain's backends: where as many are left alone for failures, and at least two, all of the domain is avoided while there is another"`
	FirstToken Duration `json:"first_token,omitempty" jsonschema:"a stream whose first token comes later counts as failed in the share; none does if left out"`
	MinRate    Count    `json:"min_rate,omitempty" jsonschema:"an answer of at least 64 tokens which comes at fewer per second, after its first, likewise"`
}

func (b *Breaker) setDefaults() {
	d := route.BreakerPolicy{}.WithDefaults()
	*b = Breaker{
		Failures: Count(d.Failures), Share: Percent(d.Share / 10), Volume: Count(d.Volume), Window: Duration(d.Window),
		Cooldown: Duration(d.Cooldown), Ramp: Duration(d.Ramp), Domain: Percent(d.Domain / 10),
	}
}

func (c *Config) breaker() route.BreakerPolicy {
	b := c.Breaker
	return route.BreakerPolicy{
		Failures: int64(b.Failures), Share: b.Share.thousandths(), Volume: int64(b.Volume), Window: time.Duration(b.Window),
		Cooldown: time.Duration(b.Cooldown), Ramp: time.Duration(b.Ramp), Domain: b.Domain.thousandths(),
		FirstToken: time.Duration(b.FirstToken), Rate: int64(b.MinRate),
	}
}

// APIKey is one of several credentials, written as the secret or as a mapping.
type APIKey struct {
	Name   string  `json:"name,omitempty" jsonschema:"how it is called in status, metrics and the log, after the provider's name; its position in the list if left out"`
	Key    *Secret `json:"key,omitempty" jsonschema:"the key: ${NAME} or file:/path"`
	Login  *Login  `json:"login,omitempty" jsonschema:"a login at the provider's service in its place"`
	Weight int64   `json:"weight" zero:"meant" jsonschema:"share of the requests that go with it, at least 1"`
}

func (k *APIKey) setDefaults() { k.Weight = 1 }

func (k *APIKey) decodeNode(d *decoder, n node, path string) {
	if _, ok := d.asMapping(n); ok {
		type plain APIKey // without this method
		d.into(n, (*plain)(k), path)
		return
	}
	if s, ok := d.secret(n, path); ok {
		k.Key = &s
	}
}

// apiKeySchema is of a secret, or of a mapping with one.
func apiKeySchema() *jsonschema.Schema {
	type plain APIKey // without its method
	secret := &jsonschema.Schema{Type: "string", Examples: []any{"${NAME}", "file:/run/secrets/name"}}
	k, err := jsonschema.For[plain](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[Secret](): secret}})
	if err != nil {
		return secret
	}
	relax(reflect.TypeFor[APIKey](), k)
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{secret, k}}
}

// Probe asks a backend how it is outside of requests.
type Probe struct {
	Path  string   `json:"path" jsonschema:"what is asked for with GET at the host of its address, such as /health: an answer of 2xx takes a backend that was left alone back through its ramp, no answer or 5xx counts as a failure in a row, any other says nothing"`
	Every Duration `json:"every,omitempty" jsonschema:"how often, from 100ms; it waits for an answer as long, at most 5s"`
}

// defaultProbe is how often a probe asks where that is left out.
const defaultProbe = Duration(5 * time.Second)

func (p *Probe) setDefaults() { p.Every = defaultProbe }

// probe is what a backend is asked, and how often; zero asks nothing.
func (x *Backend) probe(p *Provider) upstream.Probe {
	from := x.Probe
	if from == nil {
		from = p.Probe
	}
	if from == nil {
		return upstream.Probe{}
	}
	return upstream.Probe{Path: from.Path, Every: time.Duration(from.Every)}
}

// credentials are the keys of a backend, and what they are by name. Those of its
// provider are shared by all backends that have none of their own.
func (x *Backend) credentials(p *Provider) (c credentials) {
	owner, login, one, many := x.Provider, p.Login, p.APIKey, p.APIKeys
	if x.APIKey != nil || len(x.APIKeys) > 0 || x.Login != nil {
		owner, login, one, many = x.Name+"@"+x.Provider, x.Login, x.APIKey, x.APIKeys
	}
	c.secrets, c.logins = make(map[string]sluice.Secret), make(map[string]upstream.Login)
	if one != nil || login != nil {
		c.add(owner, 1, one, login)
	}
	for i, k := range many {
		c.add(owner+"/"+k.name(i), k.Weight, k.Key, k.Login)
	}
	return c
}

// credentials are those of one backend, and what each of them is.
type credentials struct {
	keys    []route.Key
	secrets map[string]sluice.Secret
	logins  map[string]upstream.Login
}

func (c *credentials) add(id string, weight int64, key *Secret, login *Login) {
	c.keys = append(c.keys, route.Key{ID: id, Weight: weight})
	if login != nil {
		c.logins[id] = login.upstream()
	} else {
		c.secrets[id] = key.Secret
	}
}

func (k *APIKey) name(at int) string {
	if k.Name == "" {
		return strconv.Itoa(at + 1)
	}
	return k.Name
}

func (v *validator) breaker() {
	b := &v.c.Breaker
	for _, f := range []struct {
		name string
		bad  bool
		fix  string
	}{
		{"failures", b.Failures < 1 || b.Failures > route.MaxFailures, "write a number from 1 to 1000, such as 5"},
		{"share", b.Share < 1, "write a share from 1% to 100%, such as 50%"},
		{"volume", b.Volume < 1 || b.Volume > route.MaxBreakVolume, "write a number from 1 to 1M, such as 20"},
		{"window", b.Window < Duration(time.Second) || b.Window > Duration(route.MaxBreakTime), "write a time from 1s to 1h, such as 30s"},
		{"cooldown", b.Cooldown < Duration(100*time.Millisecond) || b.Cooldown > Duration(route.MaxBreakTime), "write a time from 100ms to 1h, such as 10s"},
		{"ramp", b.Ramp < Duration(time.Millisecond) || b.Ramp > Duration(route.MaxBreakTime), "write a time from 1ms to 1h, such as 30s"},
		{"domain", b.Domain < 1, "write a share from 1% to 100%, such as 60%"},
	} {
		if f.bad {
			v.fail(join("breaker", f.name), f.fix, "is out of range")
		}
	}
}

func (v *validator) apiKeys(path string, one *Secret, many []APIKey) {
	at := join(path, "api_keys")
	if one != nil && len(many) > 0 {
		v.fail(at, "write api_keys alone", "there is an api_key too")
	}
	seen := make(map[string]bool)
	for i := range many {
		k := &many[i]
		where := index(at, i)
		if k.Name != "" {
			v.name(join(where, "name"), "credential", k.Name)
		}
		if seen[k.name(i)] {
			v.fail(where, "give each credential a name of its own", "%q is the name of another", k.name(i))
		}
		seen[k.name(i)] = true
		if k.Weight < 1 || k.Weight > route.MaxKeyWeight {
			v.fail(join(where, "weight"), "write a number from 1 to 1000000; to leave a credential out, remove it", "%d is out of range", k.Weight)
		}
		if k.Key != nil && k.Login != nil {
			v.fail(where, "write one of them", "is a key and a login")
		}
		if k.Key == nil && k.Login == nil && !v.broken[where] && !v.broken[join(where, "key")] {
			v.fail(where, "write ${NAME}, file:/path, or {key: ${NAME}}", "the credential is missing")
		}
	}
}

func (v *validator) probe(path string, p *Probe) {
	if p == nil {
		return
	}
	if !strings.HasPrefix(p.Path, "/") || strings.ContainsAny(p.Path, "?# \t\r\n") {
		v.fail(join(path, "path"), "write a path such as /health", "%q is not a path", p.Path)
	}
	if p.Every < Duration(100*time.Millisecond) || p.Every > Duration(time.Hour) {
		v.fail(join(path, "every"), "write a time from 100ms to 1h, such as 5s", "%s is out of range", p.Every)
	}
}

// breaker warns of what is not in force.
func (l *linter) breaker() {
	if _, given := l.c.pos["breaker"]; given && l.c.Policy == Naive {
		l.warn("breaker", "write policy: fair, or leave it out at the top", "not in force with policy: naive, which has no breakers")
	}
}
