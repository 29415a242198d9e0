package config

import (
	"slices"

	"sluice"
	"sluice/internal/route"
)

// Shadow is a pool that gets copies of a part of a model's requests.
type Shadow struct {
	Pool    string         `json:"pool" jsonschema:"a name of pools"`
	Share   Percent        `json:"share" jsonschema:"part of the requests that are copied, 1% to 100%: by sticky, like a canary's, but drawn apart from it"`
	Tenants []string       `json:"tenants,omitempty" jsonschema:"tenants whose requests are; all if left out"`
	Classes []sluice.Class `json:"classes,omitempty" jsonschema:"classes whose requests are: interactive, standard, batch; all if left out"`
	MaxRisk Risk           `json:"max_risk,omitempty" jsonschema:"highest risk label of what is copied there: low, normal or high; all if left out"`
	Limits  Limits         `json:"limits" jsonschema:"bounds of the copies together, on an account of their own: concurrency and a spend are needed; spend is hard"`
}

func (s *Shadow) record() route.Shadow {
	out := route.Shadow{
		Pool: sluice.PoolID(s.Pool), Share: int64(s.Share) * (route.CanaryParts / 100), Classes: slices.Clone(s.Classes),
		MaxRisk: s.MaxRisk.label(),
		Limits:  s.Limits.top(), // whatever the policy: copies are to be bounded
	}
	for _, id := range s.Tenants {
		out.Tenants = append(out.Tenants, sluice.TenantID(id))
	}
	return out
}

// shadows reports shadows that would see nothing, or that nothing bounds.
func (v *validator) shadows(path string, m *Model) {
	for i, s := range m.Shadow {
		at := index(join(path, "shadow"), i)
		pool := join(at, "pool")
		if s.Pool != "" {
			v.poolName(pool, s.Pool)
			if slices.ContainsFunc(m.Shadow[:i], func(o Shadow) bool { return o.Pool == s.Pool }) {
				v.fail(pool, "remove it", "pool %q stands twice", s.Pool)
			}
			if len(m.Pools) == 1 && m.Pools[0].Pool == s.Pool {
				v.fail(pool, "name another pool", "pool %q serves all of the model's requests itself: there would be nothing to compare", s.Pool)
			}
		}
		if _, given := v.pos[join(at, "share")]; given && s.Share == 0 {
			v.fail(join(at, "share"), "write 1% to 100%, or remove the shadow", "a share of 0%% copies nothing")
		}
		for j, class := range s.Classes {
			if slices.Index(s.Classes, class) < j {
				v.fail(index(join(at, "classes"), j), "remove it", "%q stands twice", class)
			}
		}
		if _, given := v.pos[join(at, "limits")]; given {
			v.copyLimits(join(at, "limits"), s.Limits.top())
		}
	}
}

// copyLimits reports copies that nothing bounds: nobody waits for them, so nobody
// would notice that there are too many.
func (v *validator) copyLimits(path string, limits []sluice.Limit) {
	has := func(d sluice.Dimension) bool {
		return slices.ContainsFunc(limits, func(l sluice.Limit) bool { return l.Dimension == d })
	}
	const fix = "bound it: {concurrency: 4, spend_per_day: $20}"
	if !has(sluice.Concurrency) {
		v.fail(path, fix, "nothing says how many copies may run at a time: concurrency is missing")
	}
	if !has(sluice.Spend) {
		v.fail(path, fix, "nothing says what the copies may cost: spend_per_hour, spend_per_day or spend_per_month is missing")
	}
}

// shadows warns of shadows to which no copy can be sent.
func (l *linter) shadows(path string, m *Model) {
	var dialects []Dialect
	for _, pool := range m.names() {
		for _, b := range l.c.Pools[pool].Backends {
			dialects = append(dialects, l.c.Providers[b.Provider].Dialect)
		}
	}
	for i, s := range m.Shadow {
		at := index(join(path, "shadow"), i)
		if !slices.ContainsFunc(l.c.Pools[s.Pool].Backends, func(b Backend) bool { return slices.Contains(dialects, l.c.Providers[b.Provider].Dialect) }) {
			l.warn(join(at, "pool"), "copy to backends of the same dialect", "no backend of shadow pool %q speaks a dialect of the model's first pools: no copy can be sent there", s.Pool)
		}
		for j, id := range s.Tenants {
			if l.c.Tenants[id] == nil {
				l.warn(index(join(at, "tenants"), j), "declare it under tenants, or create it: sluice tenant create "+id, "tenant %q is not declared: none of its requests is copied until it is created", id)
			}
		}
	}
}
