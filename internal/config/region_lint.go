package config

import (
	"slices"
	"strings"
	"time"

	"sluice/internal/capacity"
)

// locality warns of a locality that keeps requests at home for good, or sends them to
// what fails with it.
func (l *linter) locality(name string, m *Model) {
	loc, path := l.c.localityOf(name)
	if loc == nil {
		return
	}
	order := l.c.order(m, loc)
	home := order[0]
	domains := make(map[string]string) // of home, and a backend in each
	elsewhere := false
	for _, pool := range m.open() {
		for _, b := range l.c.Pools[pool].Backends {
			switch {
			case b.Weight == 0:
			case b.Region == home:
				domains[b.domain()] = b.Name
			case b.Region == "" || l.share(b.Region) > 0:
				elsewhere = true
			}
		}
	}
	if len(domains) == 0 {
		l.warn(join(path, "prefer"), "add a backend there, or prefer a region that has one", "model %q has no backend in its first region, %q: all of its requests are away from home", name, home)
	}
	if !elsewhere {
		l.warn(path, "add backends in another region, or a headroom there: regions: {NAME: {headroom: 25%}}",
			"no region has room for the requests of model %q when %q is lost", name, home)
	}
	told := make(map[string]bool)
	for _, pool := range m.open() {
		for _, b := range l.c.Pools[pool].Backends {
			if d := b.domain(); b.Region != home && b.Weight > 0 && domains[d] != "" && !told[d] {
				told[d] = true
				l.warn(path, "name the domain of each backend: domain: NAME", "backend %q in region %q is in failure domain %q, as %q at home is: both fail together", b.Name, b.Region, d, domains[d])
			}
		}
	}
	if ramp, back := l.c.breaker().WithDefaults().Ramp, time.Duration(loc.Return); back > 0 && back < ramp {
		l.warn(join(path, "return"), "write at least "+ramp.String()+", the ramp of breaker", "the traffic returns within %v, before the backends have all of their share", back)
	}
}

// share is the headroom of a region, as far as it can be told.
func (l *linter) share(region string) int64 {
	plans, err := l.c.RegionPlans()
	if err != nil {
		return 0
	}
	for _, p := range plans {
		if p.Name == region {
			return p.InForce.Times(capacity.Int(100)).Floor()
		}
	}
	return 0
}

// regions warns of headrooms that the demand does not leave, of such as are no place,
// and where the others cannot take what a region is asked for when it is lost.
func (l *linter) regions() {
	located := slices.ContainsFunc(sorted(l.c.Models), func(name string) bool { loc, _ := l.c.localityOf(name); return loc != nil })
	plans, err := l.c.RegionPlans()
	if err != nil || !located {
		if len(l.c.Regions) > 0 && err == nil {
			l.warn("regions", "give a model a locality: {prefer: local}, or remove them", "no model has a locality: the headrooms bound nothing")
		}
		return
	}
	for i := range plans {
		p := &plans[i]
		path := join("regions", p.Name)
		if l.c.Regions[p.Name] != nil && p.Replicas == 0 {
			l.warn(path, suggest(p.Name, l.c.regions()), "no backend is in region %q", p.Name)
			continue
		}
		l.noPlace(p)
		if !p.Known {
			continue
		}
		if p.InForce.Cmp(p.Headroom) > 0 {
			l.warn(join(path, "headroom"), "write "+wholePercent(p.Headroom)+", or planner; or add backends", "%s is more than the planner says there is: %s of region %q are used by its own demand, which leaves %s",
				wholePercent(p.InForce), wholePercent(p.Used), p.Name, wholePercent(p.Headroom))
		}
		if p.Absorbed.Cmp(capacity.Int(1)) < 0 {
			l.warn(path, "add backends elsewhere, or accept that what is beyond waits or is refused, the least important class first",
				"the other regions cannot take what %q is asked for when it is lost: their headroom holds %s of it", p.Name, wholePercent(p.Absorbed))
		}
	}
}

// noPlace warns of a headroom that is less than one request at a time in a pool.
func (l *linter) noPlace(p *capacity.RegionPlan) {
	if p.InForce.Sign() == 0 {
		return
	}
	var without []string
	for _, name := range sorted(l.c.Pools) {
		slots, fixed := int64(0), false
		for _, b := range l.c.Pools[name].Backends {
			if b.Region == p.Name && b.Weight > 0 {
				slots += int64(b.Capacity.Concurrency)
				fixed = b.Capacity.Concurrency > 0 || fixed
			}
		}
		if fixed && capacity.Int(slots).Times(p.InForce).Floor() == 0 {
			without = append(without, name)
		}
	}
	if len(without) > 0 {
		l.warn(join("regions", p.Name), "raise the headroom, or the concurrency of its backends", "a headroom of %s is not one request at a time in pool %s", wholePercent(p.InForce), strings.Join(without, ", "))
	}
}

// wholePercent is a part as people write it, rounded down.
func wholePercent(a capacity.Amount) string {
	return capacity.Int(a.Times(capacity.Int(100)).Floor()).Text(0) + "%"
}
