package sched

import "time"

// deadlines is what waits by the time by which it leaves. Requests that may wait
// equally long are due in the order in which they came, so each such patience is a
// list, and only the lists are in a heap: most often there is one.
type deadlines struct {
	lists map[time.Duration]*patience
	heads Heap[patience]
	spare []*patience
}

// patience is the items that may wait equally long.
type patience struct {
	wait        time.Duration
	first, last *Item // by deadline
	inHeads     Spot[patience]
}

func (d *deadlines) push(it *Item) {
	wait := it.Deadline.Sub(it.Since)
	p := d.lists[wait]
	if p == nil {
		if d.lists == nil {
			d.lists = make(map[time.Duration]*patience)
		}
		p = take(&d.spare)
		*p = patience{wait: wait}
		d.lists[wait] = p
	}
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
		d.heads.Fix(&p.inHeads, it.deadline, it.order)
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
	switch {
	case p.first == nil:
		d.heads.Remove(&p.inHeads)
		delete(d.lists, p.wait)
		give(&d.spare, p)
	case wasFirst:
		d.heads.Fix(&p.inHeads, p.first.deadline, p.first.order)
	}
}

// Due is an item whose deadline is not after now, the earliest first; nil if
// there is none.
func (q *Queue) Due(now time.Time) *Item {
	if q.due.heads.Len() == 0 {
		return nil
	}
	if it := q.due.heads.Top().first; !it.Deadline.After(now) {
		return it
	}
	return nil
}

// NextDeadline is the earliest deadline, false if nothing waits.
func (q *Queue) NextDeadline() (time.Time, bool) {
	if q.due.heads.Len() == 0 {
		return time.Time{}, false
	}
	return q.due.heads.Top().first.Deadline, true
}
