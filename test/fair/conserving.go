package fair

import (
	"math/bits"
	"slices"
	"time"

	"sluice"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// WorkConserving judges that after every moment no head waits, whose tenant has
// room, while a backend of its pool fits it in every dimension. A head is the first
// of its tenant's project and class with memory alike to a factor of four: those
// keep their order. What is not judged is what the
// pool does not lend: the headroom of other classes, and what is gathered for a head
// that fits nowhere: one backend, or the pool's part if it lacks that. Who gathers
// is what the engine says, and has to be a request that waits; a log without the
// engine's figures allows nobody to. Contracts are not judged here.
func WorkConserving(l *Log) error {
	w := &conserving{log: l, used: map[sluice.BackendID]route.Capacity{}, taken: make([]held, len(l.Requests)), down: map[sluice.BackendID]bool{}, waiting: map[sluice.PoolID]map[int]int{}, running: map[sluice.TenantID]int64{}, limits: map[sluice.TenantID]int64{}, classes: map[sluice.PoolID]*[sluice.NumClasses]route.Capacity{}}
	for i := range l.Clients {
		if n := l.Clients[i].Running; n > 0 {
			w.limits[l.Clients[i].Tenant] = n
		}
	}
	for i := range l.Events {
		e := &l.Events[i]
		w.event(e)
		if i+1 == len(l.Events) || l.Events[i+1].At > e.At {
			if err := w.check(e.At); err != nil {
				return err
			}
		}
	}
	return nil
}

type conserving struct {
	log     *Log
	table   *route.Table
	caps    map[sluice.BackendID]route.Capacity
	used    map[sluice.BackendID]route.Capacity
	classes map[sluice.PoolID]*[sluice.NumClasses]route.Capacity
	taken   []held
	down    map[sluice.BackendID]bool
	waiting map[sluice.PoolID]map[int]int // to the order in which they were enqueued
	order   int
	running map[sluice.TenantID]int64
	limits  map[sluice.TenantID]int64
	gathers map[sluice.PoolID]Gather
}

func (w *conserving) event(e *Event) {
	switch e.Kind {
	case Capacity:
		w.table = w.log.Tables[e.Tables]
		w.caps = capacities(w.table)
		return
	case Down, Up:
		w.down[e.Backend] = e.Kind == Down
		return
	case Gauge:
		w.gathers = e.State.Gathers
		return
	case Arrive, Refuse, Correct:
		return
	}
	q := &w.log.Requests[e.Req]
	if w.waiting[q.Pool] == nil {
		w.waiting[q.Pool] = map[int]int{}
		w.classes[q.Pool] = &[sluice.NumClasses]route.Capacity{}
	}
	switch e.Kind {
	case Enqueue:
		w.order++
		w.waiting[q.Pool][e.Req] = w.order
	case Dispatch:
		delete(w.waiting[q.Pool], e.Req)
		w.running[q.Tenant]++
		w.taken[e.Req] = held{e.Backend, need(q, w.caps[e.Backend])}
		w.add(q, w.taken[e.Req], 1)
	case First:
		h := &w.taken[e.Req]
		w.add(q, held{h.on, route.Capacity{PrefillTokens: h.of.PrefillTokens}}, -1)
		h.of.PrefillTokens = 0
	case End, Fail:
		w.running[q.Tenant]--
		w.add(q, w.taken[e.Req], -1)
	case Shed, Leave:
		delete(w.waiting[q.Pool], e.Req)
	}
}

func (w *conserving) add(q *Request, h held, sign int64) {
	c := &w.classes[q.Pool][q.Class]
	*c = plus(*c, h.of, sign)
	w.used[h.on] = plus(w.used[h.on], h.of, sign)
}

func plus(a, b route.Capacity, sign int64) route.Capacity {
	a.Concurrency += sign * b.Concurrency
	a.KVTokens += sluice.Tokens(sign) * b.KVTokens
	a.PrefillTokens += sluice.Tokens(sign) * b.PrefillTokens
	return a
}

func (w *conserving) check(at time.Duration) error {
	for id, p := range w.table.Pools {
		if len(w.waiting[id]) == 0 {
			continue
		}
		fit := map[sluice.BackendID][]int{} // requests that it could start
		for _, req := range w.heads(id) {
			q := &w.log.Requests[req]
			if limit := w.limits[q.Tenant]; limit > 0 && w.running[q.Tenant] >= limit || !w.lent(p, q) {
				continue
			}
			for _, b := range p.Backends {
				if !w.down[b.ID] && b.Weight > 0 && fits(w.caps[b.ID], plus(w.used[b.ID], need(q, w.caps[b.ID]), 1)) {
					fit[b.ID] = append(fit[b.ID], req)
				}
			}
		}
		if g, ok := w.gathers[id]; ok {
			if _, waits := w.waiting[id][g.Req]; !waits {
				return violation("work conservation", at, "room is gathered for request %d, which does not wait", g.Req)
			}
			if g.Backend == "" && w.lent(p, &w.log.Requests[g.Req]) {
				return violation("work conservation", at, "the pool's part is gathered for request %d, which has it", g.Req)
			}
			if g.Backend == "" {
				continue
			}
			delete(fit, g.Backend)
			if err := w.overtaken(at, id, g, fit); err != nil {
				return err
			}
		}
		for b, reqs := range fit {
			req := slices.Min(reqs)
			q := &w.log.Requests[req]
			return violation("work conservation", at, "request %d of %s (%+v) waits and %s has %+v of %+v in use; gathering %v", req, q.Tenant, need(q, w.caps[b]), b, w.used[b], w.caps[b], w.gathers)
		}
	}
	return nil
}

// overtaken takes out of what fits what is kept back behind a head that does not,
// while another gathers: those of its class that have had more than it, by more than
// it lets pass. What each has had is not known from the log as the queue counts it,
// but the head must wait, and fit nowhere but where room is kept for another.
func (w *conserving) overtaken(at time.Duration, id sluice.PoolID, g Gather, fit map[sluice.BackendID][]int) error {
	for class, b := range g.Overtaken {
		if b < 0 {
			continue
		}
		if _, waits := w.waiting[id][b]; !waits || w.log.Requests[b].Class != sluice.Class(class) {
			return violation("work conservation", at, "others are kept back behind request %d, which does not wait in their class", b)
		}
		for on, reqs := range fit {
			if slices.Contains(reqs, b) {
				return violation("work conservation", at, "others are kept back behind request %d, which %s fits", b, on)
			}
			fit[on] = slices.DeleteFunc(reqs, func(req int) bool { return w.log.Requests[req].Class == sluice.Class(class) })
			if len(fit[on]) == 0 {
				delete(fit, on)
			}
		}
	}
	return nil
}

// heads is the first of each flow and size.
func (w *conserving) heads(id sluice.PoolID) map[flowSize]int {
	out := map[flowSize]int{}
	for req, order := range w.waiting[id] {
		q := &w.log.Requests[req]
		k := flowSize{q.Tenant, q.Project, q.Class, bits.Len64(uint64(q.Work.KV())) / 2}
		if h, ok := out[k]; !ok || order < w.waiting[id][h] {
			out[k] = req
		}
	}
	return out
}

type flowSize struct {
	tenant  sluice.TenantID
	project sluice.ProjectID
	class   sluice.Class
	size    int
}

// lent reports whether the pool has a part left that the request's class may take.
func (w *conserving) lent(p *route.Pool, q *Request) bool {
	var all, used route.Capacity
	for _, b := range p.Backends {
		if !w.down[b.ID] && b.Weight > 0 {
			all, used = plus(all, w.caps[b.ID], 1), plus(used, w.used[b.ID], 1)
		}
	}
	kept := route.Capacity{}
	defaults := sched.DefaultClasses()
	for i, c := range p.Sharing.Classes {
		if c == (sched.Class{}) {
			c = defaults[i]
		}
		if sluice.Class(i) == q.Class || c.Headroom == 0 {
			continue
		}
		u := w.classes[p.ID][i]
		kept.Concurrency += max(0, all.Concurrency*c.Headroom/1000-u.Concurrency)
		kept.KVTokens += max(0, all.KVTokens*sluice.Tokens(c.Headroom)/1000-u.KVTokens)
		kept.PrefillTokens += max(0, all.PrefillTokens*sluice.Tokens(c.Headroom)/1000-u.PrefillTokens)
	}
	return fits(all, plus(plus(used, kept, 1), need(q, all), 1))
}
