package route_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/route"
)

// Tenants' sessions of one id have nothing in common, and what is recorded of one can
// be read again.
func TestSessionsAreTheTenants(t *testing.T) {
	acme, globex := route.SessionOf("acme", "s"), route.SessionOf("globex", "s")
	if acme == 0 || acme == globex || acme == route.SessionOf("acme", "r") || acme != route.SessionOf("acme", "s") {
		t.Errorf("got %s and %s", acme, globex)
	}
	if none := route.SessionOf("acme", ""); none != 0 || none.String() != "" {
		t.Errorf("no id is %q", none)
	}
	for _, s := range []route.Session{0, 1, acme, ^route.Session(0)} {
		if got, ok := route.ParseSession(s.String()); !ok || got != s {
			t.Errorf("%q is read as %q", s, got)
		}
	}
	if _, ok := route.ParseSession("no session"); ok {
		t.Error("what is none is read")
	}
}

// sticky asks for a session's place among those that have room.
func (p *pool) sticky(tenant sluice.TenantID, id string, out ...int) int {
	i, _ := p.choose(route.Asking{ID: "r", Tenant: tenant, Session: route.SessionOf(tenant, id), Sticky: true, Input: 100}, out...)
	return i
}

// Sessions are spread by weight. Another place that has no room moves only the
// sessions that were there, and those come back.
func TestSessionsKeepByHash(t *testing.T) {
	for _, rule := range []route.Choice{route.ByLoad, route.ByCost} {
		p := newPool(rule, route.Affinity{}, 3, 1, 1, 1)
		const n = 12_000
		var got [4]int
		differ := 0
		for i := range n {
			id := fmt.Sprint("s", i)
			home := p.sticky("acme", id)
			got[home]++
			if p.Stayed() != route.StayKept {
				t.Fatalf("%v: a session at home is %q", rule, p.Stayed())
			}
			if i < 1000 {
				if away := p.sticky("acme", id, 2); (home != 2) != (away == home) || (home == 2) != (p.Stayed() == route.StayLeft) {
					t.Fatalf("%v: at %d, without place 2 at %d, %q", rule, home, away, p.Stayed())
				}
				if back := p.sticky("acme", id); back != home {
					t.Fatalf("%v: came back to %d, was at %d", rule, back, home)
				}
				if p.sticky("globex", id) != home {
					differ++
				}
			}
		}
		for i, w := range []int{3, 1, 1, 1} {
			if want := n * w / 6; got[i] < want*9/10 || got[i] > want*11/10 {
				t.Errorf("%v: place %d has %d sessions, want %d within a tenth", rule, i, got[i], want)
			}
		}
		if differ < 500 {
			t.Errorf("%v: of 1000 sessions that another tenant has by the same name %d are elsewhere: they are not its own", rule, differ)
		}
	}
}

// However skewed the sessions are, a place that is half full has no more than its
// share and a quarter, and a request that some place has room for finds one.
func TestSessionsLeaveWhatIsLoaded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const slots = 16
		weights := rapid.SliceOfN(rapid.Int64Range(1, 5), 2, 6).Draw(t, "weights")
		p := newPool(rapid.SampledFrom([]route.Choice{route.ByLoad, route.ByCost}).Draw(t, "rule"), route.Affinity{}, weights...)
		for i := range weights {
			p.places[i].Backend.Capacity.Concurrency = slots
		}
		for range rapid.IntRange(1, slots*len(weights)).Draw(t, "requests") {
			var full []int
			for i, pl := range p.places {
				if pl.Running() >= slots {
					full = append(full, i)
				}
			}
			id := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "session")
			i := p.sticky("acme", id, full...)
			if i < 0 {
				t.Fatalf("no place, of %d only %v are full", len(weights), full)
			}
			pl := p.places[i]
			var open, running int64 // weights and what runs, where there is room
			for j, o := range p.places {
				if o.Running() < slots {
					open += weights[j]
					running += o.Running()
				}
			}
			if most := 5*(running+1)*weights[i]/(4*open) + 1; pl.Running() >= slots/2 && pl.Running() >= most {
				t.Fatalf("%d run at place %d of weight %d, at most %d are its share of %d", pl.Running(), i, weights[i], most, running)
			}
			p.take(i, route.Asking{Input: 100}, 0)
		}
	})
}
