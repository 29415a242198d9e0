package sched

// lane is the requests of a class that the same backends could serve and that
// are, or are not, lent what is reserved: whether one of them could start at all
// is decided for all of them at once.
type lane struct {
	class *class
	set   Set
	short bool       // predicted to end within the time in which a reserve must be back
	seats Heap[seat] // by virtual time
	kv    Heap[line] // ready lines, the least memory on top, if sized
	fill  Heap[line] // ready lines, the least prefill on top, if sized
	sized bool       // a head has not fitted since the lane began
	lines int        // ready or parked; the lane ends with the last

	stranded bool // scratch of Stranded
}

// seat is a tenant in a lane.
type seat struct {
	inLane Spot[seat]     // unless nothing of it is ready
	nodes  Heap[node]     // by virtual time
	aNode  [1]entry[node] // see own
	lane   *lane
	tenant *tenant
	next   *seat // of its tenant
	lines  int
}

// node is a project in a seat.
type node struct {
	project *project
	seat    *seat
	next    *node      // of its project
	inSeat  Spot[node] // unless nothing of it is ready
	lines   Heap[line] // by head
	aLine   [1]entry[line]
	all     int // lines, parked ones too
}

// head is the item of the seat that is served next.
func (s *seat) head() *Item { return s.nodes.Top().lines.Top().head }

// lineOf finds or makes the line for an item.
func (q *Queue) lineOf(it *Item) *line {
	p := it.project
	ln := q.laneOf(p.tenant.class, it)
	id := lineID{project: p, lane: ln, key: it.Flow.Key, model: it.Flow.Model, size: it.size()}
	if q.policy.FIFO {
		id.size = 0
	}
	if l := it.Seen.lineOf(&id); l != nil {
		return l
	}
	if l := q.lines.Find(id); l != nil {
		return l
	}
	n := q.nodeOf(p, ln)
	l := take(&q.spare.lines)
	*l = line{id: id, node: n, inLot: -1}
	l.hash = q.lines.Add(l)
	n.all++
	n.seat.lines++
	ln.lines++
	return l
}

func (q *Queue) laneOf(c *class, it *Item) *lane {
	short := q.short(it)
	for _, l := range c.lanes {
		if l.short == short && l.set == it.Backends {
			return l
		}
	}
	l := take(&q.spare.lanes)
	*l = lane{class: c, set: it.Backends, short: short, seats: l.seats, kv: l.kv, fill: l.fill}
	c.lanes = append(c.lanes, l)
	return l
}

// nodeOf finds or makes a project's node in a lane.
func (q *Queue) nodeOf(p *project, ln *lane) *node {
	end := &p.nodes
	for ; *end != nil; end = &(*end).next {
		if n := *end; n.seat.lane == ln {
			return n
		}
	}
	n := &p.node
	if n.seat != nil {
		n = take(&q.spare.nodes)
	}
	n.project, n.seat, n.all, n.next = p, q.seatOf(p.tenant, ln), 0, nil
	n.lines.elems = own(n.lines.elems, n.aLine[:])
	*end = n
	return n
}

// seatOf finds or makes a tenant's seat in a lane.
func (q *Queue) seatOf(t *tenant, ln *lane) *seat {
	end := &t.seats
	for ; *end != nil; end = &(*end).next {
		if s := *end; s.lane == ln {
			return s
		}
	}
	s := &t.seat
	if s.lane != nil {
		s = take(&q.spare.seats)
	}
	s.tenant, s.lane, s.lines, s.next = t, ln, 0, nil
	s.nodes.elems = own(s.nodes.elems, s.aNode[:])
	*end = s
	return s
}

// enter lets a line compete: it has a head and is not parked. What has not
// competed before starts where the others are.
func (q *Queue) enter(l *line) {
	n := l.node
	s, p := n.seat, n.project
	t, c := s.tenant, s.lane.class
	n.lines.Push(l, &l.inNode, l.head.since, l.head.order)
	if s.lane.sized {
		s.lane.rank(l)
	}
	if n.inSeat.in() {
		return
	}
	if p.ready == 0 {
		p.vt = max(p.vt, t.floor())
	}
	p.ready++
	if s.nodes.Len() == 1 { // whose key was of no use while it was alone
		o := s.nodes.Top()
		s.nodes.Fix(&o.inSeat, int64(o.project.vt))
	}
	s.nodes.Push(n, &n.inSeat, int64(p.vt), p.order)
	if s.inLane.in() {
		return
	}
	if t.ready == 0 {
		t.vt = max(t.vt, c.floor())
		c.weights += t.weight
	}
	t.ready++
	if c.ready == 0 {
		c.vt = max(c.vt, q.floor())
	}
	c.ready++
	s.lane.seats.Push(s, &s.inLane, int64(t.vt), t.order)
}

// leave ends what enter began: the line is empty or parked.
func (q *Queue) leave(l *line) {
	n := l.node
	s := n.seat
	t, c := s.tenant, s.lane.class
	n.lines.Remove(&l.inNode)
	if s.lane.sized {
		s.lane.kv.Remove(&l.byKV)
		s.lane.fill.Remove(&l.byPrefill)
	}
	if n.lines.Len() > 0 {
		return
	}
	n.project.ready--
	s.nodes.Remove(&n.inSeat)
	if s.nodes.Len() > 0 {
		return
	}
	t.ready--
	if t.ready == 0 {
		c.weights -= t.weight
	}
	c.ready--
	s.lane.seats.Remove(&s.inLane)
}

// Stranded lists what waits, parked or not, for backends of which ok reports true,
// in order of arrival within its class.
func (q *Queue) Stranded(ok func(*Set) bool) (out []*Item) {
	for c := range q.classes {
		any := false
		for _, l := range q.classes[c].lanes {
			l.stranded = ok(&l.set)
			any = any || l.stranded
		}
		if !any {
			continue
		}
		for _, it := range q.items(&q.classes[c]) {
			if it.line.id.lane.stranded {
				out = append(out, it)
			}
		}
	}
	return out
}

// Regroup takes up other sets of backends for what waits. Nothing loses its
// place. REQUIRES: nothing is parked.
func (q *Queue) Regroup(set func(*Item) Set) {
	for c := range q.classes {
		for _, it := range q.items(&q.classes[c]) {
			if now := set(it); now != it.Backends {
				q.gathers, q.closed = nil, false
				q.quit(it)
				it.Backends = now
				q.join(it)
			}
		}
	}
}

// reorder puts a line right whose head has changed while it competes.
func (l *line) reorder() {
	l.node.lines.Replace(&l.inNode, l.head.since, l.head.order)
	if ln := l.node.seat.lane; ln.sized {
		ln.kv.Replace(&l.byKV, l.head.Need[KV], l.head.order)
		ln.fill.Replace(&l.byPrefill, l.head.Need[Prefill], l.head.order)
	}
}

// size orders the lane's lines by need, from now on: a head does not fit, and what
// is smaller may pass it.
func (ln *lane) size() {
	if ln.sized {
		return
	}
	ln.sized = true
	for i := range ln.seats.elems {
		s := ln.seats.elems[i].spot.of
		for j := range s.nodes.elems {
			n := s.nodes.elems[j].spot.of
			for k := range n.lines.elems {
				ln.rank(n.lines.elems[k].spot.of)
			}
		}
	}
}

// rank enters a line into the orders by need.
func (ln *lane) rank(l *line) {
	ln.kv.Push(l, &l.byKV, l.head.Need[KV], l.head.order)
	ln.fill.Push(l, &l.byPrefill, l.head.Need[Prefill], l.head.order)
}

// dropLine forgets a line that is empty, and what ends with it.
func (q *Queue) dropLine(l *line) {
	q.lines.RemoveHashed(l, l.hash)
	l.id = lineID{} // see Seen
	n := l.node
	s := n.seat
	ln := s.lane
	give(&q.spare.lines, l)
	if n.all--; n.all == 0 {
		q.dropNode(n)
	}
	if s.lines--; s.lines == 0 {
		q.dropSeat(s)
	}
	if ln.lines--; ln.lines == 0 {
		ln.class.lanes = without(ln.class.lanes, ln)
		give(&q.spare.lanes, ln)
	}
}

func (q *Queue) dropNode(n *node) {
	at := &n.project.nodes
	for *at != n {
		at = &(*at).next
	}
	*at = n.next
	if n.seat = nil; n != &n.project.node {
		give(&q.spare.nodes, n)
	}
}

func (q *Queue) dropSeat(s *seat) {
	at := &s.tenant.seats
	for *at != s {
		at = &(*at).next
	}
	*at = s.next
	if s.lane = nil; s != &s.tenant.seat {
		give(&q.spare.seats, s)
	}
}

// without takes an element out of a short list and keeps the order of the rest:
// decisions go through lanes in it.
func without[E comparable](list []E, e E) []E {
	for i := range list {
		if list[i] == e {
			copy(list[i:], list[i+1:])
			break
		}
	}
	var none E
	list[len(list)-1] = none
	return list[:len(list)-1]
}
