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

	waits list         // all, by arrival
	loads loads        // all tenants
	idle  Heap[tenant] // tenants kept for their debt alone, the least on top

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
			least = min(least, vtime(l.seats.Key()))
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
//
// Most tenants have one project and requests for one set of backends, so the first
// project and the first seat are part of it: what a decision looks at of a tenant, which
// is none that was looked at lately, lies together: see TestLayout.
type tenant struct {
	standing
	seat    seat    // the first, if it has a lane
	project project // the first, if it has a tenant

	byIdle Spot[tenant]
	byLoad Spot[tenant]
}

// standing is what of a tenant begins anew when its memory is used again; the rest has
// ended with it. Corrections and ends ask for what comes first alone.
type standing struct {
	class            *class
	weight           int64
	vt               vtime
	seats            *seat
	waiting, running int32
	served           meter

	id       sluice.TenantID
	last     vtime // of its projects
	order    uint64
	contract *contract
	projects *project
	ready    int32 // seats that are in a heap: the tenant competes
	changed  int32 // its place among those whose load has
	load     int64 // how much of the queue it fills, in millionths, ÷ weight, when that was last asked

	bytes      int64
	work       sluice.Tokens
	queued     int64
	waits      list // all, by Push
	dispatched int64
	exits      [Moved + 1]int64 // without a place, by how
}

// project is one project's requests within a tenant and class.
type project struct {
	vt               vtime
	tenant           *tenant
	nodes            *node
	waiting, running int32

	ready int // nodes that are in a heap
	order uint64
	id    sluice.ProjectID
	next  *project // of its tenant
	node  node     // the first, if it has a seat
}

// floor is where a project starts that becomes active.
func (t *tenant) floor() vtime {
	least := t.last
	for s := t.seats; s != nil; s = s.next {
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
	t.vt += stretch(cost, t.weight)
	for s := t.seats; s != nil; s = s.next {
		if !s.inLane.in() {
			continue
		}
		if s.nodes.Len() > 1 { // else the project is alone: see enter
			s.reorder(p)
		}
		s.lane.seats.Fix(&s.inLane, int64(t.vt))
	}
}

// reorder puts a project right whose virtual time has changed, if anything of it in the
// seat is ready.
func (s *seat) reorder(p *project) {
	for n := p.nodes; n != nil; n = n.next {
		if n.seat == s && n.inSeat.in() {
			s.nodes.Fix(&n.inSeat, int64(p.vt))
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
	end := &t.projects
	for ; *end != nil; end = &(*end).next {
		if p := *end; p.id == name {
			return p
		}
	}
	p := &t.project
	if p.tenant != nil {
		p = take(&q.spare.projects)
	}
	q.made++
	p.id, p.tenant, p.vt, p.order = name, t, never, q.made
	p.nodes, p.next, p.waiting, p.running, p.ready = nil, nil, 0, 0, 0
	*end = p
	return p
}

func (q *Queue) newTenant(id tenantID, c *class) *tenant {
	t := take(&q.spare.tenants)
	q.made++
	t.standing = standing{
		id: id.tenant, class: c, weight: 1, vt: never, order: q.made,
		contract: q.contractOf(id.tenant), changed: -1, served: q.recall(id),
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
	if t.waiting+t.running > 0 || t.byIdle.in() {
		return
	}
	if t.vt <= t.class.last {
		q.forgetTenant(t)
		return
	}
	t.class.idle.Push(t, &t.byIdle, int64(t.vt), t.order)
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
	if t.byIdle.in() {
		t.class.idle.Remove(&t.byIdle)
	}
	t.class.loads.drop(t)
	q.remember(t)
	q.tenants.remove(t)
	for t.projects != nil {
		q.forgetProject(t.projects)
	}
	t.class = nil // see Seen
	give(&q.spare.tenants, t)
}

func (q *Queue) forgetProject(p *project) {
	t := p.tenant
	at := &t.projects
	for *at != p {
		at = &(*at).next
	}
	*at = p.next
	if p.tenant = nil; p != &t.project {
		give(&q.spare.projects, p)
	}
}

// spares bounds the memory kept for tenants, flows and lanes to come, each.
const spares = 1024

// own is an empty list for what is new or used again: in the memory that it has, else
// beside what the list is of. Most have one element, and a step to a list elsewhere is a
// step out of the caches.
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
