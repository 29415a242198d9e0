package sched

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestLine holds a line to a sorted slice, whenever its items came.
func TestLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, want := &line{}, []*Item(nil)
		for n := range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(want) > 0 && rapid.IntRange(0, 2).Draw(t, "leaves") == 0 {
				i := rapid.IntRange(0, len(want)-1).Draw(t, "item")
				l.remove(want[i])
				want = slices.Delete(want, i, i+1)
			} else {
				it := &Item{since: rapid.Int64Range(0, 9).Draw(t, "since"), order: uint64(n)}
				l.insert(it)
				i := slices.IndexFunc(want, it.less)
				if i < 0 {
					i = len(want)
				}
				want = slices.Insert(want, i, it)
			}
			var forth, back []*Item
			for it := l.head; it != nil; it = it.after {
				forth = append(forth, it)
			}
			for it := l.tail; it != nil; it = it.ahead {
				back = append(back, it)
			}
			slices.Reverse(back)
			if !slices.Equal(forth, want) || !slices.Equal(back, want) {
				t.Fatalf("%d items, %d from behind, want %d in another order", len(forth), len(back), len(want))
			}
		}
	})
}
