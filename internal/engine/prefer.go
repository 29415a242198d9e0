package engine

import (
	"slices"
	"time"

	"sluice"
	"sluice/internal/route"
)

// PoolFigure is what a preference saw of one of a model's first pools, when it put them
// into order.
type PoolFigure struct {
	Pool sluice.PoolID
	route.Figure
}

// prefer puts the request's first pools, behind the canaries, into the order that its
// model prefers, as of now. A pool that the request may not wait for loses all the same:
// see choosePool.
func (e *Engine) prefer(now time.Time, r *request, m *route.Model) {
	if r.ranking != nil {
		r.ranking.figures = r.ranking.figures[:0]
	}
	if m.Prefer == route.PreferNone {
		return
	}
	r.rank(m, r.first(m))
	k := r.ranking
	rest := k.pools
	for len(rest) > 0 && m.Terms[rest[0]].IsCanary() {
		rest = rest[1:]
	}
	e.figures = e.figures[:0]
	for _, id := range rest {
		f := route.Figure{}
		if p := e.poolOf(id).at(r); p != nil { // of the region where it is to be served
			f = p.figure(now, r)
		}
		e.figures = append(e.figures, f)
	}
	m.Prefer.Sort(e.figures, func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	for i, id := range rest {
		k.figures = append(k.figures, PoolFigure{id, e.figures[i]})
	}
}

// figure is what a preference goes by of the pool: its predicted wait and the best of
// its backends that could serve r. One that has none is nobody's preference, and
// nothing is known of it.
func (p *pool) figure(now time.Time, r *request) route.Figure {
	p.figures = p.figures[:0]
	may := p.eligible(r)
	for i, pl := range p.places {
		if may.Has(i) && pl.Fit(now) == route.Chosen {
			p.figures = append(p.figures, r.figure(now, pl))
		}
	}
	if len(p.figures) == 0 {
		return route.Figure{}
	}
	best := route.PreferLatency.Best(p.figures)
	if wait := p.wait(now, r); best.Known {
		best.Time += wait
	} else {
		best.Time, best.Known = wait, wait > 0
	}
	return best
}

// figure is what a preference goes by of one backend.
func (r *request) figure(now time.Time, pl *route.Place) route.Figure {
	w := r.work(r.bound)
	f := pl.Expected(now, w.Input-w.CachedInput, min(w.Output, w.OutputBound)/sluice.Tokens(max(r.call.Choices, 1)))
	if row := pl.Backend.Row(); row != nil && !r.call.Free {
		w.OutputHold = min(w.Output, w.OutputBound)
		f.Price = row.SoftHold(w)
	}
	return f
}

// favour leaves out of the places that can take r those that its model's preference
// finds worse than another of them. A pool whose rule goes by time itself is left to
// that.
func (p *pool) favour(now time.Time, r *request, left []route.Left) {
	p.figures = p.figures[:0]
	rule := p.spec.Choice
	if r.prefer == route.PreferNone || r.prefer == route.PreferLatency && (rule == route.ByCost || rule == route.ByAffinity) {
		return
	}
	can := make([]route.Figure, 0, 64)
	for i, pl := range p.places {
		f := r.figure(now, pl)
		p.figures = append(p.figures, f)
		if left[i] == route.Chosen {
			can = append(can, f)
		}
	}
	best := r.prefer.Best(can)
	for i, f := range p.figures {
		if left[i] == route.Chosen && r.prefer.Worse(f, best) {
			left[i] = r.prefer.Left()
		}
	}
}

// preferred appends what the request's preference saw to what Advance returns.
func (e *Engine) preferred(r *request) []PoolFigure {
	out, from := e.answers.pools, len(e.answers.pools)
	e.answers.pools = append(out, r.ranking.figures...)
	return slices.Clip(e.answers.pools[from:])
}
