package auth

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"sluice"
)

// Introduced is a limit of a fixed window (hour, day, month) that is about to come into
// force where there was none of its dimension and window.
type Introduced struct {
	Scope     sluice.Scope
	Tenant    sluice.TenantID // whose; empty at scopes that tenants share
	Model     sluice.ModelID  // of a model, and of a model's shadows
	Dimension sluice.Dimension
	Window    sluice.Window
}

func (i Introduced) String() string {
	of := string(i.Tenant) + string(i.Model) // there is one of them at most
	if of == "" {
		return fmt.Sprintf("%s %s_per_%s", i.Scope, i.Dimension, i.Window)
	}
	return fmt.Sprintf("%s %s_per_%s of %s", i.Scope, i.Dimension, i.Window, of)
}

// Introduced lists the limits of fixed windows that tenants have in this snapshot and
// did not have in the one before. It is coarse: what one key, project or model of a tenant
// gets is told of all that the tenant has. A tenant of the store that is new has used
// nothing; one that the file declares may have been in it before.
func (s *Snapshot) Introduced(before *Snapshot) []Introduced {
	if before.partial && !s.partial { // what the sources say at the start, whose windows are seeded
		return nil
	}
	found := make(map[sluice.TenantID]*[sluice.NumScopes]fixedLimits)
	add := func(t sluice.TenantID, scope sluice.Scope, l fixedLimits) {
		if l == 0 {
			return
		}
		if found[t] == nil {
			found[t] = &[sluice.NumScopes]fixedLimits{}
		}
		found[t][scope] |= l
	}
	for id, t := range s.tenants {
		last := before.tenants[id]
		if last == nil && !t.Origin.Declared() {
			continue
		}
		is, was := s.boundsOf(t), before.boundsOf(last)
		add(id, sluice.ScopeTenant, is.tenant()&^was.tenant())
		add(id, sluice.ScopeUser, is.of(is.plan.PerUser, nil)&^was.of(was.plan.PerUser, nil))
		add(id, sluice.ScopeKey, is.key(nil)&^was.key(nil))
		for _, p := range projects(is.owner, was.owner) {
			add(id, sluice.ScopeProject, is.project(p)&^was.project(p))
		}
		for _, m := range perModel(is.plan, was.plan) {
			add(id, sluice.ScopeTenantModel, is.model(m)&^was.model(m))
		}
	}
	for id, e := range s.keys {
		last := before.keys[id]
		if last == nil || last.tenant == nil || e.tenant == nil || last.tenant.ID != e.tenant.ID || len(e.key.Limits)+len(last.key.Limits) == 0 {
			continue // it has used nothing of this tenant's, or has what the plan says
		}
		is, was := s.boundsOf(e.tenant), before.boundsOf(last.tenant)
		add(e.tenant.ID, sluice.ScopeKey, is.key(e.key.Limits)&^was.key(last.key.Limits))
	}
	return listed(found)
}

func listed(found map[sluice.TenantID]*[sluice.NumScopes]fixedLimits) (out []Introduced) {
	for t, scopes := range found {
		for scope, l := range scopes {
			for ; l != 0; l &= l - 1 {
				d, w := l.first()
				out = append(out, Introduced{Scope: sluice.Scope(scope), Tenant: t, Dimension: d, Window: w})
			}
		}
	}
	slices.SortFunc(out, func(a, b Introduced) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Dimension, b.Dimension), cmp.Compare(a.Window, b.Window))
	})
	return out
}

// bounds are what limits of a tenant follow from in one snapshot.
type bounds struct {
	plan    *Plan
	owner   *Tenant
	counted fixedLimits // what of them is in force
}

// boundsOf are those of a tenant, nothing if it is nil or cannot be used.
func (s *Snapshot) boundsOf(t *Tenant) bounds {
	if t == nil {
		return bounds{plan: &Plan{}, owner: &Tenant{}}
	}
	b := bounds{plan: s.planOf(t), owner: t}
	if b.plan == nil {
		b.plan = &Plan{}
		return b
	}
	mode := b.plan.LimitsMode
	if t.LimitsMode != nil {
		mode = *t.LimitsMode
	}
	switch {
	case mode == sluice.Off:
	case s.naive:
		b.counted = ofDimension(sluice.Requests) | ofDimension(sluice.Spend)
	default:
		b.counted = ^fixedLimits(0)
	}
	return b
}

// of are the limits in force where over replaces some of base, as override has it.
func (b *bounds) of(base, over []sluice.Limit) (out fixedLimits) {
	for _, limits := range [...][]sluice.Limit{base, over} {
		for _, l := range limits {
			switch bit := bitOf(l); {
			case l.Amount == Unlimited:
				out &^= bit
			case l.Amount > 0:
				out |= bit
			}
		}
	}
	return out & b.counted
}

func (b *bounds) tenant() fixedLimits { return b.of(b.plan.Limits, b.owner.Limits) }

func (b *bounds) key(own []sluice.Limit) fixedLimits { return b.of(b.plan.PerKey, own) }

func (b *bounds) project(id sluice.ProjectID) fixedLimits {
	for i := range b.owner.Projects {
		if p := &b.owner.Projects[i]; p.ID == id {
			return b.of(b.plan.PerProject, p.Limits)
		}
	}
	return b.of(b.plan.PerProject, nil)
}

func (b *bounds) model(m sluice.ModelID) fixedLimits {
	if m == AnyModel {
		return b.of(b.plan.PerModel[AnyModel], nil)
	}
	return b.of(b.plan.PerModel[AnyModel], b.plan.PerModel[m])
}

// projects are those that either lists, and one that none does.
func projects(a, b *Tenant) []sluice.ProjectID {
	out := []sluice.ProjectID{""}
	for _, t := range [...]*Tenant{a, b} {
		for i := range t.Projects {
			out = append(out, t.Projects[i].ID)
		}
	}
	return out
}

// perModel are the models that either names, and any other.
func perModel(a, b *Plan) []sluice.ModelID {
	out := []sluice.ModelID{AnyModel}
	for _, p := range [...]*Plan{a, b} {
		for m := range p.PerModel {
			out = append(out, m)
		}
	}
	return out
}

// fixedLimits is a set of dimensions with a fixed window.
type fixedLimits uint32

const (
	fixedWindows = int(sluice.PerMonth-sluice.PerHour) + 1
	_            = uint(32 - fixedWindows*sluice.NumDimensions) // each has a bit
)

// bitOf is the set of one limit, empty if its window is not fixed.
func bitOf(l sluice.Limit) fixedLimits {
	if !l.Window.Fixed() || l.Dimension >= sluice.NumDimensions {
		return 0
	}
	return 1 << (int(l.Dimension)*fixedWindows + int(l.Window-sluice.PerHour))
}

// ofDimension is the set of all windows of a dimension.
func ofDimension(d sluice.Dimension) (out fixedLimits) {
	for w := sluice.PerHour; w <= sluice.PerMonth; w++ {
		out |= bitOf(sluice.Limit{Dimension: d, Window: w})
	}
	return out
}

// first is one of the set. REQUIRES: it is not empty.
func (l fixedLimits) first() (sluice.Dimension, sluice.Window) {
	at := bits.TrailingZeros32(uint32(l))
	return sluice.Dimension(at / fixedWindows), sluice.PerHour + sluice.Window(at%fixedWindows)
}
