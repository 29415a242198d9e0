package estimate

// table is a map of bounded size that drops the least recently used entry. It
// is deterministic: the same calls leave the same entries.
type table[K comparable, V any] struct {
	limit int
	index map[K]int32
	nodes []node[K, V] // nodes[0] is the ring's head: next is the newest
}

type node[K comparable, V any] struct {
	key        K
	value      V
	prev, next int32
}

func newTable[K comparable, V any](limit int) *table[K, V] {
	return &table[K, V]{limit: limit, index: map[K]int32{}, nodes: make([]node[K, V], 1)}
}

// get finds an entry and marks it as used; nil if there is none. The pointer is
// good until the next put.
func (t *table[K, V]) get(k K) *V {
	i, ok := t.index[k]
	if !ok {
		return nil
	}
	t.unlink(i)
	t.link(i)
	return &t.nodes[i].value
}

// put finds an entry or makes an empty one, in the place of the oldest if the
// table is full.
func (t *table[K, V]) put(k K) *V {
	if v := t.get(k); v != nil {
		return v
	}
	var i int32
	if len(t.nodes) <= t.limit {
		t.nodes = append(t.nodes, node[K, V]{})
		i = int32(len(t.nodes) - 1)
	} else {
		i = t.nodes[0].prev
		t.unlink(i)
		delete(t.index, t.nodes[i].key)
		t.nodes[i] = node[K, V]{}
	}
	t.nodes[i].key = k
	t.index[k] = i
	t.link(i)
	return &t.nodes[i].value
}

func (t *table[K, V]) len() int { return len(t.index) }

// link puts a node at the front of the ring.
func (t *table[K, V]) link(i int32) {
	first := t.nodes[0].next
	t.nodes[i].prev, t.nodes[i].next = 0, first
	t.nodes[first].prev = i
	t.nodes[0].next = i
}

func (t *table[K, V]) unlink(i int32) {
	p, n := t.nodes[i].prev, t.nodes[i].next
	t.nodes[p].next, t.nodes[n].prev = n, p
}
