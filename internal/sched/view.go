package sched

import (
	"cmp"
	"slices"
	"time"

	"sluice"
)

// Service is what a class or flow was served over the last ten to twenty seconds.
type Service struct {
	Rate  int64 // work per second; charged when it is dispatched, then corrected
	Share int64 // its part of the pool's, in thousandths
	// Fair is the part that it is due, in thousandths: its weight's among those
	// that compete now, itself included.
	Fair int64
}

// ClassView is one class of a queue.
type ClassView struct {
	Service
	Class     sluice.Class
	Policy    Class
	Waiting   int
	Running   int
	Oldest    time.Duration // how long its oldest request has waited
	Queued    int64         // work of what waits
	Used      Amounts       // by what runs, contracts aside
	Tenants   int           // that wait, run or have a debt
	Weights   int64         // of these
	Competing bool          // something waits that its own limits do not keep back
	Gap       int64         // largest less least virtual time of tenants that compete, in work per unit of weight
	Counts    Counts
	Refused   Refusals
	PerMinute int64 // refusals lately
}

// FlowView is one tenant's requests of one class.
type FlowView struct {
	Service
	Class     sluice.Class
	Tenant    sluice.TenantID
	Weight    int64 // 0: not known, nothing of it waits or runs
	Waiting   int
	Running   int
	Inside    int           // of them, inside of a contract's reserve
	Oldest    time.Duration // how long its oldest request has waited
	Queued    int64         // work of what waits
	Lead      int64         // work per unit of weight by which it is ahead of the flow that is due next
	Parked    bool          // all that waits is kept back by limits of its own
	Contract  bool
	Counts    Counts // since it was last away
	Refused   Refusals
	PerMinute int64 // refusals lately
	Projects  []ProjectView
}

// ProjectView is one project of a flow.
type ProjectView struct {
	Project sluice.ProjectID
	Waiting int
	Running int
	Lead    int64 // work by which it is ahead of the flow's project that is due next
}

// ContractView is a contract's reserve.
type ContractView struct {
	Contract
	Used    Amounts // by what runs inside
	Running int     // inside
	Over    int     // requests of its tenant that run outside
	Waiting int     // requests of its tenant that wait
	Level   int64   // work that may still be dispatched inside
	Paid    bool    // its work per second is not used up: the reserve is kept
	Wanted  bool    // something waits that it admits: nothing is lent
}

// GatherView is a request for which what becomes free is kept.
type GatherView struct {
	Item   *Item
	Passed int64 // cost of what was served before it though it came later
	Most   int64 // of that, its allowance
	Pool   bool  // it lacks a part of the pool, not room on one backend

	// Overtaken is, for each class, a head that those of the class which are ahead of
	// it may not pass meanwhile; nil if none was held back.
	Overtaken [sluice.NumClasses]*Item
}

// Passed is the work of what was served before a waiting item though it came
// later.
func (it *Item) Passed() int64 { return it.passed }

// Classes is a picture of every class.
func (q *Queue) Classes(now time.Time) (out [sluice.NumClasses]ClassView) {
	total, shares := q.service(now)
	for i := range q.classes {
		c := &q.classes[i]
		tenants := q.loads(c)
		r := &q.refusals.classes[i]
		out[i] = ClassView{
			Class: c.index, Policy: c.policy, Waiting: c.waiting, Running: c.running, Oldest: q.waited(c, now), Queued: c.queued,
			Used: c.used, Tenants: tenants.Len(), Competing: c.ready > 0, Gap: gap(tenants), Counts: c.counts,
			Refused: r.n, PerMinute: r.lately.per(q.spans, now, time.Minute),
			Service: Service{Rate: c.served.rate(q.spans, now), Fair: scale(whole, c.share(), c.among(shares))},
		}
		out[i].Share = partOf(out[i].Rate, total)
		for j := range tenants.elems {
			out[i].Weights += tenants.elems[j].spot.of.weight
		}
	}
	return out
}

// service is the rate of the whole pool, and the shares of classes that compete.
func (q *Queue) service(now time.Time) (total, shares int64) {
	for i := range q.classes {
		c := &q.classes[i]
		total += c.served.rate(q.spans, now)
		if c.ready > 0 {
			shares += c.share()
		}
	}
	return total, shares
}

// among is the shares of classes that compete, this one included.
func (c *class) among(shares int64) int64 {
	if c.ready == 0 {
		shares += c.share()
	}
	return shares
}

func partOf(n, all int64) int64 {
	if all <= 0 {
		return 0
	}
	return scale(n, whole, all)
}

// gapOf is how many tenants of a class are looked at for its gap, about those that
// fill most of the queue.
const gapOf = 1024

func gap(tenants *Heap[tenant]) int64 {
	least, most, found := vtime(0), vtime(0), false
	for i := range tenants.elems[:min(gapOf, tenants.Len())] {
		switch t := tenants.elems[i].spot.of; {
		case t.ready == 0:
		case !found:
			least, most, found = t.vt, t.vt, true
		default:
			least, most = min(least, t.vt), max(most, t.vt)
		}
	}
	return (most - least).unstretch(1)
}

// Contracts is a picture of every contract.
func (q *Queue) Contracts(now time.Time) (out []ContractView) {
	for _, k := range q.contracts {
		k := *k // a picture changes nothing
		k.refill(now)
		v := ContractView{Contract: k.Contract, Used: k.used, Running: k.running, Level: k.level, Paid: k.paid(), Wanted: k.wanted}
		for c := range q.classes {
			if t := q.tenants.find(tenantID{sluice.Class(c), k.Tenant}); t != nil {
				v.Over += int(t.running)
				v.Waiting += int(t.waiting)
			}
		}
		v.Over -= k.running
		out = append(out, v)
	}
	return out
}

// Gathers is the request for which what becomes free is kept, nil if there is
// none.
func (q *Queue) Gathers() *GatherView {
	if q.gathers == nil {
		return nil
	}
	return &GatherView{Item: q.gathers, Passed: q.gathers.passed, Most: q.gathers.Cost, Pool: q.closed, Overtaken: q.overtaken}
}

// Flows is at most limit tenants of each class: those that fill most of the queue,
// then those that were refused last, then those that were served lately.
func (q *Queue) Flows(now time.Time, limit int) (out []FlowView) {
	total, shares := q.service(now)
	for i := range q.classes {
		c := &q.classes[i]
		from := len(out)
		for _, t := range q.loads(c).first(limit) {
			out = append(out, q.flow(now, tenantID{c.index, t.id}, total, shares))
		}
		out = q.lately(now, c, from, limit, out)
	}
	return out
}

// lately adds flows of a class of which nothing waits or runs, up to limit.
func (q *Queue) lately(now time.Time, c *class, from, limit int, to []FlowView) []FlowView {
	total, shares := q.service(now)
	add := func(id tenantID) {
		if len(to)-from < limit && id.class == c.index && q.tenants.find(id) == nil && !slices.ContainsFunc(to[from:], func(v FlowView) bool { return v.Tenant == id.tenant }) {
			to = append(to, q.flow(now, id, total, shares))
		}
	}
	looked := 0
	for f := q.refusals.newest; f != nil && looked < 4*limit; f = f.older {
		add(f.id)
		looked++
	}
	if q.past == nil {
		return to
	}
	for i := range q.past {
		if p := &q.past[i]; p.served.rate(q.spans, now) > 0 {
			add(p.id)
		}
	}
	return to
}

// Flow is one tenant's requests of one class, false if there is nothing to tell.
func (q *Queue) Flow(now time.Time, class sluice.Class, id sluice.TenantID) (FlowView, bool) {
	total, shares := q.service(now)
	v := q.flow(now, tenantID{class, id}, total, shares)
	return v, v.Waiting > 0 || v.Running > 0 || v.Rate > 0 || v.Refused != Refusals{} || v.Counts != Counts{}
}

func (q *Queue) flow(now time.Time, id tenantID, total, shares int64) FlowView {
	c := &q.classes[id.class]
	v := FlowView{Class: id.class, Tenant: id.tenant}
	if r := q.refusals.flows[id]; r != nil {
		v.Refused, v.PerMinute = r.n, r.lately.per(q.spans, now, time.Minute)
	}
	weights := c.weights
	if t := q.tenants.find(id); t != nil {
		q.present(now, t, &v)
		if t.ready == 0 {
			weights += t.weight
		}
	} else {
		if q.past != nil && q.past[id.slot()].id == id {
			p := &q.past[id.slot()]
			v.Weight, v.Rate = p.weight, p.served.rate(q.spans, now)
		}
		v.Contract = q.contractOf(id.tenant) != nil
		weights += max(v.Weight, 1)
	}
	v.Share = partOf(v.Rate, total)
	v.Fair = scale(scale(whole, max(v.Weight, 1), weights), c.share(), c.among(shares))
	return v
}

// present fills in what is known of a tenant that is there.
func (q *Queue) present(now time.Time, t *tenant, v *FlowView) {
	v.Weight, v.Waiting, v.Running, v.Queued, v.Rate = t.weight, int(t.waiting), int(t.running), t.queued, t.served.rate(q.spans, now)
	v.Parked, v.Contract, v.Counts = t.waiting > 0 && t.ready == 0, t.contract != nil, t.counts()
	if first := q.roster.first(&t.waits); first != nil {
		v.Oldest = max(0, now.Sub(first.Arrived))
	}
	v.Lead = lead(t.vt, t.class.floor())
	for p := t.projects; p != nil && len(v.Projects) < maxProjects; p = p.next {
		v.Projects = append(v.Projects, ProjectView{
			Project: p.id, Waiting: int(p.waiting), Running: int(p.running), Lead: lead(p.vt, t.floor()),
		})
	}
	slices.SortFunc(v.Projects, func(a, b ProjectView) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(b.Running, a.Running), cmp.Compare(a.Project, b.Project))
	})
}

// counts are a tenant's totals, of which what waits tells how many came.
func (t *tenant) counts() Counts {
	c := Counts{Dispatched: t.dispatched, Cancelled: t.exits[Cancelled], Rejected: t.exits[Rejected], Moved: t.exits[Moved]}
	c.Enqueued = c.Dispatched + c.Cancelled + c.Rejected + c.Moved + int64(t.waiting)
	return c
}

// maxProjects is how many projects a flow shows.
const maxProjects = 20

// lead is how far a virtual time is ahead of the least. One that is behind it does
// not compete, and will start there.
func lead(at, least vtime) int64 {
	if at <= least || least <= never {
		return 0
	}
	return (at - least).unstretch(1)
}
