package sched

// lane is the requests of a class that the same backends could serve and that
// are, or are not, lent what is reserved: whether one of them could start at all
// is decided for all of them at once.
type lane struct {
	class *class
	set   Set
	short bool // predicted to end within the time in which a reserve must be back
	seats Heap[*seat, byVirtual]
	kv    Heap[*line, byKV]      // ready lines, the least memory on top, if sized
	fill  Heap[*line, byPrefill] // ready lines, the least prefill on top, if sized
	sized bool                   // a head has not fitted since the lane began
	lines int                    // ready or parked; the lane ends with the last

	stranded bool // scratch of Stranded
}

// seat is a tenant in a lane.
type seat struct {
	tenant *tenant
	lane   *lane
	nodes  Heap[*node, byProject]
	lines  int
	inLane int             // -1: nothing of it is ready
	aNode  [1]entry[*node] // see own
}

// node is a project in a seat.
type node struct {
	project *project
	seat    *seat
	lines   Heap[*line, byHead]
	all     int // lines, parked ones too
	inSeat  int // -1: nothing of it is ready
	aLine   [1]entry[*line]
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
	if l := q.lines.Find(id); l != nil {
		return l
	}
	n := q.nodeOf(p, ln)
	l := take(&q.spare.lines)
	*l = line{id: id, node: n, inNode: -1, inLot: -1, byNeed: [dimensions]int{-1, -1, -1}}
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

func (q *Queue) nodeOf(p *project, ln *lane) *node {
	for _, n := range p.nodes {
		if n.seat.lane == ln {
			return n
		}
	}
	var s *seat
	for _, have := range p.tenant.seats {
		if have.lane == ln {
			s = have
		}
	}
	if s == nil {
		s = take(&q.spare.seats)
		*s = seat{tenant: p.tenant, lane: ln, nodes: s.nodes, inLane: -1}
		s.nodes.elems = own(s.nodes.elems, s.aNode[:])
		p.tenant.seats = append(p.tenant.seats, s)
	}
	n := take(&q.spare.nodes)
	*n = node{project: p, seat: s, lines: n.lines, inSeat: -1}
	n.lines.elems = own(n.lines.elems, n.aLine[:])
	p.nodes = append(p.nodes, n)
	return n
}

// enter lets a line compete: it has a head and is not parked. What has not
// competed before starts where the others are.
func (q *Queue) enter(l *line) {
	n := l.node
	s, p := n.seat, n.project
	t, c := s.tenant, s.lane.class
	n.lines.Push(l)
	if s.lane.sized {
		s.lane.kv.Push(l)
		s.lane.fill.Push(l)
	}
	if n.inSeat >= 0 {
		return
	}
	if p.ready == 0 {
		p.vt = max(p.vt, t.floor())
	}
	p.ready++
	s.nodes.Push(n)
	if s.inLane >= 0 {
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
	s.lane.seats.Push(s)
}

// leave ends what enter began: the line is empty or parked.
func (q *Queue) leave(l *line) {
	n := l.node
	s := n.seat
	t, c := s.tenant, s.lane.class
	n.lines.Remove(l.inNode)
	if s.lane.sized {
		s.lane.kv.Remove(l.byNeed[KV])
		s.lane.fill.Remove(l.byNeed[Prefill])
	}
	if n.lines.Len() > 0 {
		return
	}
	n.project.ready--
	s.nodes.Remove(n.inSeat)
	if s.nodes.Len() > 0 {
		return
	}
	t.ready--
	if t.ready == 0 {
		c.weights -= t.weight
	}
	c.ready--
	s.lane.seats.Remove(s.inLane)
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
		for _, it := range q.classes[c].items() {
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
		for _, it := range q.classes[c].items() {
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
	l.node.lines.Fix(l.inNode)
	if ln := l.node.seat.lane; ln.sized {
		ln.kv.Fix(l.byNeed[KV])
		ln.fill.Fix(l.byNeed[Prefill])
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
		s := ln.seats.elems[i].e
		for j := range s.nodes.elems {
			n := s.nodes.elems[j].e
			for k := range n.lines.elems {
				ln.kv.Push(n.lines.elems[k].e)
				ln.fill.Push(n.lines.elems[k].e)
			}
		}
	}
}

// dropLine forgets a line that is empty, and what ends with it.
func (q *Queue) dropLine(l *line) {
	q.lines.RemoveHashed(l, l.hash)
	n := l.node
	s := n.seat
	ln := s.lane
	give(&q.spare.lines, l)
	if n.all--; n.all == 0 {
		n.project.nodes = without(n.project.nodes, n)
		give(&q.spare.nodes, n)
	}
	if s.lines--; s.lines == 0 {
		s.tenant.seats = without(s.tenant.seats, s)
		give(&q.spare.seats, s)
	}
	if ln.lines--; ln.lines == 0 {
		ln.class.lanes = without(ln.class.lanes, ln)
		give(&q.spare.lanes, ln)
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

// byVirtual is the order of tenants in a lane.
type byVirtual struct{}

func (byVirtual) Key(s *seat) (int64, uint64) { return int64(s.tenant.vt), s.tenant.order }
func (byVirtual) Moved(s *seat, i int)        { s.inLane = i }

// byProject is the order of projects in a seat.
type byProject struct{}

func (byProject) Key(n *node) (int64, uint64) { return int64(n.project.vt), n.project.order }
func (byProject) Moved(n *node, i int)        { n.inSeat = i }

// byHead is the order of flows in a node.
type byHead struct{}

func (byHead) Key(l *line) (int64, uint64) { return l.head.since, l.head.order }
func (byHead) Moved(l *line, i int)        { l.inNode = i }

type byKV struct{}

func (byKV) Key(l *line) (int64, uint64) { return l.head.Need[KV], l.head.order }
func (byKV) Moved(l *line, i int)        { l.byNeed[KV] = i }

type byPrefill struct{}

func (byPrefill) Key(l *line) (int64, uint64) { return l.head.Need[Prefill], l.head.order }
func (byPrefill) Moved(l *line, i int)        { l.byNeed[Prefill] = i }
