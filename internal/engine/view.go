package engine

import (
	"cmp"
	"slices"
	"time"

	"sluice/internal/quota"
	"sluice/internal/route"
)

// Dump is a picture of the engine with at most limit accounts, and at most limit
// pools of at most limit backends each. It looks at every account in memory but
// describes only those that it shows.
func (e *Engine) Dump(now time.Time, limit int) View {
	now = e.tick(now)
	limit = max(limit, 0)
	v := View{
		At: now, Policy: e.table.Version, Open: e.Open(), Running: e.running,
		Expired: e.expired.Len(), Accounts: e.book.Len(),
	}
	for _, p := range e.pools[:min(limit, len(e.pools))] {
		v.Pools = append(v.Pools, p.view(now, limit))
	}
	for _, a := range e.busiest(limit) {
		o := a.Owner()
		av := AccountView{Scope: o.Scope, ID: o.Label(), Open: a.Open(), Counters: e.book.View(now, a, nil)}
		if o.Part != "" {
			av.Tenant = o.ID
		}
		v.Top = append(v.Top, av)
	}
	return v
}

func (p *pool) view(now time.Time, limit int) PoolView {
	v := PoolView{
		ID: p.id, Waiting: p.queue.Len(), ByClass: p.queue.Waiting(), Bytes: p.queue.Bytes(), Work: p.queue.Work(),
		Oldest: p.queue.Oldest(now), Counts: p.queue.Counts(),
	}
	if p.queue.Len() > 0 || !p.open(now) {
		v.Wait = p.queue.Drain(p.running(), nil)
	}
	v.Classes, v.Contracts = p.queue.Classes(now), p.queue.Contracts(now)
	v.Flows = p.queue.Flows(now, limit, nil)
	if g := p.queue.Gathering(); g != nil {
		v.Gathering = g.Value.(*request).call.ID
	}
	for _, pl := range p.shown() {
		if len(v.Backends) == limit {
			break
		}
		b := BackendView{
			ID: pl.Backend.ID, Running: pl.Running(), Concurrency: pl.Slots(),
			KVTokens: pl.KV(), Prefill: pl.Prefill(), Health: pl.Health.State(now), Retired: pl.Retired,
		}
		if until, cooling := pl.Health.Cooling(now); cooling {
			b.RetryIn = until.Sub(now)
		}
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

// busiest is the accounts with the most requests that wait or run.
func (e *Engine) busiest(limit int) (top []*quota.Account) {
	order := func(a, b *quota.Account) int {
		return cmp.Or(cmp.Compare(b.Open(), a.Open()), a.Owner().Compare(b.Owner()))
	}
	e.book.Scan(func(a *quota.Account) bool {
		if a.Open() == 0 || limit == 0 || len(top) == limit && order(a, top[limit-1]) > 0 {
			return true
		}
		if len(top) == limit {
			top = top[:limit-1]
		}
		i, _ := slices.BinarySearchFunc(top, a, order)
		top = slices.Insert(top, i, a)
		return true
	})
	return top
}
