package sched

import (
	"time"

	"sluice"
)

// The reasons that refusals are counted by: those of limits and of scarce
// capacity. Mistakes of the request are not counted.
const (
	firstRefusal = sluice.RateLimited
	lastRefusal  = sluice.NoBackend
)

// Refusals counts requests that got no place, on arrival or after a wait, by
// reason.
type Refusals [lastRefusal - firstRefusal + 1]int64

// Each calls f for every reason that was counted, in the order of reasons.
func (r *Refusals) Each(f func(sluice.Reason, int64)) {
	for i, n := range r {
		if n > 0 {
			f(firstRefusal+sluice.Reason(i), n)
		}
	}
}

// Of is how many there were for a reason.
func (r *Refusals) Of(why sluice.Reason) int64 {
	if why < firstRefusal || why > lastRefusal {
		return 0
	}
	return r[why-firstRefusal]
}

// MaxRefused is how many flows a queue remembers the refusals of: those that were
// refused last. What it has forgotten still counts for the class.
const MaxRefused = 1024

// refusals is what a queue remembers of requests that it had no place for.
type refusals struct {
	classes        [sluice.NumClasses]refused
	flows          map[tenantID]*refused
	newest, oldest *refused
}

// refused is the refusals of one tenant and class.
type refused struct {
	id           tenantID
	n            Refusals
	lately       meter
	newer, older *refused
}

func (r *refused) add(span int64, why sluice.Reason) {
	r.n[why-firstRefusal]++
	r.lately.add(span, 1)
}

// Refuse counts a request that got no place, whether it waited for one or not.
// Nothing else depends on it.
func (q *Queue) Refuse(now time.Time, class sluice.Class, tenant sluice.TenantID, why sluice.Reason) {
	if why < firstRefusal || why > lastRefusal {
		return
	}
	r := &q.refusals
	span := q.spans.at(now)
	r.classes[class].add(span, why)
	r.of(tenantID{class, tenant}).add(span, why)
}

// of finds or makes a flow's record, as the newest.
func (r *refusals) of(id tenantID) *refused {
	f := r.flows[id]
	switch {
	case f != nil && f == r.newest:
		return f
	case f != nil:
		r.unlink(f)
	case len(r.flows) < MaxRefused:
		f = &refused{id: id}
	default:
		f = r.oldest
		r.unlink(f)
		delete(r.flows, f.id)
		*f = refused{id: id}
	}
	if r.flows == nil {
		r.flows = make(map[tenantID]*refused)
	}
	r.flows[id] = f
	f.older, r.newest = r.newest, f
	if f.older == nil {
		r.oldest = f
	} else {
		f.older.newer = f
	}
	return f
}

func (r *refusals) unlink(f *refused) {
	if f.newer == nil {
		r.newest = f.older
	} else {
		f.newer.older = f.older
	}
	if f.older == nil {
		r.oldest = f.newer
	} else {
		f.older.newer = f.newer
	}
	f.newer, f.older = nil, nil
}

// pastSlots is how many flows of which nothing waits or runs a queue can know the
// service of. Two that share a slot displace each other.
const pastSlots = 1024

// past is what a flow was served lately, kept while nothing of it waits or runs:
// a tenant that comes and goes would else seem to have had nothing.
type past struct {
	id     tenantID
	weight int64
	served meter
}

// slot is where the past of a flow is.
func (id tenantID) slot() int {
	const offset, prime = 2166136261, 16777619
	h := uint32(offset)
	for i := range len(id.tenant) {
		h = (h ^ uint32(id.tenant[i])) * prime
	}
	h = (h ^ uint32(id.class)) * prime
	return int(h % pastSlots)
}

// recall is what a flow was served before it was forgotten.
func (q *Queue) recall(id tenantID) meter {
	if q.past == nil {
		return meter{}
	}
	if p := &q.past[id.slot()]; p.id == id {
		return p.served
	}
	return meter{}
}

// remember keeps what a tenant was served.
func (q *Queue) remember(t *tenant) {
	if t.served == (meter{}) {
		return
	}
	if q.past == nil {
		q.past = new([pastSlots]past)
	}
	id := tenantID{t.class.index, t.id}
	q.past[id.slot()] = past{id: id, weight: t.weight, served: t.served}
}
