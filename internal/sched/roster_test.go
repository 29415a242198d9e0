package sched

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRoster holds the lists of a roster to slices.
func TestRoster(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRoster()
		var lists [numOrders]list
		var want [numOrders][]*Item
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(t *rapid.T) {
				it := &Item{}
				r.enter(it)
				for o := range numOrders {
					at := rapid.IntRange(0, len(want[o])).Draw(t, "at")
					var behind *Item
					if at > 0 {
						behind = want[o][at-1]
					}
					if at == len(want[o]) && rapid.Bool().Draw(t, "push") {
						r.push(&lists[o], o, it)
					} else {
						r.insert(&lists[o], o, it, behind)
					}
					want[o] = slices.Insert(want[o], at, it)
				}
			},
			"leave": func(t *rapid.T) {
				if len(want[0]) == 0 {
					return
				}
				it := rapid.SampledFrom(want[0]).Draw(t, "item")
				for o := range numOrders {
					r.remove(&lists[o], o, it)
					want[o] = slices.DeleteFunc(want[o], func(i *Item) bool { return i == it })
				}
				r.leave(it)
			},
			"": func(t *rapid.T) {
				for o := range numOrders {
					var forth, back []*Item
					for it := r.first(&lists[o]); it != nil; it = r.after(o, it) {
						forth = append(forth, it)
					}
					for it := r.last(&lists[o]); it != nil; it = r.before(o, it) {
						back = append([]*Item{it}, back...)
					}
					if !slices.Equal(forth, want[o]) || !slices.Equal(back, want[o]) {
						t.Fatalf("order %d has %d items, %d from behind, want %d in another order", o, len(forth), len(back), len(want[o]))
					}
				}
				if n := len(r.posts) - 1 - len(r.spare); n != len(want[0]) {
					t.Fatalf("%d posts for %d items", n, len(want[0]))
				}
			},
		})
	})
}
