package config

import (
	"slices"

	"sluice"
)

// Risk is a risk label, or none if it is left out.
type Risk string

func (Risk) words() []string { return []string{"low", "normal", "high"} }

// label is the label in the vocabulary; the word has been checked.
func (r Risk) label() (out sluice.Risk) {
	if r != "" {
		_ = out.UnmarshalText([]byte(r))
	}
	return out
}

// tighter is the lower of two bounds on labels.
func tighter(a, b sluice.Risk) sluice.Risk {
	if a == sluice.RiskNone || b != sluice.RiskNone && b < a {
		return b
	}
	return a
}

// maxRisk is the highest label that pools of the model take, nil if none says.
func (m *Model) maxRisk() (out map[sluice.PoolID]sluice.Risk) {
	add := func(pool string, most Risk) {
		if most == "" {
			return
		}
		if out == nil {
			out = make(map[sluice.PoolID]sluice.Risk)
		}
		out[sluice.PoolID(pool)] = most.label()
	}
	for _, p := range m.Pools {
		add(p.Pool, p.MaxRisk)
	}
	for _, f := range m.Fallback {
		add(f.Pool, f.MaxRisk)
	}
	return out
}

// maxRisk reports a backend that takes more than its provider may have.
func (v *validator) maxRisk(path string, b *Backend) {
	p := v.c.Providers[b.Provider]
	if p == nil || b.MaxRisk.label().Within(p.MaxRisk.label()) {
		return
	}
	v.fail(join(path, "max_risk"), "write "+string(p.MaxRisk)+" or less, or raise it at the provider",
		"what carries risk %s may not go to provider %q, whose max_risk is %s", b.MaxRisk, b.Provider, p.MaxRisk)
}

// risks warns of a model that a tenant's requests, all of them, carry too high a label
// for.
func (l *linter) risks(path, model string, m *Model) {
	least := sluice.RiskNone // the highest label that some pool takes
	for _, p := range m.names() {
		most := l.takes(m, p)
		if most == sluice.RiskNone {
			return
		}
		least = max(least, most)
	}
	for _, f := range m.Fallback {
		if l.takes(m, f.Pool) == sluice.RiskNone {
			return
		}
		least = max(least, l.takes(m, f.Pool))
	}
	var who []string
	for _, name := range sorted(l.c.Tenants) {
		t := l.c.Tenants[name]
		own, asks := t.Risk.label(), may(t.Models, model)
		if p := l.c.Plans[t.Plan]; p != nil {
			own, asks = max(own, p.Risk.label()), asks && may(p.Models, model)
		}
		if own > least && asks {
			who = append(who, name)
		}
	}
	if len(who) > 0 {
		l.warn(path, "give it a pool that takes them, or leave it out of the models of the plan", "requests of tenant %s carry a higher risk label than any backend of the model takes, %s: all are refused", who[0], least)
	}
}

// may reports whether a list of models allows one.
func may(models []string, model string) bool {
	return len(models) == 0 || slices.Contains(models, model)
}

// takes is the highest label that a backend of a pool takes of a model's requests.
func (l *linter) takes(m *Model, pool string) sluice.Risk {
	p := l.c.Pools[pool]
	if p == nil {
		return sluice.RiskNone
	}
	bound, best := m.maxRisk()[sluice.PoolID(pool)], sluice.Risk(0)
	for i := range p.Backends {
		x := &p.Backends[i]
		most := tighter(x.MaxRisk.label(), bound)
		if y := l.c.Providers[x.Provider]; y != nil {
			most = tighter(most, y.MaxRisk.label())
		}
		if most == sluice.RiskNone {
			return most
		}
		best = max(best, most)
	}
	return best
}
