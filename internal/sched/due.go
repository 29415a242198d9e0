package sched

import "time"

// deadlines is what waits by the time by which it leaves. Requests that may wait
// equally long are due in the order in which they came, so each such patience is a
// list, and only the lists are in a heap: most often there is one.
type deadlines struct {
	lists map[int64]*patience
	last  *patience // the last that was asked for
	heads Heap[patience]
	spare []*patience
}

// patience is the items that may wait equally long.
type patience struct {
	wait    int64
	items   list // by deadline
	stale   bool // its first has left: it is due later than the heap says, which puts that right when it is asked
	inHeads Spot[patience]
}

// of finds or makes the list of a patience.
func (d *deadlines) of(wait int64) *patience {
	if p := d.last; p != nil && p.wait == wait {
		return p
	}
	p := d.lists[wait]
	if p == nil {
		if d.lists == nil {
			d.lists = make(map[int64]*patience)
		}
		p = take(&d.spare)
		*p = patience{wait: wait}
		d.lists[wait] = p
	}
	d.last = p
	return p
}

func (d *deadlines) push(r *roster, it *Item) {
	p := d.of(it.deadline - it.since)
	at := r.last(&p.items)
	for at != nil && it.deadline < at.deadline {
		at = r.before(byDeadline, at)
	}
	it.patience = p
	r.insert(&p.items, byDeadline, it, at)
	switch {
	case p.items.first == p.items.last:
		d.heads.Push(p, &p.inHeads, it.deadline, it.order)
	case at == nil:
		d.heads.Replace(&p.inHeads, it.deadline, it.order)
		p.stale = false
	}
}

func (d *deadlines) remove(r *roster, it *Item) {
	p := it.patience
	it.patience, p.stale = nil, p.stale || p.items.first == it.post
	if r.remove(&p.items, byDeadline, it); p.items.first == 0 {
		d.heads.Remove(&p.inHeads)
		delete(d.lists, p.wait)
		if d.last == p {
			d.last = nil
		}
		give(&d.spare, p)
	}
}

// earliest is the item with the earliest deadline, nil if that is later than a moment.
func (d *deadlines) earliest(r *roster, by int64) *Item {
	for d.heads.Len() > 0 && d.heads.Key() <= by {
		p := d.heads.Top()
		first := r.first(&p.items)
		if !p.stale {
			return first
		}
		p.stale = false
		d.heads.Replace(&p.inHeads, first.deadline, first.order)
	}
	return nil
}

// Due is an item whose deadline is not after now, the earliest first; nil if
// there is none.
func (q *Queue) Due(now time.Time) *Item {
	return q.due.earliest(&q.roster, int64(now.Sub(q.base)))
}

// NextDeadline is the earliest deadline, false if nothing waits.
func (q *Queue) NextDeadline() (time.Time, bool) {
	if it := q.due.earliest(&q.roster, unbounded); it != nil {
		return it.Deadline, true
	}
	return time.Time{}, false
}
