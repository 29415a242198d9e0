package sched

// Heap is a binary heap whose elements know their index, so that any of them can
// be moved or removed.
type Heap[E any] struct {
	elems []E
	less  func(a, b E) bool
	moved func(e E, index int) // index -1 when e has left
}

// NewHeap makes a heap with the least element on top. moved is told the index of
// every element that changes place.
func NewHeap[E any](less func(a, b E) bool, moved func(e E, index int)) *Heap[E] {
	return &Heap[E]{less: less, moved: moved}
}

// Len is how many elements there are.
func (h *Heap[E]) Len() int { return len(h.elems) }

// Top is the least element. REQUIRES: Len() > 0.
func (h *Heap[E]) Top() E { return h.elems[0] }

// Push adds an element.
func (h *Heap[E]) Push(e E) {
	h.elems = append(h.elems, e)
	h.moved(e, len(h.elems)-1)
	h.up(len(h.elems) - 1)
}

// Fix restores the order after the element at i has changed.
func (h *Heap[E]) Fix(i int) {
	if !h.down(i) {
		h.up(i)
	}
}

// Remove takes the element at i out.
func (h *Heap[E]) Remove(i int) {
	var none E
	e, last := h.elems[i], len(h.elems)-1
	if i != last {
		h.swap(i, last)
	}
	h.elems[last] = none
	h.elems = h.elems[:last]
	if i != last {
		h.Fix(i)
	}
	h.moved(e, -1)
}

func (h *Heap[E]) swap(i, j int) {
	h.elems[i], h.elems[j] = h.elems[j], h.elems[i]
	h.moved(h.elems[i], i)
	h.moved(h.elems[j], j)
}

func (h *Heap[E]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(h.elems[i], h.elems[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *Heap[E]) down(i int) (sank bool) {
	for {
		child := 2*i + 1
		if child >= len(h.elems) {
			return sank
		}
		if r := child + 1; r < len(h.elems) && h.less(h.elems[r], h.elems[child]) {
			child = r
		}
		if !h.less(h.elems[child], h.elems[i]) {
			return sank
		}
		h.swap(i, child)
		i, sank = child, true
	}
}
