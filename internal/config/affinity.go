package config

import (
	"fmt"
	"time"

	"sluice"
	"sluice/internal/route"
	"sluice/internal/upstream"
)

// PoolChoice is how one of a pool's backends is chosen.
type PoolChoice string

func (PoolChoice) words() []string { return route.Choices() }

// Affinity is how requests keep to the backends that hold their prefixes.
type Affinity struct {
	Block     Bytes    `json:"block,omitempty" jsonschema:"bytes of a prompt that are hashed as one block, from 64 to 1MiB"`
	Stick     Duration `json:"stick" zero:"meant" jsonschema:"how much later than elsewhere a request may start where its prefix is; 0 goes by what is sooner, prefix included"`
	Quantum   Count    `json:"quantum,omitempty" jsonschema:"how many more uncached input tokens of a tenant a backend may get by that than the one that gets least"`
	Memory    Bytes    `json:"memory,omitempty" jsonschema:"what is remembered of the pool's caches, from 1MiB to 4GiB"`
	CacheSalt *Secret  `json:"cache_salt,omitempty" jsonschema:"secret from which each tenant's cache_salt is made, which vllm and sglang are sent: no tenant can then find out by timing what another has asked. None is sent if left out"`
}

func (a *Affinity) setDefaults() {
	d := route.Affinity{}.WithDefaults()
	*a = Affinity{Block: Bytes(d.BlockBytes), Stick: Duration(d.Stick), Quantum: Count(d.Quantum), Memory: Bytes(d.Memory)}
}

// choice is the pool's rule.
func (p *Pool) choice() route.Choice {
	for i, word := range route.Choices() {
		if string(p.Choice) == word {
			return route.Choice(i)
		}
	}
	if p.Affinity != nil {
		return route.ByAffinity
	}
	return route.ByLoad
}

func (p *Pool) affinity() route.Affinity {
	if p.Affinity == nil {
		return route.Affinity{}
	}
	a := p.Affinity
	out := route.Affinity{
		BlockBytes: int64(a.Block), Stick: time.Duration(a.Stick), Quantum: sluice.Tokens(a.Quantum), Memory: int64(a.Memory),
	}
	if out.Stick == 0 {
		out.Stick = -1
	}
	return out
}

// affinity checks how a pool's backends are chosen.
func (v *validator) affinity(path string, p *Pool) {
	a := p.Affinity
	if a == nil {
		return
	}
	at := join(path, "affinity")
	if a.Block < route.MinBlockBytes || a.Block > route.MaxBlockBytes {
		v.fail(join(at, "block"), "write a size from 64 to 1MiB, such as 2KiB", "%d bytes are too few or too many", a.Block)
	}
	if a.Memory < route.MinMemory || a.Memory > route.MaxMemory {
		v.fail(join(at, "memory"), "write a size from 1MiB to 4GiB", "%d bytes are too few or too many", a.Memory)
	}
	if time.Duration(a.Stick) > route.MaxStick {
		v.fail(join(at, "stick"), fmt.Sprintf("write at most %s", route.MaxStick), "%s is too long", a.Stick)
	}
	if a.Quantum <= 0 {
		v.fail(join(at, "quantum"), "write a number such as 1M", "nothing could keep to a backend")
	}
}

// affinity warns of an affinity that is not in force.
func (l *linter) affinity(path string, p *Pool) {
	switch c := p.choice(); {
	case p.Affinity == nil:
	case l.c.Policy == Naive:
		l.warn(join(path, "affinity"), "write policy: fair, or leave it out at the top", "not in force with policy: naive")
	case p.Affinity.CacheSalt != nil && !l.salted(p):
		l.warn(join(join(path, "affinity"), "cache_salt"), "remove it, or set engine: vllm or sglang at the provider", "no backend of the pool is known to be vllm or sglang: none is sent a salt")
	case !c.Prefixed():
		l.warn(join(path, "affinity"), "write choice: affinity, or leave one of them out", "not in force with choice: %s, which does not look at prefixes", c)
	}
}

// salted reports whether some backend of a pool can be sent a salt.
func (l *linter) salted(p *Pool) bool {
	for i := range p.Backends {
		if x := l.c.Providers[p.Backends[i].Provider]; x != nil && upstream.Salted(string(x.Engine)) && x.Dialect == "openai" {
			return true
		}
	}
	return false
}
