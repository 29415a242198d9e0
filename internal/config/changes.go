package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sluice"
)

// Changes is what was changed of a file's routing without the file: weights, canaries,
// fallbacks, stickiness and the spend of an attempt of its models, and the weights of
// its backends. Nil leaves a value as the file has it. It adds no model, pool or
// backend.
type Changes struct {
	Models   map[string]*ModelChange   `json:"models,omitempty"`
	Backends map[string]*BackendChange `json:"backends,omitempty"`
}

// ModelChange is what was changed of a model.
type ModelChange struct {
	Pools    map[string]*PoolChange `json:"pools,omitempty"`
	Fallback *[]Fallback            `json:"fallback,omitempty"` // in place of the file's; one that the file has too keeps its evaluation
	Sticky   *Sticky                `json:"sticky,omitempty"`
	MaxSpend *Money                 `json:"max_spend,omitempty"` // 0 is no bound
}

// PoolChange is what was changed of one of a model's first pools. Zero is none.
type PoolChange struct {
	Weight *Count   `json:"weight,omitempty"`
	Canary *Percent `json:"canary,omitempty"`
}

// BackendChange is what was changed of a backend.
type BackendChange struct {
	Weight *int64 `json:"weight,omitempty"` // 0 takes no new requests
	Reset  bool   `json:"-"`                // drops an earlier change, in With
}

// ParseChanges reads what Changes.JSON writes; nil for an empty text. A name that is
// not known is an error.
func ParseChanges(text string) (*Changes, error) {
	if text == "" {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	c := &Changes{}
	if err := d.Decode(c); err != nil {
		if v, ok := errors.AsType[*valueError](err); ok {
			e := sluice.Invalid("", "%s", v.cause)
			e.Hint = v.fix
			return nil, e
		}
		return nil, sluice.Invalid("", "the change cannot be read: %s", err)
	}
	return c, nil
}

// JSON is the changes as they are kept; empty if there are none.
func (c *Changes) JSON() (string, error) {
	if c == nil || len(c.Models)+len(c.Backends) == 0 {
		return "", nil
	}
	b, err := json.Marshal(c)
	return string(b), err
}

// With is the changes with further ones on top. Neither is touched; both may be nil.
func (c *Changes) With(over *Changes) *Changes {
	out := &Changes{Models: make(map[string]*ModelChange), Backends: make(map[string]*BackendChange)}
	for _, from := range []*Changes{c, over} {
		if from == nil {
			continue
		}
		for name, m := range from.Models {
			out.Models[name] = out.Models[name].with(m)
		}
		for name, b := range from.Backends {
			switch {
			case b == nil:
			case b.Reset:
				delete(out.Backends, name)
			case b.Weight != nil:
				out.Backends[name] = b
			}
		}
	}
	return out
}

func (m *ModelChange) with(over *ModelChange) *ModelChange {
	out := &ModelChange{Pools: make(map[string]*PoolChange)}
	for _, from := range []*ModelChange{m, over} {
		if from == nil {
			continue
		}
		for pool, p := range from.Pools {
			if p == nil {
				continue
			}
			have := out.Pools[pool]
			if have == nil {
				have = &PoolChange{}
			}
			out.Pools[pool] = &PoolChange{Weight: later(have.Weight, p.Weight), Canary: later(have.Canary, p.Canary)}
		}
		out.Fallback, out.Sticky, out.MaxSpend = later(out.Fallback, from.Fallback), later(out.Sticky, from.Sticky), later(out.MaxSpend, from.MaxSpend)
	}
	return out
}

func later[T any](a, b *T) *T {
	if b != nil {
		return b
	}
	return a
}

// apply makes changes to a configuration and reports names that it does not have.
func (d *decoder) apply(c *Config, changes *Changes) {
	if changes == nil {
		return
	}
	for _, name := range sorted(changes.Models) {
		path := join("models", name)
		m := c.Models[name]
		if m == nil {
			d.changeFails(path, suggest(name, sorted(c.Models)), "model %q is not declared", name)
			continue
		}
		if change := changes.Models[name]; change != nil {
			c.Models[name] = d.changed(path, m, change)
		}
	}
	for _, name := range sorted(changes.Backends) {
		if change := changes.Backends[name]; change != nil && change.Weight != nil {
			d.weigh(c, name, *change.Weight)
		}
	}
}

func (d *decoder) changeFails(path, fix, cause string, args ...any) {
	d.report(d.near(path), path, fix, cause, args...)
}

// changed is a model with a change. The one that was decoded may be that of an alias.
func (d *decoder) changed(path string, was *Model, change *ModelChange) *Model {
	m := *was
	m.Pools = slices.Clone(was.Pools)
	for _, pool := range sorted(change.Pools) {
		p := change.Pools[pool]
		i := slices.IndexFunc(m.Pools, func(have ModelPool) bool { return have.Pool == pool })
		if i < 0 {
			d.changeFails(join(path, "pools"), suggest(pool, m.names()), "pool %q is not one of the model's first pools", pool)
			continue
		}
		if p != nil && p.Weight != nil {
			m.Pools[i].Weight = *p.Weight
		}
		if p != nil && p.Canary != nil {
			m.Pools[i].Canary = *p.Canary
		}
	}
	if change.Fallback != nil {
		m.Fallback = nil
		for _, f := range *change.Fallback {
			if i := slices.IndexFunc(was.Fallback, func(have Fallback) bool { return have.Pool == f.Pool }); i >= 0 && f.Evaluated == nil && !f.AllowUnevaluated {
				f = was.Fallback[i]
			}
			m.Fallback = append(m.Fallback, f)
		}
	}
	if change.Sticky != nil {
		if s := *change.Sticky; s != "" && !slices.Contains(s.words(), string(s)) {
			d.changeFails(join(path, "sticky"), suggest(string(s), s.words()), "%q is not one of %s", s, fmt.Sprint(s.words()))
		}
		m.Sticky = *change.Sticky
	}
	if change.MaxSpend != nil {
		m.MaxSpend = *change.MaxSpend
	}
	return &m
}

// weigh gives a backend another weight.
func (d *decoder) weigh(c *Config, name string, weight int64) {
	var all []string
	for _, pool := range sorted(c.Pools) {
		for i := range c.Pools[pool].Backends {
			b := &c.Pools[pool].Backends[i]
			if all = append(all, b.Name); b.Name == name {
				p := *c.Pools[pool] // it may be that of an alias
				p.Backends = slices.Clone(p.Backends)
				p.Backends[i].Weight = weight
				c.Pools = maps.Clone(c.Pools)
				c.Pools[pool] = &p
				return
			}
		}
	}
	d.changeFails("pools", suggest(name, all), "backend %q is not declared", name)
}
