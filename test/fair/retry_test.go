package fair

import (
	"testing"
	"time"

	"sluice/internal/route"
)

// A request that failed on one backend and may run on the other alone is served in
// its turn, though its tenant has others that may run on both.
func TestFailedAttemptIsServed(t *testing.T) {
	four := route.Capacity{Concurrency: 4}
	l := Run(&World{
		Pools: pool(backend("b0", four), backend("b1", four)), Machine: hosted, Length: time.Minute,
		Clients: []Client{{Tenant: "one", Arrivals: Backlog(30, 4), Sizes: Fixed(40_000, 50)}},
		Faults:  []Fault{{"b0", 11 * time.Second, 12 * time.Second}},
	})
	failed := map[int]time.Duration{} // since when it waits again
	retried := 0
	for _, e := range l.Events {
		q := &l.Requests[max(e.Req, 0)]
		switch {
		case e.Kind == Enqueue && q.At < e.At:
			failed[e.Req] = e.At
			retried++
		case e.Kind == Dispatch && failed[e.Req] > 0:
			delete(failed, e.Req)
		case e.Kind == Dispatch:
			for id, at := range failed {
				if q.At > at+5*time.Second {
					t.Fatalf("request %d waits since %v, and one that came at %v is served", id, at, q.At)
				}
			}
		}
	}
	if retried == 0 {
		t.Error("no attempt has failed")
	}
}
