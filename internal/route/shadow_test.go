package route

import (
	"fmt"
	"testing"

	"sluice"
)

// A shadow gets its share, keeps its requests when that grows, and is not of the very
// requests that a canary or another shadow takes.
func TestCopies(t *testing.T) {
	m := Model{
		ID: "m", Pools: []sluice.PoolID{"a", "canary"}, Terms: map[sluice.PoolID]*Terms{"canary": {Canary: 1000}},
		Shadows: []Shadow{{Pool: "x", Share: 1000}, {Pool: "y", Share: 1000, Classes: []sluice.Class{sluice.Batch}, Tenants: []sluice.TenantID{"acme"}}},
	}
	larger := m
	larger.Shadows = []Shadow{{Pool: "x", Share: 2000}}
	p := &sluice.Principal{Tenant: "acme", Run: "r"}
	var x, y, both, withCanary int
	const n = 20_000
	for i := range n {
		id := sluice.RequestID(fmt.Sprint("req_", i))
		got := map[sluice.PoolID]bool{}
		for _, s := range m.Copies(&Asker{ID: id, Principal: p, Class: sluice.Batch}) {
			got[s.Pool] = true
		}
		canary := m.First(&Asker{ID: id, Principal: p, Class: sluice.Batch}, nil)[0] == "canary"
		for _, c := range []struct {
			is bool
			n  *int
		}{{got["x"], &x}, {got["y"], &y}, {got["x"] && got["y"], &both}, {got["x"] && canary, &withCanary}} {
			if c.is {
				*c.n++
			}
		}
		if got["x"] && len(larger.Copies(&Asker{ID: id, Principal: p, Class: sluice.Batch})) == 0 {
			t.Fatalf("%s is not copied any more by a larger share", id)
		}
		if len(m.Copies(&Asker{ID: id, Principal: &sluice.Principal{Tenant: "globex"}, Class: sluice.Batch}))+len(m.Copies(&Asker{ID: id, Principal: p, Class: sluice.Standard})) > 2 {
			t.Fatalf("%s is copied to a shadow whose conditions it does not meet", id)
		}
	}
	for what, c := range map[string]struct{ got, want int }{"x": {x, n / 10}, "y": {y, n / 10}, "both": {both, n / 100}, "x and the canary": {withCanary, n / 100}} {
		if c.got < c.want*3/4 || c.got > c.want*5/4 {
			t.Errorf("%s: %d of %d, want about %d", what, c.got, n, c.want)
		}
	}
	m.Sticky = ByRun
	first := len(m.Copies(&Asker{ID: "req_1", Principal: p, Class: sluice.Batch}))
	for i := range 50 {
		if len(m.Copies(&Asker{ID: sluice.RequestID(fmt.Sprint(i)), Principal: p, Class: sluice.Batch})) != first {
			t.Fatal("requests of one run go different ways")
		}
	}
}
