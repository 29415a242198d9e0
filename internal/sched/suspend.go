package sched

import (
	"time"

	"sluice"
)

// suspension is what the lines of a class are parked on while it is suspended.
type suspension sluice.Class

// Suspend sets aside what waits of a class, and what comes of it, until Resume. All of it
// keeps its place and its deadline, and banks nothing, as what is parked. Tenants with a
// contract go on: they are promised a place. It does nothing to a queue in order of
// arrival.
func (q *Queue) Suspend(c sluice.Class) {
	if q.policy.FIFO || q.suspended[c] {
		return
	}
	q.suspended[c] = true
	for _, it := range q.items(&q.classes[c]) {
		l := it.line
		if l.on != nil || !q.suspends(l) {
			continue
		}
		if q.gathers != nil && q.gathers.line == l {
			q.gathers, q.closed = nil, false
		}
		q.leave(l)
		q.shelve(l, suspension(c))
	}
}

// Resume lets a class compete again: each flow starts where those that compete are.
func (q *Queue) Resume(c sluice.Class) {
	if q.suspended[c] {
		q.suspended[c] = false
		q.Unpark(suspension(c))
	}
}

// Suspended reports whether an item of a tenant would wait for its class to be resumed.
func (q *Queue) Suspended(c sluice.Class, id sluice.TenantID) bool {
	return q.suspended[c] && q.contractOf(id) == nil
}

// Suspends reports whether items of a tenant wait while their class is suspended: a
// contract's do not.
func (q *Queue) Suspends(id sluice.TenantID) bool { return !q.policy.FIFO && q.contractOf(id) == nil }

// suspends reports whether a line is of a class that is suspended.
func (q *Queue) suspends(l *line) bool {
	t := l.node.project.tenant
	return q.suspended[t.class.index] && t.contract == nil
}

// shelve notes what a line that does not compete waits for.
func (q *Queue) shelve(l *line, on any) {
	l.on = on
	l.inLot = len(q.lots[on])
	q.lots[on] = append(q.lots[on], l)
}

// Promised reports whether a contract of the tenant has room now for what needs so much.
func (q *Queue) Promised(now time.Time, id sluice.TenantID, need Amounts) bool {
	k := q.contractOf(id)
	if k == nil {
		return false
	}
	c := *k
	c.refill(now)
	return c.admits(&Item{Need: need})
}

// ageScan bounds how many items Age looks at that their callers' own limits keep back.
const ageScan = 64

// Age is how long what waits longest has been in the queue, of the classes that are more
// important than one, and aside from what is set aside for a limit of its caller.
// Beyond many that are, it is that of what would be served next.
func (q *Queue) Age(now time.Time, below sluice.Class) (longest time.Duration) {
	for i := range q.classes {
		c := &q.classes[i]
		if c.index >= below || c.ready == 0 {
			continue
		}
		longest = max(longest, q.ageOf(c, now))
	}
	return longest
}

func (q *Queue) ageOf(c *class, now time.Time) (longest time.Duration) {
	for i, it := range q.items(c) {
		if it.line.on == nil {
			return max(0, now.Sub(it.Since))
		}
		if i == ageScan {
			break
		}
	}
	for _, l := range c.lanes {
		if l.seats.Len() > 0 {
			longest = max(longest, now.Sub(l.seats.Top().head().Since))
		}
	}
	return longest
}
