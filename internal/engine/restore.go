package engine

import (
	"time"

	"sluice"
	"sluice/internal/quota"
)

// Restore charges reservations found open at start: tokens and requests to the
// buckets as of now, everything to the windows in which they were reserved. Call
// it before the first Arrive.
func (e *Engine) Restore(now time.Time, holds []OpenHold) {
	now = e.tick(now)
	for i := range holds {
		h := &holds[i]
		claims := e.claimsOf(&Call{Principal: h.Principal, Model: h.Model}, e.table.Models[h.Model])
		e.book.Charge(now, h.At, claims, amounts(&h.Usage, h.Spend))
	}
}

// Seed adds what fixed windows had taken before this process started. Call it
// once, before the first Arrive. Windows that are over change nothing.
func (e *Engine) Seed(now time.Time, spent []Spent) {
	now = e.tick(now)
	for _, s := range spent {
		e.book.Seed(now, s.At, s.owner(), sluice.Limit{Dimension: s.Dimension, Window: s.Window, Amount: s.Amount})
	}
}

// Introduce is Seed while requests run, of limits that are about to come into force:
// counters that are there already are left as they are. It returns how many it made.
func (e *Engine) Introduce(now time.Time, spent []Spent) (made int) {
	now = e.tick(now)
	for i := range spent {
		s := &spent[i]
		if e.book.Introduce(now, s.At, s.owner(), sluice.Limit{Dimension: s.Dimension, Window: s.Window, Amount: s.Amount}) {
			made++
		}
	}
	return made
}

func (s *Spent) owner() quota.Owner {
	o := quota.Owner{Scope: s.Scope}
	switch s.Scope {
	case sluice.ScopeKey:
		o.ID, o.Part = string(s.Tenant), string(s.Key)
	case sluice.ScopeUser:
		o.ID, o.Part = string(s.Tenant), string(s.User)
	case sluice.ScopeRun:
		o.ID, o.Part = string(s.Tenant), string(s.Run)
	case sluice.ScopeProject:
		o.ID, o.Part = string(s.Tenant), string(s.Project)
	case sluice.ScopeTenant:
		o.ID = string(s.Tenant)
	case sluice.ScopeTenantModel:
		o.ID, o.Part = string(s.Tenant), string(s.Model)
	case sluice.ScopeModel:
		o.ID = string(s.Model)
	case sluice.ScopeShadow:
		o = shadowOwner(s.Model, s.Pool)
	}
	return o
}
