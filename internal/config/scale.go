package config

import (
	"time"

	"sluice/internal/demand"
)

// Scale is how many replicas a pool should have.
type Scale struct {
	Target Percent  `json:"target,omitempty" jsonschema:"part of what the replicas supply that is to be used"`
	Min    Count    `json:"min" zero:"meant" jsonschema:"replicas in any case; 0 lets a pool have none that nothing is asked of"`
	Max    Count    `json:"max,omitempty" jsonschema:"most replicas; as many as the pool lists if left out"`
	Stable Duration `json:"stable" zero:"meant" jsonschema:"how long the demand must have been lower before fewer are desired, at most 1h"`
	Batch  bool     `json:"batch,omitempty" jsonschema:"class batch asks for replicas too; else it takes what is idle"`
}

func (s *Scale) setDefaults() {
	*s = Scale{Target: demand.DefaultTarget / 10, Min: 1, Stable: Duration(demand.DefaultStable)}
}

func (s *Scale) policy() demand.Policy {
	p := demand.Policy{Target: s.Target.thousandths(), Min: int64(s.Min), Max: int64(s.Max), Stable: time.Duration(s.Stable), Batch: s.Batch}
	if p.Stable == 0 {
		p.Stable = -1
	}
	return p
}

// scale checks how many replicas a pool may have.
func (v *validator) scale(path string, s *Scale) {
	at := join(path, "scale")
	if s.Target == 0 {
		v.fail(join(at, "target"), "write a share such as 80%", "no number of replicas is enough")
	}
	if s.Max > 0 && s.Max < s.Min {
		v.fail(join(at, "max"), "write at least as many as min", "%d is less than min, which is %d", s.Max, s.Min)
	}
	if time.Duration(s.Stable) > demand.MaxStable {
		v.fail(join(at, "stable"), "write at most 1h", "%s is too long", s.Stable)
	}
}

// scale warns of a scale of nothing, and of replicas of which too little is known to
// tell how many there should be.
func (l *linter) scale(path string, p *Pool) {
	if _, given := l.c.pos[join(path, "scale")]; !given {
		return
	}
	replicas, known := 0, true
	defer func() { l.scaled(join(path, "scale"), p, replicas) }()
	for i := range p.Backends {
		b := &p.Backends[i]
		x := l.c.Providers[b.Provider]
		if x == nil || !x.replicas() {
			continue
		}
		replicas++
		known = known && (b.Capacity.KVTokens > 0 || b.Capacity.PrefillRate > 0 && b.Capacity.DecodeRate > 0)
	}
	switch {
	case replicas == 0:
		l.warn(join(path, "scale"), "remove it, or set engine at the provider of what you run", "no backend of the pool is a replica that you run: it desires none")
	case !known:
		l.warn(join(path, "scale"), "add kv_tokens, prefill_rate and decode_rate to the capacity of each", "of some replicas neither memory nor both rates are known: how many there should be goes by their slots")
	}
}
