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
	wait        int64
	first, last *Item // by deadline
	stale       bool  // its first has left: it is due later than the heap says, which puts that right when it is asked
	inHeads     Spot[patience]
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

func (d *deadlines) push(it *Item) {
	p := d.of(it.deadline - it.since)
	at := p.last
	for at != nil && it.deadline < at.deadline {
		at = at.dueBefore
	}
	it.patience, it.dueBefore = p, at
	if at == nil {
		it.dueAfter, p.first = p.first, it
	} else {
		it.dueAfter, at.dueAfter = at.dueAfter, it
	}
	if it.dueAfter == nil {
		p.last = it
	} else {
		it.dueAfter.dueBefore = it
	}
	switch {
	case p.first == p.last:
		d.heads.Push(p, &p.inHeads, it.deadline, it.order)
	case p.first == it:
		d.heads.Replace(&p.inHeads, it.deadline, it.order)
		p.stale = false
	}
}

func (d *deadlines) remove(it *Item) {
	p := it.patience
	wasFirst := p.first == it
	if it.dueBefore == nil {
		p.first = it.dueAfter
	} else {
		it.dueBefore.dueAfter = it.dueAfter
	}
	if it.dueAfter == nil {
		p.last = it.dueBefore
	} else {
		it.dueAfter.dueBefore = it.dueBefore
	}
	it.patience, it.dueBefore, it.dueAfter = nil, nil, nil
	if p.stale = p.stale || wasFirst; p.first == nil {
		d.heads.Remove(&p.inHeads)
		delete(d.lists, p.wait)
		if d.last == p {
			d.last = nil
		}
		give(&d.spare, p)
	}
}

// earliest is the list with the earliest deadline, if that is not later than a moment.
func (d *deadlines) earliest(by int64) *patience {
	for d.heads.Len() > 0 && d.heads.Key() <= by {
		p := d.heads.Top()
		if !p.stale {
			return p
		}
		p.stale = false
		d.heads.Replace(&p.inHeads, p.first.deadline, p.first.order)
	}
	return nil
}

// Due is an item whose deadline is not after now, the earliest first; nil if
// there is none.
func (q *Queue) Due(now time.Time) *Item {
	if p := q.due.earliest(int64(now.Sub(q.base))); p != nil {
		return p.first
	}
	return nil
}

// NextDeadline is the earliest deadline, false if nothing waits.
func (q *Queue) NextDeadline() (time.Time, bool) {
	if p := q.due.earliest(unbounded); p != nil {
		return p.first.Deadline, true
	}
	return time.Time{}, false
}
