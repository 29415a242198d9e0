package stateful

import (
	"container/heap"
	"time"

	"sluice"
	"sluice/internal/route"
)

// book is what is remembered, bounded. It is a pure state machine.
type book struct {
	perTenant, total int

	marks   map[Mark]int32 // the first entry of each
	entries []entry        // place 0 is not used
	free    []int32
	shelves map[sluice.TenantID]*shelf
	largest largest // all shelves
	places  map[origin]*place
	dropped []Record // by the last call of put, to make room
}

// entry is one mark of one tenant at one place.
type entry struct {
	mark         Mark
	shelf        *shelf
	place        *place
	until, told  int64 // microseconds since the epoch: as remembered, as the store was told last
	newer, older int32 // in the shelf's ring; 0 is its end
	next         int32 // of the same mark
}

// shelf is a tenant's entries, the most recently used first.
type shelf struct {
	tenant         sluice.TenantID
	n              int
	newest, oldest int32
	at             int // in the heap
}

// origin is where something is kept, and the model by which it was made.
type origin struct {
	pin   route.Pin
	model sluice.ModelID
}

// place is a origin and how many entries are there.
type place struct {
	origin
	n int
}

func newBook(perTenant, total int) *book {
	return &book{
		perTenant: perTenant, total: total,
		marks: make(map[Mark]int32), entries: make([]entry, 1), shelves: make(map[sluice.TenantID]*shelf), places: make(map[origin]*place),
	}
}

// len is how many entries there are.
func (b *book) len() int { return len(b.entries) - 1 - len(b.free) }

// find is where a tenant's mark is kept, nil if that is not known.
func (b *book) find(now time.Time, t sluice.TenantID, m Mark) *origin {
	for i := b.marks[m]; i != 0; i = b.entries[i].next {
		if e := &b.entries[i]; e.shelf.tenant == t && e.until > now.UnixMicro() {
			return &e.place.origin
		}
	}
	return nil
}

// owned reports whether a mark is somebody's.
func (b *book) owned(now time.Time, m Mark) bool {
	for i := b.marks[m]; i != 0; i = b.entries[i].next {
		if b.entries[i].until > now.UnixMicro() {
			return true
		}
	}
	return false
}

// put remembers a record as its tenant's most recent one, in place of the tenant's other
// of that mark. Where another tenant has the mark at the same place it changes nothing,
// unless it is the store that says so. write reports whether the store has yet to be told.
func (b *book) put(now time.Time, r *Record, stored bool) (write, taken bool) {
	b.dropped = b.dropped[:0]
	if i := b.at(r); i != 0 {
		switch e := &b.entries[i]; {
		case e.until <= now.UnixMicro():
		case e.shelf.tenant == r.Tenant:
			return b.renew(i, r, stored), true
		case !stored:
			return false, false
		}
		b.remove(i)
	}
	for i := b.marks[r.Mark]; i != 0; {
		e := &b.entries[i]
		next := e.next
		if e.shelf.tenant == r.Tenant {
			b.dropped = append(b.dropped, b.record(i))
			b.remove(i)
		}
		i = next
	}
	b.makeRoom(now, r.Tenant)
	i := b.add(r)
	if stored {
		b.entries[i].told = b.entries[i].until
	}
	return !stored, true
}

// forget takes a tenant's entry of a mark away, and tells what it was.
func (b *book) forget(t sluice.TenantID, m Mark) (r Record, ok bool) {
	for i := b.marks[m]; i != 0; i = b.entries[i].next {
		if b.entries[i].shelf.tenant == t {
			r = b.record(i)
			b.remove(i)
			return r, true
		}
	}
	return r, false
}

// at is the entry of a record's mark at its place, whose ever it is; 0 if there is none.
func (b *book) at(r *Record) int32 {
	for i := b.marks[r.Mark]; i != 0; i = b.entries[i].next {
		if b.entries[i].place.pin == r.Pin {
			return i
		}
	}
	return 0
}

// renew makes an entry its tenant's most recent one.
func (b *book) renew(i int32, r *Record, stored bool) (write bool) {
	e := &b.entries[i]
	s := e.shelf
	e.until = max(e.until, r.Until.UnixMicro())
	b.unlink(i)
	b.link(s, i)
	if stored {
		e.told = max(e.told, r.Until.UnixMicro())
	}
	return e.until > e.told
}

// add makes an entry.
func (b *book) add(r *Record) (i int32) {
	if n := len(b.free); n > 0 {
		i, b.free = b.free[n-1], b.free[:n-1]
	} else {
		i = int32(len(b.entries))
		b.entries = append(b.entries, entry{})
	}
	s := b.shelves[r.Tenant]
	if s == nil {
		s = &shelf{tenant: r.Tenant}
		b.shelves[r.Tenant] = s
		heap.Push(&b.largest, s)
	}
	at := origin{r.Pin, r.Model}
	p := b.places[at]
	if p == nil {
		p = &place{origin: at}
		b.places[at] = p
	}
	p.n++
	b.entries[i] = entry{mark: r.Mark, shelf: s, place: p, until: r.Until.UnixMicro(), next: b.marks[r.Mark]}
	b.marks[r.Mark] = i
	b.link(s, i)
	s.n++
	heap.Fix(&b.largest, s.at)
	return i
}

// makeRoom lets go what a further entry of a tenant displaces: one, and another one where
// the bounds have been lowered.
func (b *book) makeRoom(now time.Time, t sluice.TenantID) {
	if s := b.shelves[t]; s != nil {
		b.expire(now, s)
	}
	for range 2 {
		s := b.shelves[t]
		full := s
		switch {
		case s != nil && s.n >= b.perTenant:
		case b.len() < b.total:
			return
		case s == nil || s.n < b.largest[0].n:
			full = b.largest[0]
		}
		b.dropped = append(b.dropped, b.record(full.oldest))
		b.remove(full.oldest)
	}
}

// expire lets go what is over of a tenant's, as far as it is the oldest.
func (b *book) expire(now time.Time, s *shelf) {
	for s.n > 0 && b.entries[s.oldest].until <= now.UnixMicro() {
		b.remove(s.oldest)
	}
}

// sweep lets go what is over of all tenants.
func (b *book) sweep(now time.Time) {
	for _, s := range b.shelves {
		b.expire(now, s)
	}
}

func (b *book) record(i int32) Record {
	e := &b.entries[i]
	return Record{Mark: e.mark, Tenant: e.shelf.tenant, Pin: e.place.pin, Model: e.place.model, Until: time.UnixMicro(e.until).UTC()}
}

// remove forgets an entry, and a tenant and a place that have no other.
func (b *book) remove(i int32) {
	e := &b.entries[i]
	if first := b.marks[e.mark]; first != i {
		for ; b.entries[first].next != i; first = b.entries[first].next {
		}
		b.entries[first].next = e.next
	} else if e.next != 0 {
		b.marks[e.mark] = e.next
	} else {
		delete(b.marks, e.mark)
	}
	s := e.shelf
	b.unlink(i)
	if s.n--; s.n == 0 {
		heap.Remove(&b.largest, s.at)
		delete(b.shelves, s.tenant)
	} else {
		heap.Fix(&b.largest, s.at)
	}
	if e.place.n--; e.place.n == 0 {
		delete(b.places, e.place.origin)
	}
	b.entries[i] = entry{}
	b.free = append(b.free, i)
}

func (b *book) link(s *shelf, i int32) {
	e := &b.entries[i]
	e.newer, e.older = 0, s.newest
	if s.newest != 0 {
		b.entries[s.newest].newer = i
	} else {
		s.oldest = i
	}
	s.newest = i
}

func (b *book) unlink(i int32) {
	e := &b.entries[i]
	s := e.shelf
	if e.newer != 0 {
		b.entries[e.newer].older = e.older
	} else {
		s.newest = e.older
	}
	if e.older != 0 {
		b.entries[e.older].newer = e.newer
	} else {
		s.oldest = e.newer
	}
}

// largest is a heap of shelves, the one with most entries first; between equals the one
// whose tenant comes first.
type largest []*shelf

func (h largest) Len() int { return len(h) }
func (h largest) Less(i, j int) bool {
	if h[i].n != h[j].n {
		return h[i].n > h[j].n
	}
	return h[i].tenant < h[j].tenant
}

func (h largest) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

func (h *largest) Push(x any) {
	s := x.(*shelf)
	s.at = len(*h)
	*h = append(*h, s)
}

func (h *largest) Pop() any {
	old := *h
	s := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return s
}
