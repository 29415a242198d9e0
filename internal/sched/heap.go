package sched

import (
	"math/bits"
	"slices"
	"sort"
)

// Heap is a heap with the element of the least key on top. Every node has four
// children, and what is compared lies together in memory: keys are kept beside the
// elements. The zero value is empty.
type Heap[E any] struct {
	elems []entry[E]
}

type entry[E any] struct {
	key  uint64 // biased, so that its order is that of unsigned figures
	tie  uint64 // orders those of equal keys
	spot *Spot[E]
}

// Spot is where an element is in a heap: part of the element, so that any can be moved
// or removed. Who is overtaken by one that goes down is not told, since it is in no cache:
// so an element is where its spot says, or above that.
type Spot[E any] struct {
	of *E
	at int32 // its index, plus one, or that of one below it; 0: it is in no heap
}

func (s *Spot[E]) in() bool { return s.at != 0 }

// less is 1 if a is less than b, else 0: which of four is the least is anybody's guess,
// so that no branch should be made of it.
func (a *entry[E]) less(b *entry[E]) uint64 {
	_, borrow := bits.Sub64(a.tie, b.tie, 0)
	_, borrow = bits.Sub64(a.key, b.key, borrow)
	return borrow
}

// Len is how many elements there are.
func (h *Heap[E]) Len() int { return len(h.elems) }

// Top is the least element. REQUIRES: Len() > 0.
func (h *Heap[E]) Top() *E { return h.elems[0].spot.of }

// Key is that of the least element. REQUIRES: Len() > 0.
func (h *Heap[E]) Key() int64 { return int64(h.elems[0].key ^ 1<<63) }

// Push adds an element, ordered by key and, of equal keys, by tie. REQUIRES: its spot
// is in no heap.
func (h *Heap[E]) Push(e *E, spot *Spot[E], key int64, tie uint64) {
	spot.of = e
	if len(h.elems) == cap(h.elems) {
		h.grow()
	}
	i := len(h.elems)
	h.elems = h.elems[:i+1]
	h.up(i, entry[E]{biased(key), tie, spot})
}

// grow makes room for as many again. The root is the last of its four, so that all
// children of a node lie in two cache lines.
func (h *Heap[E]) grow() {
	room := make([]entry[E], 2*max(arity, arity-1+len(h.elems)))[arity-1:]
	h.elems = room[:copy(room, h.elems)]
}

func biased(key int64) uint64 { return uint64(key) ^ 1<<63 }

// Fix restores the order after the key of an element has changed. REQUIRES: its spot
// is in this heap, as for what follows.
func (h *Heap[E]) Fix(spot *Spot[E], key int64) {
	i := h.find(spot)
	n := &h.elems[i]
	if n.key == biased(key) {
		return
	}
	n.key = biased(key)
	if len(h.elems) > 1 { // very many are alone
		h.put(i, *n)
	}
}

// find is the index of an element.
func (h *Heap[E]) find(spot *Spot[E]) int {
	i := int(spot.at - 1)
	for i >= len(h.elems) || h.elems[i].spot != spot {
		i = (i - 1) / arity
	}
	return i
}

// Replace restores the order after both figures of an element have changed.
func (h *Heap[E]) Replace(spot *Spot[E], key int64, tie uint64) {
	i := h.find(spot)
	n := &h.elems[i]
	n.key, n.tie = biased(key), tie
	h.put(i, *n)
}

// Remove takes an element out.
func (h *Heap[E]) Remove(spot *Spot[E]) {
	i, last := h.find(spot), len(h.elems)-1
	n := h.elems[last]
	h.elems[last] = entry[E]{}
	h.elems = h.elems[:last]
	if i != last {
		h.put(i, n)
	}
	spot.at = 0
}

const arity = 4

// put places an entry at i, or where it belongs from there.
func (h *Heap[E]) put(i int, n entry[E]) {
	if i > 0 && n.less(&h.elems[(i-1)/arity]) != 0 {
		h.up(i, n)
		return
	}
	h.down(i, n)
}

// up places an entry at i or nearer to the top: the others move down over it.
func (h *Heap[E]) up(i int, n entry[E]) {
	for i > 0 {
		parent := (i - 1) / arity
		if n.less(&h.elems[parent]) == 0 {
			break
		}
		e := h.elems[parent]
		h.elems[i], e.spot.at = e, int32(i+1)
		i = parent
	}
	h.elems[i], n.spot.at = n, int32(i+1)
}

// down places an entry at i or farther from the top.
func (h *Heap[E]) down(i int, n entry[E]) {
	elems := h.elems
	for {
		least := arity*i + 1
		if least+arity <= len(elems) {
			c := (*[arity]entry[E])(elems[least:])
			a, b := c[1].less(&c[0]), 2+c[3].less(&c[2])
			least += int(a ^ (a^b)&-c[b%arity].less(&c[a%arity]))
		} else if least < len(elems) {
			for c := least + 1; c < len(elems); c++ {
				if elems[c].less(&elems[least]) != 0 {
					least = c
				}
			}
		} else {
			break
		}
		e := elems[least]
		if e.less(&n) == 0 {
			break
		}
		elems[i] = e
		i = least
	}
	elems[i], n.spot.at = n, int32(i+1)
}

// first is the n least elements, in order, in O(n log n) comparisons.
func (h *Heap[E]) first(n int) (out []*E) {
	if n <= 0 || len(h.elems) == 0 {
		return nil
	}
	edge := []int{0} // in order: elements whose parents are in out
	for len(out) < n && len(edge) > 0 {
		at := edge[0]
		edge = edge[1:]
		out = append(out, h.elems[at].spot.of)
		for child := arity*at + 1; child <= arity*at+arity && child < len(h.elems); child++ {
			i := sort.Search(len(edge), func(i int) bool { return h.elems[child].less(&h.elems[edge[i]]) != 0 })
			edge = slices.Insert(edge, i, child)
		}
	}
	return out
}
