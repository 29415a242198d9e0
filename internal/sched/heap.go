package sched

// Order is how a heap orders its elements and where each keeps its index, so
// that any of them can be moved or removed. Its zero value is used.
type Order[E any] interface {
	Less(a, b E) bool
	Moved(e E, index int) // index -1 when e has left
}

// Heap is a binary heap with the least element on top. The zero value is empty.
type Heap[E any, O Order[E]] struct {
	elems []E
	order O
}

// Len is how many elements there are.
func (h *Heap[E, O]) Len() int { return len(h.elems) }

// Top is the least element. REQUIRES: Len() > 0.
func (h *Heap[E, O]) Top() E { return h.elems[0] }

// Push adds an element.
func (h *Heap[E, O]) Push(e E) {
	h.elems = append(h.elems, e)
	h.up(len(h.elems) - 1)
}

// Fix restores the order after the element at i has changed.
func (h *Heap[E, O]) Fix(i int) {
	if !h.down(i) {
		h.up(i)
	}
}

// Remove takes the element at i out.
func (h *Heap[E, O]) Remove(i int) {
	var none E
	e, last := h.elems[i], len(h.elems)-1
	h.elems[i] = h.elems[last]
	h.elems[last] = none
	h.elems = h.elems[:last]
	if i != last {
		h.Fix(i)
	}
	h.order.Moved(e, -1)
}

// up moves the element at i towards the top: the others move down over it, and
// it is put in its place once.
func (h *Heap[E, O]) up(i int) {
	e := h.elems[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !h.order.Less(e, h.elems[parent]) {
			break
		}
		h.elems[i] = h.elems[parent]
		h.order.Moved(h.elems[i], i)
		i = parent
	}
	h.elems[i] = e
	h.order.Moved(e, i)
}

// down moves the element at i away from the top. It reports whether it moved.
func (h *Heap[E, O]) down(i int) bool {
	e, at := h.elems[i], i
	for {
		child := 2*at + 1
		if child >= len(h.elems) {
			break
		}
		if r := child + 1; r < len(h.elems) && h.order.Less(h.elems[r], h.elems[child]) {
			child = r
		}
		if !h.order.Less(h.elems[child], e) {
			break
		}
		h.elems[at] = h.elems[child]
		h.order.Moved(h.elems[at], at)
		at = child
	}
	h.elems[at] = e
	h.order.Moved(e, at)
	return at != i
}
