package engine

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"sluice"
	"sluice/internal/route"
)

// HealthChange is one change of what a backend, a failure domain, a pool or a
// credential may be used for. One of the four names is set; of a credential that is
// out at one backend alone, Backend too.
type HealthChange struct {
	Backend    sluice.BackendID
	Domain     string
	Pool       sluice.PoolID
	Credential string
	From, To   string // words of route.Place.State; of a domain and a pool "healthy" and "failed"; of a credential those of route.CredentialState
}

// maxChanges bounds the changes that are kept for Changes. Older ones give way.
const maxChanges = 256

// HealthChanges takes what has changed since it was last asked, in order. The slice
// is the caller's.
func (e *Engine) HealthChanges() []HealthChange {
	out := e.changes
	e.changes = nil
	return out
}

// states are those that were told of last, by the thing: a HealthChange without its
// words. What is well is not in it.
type states map[HealthChange]string

// note keeps a change of the state of a thing.
func (e *Engine) note(thing HealthChange, well, to string) {
	c := thing
	c.From, c.To = cmp.Or(e.states[thing], well), to
	if c.From == to {
		return
	}
	if e.states[thing] = to; to == well {
		delete(e.states, thing)
	}
	if len(e.changes) == maxChanges {
		e.changes = slices.Delete(e.changes, 0, 1)
	}
	e.changes = append(e.changes, c)
}

// The states of domains and pools.
const (
	stateHealthy = "healthy"
	stateFailed  = "failed"
)

// DomainView is one failure domain.
type DomainView struct {
	Name     string
	Failed   bool // it is avoided while there is another
	Open, Of int  // its backends whose breakers are open, and all that take work
}

// CredentialView is one credential of a provider, or, with Backend, what is known of
// it at that backend alone.
type CredentialView struct {
	ID      string
	Backend sluice.BackendID
	State   route.CredentialState
	RetryIn time.Duration // until one request tries it
}

// health adds failure domains, and the credentials of which anything is to be told.
func (e *Engine) health(now time.Time, v *View, limit int) {
	for _, d := range e.domains[:min(limit, len(e.domains))] {
		open, of := d.Failing()
		v.Domains = append(v.Domains, DomainView{d.Name, d.Open(), open, of})
	}
	seen := make(map[string]bool)
	for _, p := range e.pools {
		for _, pl := range p.places {
			e.keyViews = pl.Keys(now, e.keyViews[:0])
			for i := range e.keyViews {
				k := &e.keyViews[i]
				if k.Paused && len(v.Cooling) < limit {
					v.Cooling = append(v.Cooling, CredentialView{ID: k.ID, Backend: pl.Backend.ID, State: k.State, RetryIn: max(0, k.Until.Sub(now))})
				}
				if len(pl.Backend.Keys) == 0 && k.State == route.CredentialUsable || !k.Here && seen[k.ID] || len(v.Credentials) >= limit {
					continue
				}
				c := CredentialView{ID: k.ID, State: k.State}
				if k.Here {
					c.Backend = pl.Backend.ID
				} else {
					seen[k.ID] = true
				}
				if k.State != route.CredentialUsable {
					c.RetryIn = max(0, k.Until.Sub(now))
				}
				v.Credentials = append(v.Credentials, c)
			}
		}
	}
}

// healthChanged judges failure domains and pools, lets requests in pools without a
// backend look for another, and finds the next end of a cool-down.
func (e *Engine) healthChanged(now time.Time) {
	e.epoch++
	e.cools = time.Time{}
	for _, d := range e.domains {
		d.Judge(e.table.Breaker)
	}
	for _, p := range e.pools {
		route.Settle(now, p.places, p.sole(now))
	}
	for _, p := range e.pools {
		for _, s := range p.sites {
			s.Judge(now)
		}
	}
	e.tellHealth(now)
	until := func(at time.Time, changes bool) {
		if changes && (e.cools.IsZero() || at.Before(e.cools)) {
			e.cools = at
		}
	}
	for _, p := range e.pools {
		for _, pl := range p.places {
			if at, cooling := pl.Cooling(now); cooling {
				until(at, true)
			} else {
				until(pl.RampEnds(now))
			}
		}
		for _, s := range p.sites {
			until(s.ReturnEnds(now, p.returns))
		}
	}
}

// tellHealth notes what has changed.
func (e *Engine) tellHealth(now time.Time) {
	for _, d := range e.domains {
		e.note(HealthChange{Domain: d.Name}, stateHealthy, failedIf(d.Open()))
	}
	for _, p := range e.pools {
		e.note(HealthChange{Pool: p.id}, stateHealthy, failedIf(len(p.places) > 0 && !p.serving(now)))
		for _, pl := range p.places {
			b := pl.Backend.ID
			e.note(HealthChange{Backend: b}, stateHealthy, pl.State(now))
			e.keyViews = pl.Keys(now, e.keyViews[:0])
			for i := range e.keyViews {
				k := &e.keyViews[i]
				everywhere, here := k.State, route.CredentialUsable
				if k.Here {
					everywhere, here = here, everywhere
				}
				e.note(HealthChange{Credential: k.ID}, string(route.CredentialUsable), string(everywhere))
				e.note(HealthChange{Credential: k.ID, Backend: b}, string(route.CredentialUsable), string(here))
			}
		}
	}
}

func failedIf(is bool) string {
	if is {
		return stateFailed
	}
	return stateHealthy
}

// serving reports whether some backend of the pool takes requests.
func (p *pool) serving(now time.Time) bool {
	return slices.ContainsFunc(p.places, func(pl *route.Place) bool { return pl.Serves(now) })
}

// sole reports whether a model has no other pool that serves.
func (p *pool) sole(now time.Time) bool {
	return slices.ContainsFunc(p.others, func(others []*pool) bool {
		return !slices.ContainsFunc(others, func(o *pool) bool { return o.serving(now) })
	})
}

// last reports whether a place is the only one that the models of its pool have.
func (p *pool) last(now time.Time, of *route.Place) bool {
	for _, pl := range p.places {
		if pl != of && pl.Serves(now) {
			return false
		}
	}
	return p.sole(now)
}

// link finds, for each model of a pool, its other pools, and the failure domains of
// all places. REQUIRES: pools are those of the table.
func (e *Engine) link() {
	for _, p := range e.pools {
		p.others = nil
	}
	for _, id := range slices.Sorted(maps.Keys(e.table.Models)) {
		m := e.table.Models[id]
		all := slices.Concat(m.Pools, m.Fallback)
		for _, id := range all {
			var others []*pool
			for _, o := range all {
				if o != id {
					others = append(others, e.poolOf(o))
				}
			}
			e.poolOf(id).others = append(e.poolOf(id).others, others)
		}
	}
	members := make(map[string][]*route.Place)
	for _, p := range e.pools {
		for _, pl := range p.places {
			pl.Alone()
			if !p.asked() { // what copies do to a backend is no news of the others in its domain
				continue
			}
			members[pl.Backend.Domain] = append(members[pl.Backend.Domain], pl)
		}
	}
	delete(members, "")
	before := e.domains
	e.domains = e.domains[:0:0]
	for _, name := range slices.Sorted(maps.Keys(members)) {
		d := route.NewDomain(name, members[name])
		if i := slices.IndexFunc(before, func(o *route.Domain) bool { return o.Name == name }); i >= 0 {
			d.Continue(before[i])
		}
		e.domains = append(e.domains, d)
	}
	e.forget()
}

// forget drops what was known of things that are gone.
func (e *Engine) forget() {
	known := make(states)
	keep := func(thing HealthChange) {
		if s, ok := e.states[thing]; ok {
			known[thing] = s
		}
	}
	for _, d := range e.domains {
		keep(HealthChange{Domain: d.Name})
	}
	for _, p := range e.pools {
		keep(HealthChange{Pool: p.id})
		for _, pl := range p.places {
			keep(HealthChange{Backend: pl.Backend.ID})
			for _, k := range pl.Keys(e.now, nil) {
				keep(HealthChange{Credential: k.ID})
				keep(HealthChange{Credential: k.ID, Backend: pl.Backend.ID})
			}
		}
	}
	e.states = known
}

// renewKeys makes credentials usable again: a new table may come with others.
func (e *Engine) renewKeys() {
	used := make(map[string]bool)
	for _, p := range e.table.Pools {
		for _, b := range p.Backends {
			for _, k := range b.Keys {
				used[k.ID] = true
			}
		}
	}
	e.keys.Renew(func(id string) bool { return used[id] })
}
