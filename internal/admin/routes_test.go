package admin

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice"
)

// fakeRouting remembers what was asked of it.
type fakeRouting struct {
	asked  []any
	err    error
	before int64
	limit  int
}

func (f *fakeRouting) routing() Routing {
	return Routing{
		Routes: func() RouteList {
			return RouteList{Version: "aabbccddeeff", Routes: []ModelRoute{{Model: "a/b", Pools: []PoolRoute{{Pool: "p", Backends: []BackendRoute{}}}}}}
		},
		Change: func(_ context.Context, c RouteChange, by Change) (Changed, error) {
			f.asked = append(f.asked, c, by)
			return Changed{Version: Version{Number: 7, Hash: "aabbccddeeff", Source: "api"}, DryRun: by.Dry}, f.err
		},
		Rollback: func(_ context.Context, ref string, by Change) (Changed, error) {
			f.asked = append(f.asked, ref, by)
			return Changed{Version: Version{Number: 8, Hash: "aabbccddeeff", Source: "rollback", Of: 6}}, f.err
		},
		Versions: func(_ context.Context, before int64, limit int) (VersionList, error) {
			f.before, f.limit = before, limit
			return VersionList{Versions: []Version{}}, f.err
		},
		Version: func(_ context.Context, ref string) (VersionText, error) {
			f.asked = append(f.asked, ref)
			return VersionText{}, f.err
		},
		DryRun: func(_ context.Context, q DryRunQuery) (DryRun, error) {
			f.asked = append(f.asked, q)
			return DryRun{}, f.err
		},
		Compare: func(_ context.Context, from, to string) (Comparison, error) {
			f.asked = append(f.asked, from, to)
			return Comparison{Differences: []Difference{}}, f.err
		},
	}
}

func newRoutingBench(t *testing.T) (*bench, *fakeRouting) {
	f := &fakeRouting{}
	return newBench(t, func(o *Options) { o.Routing, o.Cache = f.routing(), keptAnswers() }), f
}

// A change reaches the gateway as it was written, with who and why, and is logged.
func TestChangeRoutes(t *testing.T) {
	b, f := newRoutingBench(t)
	var out Changed
	b.do("PATCH", "/admin/v1/routes?dry_run=true", `{"models":{"a/b":{"pools":{"p":{"weight":3,"canary":"5%"}},"fallback":[{"pool":"q","allow_unevaluated":true}],"sticky":"run","max_spend":"$0.05"}},
		"backends":{"x":{"weight":0},"y":{"reset":true}},"author":"ada","reason":" it is slow "}`, 200, &out)
	if out.Version.Number != 7 || !out.DryRun {
		t.Errorf("got %+v", out)
	}
	three, five, run, spend, none := int64(3), "5%", "run", "$0.05", int64(0)
	want := []any{
		RouteChange{
			Models: map[string]ModelRouteChange{"a/b": {
				Pools: map[string]PoolRouteChange{"p": {Weight: &three, Canary: &five}}, Fallback: &[]RouteFallback{{Pool: "q", AllowUnevaluated: true}}, Sticky: &run, MaxSpend: &spend,
			}},
			Backends: map[string]BackendRouteChange{"x": {Weight: &none}, "y": {Reset: true}},
		},
		Change{Author: "ada", Reason: "it is slow", Dry: true},
	}
	if diff := cmp.Diff(want, f.asked); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if strings.Contains(b.log.String(), "routes changed") {
		t.Error("a dry run is logged as a change")
	}
	b.do("PATCH", "/admin/v1/routes", `{"backends":{"x":{"weight":0}},"reason":"slow"}`, 200, nil)
	if by := f.asked[3].(Change); by.Author == "" || by.Dry {
		t.Errorf("by %+v, want the token's name", by)
	}
	if !strings.Contains(b.log.String(), "routes changed") {
		t.Error("a change is not logged")
	}
	for name, body := range map[string]string{
		"no reason":      `{"backends":{"x":{"weight":0}}}`,
		"empty reason":   `{"backends":{"x":{"weight":0}},"reason":"  "}`,
		"nothing":        `{"reason":"slow"}`,
		"unknown field":  `{"backends":{"x":{"weigth":0}},"reason":"slow"}`,
		"negative":       `{"backends":{"x":{"weight":-1}},"reason":"slow"}`,
		"not a share":    `{"models":{"m":{"pools":{"p":{"canary":"a lot"}}}},"reason":"slow"}`,
		"control bytes":  `{"backends":{"x":{"weight":0}},"reason":"a\u001bb"}`,
		"too long":       `{"backends":{"x":{"weight":0}},"reason":"` + strings.Repeat("x", 1025) + `"}`,
		"unknown sticky": `{"models":{"m":{"sticky":"tenant"}},"reason":"slow"}`,
	} {
		before := len(f.asked)
		b.do("PATCH", "/admin/v1/routes", body, 422, nil)
		if len(f.asked) != before {
			t.Errorf("%s: the gateway was asked", name)
		}
	}
	f.err = mistakes{errors.New("bad")}
	if text := b.do("PATCH", "/admin/v1/routes", `{"backends":{"x":{"weight":0}},"reason":"slow"}`, 422, nil); !strings.Contains(text, "sluice.yaml:3:1") || !strings.Contains(text, "nothing has changed") {
		t.Errorf("got %s", text)
	}
}

func TestShowRoutesAndVersions(t *testing.T) {
	b, f := newRoutingBench(t)
	var r ModelRoute
	b.do("GET", "/admin/v1/routes/a%2Fb", "", 200, &r)
	if r.Model != "a/b" {
		t.Errorf("got %+v", r)
	}
	b.do("GET", "/admin/v1/routes/c", "", 404, nil)
	b.do("GET", "/admin/v1/versions?before=9&limit=3", "", 200, nil)
	if f.before != 9 || f.limit != 3 {
		t.Errorf("before %d, limit %d", f.before, f.limit)
	}
	b.do("GET", "/admin/v1/versions", "", 200, nil)
	if f.limit != versionRows {
		t.Errorf("limit %d", f.limit)
	}
	b.do("GET", "/admin/v1/versions/previous", "", 200, nil)
	b.do("GET", "/admin/v1/versions/diff?from=3&to=file", "", 200, nil)
	b.do("POST", "/admin/v1/versions/rollback", `{"version":"6","reason":"back"}`, 200, nil)
	want := []any{"previous", "3", "file", "6"}
	if diff := cmp.Diff(want, f.asked[:4]); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	f.err = missing("version", "6")
	b.do("POST", "/admin/v1/versions/rollback", `{"version":"6","reason":"back"}`, 404, nil)
	f.err = &sluice.Error{Kind: sluice.KindConflict, Reason: sluice.InvalidRequest, Msg: "in force"}
	b.do("POST", "/admin/v1/versions/rollback", `{"reason":"back"}`, 409, nil)
	newBench(t).do("GET", "/admin/v1/versions", "", 404, nil)
}
