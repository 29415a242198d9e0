package config

import (
	"slices"
	"strings"

	"sluice"
	"sluice/internal/route"
)

// ModelPool is one of a model's first pools, written as its name or as a mapping.
type ModelPool struct {
	Pool    string         `json:"pool" jsonschema:"a name of pools"`
	Tenants []string       `json:"tenants,omitempty" jsonschema:"tenants that it is for; all if left out"`
	Classes []sluice.Class `json:"classes,omitempty" jsonschema:"classes that it is for: interactive, standard, batch; all if left out"`
	MaxRisk Risk           `json:"max_risk,omitempty" jsonschema:"highest risk label that it takes: low, normal or high; all if left out"`
	Weight  Count          `json:"weight,omitempty" jsonschema:"share of the requests that try it first, against the weights of the model's other pools: all of them have one, but canaries, or none has, and their order counts"`
	Canary  Percent        `json:"canary,omitempty" jsonschema:"part of the requests that try it first; the others do not get it"`
}

func (p *ModelPool) decodeNode(d *decoder, n node, path string) {
	if _, ok := d.asMapping(n); ok {
		type plain ModelPool // without this method
		d.into(n, (*plain)(p), path)
		return
	}
	if text, ok := d.scalar(n, path); ok {
		p.Pool = text
	}
}

// Sticky is what of a request decides which pool it tries first.
type Sticky string

func (Sticky) words() []string { return []string{"request", "run", "user", "session"} }

func (s Sticky) record() route.Sticky {
	return route.Sticky(max(slices.Index(s.words(), string(s)), 0))
}

// Prefer is what of a model's pools and backends comes first.
type Prefer string

func (Prefer) words() []string { return route.Preferences() }

// names are the pools' names.
func (m *Model) names() []string {
	out := make([]string, 0, len(m.Pools))
	for _, p := range m.Pools {
		out = append(out, p.Pool)
	}
	return out
}

// terms are the conditions and shares of the model's first pools, nil if none has
// any.
func (m *Model) terms() (out map[sluice.PoolID]*route.Terms) {
	for _, p := range m.Pools {
		if len(p.Tenants) == 0 && len(p.Classes) == 0 && p.Weight == 0 && p.Canary == 0 {
			continue
		}
		t := &route.Terms{Classes: slices.Clone(p.Classes), Weight: int64(p.Weight), Canary: int64(p.Canary) * (route.CanaryParts / 100)}
		for _, id := range p.Tenants {
			t.Tenants = append(t.Tenants, sluice.TenantID(id))
		}
		if out == nil {
			out = make(map[sluice.PoolID]*route.Terms)
		}
		out[sluice.PoolID(p.Pool)] = t
	}
	return out
}

// maxPoolWeight is the largest weight of a model's pool.
const maxPoolWeight = 1_000_000

// terms reports conditions that leave somebody without a pool, and shares that add up
// to nothing sensible.
func (v *validator) terms(path string, m *Model) {
	var canary Percent
	anyone := len(m.Pools) == 0
	var with, without []string // weights
	for i, p := range m.Pools {
		at := index(join(path, "pools"), i)
		for j, class := range p.Classes {
			if slices.Index(p.Classes, class) < j {
				v.fail(index(join(at, "classes"), j), "remove it", "%q stands twice", class)
			}
		}
		if p.Weight > maxPoolWeight {
			v.fail(join(at, "weight"), "write a whole number from 1 to 1000000", "%d is not a weight", int64(p.Weight))
		}
		canary += p.Canary
		switch {
		case p.Canary > 0 && p.Weight > 0:
			v.fail(join(at, "weight"), "remove one of them", "a canary has its share by canary, not by weight")
		case p.Canary > 0:
			continue
		case p.Weight > 0:
			with = append(with, p.Pool)
		default:
			without = append(without, p.Pool)
		}
		anyone = anyone || len(p.Tenants)+len(p.Classes) == 0
	}
	if canary > 100 {
		v.fail(join(path, "pools"), "lower them", "the canaries have %d%% of the requests together", int64(canary))
	}
	if !anyone {
		v.fail(join(path, "pools"), "add a pool without tenants, classes and canary; who may ask for the model at all is said by models of plans and tenants",
			"whoever meets none of the conditions has no pool")
	}
	if m.Prefer != "" && len(with) > 0 {
		v.fail(join(path, "prefer"), "remove it, or the weights", "prefer and the weights of the pools both say which pool is first")
	}
	if len(with) > 0 && len(without) > 0 {
		v.fail(join(path, "pools"), "give a weight to "+strings.Join(without, ", ")+" too, or to none", "some pools have a weight and others have none")
	}
}

// terms warns of conditions and stickiness that decide nothing.
func (l *linter) terms(path string, m *Model) {
	shares := len(m.Shadow) > 0
	for i, p := range m.Pools {
		at := index(join(path, "pools"), i)
		shares = shares || p.Weight > 0 || p.Canary > 0
		for j, id := range p.Tenants {
			if l.c.Tenants[id] == nil {
				l.warn(index(join(at, "tenants"), j), "declare it under tenants, or create it: sluice tenant create "+id, "tenant %q is not declared: nobody meets the condition until it is created", id)
			}
		}
	}
	switch {
	case m.Sticky == "" || shares:
	case m.Sticky == "session":
		if !l.keeps(m) {
			l.warn(join(path, "sticky"), "remove it, or give a pool a second backend", "the model has no weights, canary or shadow, and no pool that chooses among several backends by load, cost or affinity: sticky decides nothing")
		}
	default:
		l.warn(join(path, "sticky"), "remove it, or give the pools weights or a canary", "no pool of the model has a weight or a canary, and none is a shadow: sticky decides nothing")
	}
}

// keeps reports whether some pool of a model has a choice in which a session may have
// its say.
func (l *linter) keeps(m *Model) bool {
	for _, name := range m.names() {
		if p := l.c.Pools[name]; p != nil && len(p.Backends) > 1 && p.choice() != route.ByTurn && p.choice() != route.ByMatch {
			return true
		}
	}
	return false
}
