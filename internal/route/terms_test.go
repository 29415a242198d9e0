package route_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/route"
)

// Shares come out as they are asked for, whichever names requests have.
func TestFirstSharesByWeightAndCanary(t *testing.T) {
	m := &route.Model{ID: "m", Pools: []sluice.PoolID{"a", "b", "c"}, Terms: map[sluice.PoolID]*route.Terms{"a": {Weight: 3}, "b": {Weight: 1}, "c": {Canary: 500}}}
	const n = 100_000
	first, without := map[sluice.PoolID]int{}, 0
	for i := range n {
		order := m.First(&route.Asker{ID: sluice.RequestID(fmt.Sprint("req_", i)), Principal: &sluice.Principal{Tenant: "t"}, Class: sluice.Standard}, nil)
		first[order[0]]++
		if !slices.Contains(order, "c") {
			without++
		} else if order[0] != "c" {
			t.Fatalf("got %v: a canary comes first or not at all", order)
		}
		if !slices.Contains(order, "a") || !slices.Contains(order, "b") {
			t.Fatalf("got %v, want all pools with weights", order)
		}
	}
	for p, want := range map[sluice.PoolID]int{"a": n * 95 / 100 * 3 / 4, "b": n * 95 / 100 / 4, "c": n * 5 / 100} {
		if got := first[p]; got < want*95/100 || got > want*105/100 {
			t.Errorf("%s is first for %d of %d, want %d within a twentieth", p, got, n, want)
		}
	}
	if without != n-first["c"] {
		t.Errorf("%d have no canary, %d have it first", without, first["c"])
	}
}

// Conditions leave pools out, order stays where there are no weights, the same
// request draws the same, a larger canary keeps those that it has, and what is
// sticky goes one way.
func TestFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pools := []sluice.PoolID{"a", "b", "c", "d"}
		m := &route.Model{ID: "m", Pools: pools, Terms: map[sluice.PoolID]*route.Terms{
			"b": {Tenants: []sluice.TenantID{"acme"}},
			"c": {Classes: []sluice.Class{sluice.Batch}},
			"d": {Canary: rapid.Int64Range(1, route.CanaryParts/2).Draw(t, "canary"), Tenants: []sluice.TenantID{"acme", "beta"}},
		}, Sticky: route.Sticky(rapid.IntRange(0, 3).Draw(t, "sticky"))}
		p := &sluice.Principal{
			Tenant: rapid.SampledFrom([]sluice.TenantID{"acme", "beta", "gamma"}).Draw(t, "tenant"),
			Run:    rapid.SampledFrom([]sluice.RunID{"", "r1", "r2"}).Draw(t, "run"), User: rapid.SampledFrom([]sluice.UserID{"", "u1"}).Draw(t, "user"),
		}
		class := sluice.Class(rapid.IntRange(0, 2).Draw(t, "class"))
		id := sluice.RequestID(rapid.StringMatching(`req_[a-z0-9]{6}`).Draw(t, "id"))
		session := route.SessionOf(p.Tenant, rapid.SampledFrom([]string{"", "s1", "s2"}).Draw(t, "session"))
		a := &route.Asker{ID: id, Principal: p, Session: session, Class: class}
		got := m.First(a, nil)
		want := []sluice.PoolID{"a"}
		if p.Tenant == "acme" {
			want = append(want, "b")
		}
		if class == sluice.Batch {
			want = append(want, "c")
		}
		canary := got[0] == "d"
		if canary {
			if p.Tenant == "gamma" {
				t.Fatalf("%v: a canary for another tenant", got)
			}
			want = append([]sluice.PoolID{"d"}, want...)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if again := m.First(a, make([]sluice.PoolID, 0, 8)); !slices.Equal(got, again) {
			t.Fatalf("got %v, then %v", got, again)
		}
		if m.Sticky == route.ByRun && p.Run != "" || m.Sticky == route.ByUser && p.User != "" || m.Sticky == route.BySession && session != 0 {
			if other := m.First(&route.Asker{ID: "another", Principal: p, Session: session, Class: class}, nil); !slices.Equal(got, other) {
				t.Fatalf("sticky %v: got %v and %v for two requests of one", m.Sticky, got, other)
			}
		}
		m.Terms["d"].Canary *= 2
		if larger := m.First(a, nil); canary && larger[0] != "d" {
			t.Fatal("a larger canary lost a request")
		}
		m.Terms = nil
		if got := m.First(a, nil); !slices.Equal(got, pools) {
			t.Fatalf("without terms: got %v", got)
		}
	})
}

func TestTermsAreValidated(t *testing.T) {
	for name, terms := range map[string]map[sluice.PoolID]*route.Terms{
		"nobody's":          {"a": {Tenants: []sluice.TenantID{"t"}}, "b": {Canary: 5}},
		"some have weights": {"a": {Weight: 1}},
		"beyond the whole":  {"b": {Canary: route.CanaryParts + 1}},
		"negative":          {"a": {Weight: -1}, "b": {Weight: 1}},
	} {
		table := &route.Table{
			Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"a", "b"}, Terms: terms}},
			Pools:  map[sluice.PoolID]*route.Pool{"a": {ID: "a"}, "b": {ID: "b"}},
		}
		if table.Validate() == nil {
			t.Errorf("%s: valid", name)
		}
	}
}
