package proxy

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice"
	"sluice/internal/route"
	"sluice/internal/upstream"
)

// zone is the backends of a region, which answer in one way or, silent, in another.
type zone struct {
	talk   http.Handler
	hang   http.Handler
	silent atomic.Bool
	calls  atomic.Int64
}

func (z *zone) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	z.calls.Add(1)
	if z.silent.Load() {
		z.hang.ServeHTTP(w, r)
		return
	}
	z.talk.ServeHTTP(w, r)
}

// regional is a gateway in east, with three backends there and two in west, half of
// which are for east while that is lost.
func regional(east, west http.Handler) setup {
	home := place{handler: east, region: "east", domain: "east", timeouts: upstream.Timeouts{Headers: 2 * time.Second}, slots: 8}
	away := place{handler: west, region: "west", domain: "west", slots: 2}
	return setup{
		places: []place{away, home, home, home, away},
		home:   &route.Locality{Regions: []string{"east", "west"}, Return: time.Minute}, spares: map[string]int64{"west": 500},
	}
}

// A whole region is silent: first tokens come from the other one within one deadline,
// and at once when the breakers are open; when it is back its share climbs.
func TestFault_O4_RegionDown(t *testing.T) {
	east := &zone{talk: talk{chunks: 1, usage: usage(9, 1)}, hang: newSilent()}
	inBubble(t, regional(east, talk{chunks: 1, usage: usage(9, 1)}), func(t *testing.T, r *rig) {
		at := func() (backend string, took time.Duration) {
			g := r.do(ask{stream: true})
			if g.status != 200 {
				t.Errorf("got %d %s", g.status, g.body)
			}
			return g.header.Get("Sluice-Backend"), g.took
		}
		local := func(b string) bool { return b == "b1" || b == "b2" || b == "b3" }
		for range 6 {
			if b, _ := at(); !local(b) {
				t.Errorf("%s serves, away from home", b)
			}
		}
		east.silent.Store(true)
		slow := 0
		for range 40 {
			b, took := at()
			if local(b) || took > 2100*time.Millisecond {
				t.Errorf("got it from %s after %v", b, took)
			}
			if took > 100*time.Millisecond {
				slow++
			}
		}
		if most := 3*route.DefaultFailures + 3; slow == 0 || slow > most {
			t.Errorf("%d of 40 calls met the silent region, want some, and at most %d", slow, most)
		}
		east.silent.Store(false)
		time.Sleep(route.Cooldown)
		part := func(seconds int) (home int) {
			for range seconds {
				if b, took := at(); took > time.Second {
					t.Errorf("%s took %v", b, took)
				} else if local(b) {
					home++
				}
				time.Sleep(time.Second)
			}
			return home
		}
		first, second := part(30), part(30)
		if later := part(45); first >= second || second >= 30 || later < 40 {
			t.Errorf("%d, then %d of 30 calls went home, and %d of the next 45: no ramp", first, second, later)
		}
	})
}

// Away from home no more run than the other region has to spare: the others wait, and
// are told so where they may not.
func TestRegionHeadroom(t *testing.T) {
	west := &zone{talk: talk{chunks: 1, usage: usage(9, 1)}, hang: talk{chunks: 2, gap: 10 * time.Second, usage: usage(9, 2)}}
	s := regional(answers(503, `{}`), west)
	s.retries = route.RetryPolicy{Minimum: 100} // its probes go on elsewhere
	inBubble(t, s, func(t *testing.T, r *rig) {
		for range 10 * route.DefaultFailures {
			r.do(ask{})
		}
		west.silent.Store(true) // slow, that is
		before := west.calls.Load()
		var calls sync.WaitGroup
		var late atomic.Int64
		for range 3 {
			calls.Go(func() {
				if g := r.do(ask{stream: true}); g.status != 200 {
					t.Errorf("got %d %s", g.status, g.body)
				} else if g.took > 15*time.Second {
					late.Add(1)
				}
			})
		}
		time.Sleep(time.Second)
		if n := west.calls.Load() - before; n != 2 {
			t.Errorf("%d run away from home, of four places of which half are for them", n)
		}
		g := r.do(ask{header: http.Header{"Sluice-Max-Wait": {"0s"}}})
		if g.status != 503 || g.header.Get("Sluice-Reason") != "deadline_unmet" || !strings.Contains(g.body, "other regions") {
			t.Errorf("who may not wait got %d %s %s", g.status, g.header.Get("Sluice-Reason"), g.body)
		}
		calls.Wait()
		if late.Load() != 1 {
			t.Errorf("%d of three waited, want one", late.Load())
		}
	})
}

// Who may be served at home alone is refused there, and never served elsewhere.
func TestFault_O4_RegionDownWithResidency(t *testing.T) {
	west := &zone{talk: talk{chunks: 1, usage: usage(9, 1)}}
	s := regional(answers(503, `{}`), west)
	s.policy = sluice.Policy{Regions: []string{"east"}}
	inBubble(t, s, func(t *testing.T, r *rig) {
		for range 3*route.DefaultFailures + 5 {
			if g := r.do(ask{}); g.status != 503 {
				t.Errorf("got %d %s", g.status, g.body)
			}
		}
		if n := west.calls.Load(); n != 0 {
			t.Errorf("the other region had %d calls", n)
		}
	})
}
