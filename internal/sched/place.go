package sched

import (
	"math/bits"
	"time"

	"sluice"
)

// aheadSteps is how many requests of its own an item's position is counted over.
const aheadSteps = 1024

// ahead is how many requests of its tenant and class came before an item that
// waits, and their work: counted for the nearest, in proportion for more.
func (q *Queue) ahead(it *Item) (n int, work int64) {
	for older := q.roster.before(byPush, it); older != nil; older = q.roster.before(byPush, older) {
		if n == aheadSteps {
			t := it.tenant
			first, last := q.roster.first(&t.waits).order, q.roster.last(&t.waits).order
			part := func(of int64) int64 {
				return scale(of, int64(it.order-first), int64(max(last-first, 1)))
			}
			return max(n, int(part(int64(t.waiting)-1))), max(work, part(t.queued-it.Cost))
		}
		n++
		work += older.Cost
	}
	return n, work
}

// earlier is what of an item's tenant came before it and may be served before it.
type earlier struct {
	it *Item // none: nothing is known
	of []tally
}

// tally is that of one project.
type tally struct {
	project *project
	n       int64
	work    int64
}

func (e *earlier) add(p *project, n, work int64) {
	for i := range e.of {
		if t := &e.of[i]; t.project == p {
			t.n += n
			t.work += work
			return
		}
	}
	e.of = append(e.of, tally{p, n, work})
}

// earlier counts what came before an item, on from another of its project of which that
// is known, and which its limits keep back, or not, as this one. What limits keep back is
// not before what they do not. False: there is too much of it.
func (q *Queue) earlier(it *Item, known earlier) (e earlier, ok bool) {
	e.it = it
	steps := 0
	for older := q.roster.before(byPush, it); older != nil; older = q.roster.before(byPush, older) {
		if steps++; steps > aheadSteps {
			return e, false
		}
		if it.Parked() || !older.Parked() {
			e.add(older.project, 1, older.Cost)
		}
		if older == known.it {
			for _, t := range known.of {
				e.add(t.project, t.n, t.work)
			}
			break
		}
	}
	return e, true
}

// first is how much of it is served before the item: all of its own project, and of the
// tenant's others what is due by the virtual time at which its project comes to it. That
// is counted by what a request of the tenant is on average, not by what came before the
// item of them, so that it never falls from one item of a line to the next.
func (e *earlier) first() (n int, work int64) {
	p, t := e.it.project, e.it.tenant
	for _, o := range e.of {
		if o.project == p {
			n, work = int(o.n), o.work
		}
	}
	own := work
	for _, o := range e.of {
		due := (p.vt - o.project.vt).unstretch(1) + own
		if o.project == p || due < 0 || due == 0 && p.order < o.project.order {
			continue
		}
		n += int(min(o.n, begun(max(due, 1), int64(t.waiting), t.queued)))
		work += min(due, o.work)
	}
	return n, work
}

// PlaceView is a request that waits and its place in the queue.
type PlaceView struct {
	Item     *Item
	Position int
	Wait     time.Duration
}

// Place is about how many requests are served before an item that waits, and for
// how much longer it waits, while so many attempts run; 0 if nothing is known.
//
// Both follow from what is ahead of it, which only changes as something arrives, starts
// or ends, or as a correction takes it past another: the passing of time alone moves it
// back behind nobody. Positions within a line are counted, so that no two are the same;
// those of more than aheadSteps are in proportion.
func (q *Queue) Place(it *Item, running int64) (position int, wait time.Duration) {
	if e, ok := q.earlier(it, earlier{}); ok {
		n, work := e.first()
		return q.place(it, n, work, running)
	}
	n, work := q.ahead(it)
	return q.place(it, n, work, running)
}

func (q *Queue) place(it *Item, n int, work, running int64) (position int, wait time.Duration) {
	t := it.tenant
	turn := q.pace.turn(running)
	switch {
	case q.policy.FIFO:
		return n, turn + q.pace.after(work, running)
	case it == q.gathers, t.contract != nil && t.contract.paid() && t.contract.admits(it):
		return n, turn
	}
	lead, weights := q.lead(t)
	wait = turn + q.behind(t.class, lead+work/t.weight, weights, running)
	if q.pace.held == 0 {
		return n, wait
	}
	return n + q.others(t, lead, work, weights), wait
}

// lead is how far a tenant of which something waits is ahead of the least of those that
// compete, itself included, and the weights of these. Where that one was served last is
// no floor here, as it is for what begins to compete: a tenant that is alone would be
// ahead of it, and more so the longer it is served, by what itself is charged.
func (q *Queue) lead(t *tenant) (lead, weights int64) {
	least, weights := t.vt, t.class.weights
	if t.ready == 0 {
		weights += t.weight
	}
	for _, l := range t.class.lanes {
		if l.seats.Len() > 0 {
			least = min(least, vtime(l.seats.Key()))
		}
	}
	return (t.vt - least).unstretch(1), weights
}

// others is about how many requests of other tenants and classes are served before one
// that has so much work of its own tenant ahead of it. The others of its class are
// brought up to its virtual time by lead × their weights, and to each part of its own
// work they have one by weight; other classes have theirs by share. None is served more
// than waits of it.
func (q *Queue) others(t *tenant, lead, work, weights int64) int {
	c := t.class
	ahead := int64(unbounded / 2)
	if hi, lo := bits.Mul64(uint64(lead), uint64(weights-t.weight)); hi == 0 {
		ahead = int64(min(lo, uint64(ahead)))
	}
	rest := c.queued - t.queued
	ahead = min(ahead+min(scale(work, weights-t.weight, t.weight), unbounded/2), rest)
	n := begun(ahead, int64(c.waiting)-int64(t.waiting), rest)
	for i := range q.classes {
		if o := &q.classes[i]; o != c && o.ready > 0 {
			n += begun(min(scale(work+ahead, o.share(), c.share()), o.queued), int64(o.waiting), o.queued)
		}
	}
	return int(n)
}

// begun is how many of n requests have begun by the time that so much of all their work
// is.
func begun(work, n, all int64) int64 {
	if work <= 0 || all <= 0 {
		return 0
	}
	return min(n, scale(work, n, all)+1)
}

// Places is at most limit of the requests of a class that wait, the oldest first;
// of one tenant, unless that is empty.
func (q *Queue) Places(class sluice.Class, id sluice.TenantID, limit int, running int64) (out []PlaceView) {
	type kind struct { // those of one have the same before them
		project *project
		parked  bool
	}
	known := make(map[kind]earlier)
	add := func(it *Item) bool {
		if len(out) == limit {
			return false
		}
		v := PlaceView{Item: it}
		k := kind{it.project, it.Parked()}
		if e, ok := q.earlier(it, known[k]); ok {
			known[k] = e
			n, work := e.first()
			v.Position, v.Wait = q.place(it, n, work, running)
		} else {
			v.Position, v.Wait = q.Place(it, running)
		}
		out = append(out, v)
		return true
	}
	if id == "" {
		for _, it := range q.items(&q.classes[class]) {
			if !add(it) {
				break
			}
		}
		return out
	}
	if t := q.tenants.find(tenantID{class, id}); t != nil {
		for it := q.roster.first(&t.waits); it != nil && add(it); it = q.roster.after(byPush, it) {
		}
	}
	return out
}
