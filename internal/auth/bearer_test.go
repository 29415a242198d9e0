package auth

import (
	"slices"
	"strings"
	"testing"

	"sluice"
)

func TestAdmit(t *testing.T) {
	class := func(c sluice.Class) *sluice.Class { return &c }
	records := func(change func(*Records)) Records {
		plan := DefaultPlan("gold") // standard
		plan.Classes = []sluice.Class{sluice.Interactive}
		r := Records{
			Tokens: true, Plans: []Plan{plan, DefaultPlan("plain")},
			Tenants: []Tenant{{ID: "acme", Plan: "gold", Models: []sluice.ModelID{"fast", "large"}, Projects: []Project{{ID: "shop", Models: []sluice.ModelID{"fast"}}}}, {ID: "globex", Plan: "plain"}},
		}
		if change != nil {
			change(&r)
		}
		return r
	}
	for _, tc := range []struct {
		name    string
		bearer  Bearer
		change  func(*Records)
		partial bool
		want    sluice.Class
		classes []sluice.Class
		models  int
		says    string
	}{
		{name: "tenant", bearer: Bearer{Tenant: "acme"}, want: sluice.Standard, classes: []sluice.Class{sluice.Interactive}, models: 2},
		{name: "project", bearer: Bearer{Tenant: "acme", Project: "shop"}, want: sluice.Standard, classes: []sluice.Class{sluice.Interactive}, models: 1},
		{name: "lower class", bearer: Bearer{Tenant: "acme", Class: class(sluice.Batch)}, want: sluice.Batch, models: 2},
		{name: "the plan's own class as the highest", bearer: Bearer{Tenant: "acme", Class: class(sluice.Standard)}, want: sluice.Standard, models: 2},
		{name: "a listed class", bearer: Bearer{Tenant: "acme", Class: class(sluice.Interactive)}, want: sluice.Interactive, models: 2},
		{name: "a class beyond the plan", bearer: Bearer{Tenant: "globex", Class: class(sluice.Interactive)}, want: sluice.Standard},
		{name: "no tenant", bearer: Bearer{Tenant: "nobody"}, says: `tenant "nobody", which does not exist`},
		{name: "no project", bearer: Bearer{Tenant: "acme", Project: "web"}, says: `project "web", which tenant "acme" does not have`},
		{name: "suspended", bearer: Bearer{Tenant: "acme"}, change: func(r *Records) { r.Tenants[0].Suspended = true }, says: "suspended"},
		{name: "broken", bearer: Bearer{Tenant: "acme"}, change: func(r *Records) { r.Plans = nil }, says: "does not exist"},
		{name: "not loaded yet", bearer: Bearer{Tenant: "nobody"}, partial: true, says: "not loaded"},
		{name: "broken and not loaded yet", bearer: Bearer{Tenant: "acme"}, partial: true, change: func(r *Records) { r.Plans = nil }, says: "not loaded"},
		{name: "no tokens taken", bearer: Bearer{Tenant: "acme"}, change: func(r *Records) { r.Tokens = false }, says: "does not have"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.bearer.Key, tc.bearer.User = "jwt:corp:alice", "alice"
			s := Compile(CompileOptions{Partial: tc.partial}, records(tc.change))
			p, err := s.Admit(&tc.bearer)
			if err != nil {
				if tc.says == "" || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("got %v, want …%s…", err, tc.says)
				}
				return
			}
			if tc.says != "" || p.Tenant != tc.bearer.Tenant || p.Key != "jwt:corp:alice" || p.User != "alice" || p.Policy.Class != tc.want ||
				!slices.Equal(p.Policy.Classes, tc.classes) || len(p.Policy.Models) != tc.models {
				t.Errorf("got %+v of %+v", p, p.Policy)
			}
			again, err := Compile(CompileOptions{Before: s}, records(tc.change)).Admit(&tc.bearer)
			if err != nil || again.Policy != p.Policy {
				t.Errorf("a policy that did not change moved: %v", err)
			}
			if n := testing.AllocsPerRun(100, func() { _, _ = s.Admit(&tc.bearer) }); n > 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}
