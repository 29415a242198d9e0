package sched

// The tenant and the line that an arrival or a turn works on are in no cache where very
// many wait, and are of several cache lines each: one would wait for the other if each was
// read when it is asked for. So a word of each is read first, and they come from memory
// together. What is returned is good for nothing but to be kept, else nothing would be
// read.

func (t *tenant) fetch() uint64 {
	return uint64(t.weight ^ int64(t.last) ^ t.bytes ^ int64(t.seat.inLane.at) ^ int64(t.seat.lines) ^ int64(t.project.order) ^ int64(t.project.node.inSeat.at) ^ int64(t.project.node.all))
}

func (l *line) fetch() uint64 { return l.hash ^ uint64(l.id.size) }
