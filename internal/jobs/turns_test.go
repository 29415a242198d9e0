package jobs

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"sluice"
)

// seat is one job that does slices, and what has begun since it waits.
type seat struct {
	name   string
	tenant sluice.TenantID
	c      chan struct{} // nil while it has a place
	before int           // of its tenant that waited when it came
	others map[sluice.TenantID]int
	own    int
}

// hall is turns, and everybody who is there.
type hall struct {
	t     *turns
	seats []*seat
}

// settle notes who was given a place, and checks that it was not too late.
func (h *hall) settle(t *rapid.T) {
	for _, s := range h.seats {
		select {
		case <-s.c:
		default:
			continue
		}
		s.c = nil
		if s.own != s.before {
			t.Fatalf("%s came behind %d of its tenant, and %d were before it", s.name, s.before, s.own)
		}
		for _, o := range h.seats {
			if o.c == nil || o == s {
				continue
			}
			if o.tenant == s.tenant {
				o.own++
				continue
			}
			if o.others[s.tenant]++; o.others[s.tenant] > 1+o.own {
				t.Fatalf("%s has waited for %v, and for %d of its own", o.name, o.others, o.own)
			}
		}
	}
	waits := 0
	for _, s := range h.seats {
		if s.c != nil {
			waits++
		}
	}
	if waits > 0 && h.t.free > 0 {
		t.Fatalf("%d wait, and %d places are free", waits, h.t.free)
	}
}

func (h *hall) wait(s *seat, c chan struct{}) {
	s.c, s.own, s.others, s.before = c, 0, map[sluice.TenantID]int{}, 0
	for _, o := range h.seats {
		if o != s && o.c != nil && o.tenant == s.tenant {
			s.before++
		}
	}
}

// The bound that doc.go states: while a slice waits, each other tenant begins no more than
// one, and one more for each that its own tenant begins; and its own go first come, first
// served.
func TestTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		places := rapid.IntRange(1, 3).Draw(t, "places")
		h := &hall{t: newTurns(places)}
		for i, step := range rapid.SliceOfN(rapid.IntRange(0, 9), 1, 80).Draw(t, "steps") {
			var at, waiting []*seat
			for _, s := range h.seats {
				if s.c == nil {
					at = append(at, s)
				} else {
					waiting = append(waiting, s)
				}
			}
			switch {
			case step < 3 || len(h.seats) == 0: // a job comes
				s := &seat{name: fmt.Sprint("job ", i), tenant: rapid.SampledFrom([]sluice.TenantID{"a", "b", "c", "d"}).Draw(t, "tenant")}
				h.t.mu.Lock()
				if free := h.t.free > 0; free {
					h.t.free--
				} else {
					h.wait(s, h.t.join(s.tenant))
				}
				h.t.mu.Unlock()
				h.seats = append(h.seats, s)
			case step < 8 && len(at) > 0: // a slice is done, and it has more
				s := rapid.SampledFrom(at).Draw(t, "again")
				h.t.mu.Lock()
				h.wait(s, h.t.join(s.tenant))
				h.t.pass()
				h.t.mu.Unlock()
			case step == 8 && len(at) > 0: // or is at its end
				s := rapid.SampledFrom(at).Draw(t, "leaves")
				h.drop(s)
				h.t.leave()
			case len(waiting) > 0: // one does not want to wait any more
				s := rapid.SampledFrom(waiting).Draw(t, "quits")
				h.drop(s)
				for _, o := range h.seats {
					if o.tenant == s.tenant && o.c != nil && o.before > o.own && h.behind(o, s) {
						o.before--
					}
				}
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				if h.t.await(ctx, s.tenant, s.c) == nil {
					t.Fatal("was given a place")
				}
			}
			h.settle(t)
		}
	})
}

func (h *hall) drop(s *seat) {
	for i, o := range h.seats {
		if o == s {
			h.seats = append(h.seats[:i:i], h.seats[i+1:]...)
			return
		}
	}
}

// behind reports whether o, which waits, came after s, which is leaving.
func (h *hall) behind(o, s *seat) bool {
	for _, c := range h.t.wait[s.tenant] {
		if c == s.c {
			return true
		}
		if c == o.c {
			return false
		}
	}
	return false
}
