package sched

import (
	"slices"
	"sort"
)

// Order is how a heap orders its elements and where each keeps its index, so
// that any of them can be moved or removed. Its zero value is used.
type Order[E any] interface {
	// Key orders elements: by the first figure, of equal ones by the second.
	Key(e E) (int64, uint64)
	// Moved notes an element's index, -1 when it has left.
	Moved(e E, index int)
}

// Heap is a heap with the least element on top. Every node has four children, and
// keys are kept beside the elements: what is compared lies together in memory. The
// zero value is empty.
type Heap[E any, O Order[E]] struct {
	elems []entry[E]
	order O
}

type entry[E any] struct {
	key int64
	tie uint64
	e   E
}

func (a *entry[E]) less(b *entry[E]) bool {
	return a.key < b.key || a.key == b.key && a.tie < b.tie
}

// Len is how many elements there are.
func (h *Heap[E, O]) Len() int { return len(h.elems) }

// Top is the least element. REQUIRES: Len() > 0.
func (h *Heap[E, O]) Top() E { return h.elems[0].e }

// Push adds an element.
func (h *Heap[E, O]) Push(e E) {
	n := entry[E]{e: e}
	n.key, n.tie = h.order.Key(e)
	h.elems = append(h.elems, n)
	h.up(len(h.elems)-1, n)
}

// Fix restores the order after the key of the element at i has changed.
func (h *Heap[E, O]) Fix(i int) {
	n := h.elems[i]
	key, tie := h.order.Key(n.e)
	if key == n.key && tie == n.tie {
		return
	}
	n.key, n.tie = key, tie
	h.put(i, n)
}

// Remove takes the element at i out.
func (h *Heap[E, O]) Remove(i int) {
	last := len(h.elems) - 1
	gone, n := h.elems[i].e, h.elems[last]
	h.elems[last] = entry[E]{}
	h.elems = h.elems[:last]
	if i != last {
		h.put(i, n)
	}
	h.order.Moved(gone, -1)
}

const arity = 4

// put places an entry at i, or where it belongs from there.
func (h *Heap[E, O]) put(i int, n entry[E]) {
	if i > 0 && n.less(&h.elems[(i-1)/arity]) {
		h.up(i, n)
		return
	}
	h.down(i, n)
}

// up places an entry at i or nearer to the top: the others move down over it.
func (h *Heap[E, O]) up(i int, n entry[E]) {
	for i > 0 {
		parent := (i - 1) / arity
		if !n.less(&h.elems[parent]) {
			break
		}
		h.elems[i] = h.elems[parent]
		h.order.Moved(h.elems[i].e, i)
		i = parent
	}
	h.elems[i] = n
	h.order.Moved(n.e, i)
}

// down places an entry at i or farther from the top.
func (h *Heap[E, O]) down(i int, n entry[E]) {
	for {
		child := arity*i + 1
		if child >= len(h.elems) {
			break
		}
		least := child
		for c := child + 1; c < min(child+arity, len(h.elems)); c++ {
			if h.elems[c].less(&h.elems[least]) {
				least = c
			}
		}
		if !h.elems[least].less(&n) {
			break
		}
		h.elems[i] = h.elems[least]
		h.order.Moved(h.elems[i].e, i)
		i = least
	}
	h.elems[i] = n
	h.order.Moved(n.e, i)
}

// first is the n least elements, in order, in O(n log n) comparisons.
func (h *Heap[E, O]) first(n int) (out []E) {
	if n <= 0 || len(h.elems) == 0 {
		return nil
	}
	edge := []int{0} // in order: elements whose parents are in out
	for len(out) < n && len(edge) > 0 {
		at := edge[0]
		edge = edge[1:]
		out = append(out, h.elems[at].e)
		for child := arity*at + 1; child <= arity*at+arity && child < len(h.elems); child++ {
			i := sort.Search(len(edge), func(i int) bool { return h.elems[child].less(&h.elems[edge[i]]) })
			edge = slices.Insert(edge, i, child)
		}
	}
	return out
}
