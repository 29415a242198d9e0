package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Lint tells what is allowed and questionable. Compile adds what it takes a
// catalogue to know.
func (c *Config) Lint() Problems {
	l := &linter{c: c, now: time.Now()}
	l.settings()
	l.naive()
	l.retries()
	l.breaker()
	l.openSecrets()
	l.hooks()
	l.auth()
	for _, name := range sorted(c.Providers) {
		l.provider(join("providers", name), name, c.Providers[name])
	}
	for _, name := range sorted(c.Pools) {
		l.pool(join("pools", name), name, c.Pools[name])
	}
	for _, name := range sorted(c.Models) {
		l.fallbacks(join("models", name), c.Models[name])
		l.wayOut(join("models", name), name, c.Models[name])
		l.terms(join("models", name), c.Models[name])
		l.hedge(join("models", name), c.Models[name])
		l.risks(join("models", name), name, c.Models[name])
		l.locality(name, c.Models[name])
		l.shadows(join("models", name), c.Models[name])
	}
	l.regions()
	for _, name := range sorted(c.Plans) {
		l.degrade(join("plans", name), c.Plans[name].Degrade, c.Plans[name].Models)
	}
	for _, name := range sorted(c.Tenants) {
		l.tenant(join("tenants", name), c.Tenants[name])
	}
	l.found.sort()
	return l.found
}

type linter struct {
	c     *Config
	now   time.Time
	found Problems
}

func (l *linter) warn(path, fix, cause string, args ...any) {
	l.found = append(l.found, l.c.problem(path, fix, fmt.Sprintf(cause, args...)))
}

func (l *linter) notYet(path string) {
	l.warn(path, "it is checked and kept for a later version: do not rely on it", "not yet in force")
}

func (l *linter) settings() {
	if l.c.Shared != nil {
		l.notYet("shared")
	}
	if !loopback(l.c.Admin.Listen) {
		l.warn("admin.listen", "listen on 127.0.0.1, or see that only operators reach it", "the admin plane is reachable from other machines")
	}
}

// openSecrets warns of credentials that stand in the file.
func (l *linter) openSecrets() {
	check := func(path string, s *Secret) {
		if s != nil && s.Open {
			l.warn(path, "write ${NAME} or file:/path, and exchange this credential: it has been in a file", "a secret stands in the open")
		}
	}
	check("keys.pepper", l.c.Keys.Pepper)
	credentials := func(at string, login *Login, one *Secret, many []APIKey) {
		check(join(at, "api_key"), one)
		login.visit(join(at, "login"), check)
		for i, k := range many {
			check(index(join(at, "api_keys"), i), k.Key)
			k.Login.visit(join(index(join(at, "api_keys"), i), "login"), check)
		}
	}
	for _, name := range sorted(l.c.Providers) {
		p := l.c.Providers[name]
		credentials(join("providers", name), p.Login, p.APIKey, p.APIKeys)
	}
	for _, name := range sorted(l.c.Hooks) {
		check(join(join("hooks", name), "secret"), l.c.Hooks[name].Secret)
	}
	for _, name := range sorted(l.c.Pools) {
		for i, b := range l.c.Pools[name].Backends {
			credentials(index(join(join("pools", name), "backends"), i), b.Login, b.APIKey, b.APIKeys)
		}
	}
	for _, name := range sorted(l.c.Tenants) {
		for _, k := range sorted(l.c.Tenants[name].Keys) {
			path, key := join(join(join("tenants", name), "keys"), k), l.c.Tenants[name].Keys[k]
			check(join(path, "secret"), key.Secret)
			for i, old := range key.Previous {
				check(join(index(join(path, "previous"), i), "secret"), old.Secret)
			}
		}
	}
	if s := l.c.Store; s != nil && s.Open {
		if u, err := url.Parse(s.Reveal()); err == nil && u.User != nil {
			if _, has := u.User.Password(); has {
				check("store", s)
			}
		}
	}
}

func (l *linter) provider(path, name string, p *Provider) {
	used := false
	for _, pool := range l.c.Pools {
		used = used || slices.ContainsFunc(pool.Backends, func(b Backend) bool { return b.Provider == name })
	}
	if !used {
		l.warn(path, "add a backend, or remove it", "no backend uses the provider")
	}
	if (p.Dialect == "bedrock" || p.Service == ServiceBedrock) && p.StopsOnCancel != nil && *p.StopsOnCancel {
		l.warn(join(path, "stops_on_cancel"), "remove it", "Bedrock has no way to stop: what it goes on to generate is billed")
	}
	u, err := url.Parse(p.BaseURL)
	if err != nil {
		return
	}
	if u.Hostname() == "api.anthropic.com" && p.Dialect == "openai" {
		l.warn(join(path, "dialect"), "write dialect: anthropic", "%s speaks anthropic best: its OpenAI surface leaves features out", u.Hostname())
	}
	if u.Hostname() == "api.openai.com" && p.Dialect == "anthropic" {
		l.warn(join(path, "dialect"), "write dialect: openai", "%s does not speak anthropic", u.Hostname())
	}
	if google := "generativelanguage.googleapis.com"; u.Hostname() == google {
		compatible := strings.Contains(u.Path, "/openai")
		switch {
		case p.Dialect == "gemini" && compatible:
			l.warn(join(path, "base_url"), "write https://"+google+"/v1beta", "the address is that of its OpenAI surface")
		case p.Dialect == "openai" && !compatible:
			l.warn(join(path, "dialect"), "write dialect: gemini", "%s speaks gemini here: its OpenAI surface is at /v1beta/openai", google)
		case p.Dialect == "openai":
			l.warn(join(path, "dialect"), "write dialect: gemini, and base_url: https://"+google+"/v1beta", "%s speaks gemini best: its OpenAI surface does not tell what was thought apart", google)
		}
	}
	if strings.HasSuffix(p.BaseURL, "/chat/completions") || strings.HasSuffix(p.BaseURL, "/messages") {
		l.warn(join(path, "base_url"), "end it at the version, such as /v1", "the address names an operation: paths are appended to it")
	}
	if u.Scheme == "http" && (p.APIKey != nil || len(p.APIKeys) > 0) && !private(u.Hostname()) {
		l.warn(join(path, "base_url"), "write https://", "the provider's key travels unencrypted")
	}
}

// private reports whether a host is likely to be in the operator's own network.
func private(host string) bool {
	return !strings.Contains(host, ".") || strings.HasPrefix(host, "10.") || strings.HasPrefix(host, "127.") || strings.HasPrefix(host, "192.168.") ||
		strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".internal") || strings.Contains(host, ".svc")
}

func (l *linter) pool(path, name string, p *Pool) {
	for i := range p.Backends {
		l.backend(index(join(path, "backends"), i), &p.Backends[i])
	}
	l.sharing(path, p)
	l.affinity(path, p)
	l.scale(path, p)
	l.ladder(path, p)
	for _, m := range l.c.Models {
		if slices.Contains(m.names(), name) || slices.ContainsFunc(m.Fallback, func(f Fallback) bool { return f.Pool == name }) ||
			slices.ContainsFunc(m.Shadow, func(s Shadow) bool { return s.Pool == name }) {
			return
		}
	}
	l.warn(path, "name it at a model, or remove it", "no model uses the pool")
}

// backend warns of objectives that nothing follows.
func (l *linter) backend(path string, b *Backend) {
	if c := &b.Capacity; c.Concurrency > 0 && !c.Adaptive && (c.TokenTime > 0 || c.QueueDelay > 0) {
		l.warn(join(path, "capacity"), "add adaptive: true, or leave token_time and queue_delay out",
			"the concurrency of backend %q is fixed at %d: token_time and queue_delay are not followed", b.Name, c.Concurrency)
	}
}

func (l *linter) tenant(path string, t *Tenant) {
	lists := [][]string{t.Models}
	if p := l.c.Plans[t.Plan]; p != nil {
		lists = append(lists, p.Models)
	}
	l.degrade(path, t.Degrade, both(lists))
	for _, k := range sorted(t.Keys) {
		key := t.Keys[k]
		at := join(join(path, "keys"), k)
		if key.NotAfter != nil && !key.NotAfter.After(l.now) {
			l.warn(join(at, "not_after"), "set a later moment, or remove the key", "the key has expired: it is not admitted")
		}
		for i, old := range key.Previous {
			if old.NotAfter != nil && !old.NotAfter.After(l.now) {
				l.warn(join(index(join(at, "previous"), i), "not_after"), "remove it", "the earlier secret has ended")
			}
		}
		all := append(slices.Clone(lists), key.Models)
		if p := t.Projects[key.Project]; p != nil {
			all = append(all, p.Models)
		}
		if !l.anyModel(all) {
			l.warn(at, "widen the models of plan, tenant, project or key", "the key may ask for no model: the lists that narrow it have none in common")
		}
	}
}

// both are the models that are on all lists, where one that is empty has all.
func both(lists [][]string) (out []string) {
	for _, list := range lists {
		switch {
		case len(list) == 0:
		case out == nil:
			out = list
		default:
			out = slices.DeleteFunc(slices.Clone(out), func(m string) bool { return !slices.Contains(list, m) })
		}
	}
	return out
}

// anyModel reports whether a model is on all of the lists that are not empty.
func (l *linter) anyModel(lists [][]string) bool {
	narrowed := false
	for _, list := range lists {
		narrowed = narrowed || len(list) > 0
	}
	if !narrowed {
		return true
	}
	for m := range l.c.Models {
		if !slices.ContainsFunc(lists, func(list []string) bool { return len(list) > 0 && !slices.Contains(list, m) }) {
			return true
		}
	}
	return false
}
