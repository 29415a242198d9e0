package engine

import (
	"sluice"
	"sluice/internal/route"
)

// ranking is the order in which a request tries the first pools of a model, where that
// is not the model's own.
type ranking struct {
	model   *route.Model // nil if there was no need
	pools   []sluice.PoolID
	figures []PoolFigure // by which a preference made it
}

// ranked reports whether the request has a ranking of a model's first pools.
func (r *request) ranked(m *route.Model) bool { return r.ranking != nil && r.ranking.model == m }

// rank keeps the order of a model's first pools.
func (r *request) rank(m *route.Model, pools []sluice.PoolID) {
	if r.ranking == nil {
		r.ranking = &ranking{}
	}
	r.ranking.model, r.ranking.pools = m, append(r.ranking.pools[:0], pools...)
}

// first is the model's first pools in the order in which the request tries them.
func (r *request) first(m *route.Model) []sluice.PoolID {
	switch {
	case r.ranked(m):
		return r.ranking.pools
	case m.Terms == nil:
		return m.Pools
	}
	if r.ranking == nil {
		r.ranking = &ranking{}
	}
	p := r.principal()
	r.ranking.model = m
	r.ranking.pools = m.First(&route.Asker{ID: r.call.ID, Principal: &p, Session: r.call.Session, Class: r.call.Class, Pinned: r.call.Pin != nil}, r.ranking.pools)
	return r.ranking.pools
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
