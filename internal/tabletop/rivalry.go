package tabletop

import "sluice"

// enqueue is a request that waits in a pool's queue.
func (f *fairness) enqueue(q *request, pool sluice.PoolID) {
	g := f.rivals(pool, f.sources[q.source].Class)
	q.rivals, q.flow = g, f.flow(q.source, g)
	w := &q.call.Work
	g.flight.most = max(g.flight.most, g.of(w.Input-w.CachedInput, w.Output))
	for _, x := range f.of[q.source] {
		x.need = max(x.need, int64(w.KV()))
	}
	fl := q.flow
	if fl == nil {
		return
	}
	if fl.model != f.sources[q.source].Model && !fl.apart {
		fl.apart = true
		f.set(fl, false)
	}
	f.link(fl, q.source)
	fl.count(q.source, 1)
	f.judge(fl)
}

// dequeue is one that does not wait any more.
func (f *fairness) dequeue(q *request) {
	if fl := q.flow; fl != nil {
		fl.count(q.source, -1)
		f.judge(fl)
	}
	q.rivals, q.flow = nil, nil
}

// dispatch is an attempt that begins: the estimate is charged. Its flow is eligible
// until then, and the request has left the queue after.
func (f *fairness) dispatch(q *request) {
	waited := q.flow
	if q.rivals.pool != q.call.Place.Pool { // it moved
		q.rivals = f.rivals(q.call.Place.Pool, f.sources[q.source].Class)
		q.flow = f.flow(q.source, q.rivals)
	}
	w := &q.call.Work
	q.gauges = f.of[q.source]
	for _, g := range q.gauges {
		g.running++
		g.tokens += int64(w.KV())
	}
	q.charged = q.rivals.of(max(0, w.Input-w.CachedInput), w.Output)
	q.rivals.flight.add(q.charged)
	f.charge(q.flow, q.charged)
	if waited != nil {
		waited.count(q.source, -1)
		f.judge(waited)
	}
	for _, g := range q.gauges {
		f.judgeAll(g)
	}
}

// correct is more of an answer than was estimated.
func (f *fairness) correct(q *request) {
	w, g := &q.call.Work, q.rivals
	if q.run.on == nil || g == nil {
		return
	}
	if over := g.of(w.Input-w.CachedInput, q.run.seen) - q.charged; over > 0 {
		q.charged += over
		g.flight.most = max(g.flight.most, q.charged)
		g.flight.add(over)
		f.charge(q.flow, over)
	}
}

// end is an attempt that has ended: what it took takes the place of the estimate.
func (f *fairness) end(q *request) {
	if g := q.rivals; g != nil {
		cost := int64(0)
		if q.run.seen > 0 {
			cost = g.of(q.truth.input-q.run.cached, q.run.seen)
		}
		g.flight.most = max(g.flight.most, cost)
		f.charge(q.flow, cost-q.charged)
		g.flight.add(-q.charged)
		q.rivals, q.flow, q.charged = nil, nil, 0
	}
	for _, g := range q.gauges {
		g.running--
		g.tokens -= int64(q.call.Work.KV())
		f.judgeAll(g)
	}
	q.gauges = nil
}

// of is the work of tokens in the pool.
func (r *rivals) of(input, output sluice.Tokens) int64 {
	return r.cost.Input*int64(input) + r.cost.Output*int64(output)
}

// charge adds to a flow's service and judges its pairs.
func (f *fairness) charge(fl *flow, cost int64) {
	if fl == nil {
		return
	}
	fl.s += cost
	if !fl.eligible {
		return
	}
	for _, other := range fl.in.flows {
		if other == fl || !other.eligible {
			continue
		}
		a, b := other, fl
		if a.index > b.index {
			a, b = b, a
		}
		pr := &b.pairs[a.index]
		if !pr.open {
			continue
		}
		if d := a.s*b.weight - b.s*a.weight; d < pr.lo || d > pr.hi {
			pr.lo, pr.hi = min(pr.lo, d), max(pr.hi, d)
			fl.in.judge(a, b, pr)
		}
	}
}

// judge holds a pair's difference against its bound.
func (r *rivals) judge(a, b *flow, pr *pair) {
	bound := (2*(r.flight.most+r.flight.since(pr.since)) + r.flight.most) * max(a.weight, b.weight)
	if bound <= 0 {
		return
	}
	share := float64(pr.hi-pr.lo) / float64(bound)
	if r.judged && share <= r.share {
		return
	}
	unit := a.weight * b.weight
	r.judged, r.share = true, share
	r.worst = FairnessGap{
		Pool: r.pool, Class: r.class.String(), Gap: (pr.hi - pr.lo + unit - 1) / unit, Bound: bound / unit,
		A: string(a.tenant), B: string(b.tenant),
	}
}

func (f *fairness) judgeAll(g *gauge) {
	for _, fl := range g.flows {
		f.judge(fl)
	}
}

// judge says whether a flow is eligible.
func (f *fairness) judge(fl *flow) {
	if fl.apart {
		return
	}
	eligible := false
	for _, w := range fl.waiting {
		if w.requests == 0 || eligible {
			continue
		}
		eligible = true
		for _, g := range f.of[w.source] {
			eligible = eligible && g.room()
		}
	}
	f.set(fl, eligible)
}

// set opens and closes spans where a flow has become eligible or is no more.
func (f *fairness) set(fl *flow, eligible bool) {
	if fl.eligible == eligible {
		return
	}
	fl.eligible = eligible
	for _, other := range fl.in.flows {
		if other == fl {
			continue
		}
		a, b := other, fl
		if a.index > b.index {
			a, b = b, a
		}
		b.pairs[a.index].begin(a, b)
	}
}

// begin opens the pair's span, if both are eligible.
func (p *pair) begin(a, b *flow) {
	*p = pair{}
	if a.eligible && b.eligible {
		d := a.s*b.weight - b.s*a.weight
		*p = pair{open: true, lo: d, hi: d, since: a.in.flight.n}
	}
}

// read is the largest gap of each pool and class since the last reading. Spans that
// go on begin anew.
func (f *fairness) read() (out []FairnessGap) {
	for _, g := range f.groups {
		if g.judged {
			out = append(out, g.worst)
		}
		g.judged, g.share, g.worst = false, 0, FairnessGap{}
		for _, b := range g.flows {
			for i := range b.pairs {
				b.pairs[i].begin(g.flows[i], b)
			}
		}
	}
	return out
}

// count adds to the requests of a source that wait.
func (fl *flow) count(source, n int) {
	for i := range fl.waiting {
		if fl.waiting[i].source == source {
			fl.waiting[i].requests += n
			return
		}
	}
	fl.waiting = append(fl.waiting, waits{source, n})
}
