package sched

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
)

// TestSeen: whatever is kept of where items stood, of the same flow or of another, of
// what waits or of what has long been forgotten, a queue that is told of it does the same
// as one that is not. Nor does it do anything else for being looked into; and where any
// place suits all, what is seen of it is what it picks next.
func TestSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{FIFO: rapid.IntRange(0, 4).Draw(t, "fifo") == 0}
		plain, told := NewQueue(p, Bounds{}, Bounds{}), NewQueue(p, Bounds{}, Bounds{})
		seen, now := make([]Seen, 3), epoch
		var ahead Preview
		var waits, runs [][2]*Item // of plain and of told
		pick := func(of string, names ...string) string { return rapid.SampledFrom(names).Draw(t, of) }
		out := func(from *[][2]*Item, it *Item) (other *Item) {
			i := slices.IndexFunc(*from, func(p [2]*Item) bool { return p[0] == it })
			other = (*from)[i][1]
			*from = slices.Delete(*from, i, i+1)
			return other
		}
		push := func(*rapid.T) {
			in := rapid.Int64Range(1, 500).Draw(t, "in")
			it := Item{
				Flow: Flow{
					Tenant: sluice.TenantID(pick("tenant", "a", "b", "c")), Project: sluice.ProjectID(pick("project", "p", "q")),
					Key: sluice.KeyID(pick("key", "k", "l")), Model: "m",
				},
				Class: sluice.Class(rapid.IntRange(0, 2).Draw(t, "class")), Weight: 1, Arrived: now, Since: now, Deadline: now.Add(time.Hour),
				Need: Amounts{1, in}, Cost: in, Upfront: in / 2, Backends: Set{1},
			}
			one, two := it, it
			two.Seen = &seen[rapid.IntRange(0, len(seen)-1).Draw(t, "seen")]
			two.Seen.Recall()
			of := func(q *Queue) [2]int64 {
				w := q.Wait(it.Class, it.Flow.Tenant, 1, 4)
				return [2]int64{int64(w), int64(q.Position(it.Class, it.Flow.Tenant, w, 4))}
			}
			if a, b := of(plain), of(told); a != b {
				t.Fatalf("%+v: wait and position %v, told %v", it.Flow, a, b)
			}
			plain.Push(&one)
			told.Push(&two)
			waits = append(waits, [2]*Item{&one, &two})
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": push, "push too": push,
			"pass":        func(*rapid.T) { now = now.Add(time.Second) },
			"look ahead":  func(*rapid.T) { ahead = told.Preview() },
			"look closer": func(*rapid.T) { ahead.Step() },
			"serve": func(*rapid.T) {
				next := told.Preview()
				for range previewSteps - 1 {
					next.Step()
				}
				a, b := plain.Next(now, free{}), told.Next(now, free{})
				if a == nil && b == nil {
					return
				}
				if other := out(&waits, a); other != b {
					t.Fatalf("next is %+v, told %+v", a.Flow, b.Flow)
				}
				if seen := next.Step(); seen != b && !p.FIFO {
					t.Fatalf("next is %+v, seen before %+v", b.Flow, seen.Flow)
				}
				plain.Dispatch(now, a)
				told.Dispatch(now, b)
				runs = append(runs, [2]*Item{a, b})
			},
			"end": func(*rapid.T) {
				if len(runs) == 0 {
					return
				}
				a := rapid.SampledFrom(runs).Draw(t, "ends")[0]
				b := out(&runs, a)
				plain.End(a, time.Second)
				told.End(b, time.Second)
			},
			"cancel": func(*rapid.T) {
				if len(waits) == 0 {
					return
				}
				a := rapid.SampledFrom(waits).Draw(t, "leaves")[0]
				b := out(&waits, a)
				plain.Remove(a, Cancelled)
				told.Remove(b, Cancelled)
			},
			"": func(*rapid.T) {
				if plain.Len() != told.Len() || plain.lines.Len() != told.lines.Len() {
					t.Fatalf("%d wait in %d lines, told %d in %d", plain.Len(), plain.lines.Len(), told.Len(), told.lines.Len())
				}
			},
		})
	})
}
