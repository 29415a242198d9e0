package sched

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice"
)

var viewed = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// TestRefusalsAreBounded refuses more flows than a queue remembers: those refused
// last are told, and the class counts all.
func TestRefusalsAreBounded(t *testing.T) {
	q := NewQueue(Policy{}, Bounds{}, Bounds{})
	id := func(i int) sluice.TenantID { return sluice.TenantID(fmt.Sprintf("t%d", i)) }
	const n = 3 * MaxRefused
	for i := range n {
		q.Refuse(viewed, sluice.Standard, id(i), sluice.QueueFull)
		q.Refuse(viewed, sluice.Standard, "steady", sluice.DeadlineUnmet)
		q.Refuse(viewed, sluice.Standard, id(i), sluice.InvalidRequest) // a mistake, not a refusal
	}
	if got := len(q.refusals.flows); got != MaxRefused {
		t.Errorf("%d flows are remembered, want %d", got, MaxRefused)
	}
	c := q.Classes(viewed)[sluice.Standard]
	if c.Refused.Of(sluice.QueueFull) != n || c.Refused.Of(sluice.DeadlineUnmet) != n || c.Refused.Of(sluice.InvalidRequest) != 0 {
		t.Errorf("the class counts %v", c.Refused)
	}
	if want := int64(2 * n * 6); c.PerMinute != want {
		t.Errorf("%d a minute, want %d", c.PerMinute, want)
	}
	flows := q.Flows(viewed, 5)
	var names []sluice.TenantID
	for _, f := range flows {
		names = append(names, f.Tenant)
	}
	if want := []sluice.TenantID{"steady", id(n - 1), id(n - 2), id(n - 3), id(n - 4)}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	if f, ok := q.Flow(viewed, sluice.Standard, "steady"); !ok || f.Refused.Of(sluice.DeadlineUnmet) != n {
		t.Errorf("steady: %+v", f)
	}
	if _, ok := q.Flow(viewed, sluice.Standard, id(0)); ok {
		t.Error("a flow that was forgotten is told")
	}
}

type free struct{}

func (free) Capacity() (all, unused Amounts) { return Amounts{}, Amounts{} }
func (free) Most(*Set, bool) Amounts         { return Amounts{unbounded, unbounded, unbounded} }
func (free) Fits(*Item, bool) bool           { return true }
func (free) Gather(*Item) bool               { return true }

// TestRatesOutliveAbsence serves a tenant one request at a time, of which nothing
// is there in between: its rate is that of one that always is.
func TestRatesOutliveAbsence(t *testing.T) {
	q := NewQueue(Policy{}, Bounds{}, Bounds{})
	now := viewed
	for range 100 {
		now = now.Add(200 * time.Millisecond)
		it := &Item{Flow: Flow{Tenant: "quiet"}, Class: sluice.Standard, Weight: 3, Arrived: now, Since: now, Deadline: now.Add(time.Hour), Cost: 60, Backends: Set{1}}
		q.Push(it)
		if got := q.Next(now, free{}); got != it {
			t.Fatalf("next: %v", got)
		}
		q.Dispatch(now, it)
		q.Correct(now, it, 20)
		q.End(it, time.Millisecond)
	}
	f, ok := q.Flow(now, sluice.Standard, "quiet")
	if !ok || f.Rate < 95 || f.Rate > 105 || f.Share != whole {
		t.Errorf("got %d work/s and a share of %d, want about 100 and %d: %+v", f.Rate, f.Share, whole, f)
	}
	if got := len(q.Flows(now, 10)); got != 1 {
		t.Errorf("%d flows are shown, want 1", got)
	}
	if got := q.Flows(now.Add(time.Minute), 10); len(got) > 0 && got[0].Rate != 0 {
		t.Errorf("a minute later: %+v", got)
	}
}

// TestPartIsNeverMoreThanTheWhole lets a tenant begin after the others of its class
// have had something and nothing: its rate is told of the same time as the class's.
func TestPartIsNeverMoreThanTheWhole(t *testing.T) {
	q := NewQueue(Policy{}, Bounds{}, Bounds{})
	now := viewed
	serve := func(tenant sluice.TenantID) {
		it := &Item{Flow: Flow{Tenant: tenant}, Class: sluice.Standard, Weight: 1, Arrived: now, Since: now, Deadline: now.Add(time.Hour), Cost: 1000, Backends: Set{1}}
		q.Push(it)
		q.Dispatch(now, q.Next(now, free{}))
		q.End(it, time.Millisecond)
	}
	serve("early")
	now = now.Add(9700 * time.Millisecond)
	for range 300 {
		now = now.Add(100 * time.Millisecond)
		serve("late")
		f, _ := q.Flow(now, sluice.Standard, "late")
		if c := q.Classes(now)[sluice.Standard]; f.Rate > c.Rate || f.Share > whole {
			t.Fatalf("%v on: the tenant has %d work/s, %d thousandths of the pool, and its class %d", now.Sub(viewed), f.Rate, f.Share, c.Rate)
		}
	}
}

// TestFirst takes the least of a heap in order.
func TestFirst(t *testing.T) {
	q := NewQueue(Policy{}, Bounds{Requests: 1_000_000}, Bounds{})
	for i := range 500 {
		for range 1 + i*7%500 {
			q.Push(&Item{Flow: Flow{Tenant: sluice.TenantID(fmt.Sprint(i * 7 % 500))}, Class: sluice.Batch, Weight: 1, Arrived: viewed, Deadline: viewed, Cost: 1, Backends: Set{1}})
		}
	}
	flows := q.Flows(viewed, 40)
	for i, f := range flows {
		if want := fmt.Sprint(499 - i); string(f.Tenant) != want {
			t.Fatalf("flow %d: got %s, want %s", i, f.Tenant, want)
		}
	}
	if len(flows) != 40 {
		t.Errorf("%d flows, want 40", len(flows))
	}
}
