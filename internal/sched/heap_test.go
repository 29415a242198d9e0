package sched

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestHeapAgainstList does to a heap what it does to a list, and compares.
func TestHeapAgainstList(t *testing.T) {
	type thing struct {
		key  int64
		tie  uint64
		spot Spot[thing]
	}
	less := func(a, b *thing) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.tie, b.tie)) }
	rapid.Check(t, func(t *rapid.T) {
		var h Heap[thing]
		var list []*thing
		key := rapid.Int64Range(-3, 40)
		for tie := range uint64(rapid.IntRange(1, 200).Draw(t, "steps")) {
			var some *thing
			if len(list) > 0 {
				some = rapid.SampledFrom(list).Draw(t, "thing")
			}
			switch op := rapid.IntRange(0, 5).Draw(t, "op"); {
			case op < 3 || some == nil:
				e := &thing{key: key.Draw(t, "key"), tie: tie}
				h.Push(e, &e.spot, e.key, e.tie)
				list = append(list, e)
			case op == 3:
				some.key = key.Draw(t, "key")
				h.Fix(&some.spot, some.key)
			case op == 4:
				some.key, some.tie = key.Draw(t, "key"), tie
				h.Replace(&some.spot, some.key, some.tie)
			default:
				h.Remove(&some.spot)
				if some.spot.in() {
					t.Fatal("what was removed is in the heap")
				}
				list = slices.DeleteFunc(list, func(e *thing) bool { return e == some })
			}
			if h.Len() != len(list) {
				t.Fatalf("%d elements, want %d", h.Len(), len(list))
			}
			if len(list) == 0 {
				continue
			}
			if least := slices.MinFunc(list, less); h.Top() != least || h.Key() != least.key {
				t.Fatalf("top is %+v of key %d, want %+v", *h.Top(), h.Key(), *least)
			}
			for i, n := range h.elems {
				if h.find(n.spot) != i || n.spot.of.key != int64(n.key^1<<63) {
					t.Fatalf("entry %d has key %d and is of %+v", i, n.key, *n.spot.of)
				}
			}
		}
		slices.SortFunc(list, less)
		if got := h.first(len(list)); !slices.Equal(got, list) {
			t.Fatalf("in order %v, want %v", got, list)
		}
	})
}
