package config

import (
	"cmp"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/route"
	"sluice/internal/tabletop"
)

// nowhere is the address of what has none in a rehearsal.
const nowhere = "http://rehearsal.invalid/v1"

// rehearse takes out of a configuration what a rehearsal has no use for: keys,
// which stand for callers that the scenario names itself, stores, and addresses
// that are missing.
func (c *Config) rehearse() {
	c.Store, c.Shared, c.Keys.Pepper = nil, nil, nil
	for _, t := range c.Tenants {
		t.Keys = nil
	}
	valid := func(s string) bool {
		u, err := url.Parse(s)
		return err == nil && u.Scheme != "" && u.Hostname() != ""
	}
	for _, p := range c.Providers {
		if !p.Simulated && !valid(p.BaseURL) {
			p.BaseURL = nowhere
		}
		p.Catalog = cmp.Or(p.Catalog, string(p.Service))
		p.Service, p.Project, p.Location, p.APIVersion, p.Login = "", "", "", "", nil
		withoutLogins(p.APIKeys)
	}
	for _, p := range c.Pools {
		for i := range p.Backends {
			b := &p.Backends[i]
			if b.BaseURL != "" && !valid(b.BaseURL) {
				b.BaseURL = nowhere
			}
			b.Location, b.Login = "", nil
			withoutLogins(b.APIKeys)
		}
	}
}

// withoutLogins makes keys of logins: no service is called.
func withoutLogins(keys []APIKey) {
	for i := range keys {
		if keys[i].Login != nil {
			keys[i].Login, keys[i].Key = nil, &Secret{Secret: sluice.NewSecret("rehearsal")}
		}
	}
}

// policy is one way to serve the scenario, in its versions: as it begins, and
// after each patch that events apply.
type policy struct {
	name    string
	naive   bool // whatever the file says
	states  []node
	tables  []tabletop.Variant
	records []auth.Records
	config  *Config // of the first version
}

// gateway compiles the configuration under every policy.
func (r *reader) gateway() {
	if r.in.Gateway.n == nil {
		return // reported
	}
	r.base = r.in.Gateway.n
	if file := r.in.Gateway.file; file != "" {
		own, ok := r.ownConfig(file)
		if !ok {
			return
		}
		r.base = patched(own, r.in.Gateway.n)
	}
	r.policy(policy{name: PolicySluice}, r.in.Gateway.n, "gateway")
	if len(r.policies) == 0 {
		return
	}
	r.policy(policy{name: PolicyNaive, naive: true}, r.in.Gateway.n, "gateway")
	for _, name := range sorted(r.in.Variants) {
		p := r.in.Variants[name]
		if p == nil || p.n == nil {
			continue // as if it were left out, or reported
		}
		r.policy(policy{name: name, states: []node{patched(r.base, p.n)}}, p.n, join("variants", name))
	}
}

// ownConfig reads the configuration file that the scenario names, and what is
// wrong with it by itself.
func (r *reader) ownConfig(file string) (node, bool) {
	at := join("gateway", "file")
	f, err := r.open(file)
	if err != nil {
		r.fail(at, "give the path of a configuration file, relative to the scenario", "cannot read %s: %s", file, reasonOf(err))
		return nil, false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		r.fail(at, "", "cannot read %s: %s", file, reasonOf(err))
		return nil, false
	}
	body, problems := parseYAML(file, data)
	if problems != nil || body == nil {
		r.elsewhere = append(r.elsewhere, problems...)
		if problems == nil {
			r.fail(at, "name another file", "%s is empty", file)
		}
		return nil, false
	}
	d := newDecoder(file, r.o.rehearsed(), body)
	d.rehearsal = true
	flat := d.flatten(body, "")
	if _, err := d.config(flat); err != nil {
		ps, _ := errors.AsType[Problems](err)
		r.elsewhere = append(r.elsewhere, ps...)
		return nil, false
	}
	return flat, true
}

// policy adds a policy with its first version; patch, at path, is to blame for
// what is wrong with it.
func (r *reader) policy(p policy, patch node, path string) {
	if p.states == nil {
		p.states = []node{r.base}
	}
	if r.version(&p, p.states[0], patch, path) {
		r.policies = append(r.policies, p)
	}
}

// version compiles one version of a policy.
func (r *reader) version(p *policy, state, patch node, path string) bool {
	d := newDecoder(r.d.file, r.o.rehearsed(), nil)
	d.rehearsal = true
	c, err := d.config(state)
	if err == nil {
		if p.naive {
			c.Policy = Naive
		}
		var s *Snapshot
		if s, err = Compile(c, CompileOptions{Lookup: r.o.Lookup, SimulatedURL: nowhere}); err == nil {
			if p.config == nil {
				p.config = c
			}
			p.tables = append(p.tables, tabletop.Variant{Name: p.name, Table: s.Table})
			p.records = append(p.records, s.Records)
			return true
		}
	}
	ps, _ := errors.AsType[Problems](err)
	r.blame(ps, patch, path)
	return false
}

// blame reports what is wrong with a configuration at the place of the patch that
// made it so.
func (r *reader) blame(ps Problems, patch node, path string) {
	pos := map[string]Pos{path: r.d.pos[path]}
	places(patch, path, pos)
	for _, p := range ps {
		at := path
		if p.Path != "" {
			at = path + "." + p.Path
		}
		if r.d.broken[at] {
			continue
		}
		r.d.report(near(pos, at), at, p.Fix, "%s", p.Cause)
	}
}

// applied adds a version to every policy, on top of another one, and returns its
// number; 0 if that failed.
func (r *reader) applied(on int, patch node, path string) int {
	version := 0
	for i := range r.policies {
		p := &r.policies[i]
		state := patched(p.states[on], patch)
		if !r.version(p, state, patch, path) {
			return 0
		}
		p.states = append(p.states, state)
		version = len(p.tables) - 1
	}
	return version
}

// backends are all that any version of any policy has, by pool and place, the
// first version of the file first.
func (r *reader) backends() (ids []sluice.BackendID, pools map[sluice.PoolID][]sluice.BackendID, of map[sluice.BackendID]*route.Backend) {
	pools, of = make(map[sluice.PoolID][]sluice.BackendID), make(map[sluice.BackendID]*route.Backend)
	for _, p := range r.policies {
		for _, t := range p.tables {
			for _, id := range sorted(t.Table.Pools) {
				for _, b := range t.Table.Pools[id].Backends {
					if of[b.ID] == nil {
						of[b.ID] = b
						ids = append(ids, b.ID)
						pools[id] = append(pools[id], b.ID)
					}
				}
			}
		}
	}
	return ids, pools, of
}

// applies compiles every patch that events apply, so that all backends are known.
func (r *reader) applies() {
	r.versions = make(map[string]int)
	type change struct {
		at      time.Duration
		version int
	}
	var done []change // of the scenario's own events
	for _, e := range inOrder("events", r.in.Events) {
		on := 0
		if len(done) > 0 {
			on = done[len(done)-1].version
		}
		if v := r.apply(on, e); v > 0 {
			done = append(done, change{time.Duration(e.At), v})
		}
	}
	for _, name := range sorted(r.in.Acts) {
		if r.in.Acts[name] == nil {
			continue
		}
		on := 0
		for i, e := range inOrder(join(join("acts", name), "events"), r.in.Acts[name].Events) {
			if e.Apply == nil {
				continue
			}
			for _, d := range done {
				switch {
				case d.at > time.Duration(e.At):
					r.fail(join(e.path, "apply"), "let the act apply its patch after all that the scenario applies", "the scenario applies a patch at %s, which would undo this one", d.at)
				case i == 0 || on == 0:
					on = max(on, d.version)
				}
			}
			if v := r.apply(on, e); v > 0 {
				on = v
			}
		}
	}
}

func (r *reader) apply(on int, e placed) int {
	if e.Apply == nil || e.Apply.n == nil {
		return 0
	}
	v := r.applied(on, e.Apply.n, join(e.path, "apply"))
	r.versions[e.path] = v
	return v
}

// placed is an event with its path.
type placed struct {
	*Event
	path string
}

// inOrder are events by time.
func inOrder(path string, events []Event) []placed {
	var out []placed
	for i := range events {
		out = append(out, placed{&events[i], index(path, i)})
	}
	slices.SortStableFunc(out, func(a, b placed) int { return int(min(max(a.At-b.At, -1), 1)) })
	return out
}

// reasonOf is an error without what its reader knows already.
func reasonOf(err error) string {
	s := err.Error()
	return strings.TrimSpace(s[strings.LastIndex(s, ": ")+1:])
}
