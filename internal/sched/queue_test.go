package sched_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/sched"
)

var start = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

type item = sched.Item[int]

func newItem(v int, key string, since time.Time) *item {
	return &item{
		Value: v, Flow: sched.Flow{Key: sluice.KeyID(key)}, Arrived: since, Since: since,
		Deadline: since.Add(time.Minute), Bytes: 10, Work: 100,
	}
}

func drain(q *sched.Queue[int]) (out []int) {
	for it := q.Head(); it != nil; it = q.Head() {
		out = append(out, it.Value)
		q.Remove(it, sched.Dispatched)
	}
	return out
}

func TestOrderIsBySinceThenPush(t *testing.T) {
	q := sched.NewQueue[int](sched.Bounds{})
	q.Push(newItem(1, "a", start.Add(2*time.Second)))
	q.Push(newItem(2, "b", start.Add(2*time.Second)))
	q.Push(newItem(3, "a", start.Add(3*time.Second)))
	q.Push(newItem(4, "a", start)) // moved here from another pool, keeping its arrival
	q.Push(newItem(5, "c", start.Add(time.Second)))
	if got := q.Oldest(start.Add(time.Minute)); got != time.Minute {
		t.Errorf("oldest has waited %v, want 1m", got)
	}
	if got, want := drain(q), []int{4, 5, 1, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

func TestParkedFlowKeepsItsPlace(t *testing.T) {
	q := sched.NewQueue[int](sched.Bounds{})
	for i, key := range []string{"a", "a", "b", "c"} {
		q.Push(newItem(i, key, start.Add(time.Duration(i)*time.Second)))
	}
	gaugeOfA, gaugeOfB := new(int), new(int)
	q.Park(q.Head(), gaugeOfA)
	q.Park(q.Head(), gaugeOfB)
	if got := q.Head().Value; got != 3 {
		t.Fatalf("head is %d, want c's 3", got)
	}
	q.Push(newItem(4, "a", start.Add(9*time.Second))) // joins its parked flow
	q.Unpark(gaugeOfA)
	if got, want := drain(q), []int{0, 1, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
	q.UnparkAll()
	if got, want := drain(q), []int{2}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

func TestOthersPassASkippedHeadUpToItsOwnWork(t *testing.T) {
	q := sched.NewQueue[int](sched.Bounds{})
	large := newItem(0, "large", start)
	large.Work = 250
	q.Push(large)
	for i := range 5 {
		q.Push(newItem(i+1, "small", start.Add(time.Second)))
	}
	passed := 0
	for !large.Gathers() {
		q.Skip(large)
		q.Remove(q.Head(), sched.Dispatched)
		q.Rewind()
		passed++
	}
	if passed != 3 { // 300 ≥ 250
		t.Errorf("%d requests of 100 passed one of 250, want 3", passed)
	}
	if q.Head() != large {
		t.Error("the large head lost its place")
	}
}

func TestBounds(t *testing.T) {
	q := sched.NewQueue[int](sched.Bounds{Requests: 3, Bytes: 100, Work: 1000})
	if got := q.Full(500, 5000); got != "" {
		t.Errorf("an empty queue refuses for %q", got)
	}
	q.Push(newItem(1, "a", start))
	for _, c := range []struct {
		name  string
		bytes int64
		work  sluice.Tokens
		want  string
	}{
		{"fits", 90, 900, ""},
		{"bytes", 91, 1, "bytes"},
		{"work", 1, 901, "work"},
	} {
		if got := q.Full(c.bytes, c.work); got != c.want {
			t.Errorf("%s: full %q, want %q", c.name, got, c.want)
		}
	}
	q.Push(newItem(2, "a", start))
	q.Push(newItem(3, "a", start))
	if got := q.Full(0, 0); got != "requests" {
		t.Errorf("full %q, want requests", got)
	}
}

func TestWaitIsMeanServiceOverWhatRuns(t *testing.T) {
	q := sched.NewQueue[int](sched.Bounds{})
	if got := q.Wait(10, 4); got != 0 {
		t.Errorf("predicted %v with nothing known, want 0", got)
	}
	q.Ended(8 * time.Second)
	if got, want := q.Wait(3, 4), 8*time.Second; got != want {
		t.Errorf("fourth in line with four places of 8 s: %v, want %v", got, want)
	}
	for range 100 {
		q.Ended(time.Second)
	}
	if got := q.Wait(0, 1); got > 1100*time.Millisecond {
		t.Errorf("predicted %v after a hundred of 1 s", got)
	}
}

// TestModel drives a queue beside a plain list that is searched from the start.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := sched.NewQueue[int](sched.Bounds{})
		keys := []string{"a", "b", "c", "d"}
		parked, skipped := map[string]bool{}, map[string]bool{}
		var list []*item
		want := sched.Counts{}
		now, next := start, 0
		head := func() *item {
			var best *item
			for _, it := range list {
				k := string(it.Flow.Key)
				if !parked[k] && !skipped[k] && (best == nil || it.Since.Before(best.Since)) {
					best = it
				}
			}
			return best
		}
		leave := func(it *item, how sched.Exit) {
			k := it.Flow.Key
			q.Remove(it, how)
			list = slices.DeleteFunc(list, func(x *item) bool { return x == it })
			if !slices.ContainsFunc(list, func(x *item) bool { return x.Flow.Key == k }) {
				delete(parked, string(k)) // a flow is parked as long as it waits
				delete(skipped, string(k))
			}
		}
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			now = now.Add(time.Second)
			switch op := rapid.SampledFrom([]string{"push", "push", "late", "take", "cancel", "park", "unpark", "skip", "rewind", "due"}).Draw(t, "op"); op {
			case "push", "late":
				it := newItem(next, rapid.SampledFrom(keys).Draw(t, "key"), now)
				if op == "late" { // moved here: it arrived earlier
					it.Since = now.Add(-time.Duration(rapid.IntRange(1, 20).Draw(t, "ago"))*time.Second - time.Millisecond*time.Duration(next))
					it.Arrived = it.Since
				}
				it.Deadline = it.Since.Add(40 * time.Second)
				next++
				q.Push(it)
				i := len(list)
				for i > 0 && it.Since.Before(list[i-1].Since) {
					i--
				}
				list = slices.Insert(list, i, it)
				want.Enqueued++
			case "take":
				if it := head(); it != nil {
					leave(it, sched.Dispatched)
					want.Dispatched++
				}
			case "cancel":
				if len(list) > 0 {
					leave(list[rapid.IntRange(0, len(list)-1).Draw(t, "which")], sched.Cancelled)
					want.Cancelled++
				}
			case "park":
				if it := head(); it != nil {
					q.Park(it, it.Flow.Key)
					parked[string(it.Flow.Key)] = true
				}
			case "unpark":
				k := rapid.SampledFrom(keys).Draw(t, "key")
				q.Unpark(sluice.KeyID(k))
				delete(parked, k)
			case "skip":
				if it := head(); it != nil {
					q.Skip(it)
					skipped[string(it.Flow.Key)] = true
				}
			case "rewind":
				q.Rewind()
				clear(skipped)
			case "due":
				for it := q.Due(now); it != nil; it = q.Due(now) {
					leave(it, sched.Rejected)
					want.Rejected++
				}
				for _, it := range list {
					if !it.Deadline.After(now) {
						t.Fatalf("item %d is past its deadline and still waits", it.Value)
					}
				}
			}
			if got := q.Head(); got != head() {
				t.Fatalf("head %v, want %v", got, head())
			}
			if got := q.Counts(); got != want {
				t.Fatalf("counts %+v, want %+v", got, want)
			}
			if q.Len() != len(list) || want.Enqueued != want.Dispatched+want.Cancelled+want.Rejected+int64(len(list)) {
				t.Fatalf("%d wait, want %d", q.Len(), len(list))
			}
			if len(list) > 0 && q.Oldest(now) != now.Sub(list[0].Arrived) {
				t.Fatalf("oldest %v, want %v", q.Oldest(now), now.Sub(list[0].Arrived))
			}
			if q.Bytes() != int64(10*len(list)) || q.Work() != sluice.Tokens(100*len(list)) {
				t.Fatalf("bytes %d, work %d of %d items", q.Bytes(), q.Work(), len(list))
			}
		}
	})
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	q := sched.NewQueue[int](sched.Bounds{})
	it := newItem(1, "a", start)
	q.Push(it)
	q.Remove(it, sched.Dispatched)
	if n := testing.AllocsPerRun(100, func() {
		q.Push(it)
		q.Skip(q.Head())
		q.Rewind()
		q.Remove(q.Head(), sched.Dispatched)
	}); n != 0 {
		t.Errorf("%v allocations per request, want none", n)
	}
}
