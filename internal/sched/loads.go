package sched

// loads is the tenants of a class by how much of the queue each fills, the one that
// fills most of it on top. Only a full queue asks, and views; but what a tenant fills
// changes whenever something of it comes or leaves. So those that have changed are
// noted, and find their places when somebody asks.
type loads struct {
	heap    Heap[tenant]
	changed []*tenant
}

// note tells that what a tenant fills has changed, or its weight.
func (l *loads) note(t *tenant) {
	if t.changed < 0 {
		t.changed = int32(len(l.changed))
		l.changed = append(l.changed, t)
	}
}

// drop forgets a tenant.
func (l *loads) drop(t *tenant) {
	if i := t.changed; i >= 0 {
		last := len(l.changed) - 1
		l.changed[i] = l.changed[last]
		l.changed[i].changed = i
		l.changed[last] = nil
		l.changed = l.changed[:last]
		t.changed = -1
	}
	if t.byLoad.in() {
		l.heap.Remove(&t.byLoad)
	}
}

// noteAll has every tenant looked at again.
func (l *loads) noteAll() {
	for i := range l.heap.elems {
		l.note(l.heap.elems[i].spot.of)
	}
}

// loads is the tenants of a class by what they fill now.
func (q *Queue) loads(c *class) *Heap[tenant] {
	l := &c.loads
	for i, t := range l.changed {
		t.load = q.fill(int64(t.waiting), t.bytes, t.work, t.weight)
		if !t.byLoad.in() {
			l.heap.Push(t, &t.byLoad, -t.load, t.order)
		} else {
			l.heap.Fix(&t.byLoad, -t.load)
		}
		t.changed = -1
		l.changed[i] = nil
	}
	l.changed = l.changed[:0]
	return &l.heap
}
