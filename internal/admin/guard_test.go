package admin

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"sluice/internal/auth"
)

// path fills a route's parameters.
func path(route string) string {
	return strings.NewReplacer("{$}", "", "{tenant}", "acme", "{project}", "web", "{key}", "k000000000", "{plan}", "std", "{request}", "req_x").Replace(route)
}

// TestEveryRouteIsGuarded walks what the constructor registered: without a
// token, with a wrong one and with a tenant's key nothing but the open list
// answers, and GET is the only method of the open list.
func TestEveryRouteIsGuarded(t *testing.T) {
	b, _ := newRoutingBench(t)
	var open []string
	for _, r := range b.api.Routes() {
		target := path(r.Path)
		if r.Open {
			open = append(open, r.Path)
			if r.Method != http.MethodGet {
				t.Errorf("%s %s is open and changes something", r.Method, r.Path)
			}
			if res := b.raw(r.Method, target, "", "", nil); res.StatusCode != 200 {
				t.Errorf("%s %s: got %d, want 200", r.Method, r.Path, res.StatusCode)
			}
			continue
		}
		key, _ := auth.Mint("live")
		for name, c := range map[string]struct {
			token string
			want  int
		}{
			"no token":       {"", 401},
			"wrong token":    {auth.MintAdmin().Key.Reveal(), 401},
			"nonsense":       {"x", 401},
			"a tenant's key": {key.Key.Reveal(), 403},
		} {
			res := b.raw(r.Method, target, c.token, "{}", nil)
			if res.StatusCode != c.want {
				t.Errorf("%s %s with %s: got %d, want %d", r.Method, r.Path, name, res.StatusCode, c.want)
			}
			if ct := res.Header.Get("Content-Type"); ct != problemType {
				t.Errorf("%s %s with %s: content type %q", r.Method, r.Path, name, ct)
			}
		}
	}
	slices.Sort(open)
	if want := []string{"/livez", "/readyz", "/{$}"}; !slices.Equal(open, want) {
		t.Errorf("open routes: got %q, want %q", open, want)
	}
}

// TestUnknownPathsAreGuarded says that nobody can map the API without a token.
func TestUnknownPathsAreGuarded(t *testing.T) {
	b, _ := newRoutingBench(t)
	for _, target := range []string{"/admin", "/admin/v1", "/admin/v1/nothing", "/openapi", "/docs", "/debug/pprof/", "/livez/x", "/..%2fadmin/v1/tenants"} {
		if res := b.raw("GET", target, "", "", nil); res.StatusCode != 401 {
			t.Errorf("GET %s without a token: got %d, want 401", target, res.StatusCode)
		}
		if res := b.raw("GET", target, b.token, "", nil); res.StatusCode != 404 {
			t.Errorf("GET %s with a token: got %d, want 404", target, res.StatusCode)
		}
	}
	res := b.raw("PUT", "/admin/v1/plans", b.token, "{}", nil)
	if got := res.Header.Get("Allow"); res.StatusCode != 405 || got != "GET, POST" {
		t.Errorf("PUT plans: got %d, Allow %q", res.StatusCode, got)
	}
	if res := b.raw("POST", "/livez", "", "", nil); res.StatusCode != 401 {
		t.Errorf("POST /livez: got %d, want 401", res.StatusCode)
	}
}

func TestOtherOriginsMayNotChange(t *testing.T) {
	b, _ := newRoutingBench(t)
	for _, h := range []http.Header{
		{"Sec-Fetch-Site": {"cross-site"}},
		{"Origin": {"https://evil.example"}},
	} {
		if res := b.raw("POST", "/admin/v1/tenants", b.token, `{"id":"x"}`, h); res.StatusCode != 403 {
			t.Errorf("%v: got %d, want 403", h, res.StatusCode)
		}
	}
}

func TestMetricsRoute(t *testing.T) {
	for _, open := range []bool{false, true} {
		b := newBench(t, func(o *Options) {
			o.OpenMetrics = open
			o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics") })
		})
		want := 401
		if open {
			want = 200
		}
		if res := b.raw("GET", "/metrics", "", "", nil); res.StatusCode != want {
			t.Errorf("open %t, no token: got %d, want %d", open, res.StatusCode, want)
		}
		if res := b.raw("GET", "/metrics", b.token, "", nil); res.StatusCode != 200 {
			t.Errorf("open %t, token: got %d", open, res.StatusCode)
		}
	}
}

// TestStrictRequests is API3 of the threat table: nothing is written that is not
// named, nothing is read twice, and no value comes back.
func TestStrictRequests(t *testing.T) {
	b, _ := newRoutingBench(t)
	const canary = "slk_live_canary"
	for name, c := range map[string]struct{ target, body string }{
		"unknown field":   {"/admin/v1/tenants", `{"id":"x","role":"` + canary + `"}`},
		"another case":    {"/admin/v1/tenants", `{"ID":"x"}`},
		"duplicate":       {"/admin/v1/tenants", `{"id":"x","id":"` + canary + `"}`},
		"nested unknown":  {"/admin/v1/plans", `{"id":"x","limits":{"` + canary + `":1}}`},
		"wrong type":      {"/admin/v1/tenants", `{"id":{"` + canary + `":1}}`},
		"bad name":        {"/admin/v1/tenants", `{"id":"../x"}`},
		"negative limit":  {"/admin/v1/plans", `{"id":"x","limits":{"concurrency":-1}}`},
		"no window":       {"/admin/v1/plans", `{"id":"x","limits":{"requests":5}}`},
		"unknown query":   {"/admin/v1/tenants?dry=true", `{"id":"x"}`},
		"hash smuggled":   {"/admin/v1/tenants/acme/keys", `{"secrets":[{"hash":"` + canary + `"}]}`},
		"unknown plan":    {"/admin/v1/tenants", `{"id":"x","plan":"nope"}`},
		"unknown project": {"/admin/v1/tenants/acme/keys", `{"project":"nope"}`},
	} {
		res := b.raw("POST", c.target, b.token, c.body, nil)
		body, _ := io.ReadAll(res.Body)
		if res.StatusCode != 422 && res.StatusCode != 400 {
			t.Errorf("%s: got %d %s, want 422", name, res.StatusCode, body)
		}
		var p Problem
		if err := json.Unmarshal(body, &p); err != nil || p.Kind != "invalid" || p.Detail == "" {
			t.Errorf("%s: not a problem: %s", name, body)
		}
		if strings.Contains(string(body), canary) && name != "nested unknown" && name != "wrong type" {
			t.Errorf("%s: the answer echoes what was sent: %s", name, body)
		}
	}
	if res := b.raw("POST", "/admin/v1/tenants", b.token, `{"id":"`+strings.Repeat("x", 2<<20)+`"}`, nil); res.StatusCode != 413 {
		t.Errorf("2 MiB body: got %d, want 413", res.StatusCode)
	}
}

func TestHeadersForbidCaching(t *testing.T) {
	b, _ := newRoutingBench(t)
	res := b.raw("GET", "/admin/v1/tenants", b.token, "", nil)
	if got := res.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control: got %q", got)
	}
}

func TestOpenAPIDescribesEveryOperation(t *testing.T) {
	b, _ := newRoutingBench(t)
	var doc struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal(b.api.OpenAPI(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, r := range b.api.Routes() {
		if !strings.HasPrefix(r.Path, "/admin/v1/") {
			continue
		}
		if doc.Paths[r.Path][strings.ToLower(r.Method)] == nil {
			t.Errorf("%s %s is not in /openapi.json", r.Method, r.Path)
		}
	}
}

var (
	_ http.Handler = (*API)(nil)
	_              = httptest.NewServer
)
