package proxy

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/route"
	"sluice/internal/stateful"
)

// A place that is out is waited for or told of: the request goes nowhere else, whatever
// fallback there is, is neither hedged nor copied, and is tried again only there.
func TestStateOfAPlaceThatIsOut(t *testing.T) {
	var state *stateful.Keeper
	calls := make([]atomic.Int64, 4)
	counted := func(i int, h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls[i].Add(1)
			h.ServeHTTP(w, r)
		})
	}
	down := atomic.Bool{}
	flaky := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			answers(503, `{"error":{"message":"down"}}`).ServeHTTP(w, r)
			return
		}
		talk{before: 5 * time.Second, chunks: 1, usage: usage(3, 1)}.ServeHTTP(w, r)
	})
	up := talk{chunks: 1, usage: usage(3, 1)}
	var skipped []route.Skip
	var told []string
	s := keeping(setup{
		places:  []place{{handler: counted(0, flaky), replica: true, domain: "a"}, {handler: counted(1, up), replica: true, domain: "b"}, {handler: counted(2, up), replica: true, fallback: true, domain: "c"}, {handler: counted(3, up), next: true}},
		hedge:   &route.Hedging{After: time.Second, Classes: [sluice.NumClasses]bool{true, true, true}},
		shadows: []route.Shadow{{Pool: "next", Share: route.CanaryParts, Limits: []sluice.Limit{{Dimension: sluice.Concurrency, Amount: 9}}}},
		hooks: exchange.Hooks{
			Skipped: func(_ sluice.ModelID, _ sluice.PoolID, why route.Skip) { skipped = append(skipped, why) },
			State:   func(k route.StateKind, result string) { told = append(told, k.String()+" "+result) },
		},
	}, &rows{}, &state, nil)
	inBubble(t, s, func(t *testing.T, r *rig) {
		defer state.Close()
		state.Keep("acme", route.Pin{Provider: "p", Backend: "b0"}, kindsOf("it"))
		state.Keep("acme", route.Pin{Provider: "p", Backend: "b1"}, kindsOf("other"))
		state.Keep("acme", route.Pin{Provider: "p", Backend: "gone"}, kindsOf("lost"))
		named := func(ids ...string) ask {
			var parts []string
			for _, id := range ids {
				parts = append(parts, `{"type":"file","file":{"file_id":"`+id+`"}}`)
			}
			return ask{body: `{"model":"m","stream":true,"messages":[{"role":"user","content":[` + strings.Join(parts, ",") + `]}]}`}
		}
		if g := r.do(named("it")); g.status != 200 || g.took != 5*time.Second {
			t.Errorf("late: %d after %v: %s", g.status, g.took, g.body)
		}
		if len(skipped) != 1 || skipped[0] != route.SkipEffects {
			t.Errorf("it was copied, or not for its reference: %q", skipped)
		}
		down.Store(true)
		for i := range 12 {
			g := r.do(named("it"))
			if g.status != 503 && g.status != 502 {
				t.Errorf("request %d: %d %s", i, g.status, g.body)
			}
			if i == 11 && !strings.Contains(g.body, "is kept at one place, which is not available now") {
				t.Errorf("with its breaker open: %d %s", g.status, g.body)
			}
		}
		if n := calls[0].Load(); n < 5 || n > 13 {
			t.Errorf("%d calls of the place", n)
		}
		if g := r.do(named("lost")); g.status != 400 || !strings.Contains(g.body, "not served where") {
			t.Errorf("of a place that is gone: %d %s", g.status, g.body)
		}
		if g := r.do(named("it", "other")); g.status != 400 || !strings.Contains(g.body, "at another place") {
			t.Errorf("of two places: %d %s", g.status, g.body)
		}
		for i := 1; i < 4; i++ {
			if n := calls[i].Load(); n > 0 {
				t.Errorf("%d calls of b%d, which has nothing of it", n, i)
			}
		}
		synctest.Wait()
		if told[0] != "file pinned" || told[len(told)-1] != "file split" {
			t.Errorf("told %q", told)
		}
	})
}

// A tenant that may refer to what nobody here has finds out from the provider, makes it its
// own by that, and gets nothing of another tenant's.
func TestForeignState(t *testing.T) {
	var state *stateful.Keeper
	up := talk{chunks: 1, usage: usage(3, 1)}
	s := keeping(setup{places: []place{{handler: up, replica: true}, {handler: up, replica: true}}, policy: sluice.Policy{ForeignState: true}}, &rows{}, &state, nil)
	inBubble(t, s, func(t *testing.T, r *rig) {
		defer state.Close()
		named := func(id string) ask {
			return ask{body: `{"model":"m","stream":true,"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"` + id + `"}}]}]}`}
		}
		first := r.do(named("uploaded"))
		if first.status != 200 {
			t.Fatalf("got %d %s", first.status, first.body)
		}
		for range 8 {
			if g := r.do(named("uploaded")); g.header.Get("Sluice-Backend") != first.header.Get("Sluice-Backend") {
				t.Errorf("it went to %s, and before that to %s", g.header.Get("Sluice-Backend"), first.header.Get("Sluice-Backend"))
			}
		}
		if g := r.do(named("uploaded").of(rival)); g.status != 404 {
			t.Errorf("another tenant, which may do so too: %d %s", g.status, g.body)
		}
	})
}

// A request that refers to what is kept away from its home goes there, whatever the home
// could do, and beyond the headroom of the region: it can go nowhere else.
func TestStateAwayFromHome(t *testing.T) {
	var state *stateful.Keeper
	up := talk{before: time.Second, chunks: 1, usage: usage(3, 1)}
	s := keeping(setup{
		places: []place{{handler: up, replica: true, region: "east", slots: 4}, {handler: up, replica: true, region: "west", slots: 4}},
		home:   &route.Locality{Regions: []string{"east", "west"}}, spares: map[string]int64{"west": 250},
	}, &rows{}, &state, nil)
	inBubble(t, s, func(t *testing.T, r *rig) {
		defer state.Close()
		state.Keep("acme", route.Pin{Provider: "p", Backend: "b1"}, kindsOf("it"))
		a := ask{body: `{"model":"m","stream":true,"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"it"}}]}]}`}
		done := make(chan got, 4)
		for range 4 {
			go func() { done <- r.do(a) }()
		}
		for range 4 {
			if g := <-done; g.status != 200 || g.header.Get("Sluice-Backend") != "b1" || g.took != time.Second {
				t.Errorf("%d from %s after %v: %s", g.status, g.header.Get("Sluice-Backend"), g.took, g.body)
			}
		}
		if g := r.do(ask{stream: true}); g.header.Get("Sluice-Backend") != "b0" {
			t.Errorf("any other request went to %s", g.header.Get("Sluice-Backend"))
		}
	})
}
