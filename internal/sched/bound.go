package sched

import "sluice"

// fill is how much of the queue something fills, in millionths of the bound that
// it fills most of, by weight.
func (q *Queue) fill(requests, bytes int64, work sluice.Tokens, weight int64) int64 {
	const million = 1_000_000
	most := int64(0)
	for _, p := range [...]struct{ n, bound int64 }{
		{requests, q.bounds.Requests}, {bytes, q.bounds.Bytes}, {int64(work), int64(q.bounds.Work)},
	} {
		if p.bound > 0 && p.n > 0 {
			most = max(most, scale(p.n, million, p.bound))
		}
	}
	return most / weight
}

// exceeded names the bound that an amount would exceed, "" if none.
func (b Bounds) exceeded(requests, bytes int64, work sluice.Tokens) string {
	switch {
	case b.Requests > 0 && requests > b.Requests:
		return "requests"
	case b.Bytes > 0 && bytes > b.Bytes:
		return "bytes"
	case b.Work > 0 && work > b.Work:
		return "work"
	}
	return ""
}

// Full names the bound of the whole queue that an item would exceed: "requests",
// "bytes", "work", or "" when it fits. An empty queue takes any one item.
func (q *Queue) Full(it *Item) string {
	if q.waiting == 0 {
		return ""
	}
	return q.bounds.exceeded(int64(q.waiting)+1, q.bytes+it.Bytes, q.work+it.Work)
}

// FullFor names the bound of one tenant's part of the queue that an item would
// exceed. A tenant of which nothing waits may always add one item.
func (q *Queue) FullFor(it *Item) string {
	n, bytes, work := int64(0), int64(0), sluice.Tokens(0)
	for _, t := range q.tenants.all(it.Flow.Tenant) {
		if t != nil {
			n, bytes, work = n+int64(t.waiting), bytes+t.bytes, work+t.work
		}
	}
	if n == 0 {
		return ""
	}
	return q.perTenant.exceeded(n+1, bytes+it.Bytes, work+it.Work)
}

// Shed is what has to leave a full queue so that an item may enter: the newest
// item of the tenant that fills most of it, in the class that fills most of it,
// each by its share. It is nil where that is the item's own tenant: then the item
// is what is refused.
func (q *Queue) Shed(it *Item) *Item {
	if q.policy.FIFO {
		return nil
	}
	own := &q.classes[it.Class]
	worst, most := own, q.fill(int64(own.waiting)+1, own.bytes+it.Bytes, own.work+it.Work, own.share())
	for i := range q.classes {
		c := &q.classes[i]
		if c == own || c.waiting == 0 {
			continue
		}
		if n := q.fill(int64(c.waiting), c.bytes, c.work, c.share()); n > most || n == most && c.index > worst.index {
			worst, most = c, n
		}
	}
	if worst.waiting == 0 {
		return nil
	}
	top := q.loads(worst).Top()
	if worst == own {
		load := q.fill(1, it.Bytes, it.Work, max(it.Weight, 1))
		if t := q.tenants.find(tenantID{it.Class, it.Flow.Tenant}); t != nil {
			load = q.fill(int64(t.waiting)+1, t.bytes+it.Bytes, t.work+it.Work, t.weight)
		}
		if top.load <= load {
			return nil
		}
	}
	return q.roster.last(&top.waits)
}
