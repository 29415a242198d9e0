package sched

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"sluice"
)

// TestPlacesStandStill runs four of a tenant's requests while four wait and nothing
// comes, starts or ends: what is charged as their answers come moves nobody back.
func TestPlacesStandStill(t *testing.T) {
	for _, parked := range []bool{false, true} {
		q := NewQueue(Policy{}, Bounds{}, Bounds{})
		const slots, cost = 4, 800
		var running []*Item
		start := func() {
			for range slots {
				it := q.Next(viewed, free{})
				q.Dispatch(viewed, it)
				running = append(running, it)
			}
		}
		for range 3 * slots {
			q.Push(&Item{
				Flow: Flow{Tenant: "a", Project: "p"}, Class: sluice.Standard, Weight: 1, Arrived: viewed, Since: viewed, Deadline: viewed.Add(time.Hour),
				Cost: cost, Upfront: cost / 2, Backends: Set{1},
			})
		}
		start()
		for _, it := range running {
			q.Correct(viewed, it, cost)
			q.End(it, 3200*time.Millisecond)
		}
		running = running[:0]
		start()
		if parked {
			q.Park(q.Next(viewed, free{}), "limit")
		}
		first := q.Places(sluice.Standard, "", 10, slots)
		for done := int64(cost / 2); done <= 2*cost; done += cost / 8 {
			for _, it := range running {
				q.Correct(viewed, it, done)
			}
			for i, at := range q.Places(sluice.Standard, "", 10, slots) {
				if at.Position != i {
					t.Errorf("%d of %d done, parked %v: request %d of the queue has position %d", done, cost, parked, i, at.Position)
				}
				if at.Wait > first[i].Wait {
					t.Errorf("%d of %d done, parked %v: request %d waits %v, was %v", done, cost, parked, i, at.Wait, first[i].Wait)
				}
			}
		}
	}
}

// TestPlacesAreInOrder plays histories of tenants, projects and keys, some of which are
// kept back by limits: what is next has nothing ahead of it, and within a line each has
// more ahead than the one before, but never more than waits.
func TestPlacesAreInOrder(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 0))
		q := NewQueue(Policy{}, Bounds{}, Bounds{})
		now := viewed
		var running []*Item
		for range 300 {
			now = now.Add(10 * time.Millisecond)
			switch n := rng.IntN(10); {
			case n < 5:
				tenant := rng.IntN(1 + int(seed%4))
				cost := 1 + rng.Int64N(1000)
				q.Push(&Item{
					Flow:   Flow{Tenant: sluice.TenantID(fmt.Sprint(tenant)), Project: sluice.ProjectID(fmt.Sprint(rng.IntN(2))), Key: sluice.KeyID(fmt.Sprint(rng.IntN(2)))},
					Class:  sluice.Class(rng.IntN(1 + int(seed%3))),
					Weight: int64(1 + tenant), Arrived: now.Add(-time.Duration(rng.IntN(50)) * time.Millisecond), Since: now, Deadline: now.Add(time.Hour),
					Cost: cost, Upfront: cost / 2, Backends: Set{1},
				})
			case n < 7:
				if it := q.Next(now, free{}); it != nil {
					q.Dispatch(now, it)
					running = append(running, it)
				}
			case n < 8:
				for _, it := range running {
					q.Correct(now, it, it.Charged()+rng.Int64N(100))
				}
			case n < 9 && len(running) > 0:
				q.End(running[0], time.Second)
				running = running[1:]
			default:
				if it := q.Next(now, free{}); it != nil && rng.IntN(3) == 0 {
					q.Park(it, "limit")
				}
			}
			checkPlaces(t, q, now, int64(len(running)))
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func checkPlaces(t *testing.T, q *Queue, now time.Time, running int64) {
	t.Helper()
	at := make(map[*Item]int)
	for c := range sluice.Class(sluice.NumClasses) {
		for _, v := range q.Places(c, "", 1000, running) {
			at[v.Item] = v.Position
			if p, w := q.Place(v.Item, running); p != v.Position || w != v.Wait {
				t.Errorf("one by one it has position %d and waits %v, among all %d and %v", p, w, v.Position, v.Wait)
			}
		}
	}
	for it, p := range at {
		if p < 0 || p >= q.waiting {
			t.Errorf("position %d of %d that wait", p, q.waiting)
		}
		if it.ahead != nil && p <= at[it.ahead] {
			t.Errorf("position %d behind one of %d in its line", p, at[it.ahead])
		}
	}
	if it := q.Next(now, free{}); it != nil && at[it] != 0 {
		t.Errorf("what is next has position %d", at[it])
	}
}
