package engine

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"sluice"
	"sluice/internal/demand"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// Plan is a validated table, ready to be swapped in.
type Plan struct {
	table *route.Table
	pools []sluice.PoolID // sorted
}

// Prepare validates a table. It reads nothing of the engine, so it may run
// outside the lock.
func (e *Engine) Prepare(t *route.Table) (*Plan, error) {
	if err := t.Validate(); err != nil {
		return nil, fmt.Errorf("validate routing table: %w", err)
	}
	return &Plan{table: t, pools: slices.Sorted(maps.Keys(t.Pools))}, nil
}

// Swap puts a plan into force. Queues, holds, health and counters survive by
// name; a request that runs on a backend which is gone finishes there; one that
// waits in a pool which is gone moves, or fails with no_backend. Where a pool is
// served in another way, what waits takes its arrival and deadline into a new
// queue, whose figures begin with it. Call Advance next.
func (e *Engine) Swap(now time.Time, plan *Plan) {
	now = e.tick(now)
	gone := e.queues
	e.table = plan.table
	e.edition++
	e.retries.Configure(plan.table.Retries)
	e.pools = make([]*pool, 0, len(plan.pools))
	for _, pl := range e.places {
		pl.Retired = true
	}
	e.renewKeys()
	old := e.byID
	e.byID = make(map[sluice.PoolID]*pool, len(plan.pools))
	e.last.pool, e.last.model = nil, nil
	for _, id := range plan.pools {
		p := e.renew(old[id], plan.table.Pools[id])
		e.byID[id] = p
		e.pools = append(e.pools, p)
	}
	for id, pl := range e.places {
		if pl.Retired && pl.Running() == 0 {
			delete(e.places, id)
		}
	}
	e.link()
	e.queues = e.queues[:0:0]
	for _, p := range e.pools {
		e.locate(now, p)
		e.queues = append(e.queues, p)
		for _, s := range p.sites {
			if s.guests != nil {
				e.queues = append(e.queues, s.guests)
			}
		}
	}
	e.healthChanged(now)
	e.reviseShared(now)
	for _, p := range e.queues {
		p.queue.Resume(sluice.Batch)
		p.queue.UnparkAll()
		p.queue.Regroup(func(it *sched.Item) sched.Set {
			r := it.Value.(*request)
			if m := e.modelOf(r); m != nil {
				r.under(m)
			}
			return p.set(r)
		})
	}
	e.ladders = false
	for _, p := range e.pools {
		e.ranked(now, p)
		e.ladders = e.ladders || p.grade != nil
	}
	for _, p := range gone {
		switch next := e.poolOf(p.id); {
		case slices.Contains(e.queues, p):
		case next == nil || p.host != nil:
			e.disband(now, p)
		default:
			e.requeue(p, next)
		}
	}
}

// renew brings a pool in line with its new form, or makes it.
func (e *Engine) renew(p *pool, spec *route.Pool) *pool {
	q := spec.Queue.WithDefaults()
	var places, leaving []*route.Place
	if p != nil {
		places, leaving = p.places, p.leaving
	}
	meter := &demand.Meter{}
	if p != nil {
		meter = p.meter
	}
	meter.Stabilise(e.now, spec.Scale.WithDefaults().Stable)
	if p == nil || p.spec.Sharing.FIFO != spec.Sharing.FIFO { // a queue is of one kind for life
		p = &pool{meter: meter, id: spec.ID, retries: &e.retries, chooser: &route.Chooser{}, queue: sched.NewQueue(spec.Sharing, sched.Bounds{}, sched.Bounds{})}
	}
	p.spec, p.weights = spec, spec.Cost.WithDefaults()
	p.queue.Configure(spec.Sharing,
		sched.Bounds{Requests: q.Requests, Bytes: q.Bytes, Work: q.Work},
		sched.Bounds{Requests: part(q.Requests, q.PerTenant), Bytes: part(q.Bytes, q.PerTenant), Work: sluice.Tokens(part(int64(q.Work), q.PerTenant))})
	before := slices.Concat(leaving, places)
	p.places = make([]*route.Place, 0, len(spec.Backends))
	p.blanks = make([]Candidate, 0, len(spec.Backends))
	p.version++
	var joining []*route.Place
	for _, b := range spec.Backends {
		pl := e.places[b.ID]
		if pl == nil {
			pl = &route.Place{Credentials: &e.keys}
			e.places[b.ID] = pl
			joining = append(joining, pl)
		}
		pl.Backend, pl.Retired = b, false
		pl.Health.Configure(e.table.Breaker, e.table.NoBreakers)
		p.places = append(p.places, pl)
		p.blanks = append(p.blanks, Candidate{Pool: p.id, Backend: b.ID})
	}
	p.recall()
	p.leaving = nil
	for _, pl := range before {
		if pl.Running() > 0 && !slices.Contains(p.places, pl) && !slices.Contains(p.leaving, pl) {
			p.leaving = append(p.leaving, pl)
		}
	}
	others := slices.DeleteFunc(slices.Clone(p.places), func(pl *route.Place) bool { return slices.Contains(joining, pl) })
	for _, pl := range joining {
		pl.Join(others)
	}
	p.chooser.Configure(spec.Choice, spec.Affinity, p.places)
	return p
}

// recall gives up the place that is kept for a request if that is gone: another is found.
func (p *pool) recall() {
	if !slices.Contains(p.places, p.kept) {
		p.kept, p.keptFor = nil, nil
	}
}

// part is thousandths of an amount, 0 if either is.
func part(amount, thousandths int64) int64 {
	if amount == 0 || thousandths == 0 {
		return 0
	}
	return max(1, amount/1000*thousandths+amount%1000*thousandths/1000)
}

// cost is the work that tenants are charged for tokens in this pool: at least 1,
// so that nothing is served for ever without its turn.
func (p *pool) cost(input, output sluice.Tokens) int64 {
	return max(1, p.weights.Input*int64(input)+p.weights.Output*int64(output))
}

// requeue takes what waits in a pool to the one that has come in its place, full
// or not: nothing is lost by it. What runs ends where it began.
func (e *Engine) requeue(from, to *pool) {
	from.queue.UnparkAll()
	waiting := from.queue.Stranded(func(*sched.Set) bool { return true })
	slices.SortStableFunc(waiting, func(a, b *sched.Item) int { return a.Since.Compare(b.Since) })
	for _, it := range waiting {
		e.move(it.Value.(*request), to)
	}
	from.places = nil
}

// disband sends the requests of a pool that is gone elsewhere. None can stay.
func (e *Engine) disband(now time.Time, p *pool) {
	p.places = nil
	p.queue.UnparkAll()
	for _, it := range p.queue.Stranded(func(*sched.Set) bool { return true }) {
		r := it.Value.(*request)
		if !e.relocate(now, r) && it.Waiting() {
			e.endWait(r, noBackend(r.item.Flow.Model))
		}
	}
}
