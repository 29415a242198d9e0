package engine

import (
	"math"
	"time"

	"sluice/internal/route"
	"sluice/internal/sched"
)

// room is a pool's backends as its queue sees them, at one moment.
type room struct {
	p   *pool
	now time.Time

	all, free sched.Amounts // of guests, as of the last Capacity
}

// Capacity is what the usable backends hold in all, and what of it is free.
func (m *room) Capacity() (all, free sched.Amounts) {
	if m.p.host != nil {
		m.all, m.free = m.headroom()
		return m.all, m.free
	}
	return m.sum(nil)
}

// sum is what the usable backends hold, and what of it is free; of a set, if that is not
// nil, those whose breakers are closed.
func (m *room) sum(of *sched.Set) (all, free sched.Amounts) {
	var slots, kv, prefill level
	for i, pl := range m.p.places {
		if !pl.Ready(m.now) || of != nil && (!of.Has(i) || pl.Health.Open()) {
			continue
		}
		most := pl.Most(m.now)
		slots.add(most[sched.Slots], pl.Running())
		kv.add(most[sched.KV], int64(pl.KVUsed(m.now)))
		prefill.add(most[sched.Prefill], int64(pl.Prefill()))
	}
	slots.bound()
	kv.bound()
	prefill.bound()
	return sched.Amounts{slots.all, kv.all, prefill.all}, sched.Amounts{slots.free, kv.free, prefill.free}
}

// level is what backends hold together of one dimension, and what of it is free.
type level struct {
	all, free int64
	unbounded bool // in one of them
}

func (l *level) add(all, used int64) {
	l.unbounded = l.unbounded || all == 0
	l.all += all
	l.free += max(0, all-used)
}

// bound makes a sum that bounds nothing zero.
func (l *level) bound() {
	if l.unbounded {
		l.all, l.free = 0, 0
	}
}

// Most is the most that one backend of the set has free; one with nothing in a
// dimension takes anything, since what is larger than it runs alone there. That
// which is kept for a request counts only for what goes first.
func (m *room) Most(set *sched.Set, first bool) (most sched.Amounts) {
	own, hosts := m.keptBack(first)
	for i, pl := range m.p.places {
		if !pl.Open(m.now) || !set.Has(i) || pl == own || pl == hosts {
			continue
		}
		most[sched.Slots] = max(most[sched.Slots], pl.Slots()-pl.Running())
		most[sched.KV] = max(most[sched.KV], m.memory(pl))
		most[sched.Prefill] = max(most[sched.Prefill], m.prefill(pl))
	}
	if m.p.host == nil {
		return most
	}
	for d := range most {
		if m.all[d] > 0 {
			most[d] = min(most[d], m.free[d])
		}
	}
	return most
}

// keptBack is the places where what is free is kept for another, nil if there is none:
// the pool's, and for one of the pool itself even if a guest is first.
func (m *room) keptBack(first bool) (own, hosts *route.Place) {
	if !first {
		own = m.p.keeps()
	}
	if m.p.host != nil {
		hosts = m.p.host.keeps()
	}
	return own, hosts
}

// fitsIn reports whether there is room in every dimension that is bounded.
func fitsIn(need, all, free sched.Amounts) bool {
	for d, n := range need {
		if all[d] > 0 && n > free[d] {
			return false
		}
	}
	return true
}

// memory is what a place has free of it.
func (m *room) memory(pl *route.Place) int64 {
	if pl.Running() == 0 {
		return math.MaxInt64
	}
	return free(pl.Most(m.now)[sched.KV], int64(pl.KVUsed(m.now)))
}

// prefill is what a place has free of it.
func (m *room) prefill(pl *route.Place) int64 {
	return free(pl.Most(m.now)[sched.Prefill], int64(pl.Prefill()))
}

func free(all, used int64) int64 {
	if all == 0 || used == 0 {
		return math.MaxInt64
	}
	return max(0, all-used)
}

// Fits reports whether one backend can start the item now.
func (m *room) Fits(it *sched.Item, first bool) bool {
	if m.p.host != nil && !fitsIn(it.Need, m.all, m.free) {
		return false
	}
	r := it.Value.(*request)
	need := r.needOfPlace()
	own, hosts := m.keptBack(first)
	for i, pl := range m.p.places {
		if it.Backends.Has(i) && pl != own && pl != hosts && pl.Usable(m.now, &need) == route.Chosen && pl.Backend.Weight > 0 {
			return true
		}
	}
	return false
}

// Gather keeps the backend for the item that lacks least.
func (m *room) Gather(it *sched.Item) bool {
	p := m.p
	if p.keptFor == it && p.kept != nil && p.kept.Ready(m.now) {
		return true
	}
	p.kept, p.keptFor = nil, nil
	for i, pl := range p.places {
		if it.Backends.Has(i) && pl.Ready(m.now) && pl.FitWith(m.now, it.Value.(*request).only()) == route.Chosen && (p.kept == nil || m.roomier(pl, p.kept)) {
			p.kept, p.keptFor = pl, it
		}
	}
	return p.kept != nil
}

// roomier orders places by free memory, then by free prefill, then by free slots.
func (m *room) roomier(a, b *route.Place) bool {
	if n, o := m.memory(a), m.memory(b); n != o {
		return n > o
	}
	if n, o := m.prefill(a), m.prefill(b); n != o {
		return n > o
	}
	return a.Slots()-a.Running() > b.Slots()-b.Running()
}

// keeps is the place that is kept for the item that gathers, nil if none is.
func (p *pool) keeps() *route.Place {
	if g := p.queue.Gathering(); g == nil || g != p.keptFor {
		return nil
	}
	return p.kept
}
