package sched

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
)

var epoch = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// machines is a pool's backends as a test drives them.
type machines struct {
	q    *Queue
	all  []machine
	kept int
	keep *Item
}

type machine struct {
	dead       bool
	most, used Amounts
}

func (m *machines) Capacity() (all, free Amounts) {
	for i := range m.all {
		if b := &m.all[i]; !b.dead {
			for d := range all {
				all[d] += b.most[d]
				free[d] += max(0, b.most[d]-b.used[d])
			}
		}
	}
	return all, free
}

func (m *machines) keeps(i int) bool {
	return m.keep != nil && m.q.Gathering() == m.keep && m.kept == i
}

func (m *machines) Most(set *Set, first bool) (most Amounts) {
	for i := range m.all {
		b := &m.all[i]
		if b.dead || !set.Has(i) || b.used[Slots] >= b.most[Slots] || !first && m.keeps(i) {
			continue
		}
		for d := range most {
			n := b.most[d] - b.used[d]
			if b.used[d] == 0 {
				n = unbounded
			}
			most[d] = max(most[d], n)
		}
	}
	return most
}

func (m *machines) fits(it *Item, i int) bool {
	b := &m.all[i]
	if b.dead || !it.Backends.Has(i) {
		return false
	}
	for d := range b.used {
		if b.used[d] > 0 && b.used[d]+it.Need[d] > b.most[d] {
			return false
		}
	}
	return true
}

func (m *machines) Fits(it *Item, first bool) bool { return m.place(it, first) >= 0 }

func (m *machines) place(it *Item, first bool) int {
	for i := range m.all {
		if m.fits(it, i) && (first || !m.keeps(i)) {
			return i
		}
	}
	return -1
}

func (m *machines) Gather(it *Item) bool {
	if m.keep == it && !m.all[m.kept].dead {
		return true
	}
	m.keep = nil
	for i := range m.all {
		if !m.all[i].dead && it.Backends.Has(i) && m.keep == nil {
			m.kept, m.keep = i, it
		}
	}
	return m.keep != nil
}

// world drives a queue through a random history and judges it by what went in
// and came out.
type world struct {
	t       *rapid.T
	q       *Queue
	m       *machines
	now     time.Time
	waiting []*Item
	running map[*Item]int // on which machine
	parked  map[string]bool
	full    map[string]bool // tenants whose own gauge is full
	next    int
}

func newWorld(t *rapid.T, p Policy) *world {
	w := &world{t: t, now: epoch, running: map[*Item]int{}, parked: map[string]bool{}, full: map[string]bool{}}
	w.q = NewQueue(p, Bounds{Requests: 60}, Bounds{})
	w.m = &machines{q: w.q}
	for range rapid.IntRange(1, 3).Draw(t, "machines") {
		w.m.all = append(w.m.all, machine{most: Amounts{rapid.Int64Range(1, 6).Draw(t, "slots"), 1000, 600}})
	}
	return w
}

func (w *world) push() {
	t := w.t
	w.next++
	it := &Item{
		Value:    w.next,
		Flow:     Flow{Tenant: sluice.TenantID(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "tenant")), Project: sluice.ProjectID(rapid.SampledFrom([]string{"p", "q"}).Draw(t, "project")), Key: "k"},
		Class:    sluice.Class(rapid.IntRange(0, 2).Draw(t, "class")),
		Weight:   1,
		Arrived:  w.now,
		Since:    w.now,
		Deadline: w.now.Add(time.Hour),
		Bytes:    1,
	}
	in := rapid.Int64Range(1, 500).Draw(t, "in")
	out := rapid.Int64Range(0, 600).Draw(t, "out")
	it.Need, it.Cost, it.Upfront, it.Work = Amounts{1, in + out, in}, in+2*out, in+out, sluice.Tokens(in+out)
	for i := range w.m.all {
		if i == 0 || rapid.Bool().Draw(t, "backend") {
			it.Backends.Add(i)
		}
	}
	if w.q.Full(it) != "" {
		v := w.q.Shed(it)
		if v == nil {
			return
		}
		w.q.Remove(v, Rejected)
		w.forget(v)
	}
	w.q.Push(it)
	w.waiting = append(w.waiting, it)
}

func (w *world) forget(it *Item) {
	for i := range w.waiting {
		if w.waiting[i] == it {
			w.waiting = append(w.waiting[:i], w.waiting[i+1:]...)
			return
		}
	}
	w.t.Fatalf("item %v does not wait", it.Value)
}

func (w *world) serve() {
	for it := w.q.Next(w.now, w.m); it != nil; it = w.q.Next(w.now, w.m) {
		if w.full[string(it.Flow.Tenant)] {
			w.q.Park(it, it.Flow.Tenant)
			continue
		}
		at := w.m.place(it, w.q.First(it))
		if at < 0 {
			w.t.Fatalf("picked %v, which fits nowhere", it.Value)
		}
		for d := range it.Need {
			w.m.all[at].used[d] += it.Need[d]
		}
		w.q.Dispatch(w.now, it)
		w.forget(it)
		w.running[it] = at
	}
}

func (w *world) some() *Item {
	if len(w.running) == 0 {
		return nil
	}
	var list []*Item
	for i := range w.next + 1 {
		for it := range w.running {
			if it.Value == i {
				list = append(list, it)
			}
		}
	}
	return rapid.SampledFrom(list).Draw(w.t, "running")
}

// ahead reports whether something is gathered and an item is ahead of a head of its
// class that does not fit, by more than that lets pass.
func (w *world) ahead(it *Item, heads map[string]*Item) bool {
	if w.q.gathers == nil {
		return false
	}
	for _, b := range heads {
		if b.Class == it.Class && b.line.on == nil && it.leads(b) && !w.q.fits(b, w.m) {
			return true
		}
	}
	return false
}

// check judges the state after every event.
func (w *world) check() {
	q, t := w.q, w.t
	c := q.Counts()
	if c.Enqueued != c.Dispatched+c.Cancelled+c.Rejected+c.Moved+int64(q.Len()) || q.Len() != len(w.waiting) {
		t.Fatalf("%+v and %d wait, %d expected", c, q.Len(), len(w.waiting))
	}
	var used [sluice.NumClasses]Amounts
	for it := range w.running {
		if it.contract == nil {
			for d := range it.Need {
				used[it.Class][d] += it.Need[d]
			}
		}
	}
	for i := range used {
		if q.classes[i].used != used[i] {
			t.Fatalf("class %d uses %v, its running items %v", i, q.classes[i].used, used[i])
		}
	}
	heads := map[string]*Item{}
	for _, it := range w.waiting {
		f := fmt.Sprint(it.Flow, it.Class, it.size(), it.Backends, it.line.id.lane.short)
		if h := heads[f]; h == nil || it.less(h) {
			heads[f] = it
		}
	}
	q.capacity, q.free = w.m.Capacity()
	for _, it := range heads {
		if it.line.on != nil {
			if !w.full[string(it.Flow.Tenant)] {
				t.Fatalf("%v is parked for nothing", it.Value)
			}
			continue
		}
		if q.closed || !q.passable(it) {
			continue
		}
		if w.m.Fits(it, q.First(it)) && !w.ahead(it, heads) {
			t.Fatalf("%v (%v %+v) waits and fits; gathering %v", it.Value, it.Class, it.Need, q.Gathering())
		}
	}
	for i := range q.classes {
		least := q.classes[i].last
		q.tenants.each(func(tn *tenant) {
			if tn.class == &q.classes[i] && tn.ready > 0 {
				least = min(least, tn.vt)
			}
		})
		if got := q.classes[i].floor(); got != least {
			t.Fatalf("floor of class %d is %d, not %d", i, got, least)
		}
	}
}

// Whatever happens, what waits is what came and has not left, nothing that could
// start waits, and what is taken is what runs.
func TestHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{}
		if rapid.Bool().Draw(t, "contract") {
			p.Contracts = []Contract{{Tenant: "a", Slots: 1, KV: 200, Lend: Lend(rapid.IntRange(0, 2).Draw(t, "lend")), WorkPerSecond: rapid.SampledFrom([]int64{0, 500}).Draw(t, "work")}}
		}
		w := newWorld(t, p)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) { w.t = t; w.serve(); w.check() },
			"push": func(t *rapid.T) {
				w.t = t
				for range rapid.IntRange(1, 8).Draw(t, "n") {
					w.push()
				}
			},
			"pass": func(t *rapid.T) {
				w.now = w.now.Add(time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond)
			},
			"cancel": func(t *rapid.T) {
				if len(w.waiting) == 0 {
					return
				}
				it := rapid.SampledFrom(w.waiting).Draw(t, "item")
				w.q.Remove(it, Cancelled)
				w.forget(it)
			},
			"correct": func(t *rapid.T) {
				w.t = t
				if it := w.some(); it != nil {
					w.q.Correct(w.now, it, rapid.Int64Range(1, 3000).Draw(t, "cost"))
				}
			},
			"answer": func(t *rapid.T) {
				w.t = t
				if it := w.some(); it != nil {
					w.m.all[w.running[it]].used[Prefill] -= it.Need[Prefill]
					w.q.Answered(it)
				}
			},
			"end": func(t *rapid.T) {
				w.t = t
				if it := w.some(); it != nil {
					for d := range it.Need {
						w.m.all[w.running[it]].used[d] -= it.Need[d]
					}
					w.q.End(it, time.Second)
					delete(w.running, it)
				}
			},
			"die": func(t *rapid.T) {
				b := &w.m.all[rapid.IntRange(0, len(w.m.all)-1).Draw(t, "machine")]
				b.dead = !b.dead
			},
			"gauge": func(t *rapid.T) {
				id := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tenant")
				w.full[id] = !w.full[id]
				w.q.Unpark(sluice.TenantID(id))
			},
		})
	})
}
