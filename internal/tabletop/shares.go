package tabletop

import (
	"cmp"
	"maps"
	"slices"

	"sluice"
	"sluice/internal/route"
)

// routes is where a table sends a model's requests first, and what its work is
// measured in.
type routes struct {
	pools map[sluice.ModelID]sluice.PoolID
	costs map[sluice.PoolID]route.Cost
	table *route.Table
}

func newRoutes(t *route.Table) *routes {
	r := &routes{}
	r.set(t)
	return r
}

func (r *routes) set(t *route.Table) {
	r.table = t
	r.pools, r.costs = map[sluice.ModelID]sluice.PoolID{}, map[sluice.PoolID]route.Cost{}
	for id, m := range t.Models {
		if len(m.Pools) > 0 {
			r.pools[id] = m.Pools[0]
		}
	}
	for id, p := range t.Pools {
		r.costs[id] = p.Cost.WithDefaults()
	}
}

// sortedPools is a table's pools by id.
func sortedPools(t *route.Table) []*route.Pool {
	return slices.SortedFunc(maps.Values(t.Pools), func(a, b *route.Pool) int { return cmp.Compare(a.ID, b.ID) })
}

// shares is who was served how much, and how much would have been each one's fair
// share: of what a pool served in a span of time, by weight, to nobody more than it
// wanted (max-min).
//
// What a source wanted in a span is the work that it was served, that of what still
// waits at its end, and that of what was refused or left its queue meanwhile.
type shares struct {
	sources []want
}

type want struct {
	served, refused, waiting int64
	fair                     int64 // result of a close
}

// shared is what a request's work counts for.
type shared struct {
	input, output int64 // of a token
	waits         int64 // of waiting, while it does
}

func newShares(s *Scenario) *shares { return &shares{sources: make([]want, len(s.Sources))} }

// begin sets what a request's tokens count for.
func (s *shares) begin(m *measure, q *request) {
	c := m.tables.costs[m.tables.pools[m.series.sources[q.source].Model]].WithDefaults()
	q.shared = shared{input: c.Input, output: c.Output}
}

func (q *request) work() int64 {
	return q.shared.input*int64(q.truth.input) + q.shared.output*int64(q.truth.output)
}

func (s *shares) waits(q *request) {
	q.shared.waits = q.work()
	s.sources[q.source].waiting += q.shared.waits
}

func (s *shares) waited(q *request) {
	s.sources[q.source].waiting -= q.shared.waits
	q.shared.waits = 0
}

// refused is a request that was refused, or left, without a place.
func (s *shares) refused(q *request) { s.sources[q.source].refused += q.work() }

func (s *shares) prefilled(m *measure, q *request) {
	s.serve(m, q, q.shared.input*int64(q.truth.input-q.run.cached))
}

func (s *shares) decoded(m *measure, q *request, n sluice.Tokens) {
	s.serve(m, q, q.shared.output*int64(n))
}

func (s *shares) serve(m *measure, q *request, work int64) {
	s.sources[q.source].served += work
	m.now(q).work += work
}

// close ends a span of time: what each source was due of it goes to the phase and
// the series.
func (s *shares) close(m *measure) {
	for i := range s.sources {
		s.sources[i].fair = -1
	}
	for i := range s.sources {
		if s.sources[i].fair < 0 {
			s.pool(m, m.tables.pools[m.series.sources[i].Model])
		}
	}
	for i := range s.sources {
		w := &s.sources[i]
		m.tallies[m.phase][i].fair += w.fair
		m.series.share(i, w.served, w.fair)
		w.served, w.refused = 0, 0
	}
}

// pool shares out what one pool served: between tenants by weight, and then between
// the sources of a tenant.
func (s *shares) pool(m *measure, id sluice.PoolID) {
	var tenants []portion
	var served int64
	at := map[sluice.TenantID]int{}
	for i := range s.sources {
		x := &m.series.sources[i]
		if m.tables.pools[x.Model] != id {
			continue
		}
		w := &s.sources[i]
		served += w.served
		k, ok := at[x.Tenant]
		if !ok {
			k = len(tenants)
			at[x.Tenant] = k
			tenants = append(tenants, portion{weight: m.series.weights[i]})
		}
		tenants[k].want += w.served + w.refused + w.waiting
		tenants[k].parts = append(tenants[k].parts, i)
	}
	fill(tenants, served)
	for _, t := range tenants {
		parts := make([]portion, len(t.parts))
		for k, i := range t.parts {
			w := &s.sources[i]
			parts[k] = portion{weight: 1, want: w.served + w.refused + w.waiting}
		}
		fill(parts, t.gets)
		for k, i := range t.parts {
			s.sources[i].fair = parts[k].gets
		}
	}
}

// portion is one that shares in an amount.
type portion struct {
	weight, want, gets int64
	parts              []int
}

// fill shares an amount out by weight, to nobody more than it wants: those that want
// least by their weight are served first, the rest share what is left. What
// rounding leaves goes to the last.
func fill(to []portion, amount int64) {
	order := make([]int, len(to))
	weights := int64(0)
	for i := range to {
		order[i] = i
		weights += to[i].weight
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := float64(to[a].want)/float64(to[a].weight), float64(to[b].want)/float64(to[b].weight)
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
	})
	for _, i := range order {
		t := &to[i]
		part := amount
		if t.weight < weights {
			part = int64(float64(amount) * float64(t.weight) / float64(weights))
		}
		t.gets = min(t.want, part)
		amount -= t.gets
		weights -= t.weight
	}
}
