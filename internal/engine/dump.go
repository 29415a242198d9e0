package engine

import (
	"cmp"
	"slices"
	"time"

	"sluice"
	"sluice/internal/quota"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// How many tenants of each class the zoom on all pools shows of each of them: where it
// does not say, and at most, since there may be many pools.
const (
	busyFlows = 10
	mostFlows = 100
)

// Dump is a picture of the engine with at most limit rows of each kind: pools, and
// of each of them backends, and of each class tenants and requests. Nothing but
// the time changes by it. Its cost is O(limit log limit) in what is zoomed at.
func (e *Engine) Dump(now time.Time, z Zoom, limit int) View {
	now = e.tick(now)
	limit = max(limit, 0)
	v := View{
		At: now, Policy: e.table.Version, Open: e.Open(), Running: e.running,
		Expired: e.expired.Len(), Accounts: e.book.Len(),
	}
	v.Retries, v.RetriesBounded = e.retries.Left(now)
	switch {
	case z.Request != "":
		if r := e.requests.Find(z.Request); r != nil {
			v.Requests = append(v.Requests, e.viewOf(now, r, true))
		}
		if h := e.requests.Find(z.Request + besideMark); h != nil {
			v.Requests = append(v.Requests, e.viewOf(now, h, true))
		}
	case z.Pool != "":
		if p := e.poolOf(z.Pool); p != nil {
			e.zoom(now, &v, p, z.Tenant, limit)
		}
	case z.Tenant != "":
		for _, p := range e.pools[:min(limit, len(e.pools))] {
			e.zoom(now, &v, p, z.Tenant, limit)
		}
	default:
		e.health(now, &v, limit)
		e.regions(now, &v, limit)
		for _, p := range e.pools[:min(limit, len(e.pools))] {
			pv := p.view(now, limit)
			if !z.Levels {
				pv.Flows = p.flows(now, min(limit, cmp.Or(z.Flows, busyFlows), mostFlows))
			}
			v.Pools = append(v.Pools, pv)
		}
		if !z.Levels {
			e.accounts(now, &v, limit)
		}
	}
	return v
}

// zoom adds a pool with its flows and oldest requests; of one tenant, unless that
// is empty, and then only a pool in which it has any.
func (e *Engine) zoom(now time.Time, v *View, p *pool, of sluice.TenantID, limit int) {
	pv := p.view(now, limit)
	if of == "" {
		pv.Flows = p.flows(now, limit)
	} else {
		for _, q := range p.both() {
			for c := range sluice.Class(sluice.NumClasses) {
				if f, ok := q.queue.Flow(now, c, of); ok {
					pv.addFlow(f)
				}
			}
		}
		if pv.Flows == nil {
			return
		}
	}
	v.Pools = append(v.Pools, pv)
	for _, q := range p.both() {
		for c := range sluice.Class(sluice.NumClasses) {
			for _, at := range q.queue.Places(c, of, limit, q.running()) {
				r := e.viewOf(now, at.Item.Value.(*request), false)
				r.Position, r.Wait = at.Position, at.Wait
				v.Requests = append(v.Requests, r)
			}
		}
	}
}

func (p *pool) view(now time.Time, limit int) PoolView {
	v := PoolView{
		ID: p.id, Waiting: p.queue.Len(), ByClass: p.queue.Waiting(), Bytes: p.queue.Bytes(), Work: p.queue.Work(),
		Failed: len(p.places) > 0 && !p.serving(now), Oldest: p.queue.Oldest(now), Counts: p.queue.Counts(), Classes: p.queue.Classes(now), Contracts: p.queue.Contracts(now),
	}
	v.Demand = p.demanded(now)
	if p.queue.Len() > 0 || !p.open(now) {
		v.Wait = p.queue.Drain(p.running(), nil)
		v.Unknown = v.Wait == 0
	}
	if p.chooser.Rule().Prefixed() {
		counts := p.chooser.Counts()
		v.Affinity = &counts
	}
	v.Ladder = p.ladderView(now)
	if g := p.queue.Gathers(); g != nil {
		r := g.Item.Value.(*request)
		v.Gathering = &GatherView{Request: r.call.ID, Tenant: r.item.Flow.Tenant, Class: r.call.Class, Passed: g.Passed, Most: g.Most}
		if pl := p.keeps(); pl != nil && !g.Pool {
			v.Gathering.Backend = pl.Backend.ID
		}
		for c, it := range g.Overtaken {
			if it != nil {
				v.Gathering.Overtaken[c] = it.Value.(*request).call.ID
			}
		}
	}
	for _, s := range p.sites {
		if s.guests != nil {
			v.addGuests(now, s.guests.queue)
		}
	}
	for _, pl := range p.shown() {
		if len(v.Backends) == limit {
			break
		}
		b := BackendView{
			ID: pl.Backend.ID, Running: pl.Running(), Concurrency: pl.Slots(),
			KVTokens: pl.KV(), Prefill: pl.Prefill(), Health: pl.State(now), Share: pl.Health.Share(now), Domain: pl.Backend.Domain, Retired: pl.Retired,
		}
		if until, cooling := pl.Cooling(now); cooling {
			b.RetryIn = until.Sub(now)
		}
		b.describe(now, pl)
		b.Retries, b.RetriesBounded = p.retries.LeftOn(now, pl)
		v.Backends = append(v.Backends, b)
	}
	return v
}

// shown is the pool's places, and those that finish what they run.
func (p *pool) shown() []*route.Place {
	out := slices.Clone(p.places)
	for _, pl := range p.leaving {
		if pl.Retired && pl.Running() > 0 {
			out = append(out, pl)
		}
	}
	return out
}

// accounts adds the counters of the busiest scopes.
func (e *Engine) accounts(now time.Time, v *View, limit int) {
	for _, a := range e.busiest(v, limit) {
		o := a.Owner()
		av := AccountView{Scope: o.Scope, ID: o.Label(), Open: a.Open(), Counters: e.book.View(now, a, nil)}
		if o.Part != "" {
			av.Tenant = o.ID
		}
		v.Top = append(v.Top, av)
	}
}

// scanned is how many accounts are looked at for the busiest.
const scanned = 2048

// busiest is the accounts with the most requests that wait or run: of those of the
// tenants that are shown, the fleet, and of the first that there are, which is all of them unless there are very many.
func (e *Engine) busiest(v *View, limit int) (top []*quota.Account) {
	if limit == 0 {
		return nil
	}
	order := func(a, b *quota.Account) int {
		return cmp.Or(cmp.Compare(b.Open(), a.Open()), a.Owner().Compare(b.Owner()))
	}
	add := func(a *quota.Account) {
		if a == nil || a.Open() == 0 || len(top) == limit && order(a, top[limit-1]) >= 0 {
			return
		}
		i, found := slices.BinarySearchFunc(top, a, order)
		if found {
			return
		}
		if len(top) == limit {
			top = top[:limit-1]
		}
		top = slices.Insert(top, i, a)
	}
	for i := range v.Pools {
		for j := range v.Pools[i].Flows {
			add(e.book.Account(quota.Owner{Scope: sluice.ScopeTenant, ID: string(v.Pools[i].Flows[j].Tenant)}))
		}
	}
	add(e.book.Account(quota.Owner{Scope: sluice.ScopeFleet}))
	left := scanned
	e.book.Scan(func(a *quota.Account) bool {
		add(a)
		left--
		return left > 0
	})
	return top
}

// viewOf is one request; near, with its place in the queue and what is in its way.
func (e *Engine) viewOf(now time.Time, r *request, near bool) RequestView {
	v := RequestView{
		ID: r.of(), Hedge: r.beside, Owner: r.principal(), Model: r.item.Flow.Model, Class: r.call.Class, Pool: r.pool.id, Region: r.region, Away: r.away,
		Age: time.Duration(e.ns - r.arrived), Attempt: r.attempt, Predicted: r.predicted,
		Tier: r.tier, Work: r.work(r.bound), Cost: r.item.Cost, Needs: r.item.Need, Holds: r.hold(),
	}
	if r.other != nil && !r.beside {
		v.Attempt-- // its hedge has the next number
	}
	if r.phase != running {
		for d := range v.Holds {
			if sluice.Dimension(d).Gauge() {
				v.Holds[d] = 0
			}
		}
	}
	switch r.phase {
	case waiting:
		v.Phase, v.Waited, v.MaxWait = Waiting, now.Sub(r.item.Since), r.maxWait()
		v.Passed, v.Most, v.Gathering = r.item.Passed(), r.item.Cost, r.pool.queue.Gathering() == &r.item
		if near {
			v.Position, v.Wait = r.pool.queue.Place(&r.item, r.pool.running())
			v.Lacks = e.lacks(now, r)
		}
	case running:
		v.Phase, v.Backend, v.Ran, v.Inside = Running, r.place.Backend.ID, time.Duration(e.ns-r.started), r.item.Inside()
		v.Expires = time.Duration(r.expires - e.ns)
	case idle:
		v.Phase, v.Expires = Idle, time.Duration(r.expires-e.ns)
	default:
		v.Phase = Expired
	}
	return v
}

// lackWords are the words for what a queue tells of an item. Parked has none: the
// limit does.
var lackWords = [...]string{
	sched.Parked: "",
	sched.Behind: LackFlow, sched.Turn: LackTurn, sched.Size: LackRoom, sched.Split: LackSplit, sched.Full: LackPool,
	sched.Ceiling: LackCeiling, sched.Headroom: LackHeadroom, sched.Reserve: LackReserve, sched.Gathered: LackGathering,
}

// lacks is what is in the way of a request that waits.
func (e *Engine) lacks(now time.Time, r *request) (out []LackView) {
	if f := e.book.GaugeRefusal(now, &r.res, r.hold()); f != nil {
		out = append(out, LackView{What: LackLimit, Refusal: f})
	}
	p := r.pool
	if p.defers(r) {
		out = append(out, LackView{What: LackLadder, Wait: p.deferral(now)})
	}
	if p.serves(now, r) != serves {
		return append(out, LackView{What: LackBackend})
	}
	wait, paced := p.pacedFor(now, r)
	if paced {
		out = append(out, LackView{What: LackRate, Wait: wait})
	}
	for _, l := range p.queue.Lacks(now, &r.item, &room{p: p, now: now}) {
		v := LackView{Lack: l, What: lackWords[l.What]}
		if v.What == "" || paced && (l.What == sched.Size || l.What == sched.Split) { // that place has room
			continue
		}
		if l.Item != nil {
			v.Request = l.Item.Value.(*request).call.ID
			v.Lack.Item = nil
		}
		out = append(out, v)
	}
	return out
}

// pacedFor reports whether one of a request's backends has room for it but for the
// rates of its provider, and how long until the first has that too.
func (p *pool) pacedFor(now time.Time, r *request) (wait time.Duration, ok bool) {
	ask, need := r.ask(p), r.needOfPlace()
	for _, pl := range p.places {
		if r.eligible(pl.Backend, &ask) != route.Chosen || r.dearer(pl.Backend) {
			continue
		}
		switch pl.Usable(now, &need) {
		case route.Chosen:
			return 0, false
		case route.LeftPaced:
			if d := pl.RoomAt(now, need).Sub(now); !ok || d < wait {
				wait, ok = d, true
			}
		}
	}
	return wait, ok
}
