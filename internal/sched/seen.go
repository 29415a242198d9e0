package sched

import "sluice/internal/prefetch"

// Seen is where the last item of a flow stood in a queue. Who pushes items and keeps one
// for each flow spares the queue the look-ups by name, of the tenant and of the line:
// those are in no cache where there are very many. It may be of another flow, or of what
// the queue has forgotten since: then it is of no use and does no harm. The zero value
// has seen nothing.
type Seen struct {
	queue  *Queue
	tenant *tenant
	line   *line
}

// Prefetch asks the processor for them.
func (s *Seen) Prefetch() {
	prefetch.Of(s.tenant)
	prefetch.Of(s.line)
}

// Recall tells the queue in which the last item stood that it will be asked about its
// tenant next.
func (s *Seen) Recall() {
	if t := s.tenant; t != nil && t.class != nil { // else it is forgotten
		s.queue.tenants.look(t.id, t)
	}
}

// note keeps where an item stands.
func (s *Seen) note(q *Queue, it *Item) { s.queue, s.tenant, s.line = q, it.tenant, it.line }

// lineOf is the line of an id, if that is the one that was seen last.
func (s *Seen) lineOf(id *lineID) *line {
	if s != nil && s.line != nil && s.line.id == *id {
		return s.line
	}
	return nil
}
