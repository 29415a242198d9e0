package engine

import (
	"sluice"
	"sluice/internal/route"
)

// first is the model's first pools in the order in which the request tries them.
func (r *request) first(m *route.Model) []sluice.PoolID {
	if m.Terms == nil && r.ordered != m {
		return m.Pools
	}
	if r.ordered != m {
		r.order, r.ordered = m.First(&route.Asker{ID: r.call.ID, Principal: &r.call.Principal, Session: r.call.Session, Class: r.call.Class, Pinned: r.call.Pin != nil}, r.order), m
	}
	return r.order
}

// visit calls f for the pools that may serve the request, its current one first; see
// route.Model.Visit.
func (r *request) visit(m *route.Model, current sluice.PoolID, f func(p sluice.PoolID, fallback bool) (stop bool)) bool {
	return m.VisitFrom(current, r.first(m), f)
}

// tooDear reports whether one attempt at the backend would hold more than the model
// lets a request cost.
func (r *request) tooDear(b *route.Backend) bool {
	return r.maxSpend > 0 && !r.call.Free && r.price(b.Row(), r.call.Work.OutputBound) > r.maxSpend
}
