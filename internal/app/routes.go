package app

import (
	"maps"
	"slices"

	"sluice"
	"sluice/internal/admin"
	"sluice/internal/route"
)

// routes is the routing in force, model by model.
func (a *App) routes() admin.RouteList {
	t := a.snapshot.Load().Table
	out := admin.RouteList{Version: t.Version, OffFile: a.offFile(), Routes: make([]admin.ModelRoute, 0, len(t.Models))}
	for _, id := range slices.Sorted(maps.Keys(t.Models)) {
		out.Routes = append(out.Routes, routeView(t, t.Models[id]))
	}
	return out
}

func routeView(t *route.Table, m *route.Model) admin.ModelRoute {
	r := admin.ModelRoute{Model: string(m.ID), Sticky: [...]string{"", "run", "user", "session"}[m.Sticky]}
	if m.MaxSpend > 0 {
		r.MaxSpend = m.MaxSpend.String()
	}
	var total int64
	for _, p := range m.Pools {
		if terms := m.Terms[p]; terms != nil && !terms.IsCanary() {
			total += terms.Weight
		}
	}
	for _, p := range m.Pools {
		v := poolRoute(t, p)
		if terms := m.Terms[p]; terms != nil {
			for _, id := range terms.Tenants {
				v.Tenants = append(v.Tenants, string(id))
			}
			for _, c := range terms.Classes {
				v.Classes = append(v.Classes, c.String())
			}
			v.Weight = terms.Weight
			switch {
			case terms.IsCanary():
				v.Canary = percentOf(terms.Canary, route.CanaryParts)
			case total > 0:
				v.Share = percentOf(terms.Weight, total)
			}
		}
		r.Pools = append(r.Pools, v)
	}
	for _, p := range m.Fallback {
		v := poolRoute(t, p)
		if e := m.Evaluated[p]; e != nil {
			v.Evaluated = e.Suite + " scored " + e.Score + " on " + e.Date
		}
		r.Fallback = append(r.Fallback, v)
	}
	return r
}

func poolRoute(t *route.Table, id sluice.PoolID) admin.PoolRoute {
	v := admin.PoolRoute{Pool: string(id), Backends: []admin.BackendRoute{}}
	for _, b := range t.Pools[id].Backends {
		v.Backends = append(v.Backends, admin.BackendRoute{
			Backend: string(b.ID), Provider: string(b.Provider), Region: b.Region, Domain: b.Domain, Weight: b.Weight, Drained: b.Weight <= 0,
		})
	}
	return v
}

// percentOf is a part in whole percent, rounded.
func percentOf(part, of int64) int64 { return (100*part + of/2) / of }
