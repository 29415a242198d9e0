package sched

import (
	"testing"
	"time"

	"sluice"
)

// TestSuspendedDebtor lets a tenant that was served ahead of others come back while its
// class is suspended: it waits, so it is not forgotten when a contract's tenant, which is
// served on, has caught up with it.
func TestSuspendedDebtor(t *testing.T) {
	q := NewQueue(Policy{Contracts: []Contract{{Tenant: "promised", Slots: 1, WorkPerSecond: 1}}}, Bounds{}, Bounds{})
	push := func(tenant sluice.TenantID) *Item {
		it := &Item{Flow: Flow{Tenant: tenant}, Class: sluice.Batch, Weight: 1, Arrived: epoch, Since: epoch, Deadline: epoch.Add(time.Hour), Cost: 100, Upfront: 100, Backends: Set{1}}
		q.Push(it)
		return it
	}
	serve := func(want *Item) {
		t.Helper()
		if got := q.Next(epoch, free{}); got != want {
			t.Fatalf("next is %v, want one of %q", got, want.Flow.Tenant)
		}
		q.Dispatch(epoch, want)
		q.End(want, time.Second)
	}
	serve(push("debtor"))
	q.Suspend(sluice.Batch)
	waits := push("debtor")
	for range 20 {
		serve(push("promised"))
	}
	q.Resume(sluice.Batch)
	serve(waits)
	if n := q.Len(); n != 0 {
		t.Errorf("%d wait, want none", n)
	}
}
