package sched

import "sluice"

// vtime is virtual time: work in 1/65536 per unit of weight. 63 bits last for
// 10¹⁴ tokens of work per unit of weight.
type vtime int64

// never is before all virtual time: what has not competed yet.
const never vtime = -1 << 62

// stretch is how far work moves the virtual time of a weight.
func stretch(cost, weight int64) vtime {
	const scale = 16
	return vtime(cost << scale / weight)
}

// unstretch is the work by which a span moves a weight.
func (v vtime) unstretch(weight int64) int64 {
	const unit = 1 << 16
	return int64(v)/unit*weight + int64(v)%unit*weight/unit
}

// class is one class of a queue.
type class struct {
	index  sluice.Class
	policy Class
	vt     vtime // of the class: work ÷ share
	last   vtime // of its tenants: where the one that was served last stood
	lanes  []*lane
	ready  int     // seats that are in a heap: the class competes
	used   Amounts // by what runs, contracts aside

	waiting int
	bytes   int64
	work    sluice.Tokens
	queued  int64 // cost of what waits
	weights int64 // of tenants that compete

	oldest, newest *Item
	loads          loads                 // all tenants
	idle           Heap[*tenant, byIdle] // tenants kept for their debt alone

	running int
	served  meter
	counts  Counts
}

func (c *class) share() int64 { return max(c.policy.Share, minShare) }

// floor is where a tenant that becomes active starts, so that idling banks nothing:
// where the one that was served last stood before it was charged for what it runs,
// or the least of those that compete if that is less.
func (c *class) floor() vtime {
	least := c.last
	for _, l := range c.lanes {
		if l.seats.Len() > 0 {
			least = min(least, l.seats.Top().tenant.vt)
		}
	}
	return least
}

// before is the order of classes that compete.
func (c *class) before(o *class) bool {
	if c.vt != o.vt {
		return c.vt < o.vt
	}
	return c.index < o.index
}

// tenant is one tenant's requests of one class. It is forgotten when nothing of
// it waits or runs and its virtual time is no longer ahead of the others'.
type tenant struct {
	id       sluice.TenantID
	class    *class
	weight   int64
	vt       vtime
	last     vtime // of its projects
	order    uint64
	seats    []*seat
	ready    int // seats that are in a heap: the tenant competes
	projects []*project
	contract *contract

	waiting, running int
	bytes            int64
	work             sluice.Tokens
	queued           int64
	load             int64 // how much of the queue it fills, in millionths, ÷ weight, when that was last asked

	oldest, newest *Item // of what waits, by Push
	byLoad, byIdle int
	changed        int // its place among those whose load has

	aSeat    [1]*seat // see own
	aProject [1]*project

	served meter
	counts Counts
}

// project is one project's requests within a tenant and class.
type project struct {
	id     sluice.ProjectID
	tenant *tenant
	vt     vtime
	order  uint64
	nodes  []*node
	ready  int // nodes that are in a heap

	waiting, running int

	aNode [1]*node
}

// floor is where a project starts that becomes active.
func (t *tenant) floor() vtime {
	least := t.last
	for _, s := range t.seats {
		if s.nodes.Len() > 0 {
			least = min(least, s.nodes.Top().project.vt)
		}
	}
	return least
}

// floor is where a class starts that becomes active.
func (q *Queue) floor() vtime {
	least := q.last
	for i := range q.classes {
		if c := &q.classes[i]; c.ready > 0 {
			least = min(least, c.vt)
		}
	}
	return least
}

// charge moves the virtual times of a project, its tenant and their class by
// work, which may be negative. REQUIRES: something of the project runs.
func (q *Queue) charge(p *project, cost int64) {
	t := p.tenant
	c := t.class
	c.vt += stretch(cost, c.share())
	p.vt += stretch(cost, 1)
	for _, n := range p.nodes {
		if n.inSeat >= 0 {
			n.seat.nodes.Fix(n.inSeat)
		}
	}
	t.vt += stretch(cost, t.weight)
	for _, s := range t.seats {
		if s.inLane >= 0 {
			s.lane.seats.Fix(s.inLane)
		}
	}
}

// tenantOf finds or makes the item's tenant and project.
func (q *Queue) tenantOf(it *Item) *project {
	c := &q.classes[it.Class]
	id := tenantID{it.Class, it.Flow.Tenant}
	name := it.Flow.Project
	if q.policy.FIFO {
		id, name = tenantID{}, ""
		c = &q.classes[0]
	}
	t := q.tenants.find(id)
	if t == nil {
		t = q.newTenant(id, c)
	}
	if w := max(it.Weight, 1); w != t.weight {
		if t.ready > 0 {
			c.weights += w - t.weight
		}
		t.weight = w
	}
	for _, p := range t.projects {
		if p.id == name {
			return p
		}
	}
	p := take(&q.spare.projects)
	q.made++
	*p = project{id: name, tenant: t, vt: never, order: q.made, nodes: own(p.nodes, p.aNode[:])}
	t.projects = append(t.projects, p)
	return p
}

func (q *Queue) newTenant(id tenantID, c *class) *tenant {
	t := take(&q.spare.tenants)
	q.made++
	*t = tenant{
		id: id.tenant, class: c, weight: 1, vt: never, order: q.made, seats: own(t.seats, t.aSeat[:]), projects: own(t.projects, t.aProject[:]),
		contract: q.contractOf(id.tenant), byLoad: -1, byIdle: -1, changed: -1, served: q.recall(id),
	}
	q.tenants.add(t)
	c.loads.note(t)
	return t
}

// rest lets go of a tenant of which nothing waits or runs: at once if it has no
// debt, else when the others have caught up.
func (q *Queue) rest(p *project) {
	t := p.tenant
	if p.waiting+p.running == 0 && (p.vt <= t.last || t.waiting+t.running == 0) {
		q.forgetProject(p)
	}
	if t.waiting+t.running > 0 || t.byIdle >= 0 {
		return
	}
	if t.vt <= t.class.last {
		q.forgetTenant(t)
		return
	}
	t.class.idle.Push(t)
}

// settleDebts forgets idle tenants that the class has caught up with. Each
// dispatch looks at two, so that the memory is bounded by what was served.
func (q *Queue) settleDebts(c *class) {
	for range 2 {
		if c.idle.Len() == 0 || c.idle.Top().vt > c.last {
			return
		}
		q.forgetTenant(c.idle.Top())
	}
}

func (q *Queue) forgetTenant(t *tenant) {
	if t.byIdle >= 0 {
		t.class.idle.Remove(t.byIdle)
	}
	t.class.loads.drop(t)
	q.remember(t)
	q.tenants.remove(t)
	for len(t.projects) > 0 {
		q.forgetProject(t.projects[len(t.projects)-1])
	}
	give(&q.spare.tenants, t)
}

func (q *Queue) forgetProject(p *project) {
	list := p.tenant.projects
	for i := range list {
		if list[i] == p {
			last := len(list) - 1
			list[i], list[last] = list[last], nil
			p.tenant.projects = list[:last]
			break
		}
	}
	give(&q.spare.projects, p)
}

// byIdle puts the tenant with the least debt on top.
type byIdle struct{}

func (byIdle) Key(t *tenant) (int64, uint64) { return int64(t.vt), t.order }
func (byIdle) Moved(t *tenant, i int)        { t.byIdle = i }

// spares bounds the memory kept for tenants, flows and lanes to come, each.
const spares = 1024

// own is an empty list for what is new or used again: in the memory that it has, else
// beside what the list is of. Most tenants, projects and seats have one of what they
// list, and a step to a list elsewhere is a step out of the caches.
func own[E any](list, beside []E) []E {
	if cap(list) > 0 {
		return list[:0]
	}
	return beside[:0]
}

func take[E any](from *[]*E) *E {
	n := len(*from)
	if n == 0 {
		return new(E)
	}
	e := (*from)[n-1]
	(*from)[n-1] = nil
	*from = (*from)[:n-1]
	return e
}

func give[E any](to *[]*E, e *E) {
	if len(*to) < spares {
		*to = append(*to, e)
	}
}
