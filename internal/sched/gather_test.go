package sched

import (
	"testing"
	"time"

	"sluice"
)

// A head that would be passed by more than its allowance gathers; what stands equal
// to it, and was what would have passed, starts all the same.
func TestGatheringLetsItsEqualsStart(t *testing.T) {
	q := NewQueue(Policy{}, Bounds{}, Bounds{})
	m := &machines{q: q, all: []machine{{most: Amounts{4, 1000, 600}, used: Amounts{3, 496, 26}}, {most: Amounts{4, 1000, 600}}}} // the second serves neither
	item := func(tenant sluice.TenantID, in, out int64) *Item {
		it := &Item{
			Value: string(tenant), Flow: Flow{Tenant: tenant, Project: "p", Key: "k"}, Class: sluice.Standard, Weight: 1,
			Arrived: epoch, Since: epoch, Deadline: epoch.Add(time.Hour), Bytes: 1,
			Need: Amounts{1, in + out, in}, Cost: in + 2*out, Upfront: in + out, Work: sluice.Tokens(in + out),
		}
		it.Backends.Add(0)
		q.Push(it)
		return it
	}
	large, equal := item("a", 500, 72), item("b", 493, 4)
	large.passed = 256 // by others, of a cost of 644
	if got := q.Next(epoch, m); got != equal || q.Gathering() != large {
		t.Errorf("next is %v while %v gathers, want b while a does", got, q.Gathering())
	}
}
