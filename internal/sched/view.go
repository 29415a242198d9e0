package sched

import (
	"time"

	"sluice"
)

// meterSpan is over how long a rate of service is taken.
const meterSpan = 10 * time.Second

// meter is how much work was served lately: the span that runs and the one before.
type meter struct {
	start     time.Time
	now, last int64
	total     int64
}

func (m *meter) add(now time.Time, n int64) {
	m.turn(now)
	m.now += n
	m.total += n
}

func (m *meter) turn(now time.Time) {
	switch gone := now.Sub(m.start); {
	case gone < meterSpan:
	case gone < 2*meterSpan:
		m.start, m.last, m.now = m.start.Add(meterSpan), m.now, 0
	default:
		m.start, m.last, m.now = now, 0, 0
	}
}

// rate is the work per second over the last one to two spans.
func (m *meter) rate(now time.Time) int64 {
	m.turn(now)
	span := meterSpan + max(0, now.Sub(m.start))
	return max(0, (m.now+m.last)*1000/max(span.Milliseconds(), 1))
}

// ClassView is one class of a queue.
type ClassView struct {
	Class   sluice.Class
	Policy  Class
	Waiting int
	Running int
	Oldest  time.Duration // how long its oldest request has waited
	Queued  int64         // work of what waits
	Rate    int64         // work per second served lately
	Used    Amounts       // by what runs, contracts aside
	Tenants int           // that wait, run or have a debt
	Counts  Counts
}

// FlowView is one tenant's requests of one class.
type FlowView struct {
	Class    sluice.Class
	Tenant   sluice.TenantID
	Weight   int64
	Waiting  int
	Running  int
	Oldest   time.Duration
	Queued   int64 // work of what waits
	Rate     int64 // work per second served lately
	Share    int64 // its part of the pool's service lately, in thousandths
	Fair     int64 // its fair part of it among those that compete, in thousandths
	Lead     int64 // work by which it is ahead of the others, per unit of weight
	Parked   bool  // all that waits is kept back by limits of its own
	Contract bool
	Counts   Counts
}

// ContractView is a contract's reserve.
type ContractView struct {
	Contract
	Used  Amounts
	Level int64 // work that may still be dispatched inside
}

// Classes is a picture of every class.
func (q *Queue) Classes(now time.Time) (out [sluice.NumClasses]ClassView) {
	for i := range q.classes {
		c := &q.classes[i]
		out[i] = ClassView{
			Class: c.index, Policy: c.policy, Waiting: c.waiting, Running: c.running, Oldest: c.waited(now), Queued: c.queued,
			Rate: c.served.rate(now), Used: c.used, Tenants: c.loads.Len(), Counts: c.counts,
		}
	}
	return out
}

// Contracts is a picture of every contract.
func (q *Queue) Contracts(now time.Time) (out []ContractView) {
	for _, k := range q.contracts {
		k.refill(now)
		out = append(out, ContractView{Contract: k.Contract, Used: k.used, Level: k.level})
	}
	return out
}

// Flows appends at most limit tenants of each class, those first that fill most
// of the queue.
func (q *Queue) Flows(now time.Time, limit int, to []FlowView) []FlowView {
	total, shares := int64(0), int64(0)
	for i := range q.classes {
		c := &q.classes[i]
		total += c.served.rate(now)
		if c.ready > 0 {
			shares += c.share()
		}
	}
	for i := range q.classes {
		c := &q.classes[i]
		for _, t := range c.loads.first(limit) {
			to = append(to, q.flow(now, t, total, shares))
		}
	}
	return to
}

func (q *Queue) flow(now time.Time, t *tenant, total, shares int64) FlowView {
	c := t.class
	v := FlowView{
		Class: c.index, Tenant: t.id, Weight: t.weight, Waiting: t.waiting, Running: t.running, Queued: t.queued,
		Rate: t.served.rate(now), Parked: t.waiting > 0 && t.ready == 0, Contract: t.contract != nil, Counts: t.counts,
	}
	if t.oldest != nil {
		v.Oldest = max(0, now.Sub(t.oldest.Arrived))
	}
	if total > 0 {
		v.Share = scale(v.Rate, whole, total)
	}
	if t.ready > 0 && shares > 0 {
		v.Fair = scale(scale(whole, t.weight, c.weights), c.share(), shares)
	}
	if floor := c.floor(); t.vt > floor && floor > never {
		v.Lead = (t.vt - floor).unstretch(1)
	}
	return v
}

// first is the n least elements in order, in O(n log n).
func (h *Heap[E, O]) first(n int) (out []E) {
	if n <= 0 || len(h.elems) == 0 {
		return nil
	}
	edge := []int{0} // indices of elements whose parents are in out
	for len(out) < n && len(edge) > 0 {
		best := 0
		for i := range edge {
			if h.order.Less(h.elems[edge[i]], h.elems[edge[best]]) {
				best = i
			}
		}
		at := edge[best]
		edge = append(edge[:best], edge[best+1:]...)
		out = append(out, h.elems[at])
		for child := 2*at + 1; child <= 2*at+2 && child < len(h.elems); child++ {
			edge = append(edge, child)
		}
	}
	return out
}
