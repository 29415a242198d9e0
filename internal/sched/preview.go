package sched

import "sluice/internal/prefetch"

// Preview is what a queue is likely to pick next, as far as it has been looked up. The way
// there is from a tenant to its line and from that to the item, and none of them is in a
// cache where very many wait. So it is gone a step at a time, while a place is given back,
// and each step asks the processor for what the next one reads. It decides nothing: it may
// be wrong, and may be of what has left meanwhile. The zero value is of no queue.
type Preview struct {
	queue *Queue
	step  uint8
	seat  *Spot[seat]
	line  *Spot[line]
	item  *Item
}

// Preview begins to look for what is next as things are now.
func (q *Queue) Preview() Preview { return Preview{queue: q} }

// previewSteps is how many there are.
const previewSteps = 5

// Step makes the next step. It returns the item from when that is known, nil before; the
// driver, who knows what lies around it, is to ask for that. Steps beyond the last do
// nothing.
func (p *Preview) Step() *Item {
	if p.queue == nil || p.step == previewSteps {
		return p.item
	}
	switch p.step++; p.step {
	case 1:
		if p.seat = p.queue.leader(); p.seat != nil {
			prefetch.Around(p.seat, seatBefore, seatBytes)
		}
	case 2:
		if p.seat != nil && p.seat.in() {
			p.line = p.seat.of.nodes.Top().lines.elems[0].spot
			prefetch.From(p.line, lineTurn)
		}
	case 3:
		if p.line != nil && p.line.in() {
			p.item = p.line.of.head
		}
	case 4:
		if it := p.item; it != nil {
			prefetch.Of(&p.queue.roster.posts[it.post])
			if next := it.after; next != nil {
				prefetch.From(&next.line, itemTurn)
			}
		}
	case 5:
		if it := p.item; it != nil {
			p.queue.roster.prefetch(it.post)
		}
	}
	return p.item
}

// What a turn asks for, in bytes: see TestLayout. A spot comes first in a seat, which most
// often is a part of its tenant, and in a line.
const (
	seatBefore = 192 // of a tenant before its seat
	seatBytes  = 264 // from there to the end of its first project
	lineTurn   = 128
	itemTurn   = 64
)

// leader is the seat whose turn it is in the class whose turn it is, if every place suited
// all and nobody had a contract; nil if nothing is ready. It looks at no seat.
func (q *Queue) leader() *Spot[seat] {
	var c *class
	for i := range q.classes {
		if next := &q.classes[i]; next.ready > 0 && (c == nil || next.before(c)) {
			c = next
		}
	}
	if c == nil {
		return nil
	}
	var first *entry[seat]
	for _, l := range c.lanes {
		if l.seats.Len() > 0 && (first == nil || l.seats.elems[0].less(first) != 0) {
			first = &l.seats.elems[0]
		}
	}
	return first.spot
}

// prefetch asks for the posts that are told when one is left.
func (r *roster) prefetch(post int32) {
	for _, l := range r.posts[post].links {
		prefetch.Of(&r.posts[l.before])
		prefetch.Of(&r.posts[l.after])
	}
}
