package route

import (
	"slices"

	"sluice"
)

// Visit calls f for the pools that may serve a request which is in current, in
// the order in which they are tried: current, the other first pools, the
// fallbacks. An empty current is none. It stops when f returns true, and reports
// whether it did.
func (m *Model) Visit(current sluice.PoolID, f func(p sluice.PoolID, fallback bool) (stop bool)) bool {
	return m.VisitFrom(current, m.Pools, f)
}

// VisitFrom is Visit with the first pools in the order of a request: see First.
func (m *Model) VisitFrom(current sluice.PoolID, first []sluice.PoolID, f func(p sluice.PoolID, fallback bool) (stop bool)) bool {
	if current != "" && f(current, m.IsFallback(current)) {
		return true
	}
	for _, p := range first {
		if p != current && f(p, false) {
			return true
		}
	}
	for _, p := range m.Fallback {
		if p != current && f(p, true) {
			return true
		}
	}
	return false
}

// IsFallback reports whether a pool is not one of the model's first pools.
func (m *Model) IsFallback(p sluice.PoolID) bool {
	return !slices.Contains(m.Pools, p)
}
