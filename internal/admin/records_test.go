package admin

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/auth"
)

func TestPlanLifecycle(t *testing.T) {
	b := newBench(t)
	var p Plan
	b.do("POST", "/admin/v1/plans", `{"id":"gold","class":"interactive","weight":3,"limits":{"input_tokens_per_minute":"1.5M","concurrency":32,"spend_per_day":"$2.50"},"per_key":{"requests_per_minute":60},"per_model":{"*":{"kv_tokens":"50k"}},"max_wait":"10s"}`, 201, &p)
	for name, c := range map[string]struct{ got, want string }{
		"input":       {p.Limits["input_tokens_per_minute"].String(), "1500000"},
		"concurrency": {p.Limits["concurrency"].String(), "32"},
		"spend":       {p.Limits["spend_per_day"].String(), "$2.50"},
		"per key":     {p.PerKey["requests_per_minute"].String(), "60"},
		"per model":   {p.PerModel["*"]["kv_tokens"].String(), "50000"},
		"class":       {*p.Class, "interactive"},
		"max wait":    {*p.MaxWait, "10s"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", name, c.got, c.want)
		}
	}
	if p.Created == nil || p.Updated == nil {
		t.Error("no times")
	}
	b.do("POST", "/admin/v1/plans", `{"id":"gold"}`, 409, nil)
	b.do("PATCH", "/admin/v1/plans/gold", `{"limits":{"concurrency":null,"requests_per_minute":"1k"}}`, 200, &p)
	var shown Plan
	b.do("GET", "/admin/v1/plans/gold", "", 200, &shown)
	if _, ok := shown.Limits["concurrency"]; ok || shown.Limits["requests_per_minute"].String() != "1000" || shown.Limits["spend_per_day"].String() != "$2.50" || *shown.Weight != 3 {
		t.Errorf("after update: %+v", shown)
	}
	b.do("PATCH", "/admin/v1/tenants/acme", `{"plan":"gold"}`, 200, nil)
	if text := b.do("DELETE", "/admin/v1/plans/gold", "", 409, nil); !strings.Contains(text, "acme") {
		t.Errorf("a plan in use: %s", text)
	}
	b.do("PATCH", "/admin/v1/tenants/acme", `{"plan":"std"}`, 200, nil)
	b.do("DELETE", "/admin/v1/plans/gold?dry_run=true", "", 204, nil)
	b.do("GET", "/admin/v1/plans/gold", "", 200, nil)
	b.do("DELETE", "/admin/v1/plans/gold", "", 204, nil)
	b.do("GET", "/admin/v1/plans/gold", "", 404, nil)
}

// TestNoneLiftsALimit says what none and null do: none is no limit whatever the
// plan says, null leaves the plan's.
func TestNoneLiftsALimit(t *testing.T) {
	b := newBench(t)
	var k NewKey
	b.do("POST", "/admin/v1/tenants/acme/keys", `{}`, 201, &k)
	limits := func() int {
		p, err := b.keeper.Identify(k.Credential, b.now)
		if err != nil {
			t.Fatal(err)
		}
		return len(p.Policy.Limits[sluice.ScopeTenant])
	}
	for _, c := range []struct {
		target, body string
		want         int
	}{
		{"/admin/v1/tenants/acme", `{"limits":{"requests_per_minute":"none"}}`, 1},
		{"/admin/v1/tenants/acme", `{"limits":{"requests_per_minute":null}}`, 2},
		{"/admin/v1/plans/std", `{"limits":{"requests_per_minute":"none"}}`, 1},
	} {
		b.do("PATCH", c.target, c.body, 200, nil)
		if got := limits(); got != c.want {
			t.Errorf("%s %s: %d limits, want %d", c.target, c.body, got, c.want)
		}
	}
	var p Plan
	b.do("GET", "/admin/v1/plans/std", "", 200, &p)
	if len(p.Limits) != 1 {
		t.Errorf("the plan keeps %v", p.Limits)
	}
	var shown Tenant
	b.do("PATCH", "/admin/v1/tenants/acme", `{"limits":{"concurrency":"none"}}`, 200, &shown)
	if got := shown.Limits["concurrency"].String(); got != "none" {
		t.Errorf("the tenant shows %q", got)
	}
}

// TestUnknownModelsAreWarnedOf covers every list of models that a change can
// name.
func TestUnknownModelsAreWarnedOf(t *testing.T) {
	b := newBench(t, func(o *Options) { o.HasModel = func(m string) bool { return m == "fast" } })
	var k NewKey
	b.do("POST", "/admin/v1/tenants/acme/keys", `{"models":["fast","nope"]}`, 201, &k)
	if len(k.Warnings) != 1 || !strings.Contains(k.Warnings[0], `"nope"`) {
		t.Errorf("the new key: %q", k.Warnings)
	}
	for target, body := range map[string]string{
		"/admin/v1/tenants/acme/keys/" + k.ID:                `{"models":["nope"]}`,
		"/admin/v1/tenants/acme":                             `{"models":["nope"]}`,
		"/admin/v1/tenants/acme/projects/web":                `{"models":["nope"]}`,
		"/admin/v1/plans/std":                                `{"models":["nope"]}`,
		"/admin/v1/plans/std?dry_run=true":                   `{"per_model":{"*":{"concurrency":1},"nope":{"concurrency":1}}}`,
		"/admin/v1/tenants/acme?dry_run=true":                `{"models":["fast","nope"]}`,
		"/admin/v1/tenants/acme/keys/" + k.ID + "?dry_run=1": `{"models":["nope"]}`,
	} {
		var w Warned
		b.do("PATCH", target, body, 200, &w)
		if len(w.Warnings) != 1 || !strings.Contains(w.Warnings[0], `"nope"`) {
			t.Errorf("%s %s: %q", target, body, w.Warnings)
		}
		w = Warned{}
		b.do("PATCH", target, `{}`, 200, &w)
		if len(w.Warnings) != 0 {
			t.Errorf("%s warns again: %q", target, w.Warnings)
		}
	}
	if text := b.do("POST", "/admin/v1/tenants/acme/keys", `{"expires":"tomorrow"}`, 422, nil); !strings.Contains(text, "720h (from now), 2027-01-31") {
		t.Errorf("expires: %s", text)
	}
}

// TestHooks names hooks of a plan, a tenant and a project, each once, and takes them away
// again; one that is not configured changes nothing.
func TestHooks(t *testing.T) {
	b := newBench(t, func(o *Options) { o.HasHook = func(name string) bool { return name != "typo" } })
	for _, target := range []string{"/admin/v1/plans/std", "/admin/v1/tenants/acme", "/admin/v1/tenants/acme/projects/web"} {
		if text := b.do("PATCH", target, `{"hooks":["pii","moderation","pii"]}`, 200, nil); !strings.Contains(text, `"hooks":["pii","moderation"]`) {
			t.Errorf("%s: %s", target, text)
		}
		if text := b.do("PATCH", target, `{"hooks":["pii","typo"]}`, 422, nil); !strings.Contains(text, "typo") || !strings.Contains(text, "not configured") {
			t.Errorf("%s: %s", target, text)
		}
		if text := b.do("PATCH", target, `{}`, 200, nil); !strings.Contains(text, `"hooks":["pii","moderation"]`) {
			t.Errorf("%s after a change of nothing: %s", target, text)
		}
		if text := b.do("PATCH", target, `{"hooks":[]}`, 200, nil); strings.Contains(text, `"hooks"`) {
			t.Errorf("%s still has hooks: %s", target, text)
		}
	}
	if text := b.do("POST", "/admin/v1/plans", `{"id":"checked","hooks":["pii"]}`, 201, nil); !strings.Contains(text, `"hooks":["pii"]`) {
		t.Errorf("a new plan: %s", text)
	}
	b.do("POST", "/admin/v1/tenants", `{"id":"other","hooks":["typo"]}`, 422, nil)
}

func TestDryRunChangesNothing(t *testing.T) {
	b := newBench(t)
	before := b.do("GET", "/admin/v1/tenants", "", 200, nil) + b.do("GET", "/admin/v1/plans", "", 200, nil) + b.do("GET", "/admin/v1/tenants/acme/keys", "", 200, nil)
	for _, c := range []struct {
		method, target, body string
		want                 int
	}{
		{"POST", "/admin/v1/plans?dry_run=true", `{"id":"x"}`, 201},
		{"PATCH", "/admin/v1/plans/std?dry_run=true", `{"weight":9}`, 200},
		{"POST", "/admin/v1/tenants?dry_run=true", `{"id":"x"}`, 201},
		{"PATCH", "/admin/v1/tenants/acme?dry_run=true", `{"suspended":true}`, 200},
		{"DELETE", "/admin/v1/tenants/acme?dry_run=true", "", 204},
		{"POST", "/admin/v1/tenants/acme/projects?dry_run=true", `{"id":"x"}`, 201},
		{"PATCH", "/admin/v1/tenants/acme/projects/web?dry_run=true", `{"name":"x"}`, 200},
		{"DELETE", "/admin/v1/tenants/acme/projects/web?dry_run=true", "", 204},
	} {
		b.do(c.method, c.target, c.body, c.want, nil)
	}
	var k NewKey
	b.do("POST", "/admin/v1/tenants/acme/keys?dry_run=true", `{}`, 201, &k)
	if k.Credential != "" {
		t.Error("a dry run answers a credential")
	}
	after := b.do("GET", "/admin/v1/tenants", "", 200, nil) + b.do("GET", "/admin/v1/plans", "", 200, nil) + b.do("GET", "/admin/v1/tenants/acme/keys", "", 200, nil)
	if before != after {
		t.Errorf("before %s\nafter %s", before, after)
	}
}

// TestFileOwnsWhatItDeclares says that declared records are shown with their
// place and refused with it.
func TestFileOwnsWhatItDeclares(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct{ method, target, body string }{
		{"POST", "/admin/v1/plans", `{"id":"filed"}`},
		{"PATCH", "/admin/v1/plans/filed", `{"weight":2}`},
		{"DELETE", "/admin/v1/plans/filed", ""},
		{"POST", "/admin/v1/tenants", `{"id":"filed"}`},
		{"PATCH", "/admin/v1/tenants/filed", `{"suspended":true}`},
		{"DELETE", "/admin/v1/tenants/filed", ""},
		{"POST", "/admin/v1/tenants/filed/projects", `{"id":"x"}`},
		{"PATCH", "/admin/v1/tenants/filed/projects/web", `{"name":"x"}`},
		{"DELETE", "/admin/v1/tenants/filed/projects/web", ""},
		{"PATCH", "/admin/v1/tenants/filed/keys/k123456789", `{"disabled":true}`},
		{"POST", "/admin/v1/tenants/filed/keys/k123456789/rotate", `{}`},
		{"POST", "/admin/v1/tenants/filed/keys/k123456789/revoke", ""},
	} {
		if text := b.do(c.method, c.target, c.body, 409, nil); !strings.Contains(text, "sluice.yaml:12") {
			t.Errorf("%s %s: no file and line: %s", c.method, c.target, text)
		}
	}
	var shown Tenant
	b.do("GET", "/admin/v1/tenants/filed", "", 200, &shown)
	if shown.Declared != "sluice.yaml:12" || len(shown.Projects) != 1 {
		t.Errorf("got %+v", shown)
	}
	var k NewKey
	b.do("POST", "/admin/v1/tenants/filed/keys", `{"project":"web"}`, 201, &k)
	if why := b.identify(k.Credential); why != "" {
		t.Errorf("a stored key of a declared tenant is refused: %s", why)
	}
}

// TestKeyLifecycle follows a key through creation, rotation with overlap and
// revocation, each seen at once by what admits requests.
func TestKeyLifecycle(t *testing.T) {
	b := newBench(t)
	var k NewKey
	b.do("POST", "/admin/v1/tenants/acme/keys", `{"project":"web","env":"test","name":"ci","models":["fast"],"limits":{"requests_per_minute":5},"expires":"720h"}`, 201, &k)
	if !strings.HasPrefix(k.Credential, "slk_test_"+k.ID+"_") || k.State != "active" || k.Expires == nil {
		t.Fatalf("got %+v", k)
	}
	if why := b.identify(k.Credential); why != "" {
		t.Fatalf("the new key is refused: %s", why)
	}
	target := "/admin/v1/tenants/acme/keys/" + k.ID
	ref, err := auth.Parse(k.Credential)
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.Split(k.Credential, "_")[3]
	for _, text := range []string{b.do("GET", target, "", 200, nil), b.do("GET", "/admin/v1/tenants/acme/keys", "", 200, nil)} {
		if strings.Contains(text, secret) || strings.Contains(text, ref.Hash(auth.Hasher{}).Hex()) {
			t.Errorf("a secret or its hash is shown: %s", text)
		}
	}

	var rotated NewKey
	b.do("POST", target+"/rotate", `{"overlap":"1h"}`, 200, &rotated)
	if rotated.ID != k.ID || rotated.Credential == k.Credential || len(rotated.Secrets) != 2 {
		t.Fatalf("got %+v", rotated)
	}
	for name, credential := range map[string]string{"old": k.Credential, "new": rotated.Credential} {
		if why := b.identify(credential); why != "" {
			t.Errorf("%s secret within the overlap: %s", name, why)
		}
	}
	b.now = b.now.Add(61 * time.Minute)
	if why := b.identify(k.Credential); why != "key_expired" {
		t.Errorf("old secret after the overlap: %q", why)
	}
	if why := b.identify(rotated.Credential); why != "" {
		t.Errorf("new secret after the overlap: %q", why)
	}

	b.do("PATCH", target, `{"disabled":true}`, 200, nil)
	if why := b.identify(rotated.Credential); why == "" {
		t.Error("a disabled key is admitted")
	}
	b.do("PATCH", target, `{"disabled":false}`, 200, nil)
	b.do("POST", target+"/revoke?dry_run=true", "", 200, nil)
	if why := b.identify(rotated.Credential); why != "" {
		t.Errorf("after a dry run: %s", why)
	}
	var revoked Key
	b.do("POST", target+"/revoke", "", 200, &revoked)
	if why := b.identify(rotated.Credential); why != "key_revoked" || revoked.State != "revoked" {
		t.Errorf("after revocation: %q, state %s", why, revoked.State)
	}
	b.do("POST", target+"/revoke", "", 200, nil)
	b.do("POST", target+"/rotate", `{}`, 409, nil)
	b.do("PATCH", target, `{"disabled":false}`, 409, nil)

	for _, canary := range []string{secret, strings.Split(rotated.Credential, "_")[3], b.token} {
		if strings.Contains(b.log.String(), canary) {
			t.Errorf("a secret is in the log: %s", b.log.String())
		}
	}
	if !strings.Contains(b.log.String(), "key revoked") {
		t.Errorf("changes are not logged: %s", b.log.String())
	}
}

// TestTenantsAreWalls says that a key is found under its own tenant alone.
func TestTenantsAreWalls(t *testing.T) {
	b := newBench(t)
	var k NewKey
	b.do("POST", "/admin/v1/tenants/acme/keys", `{}`, 201, &k)
	b.do("POST", "/admin/v1/tenants", `{"id":"other"}`, 201, nil)
	for _, c := range [][2]string{
		{"GET", "/admin/v1/tenants/other/keys/" + k.ID},
		{"PATCH", "/admin/v1/tenants/other/keys/" + k.ID},
		{"POST", "/admin/v1/tenants/other/keys/" + k.ID + "/rotate"},
		{"POST", "/admin/v1/tenants/other/keys/" + k.ID + "/revoke"},
		{"GET", "/admin/v1/tenants/other/keys/k123456789"},
		{"GET", "/admin/v1/tenants/other/projects/web"},
		{"GET", "/admin/v1/tenants/nobody/keys"},
	} {
		body := ""
		if c[0] != http.MethodGet && !strings.HasSuffix(c[1], "revoke") {
			body = "{}"
		}
		b.do(c[0], c[1], body, 404, nil)
	}
	if why := b.identify(k.Credential); why != "" {
		t.Errorf("another tenant's path changed the key: %s", why)
	}
}

func TestSuspendedTenantStops(t *testing.T) {
	b := newBench(t)
	var k NewKey
	b.do("POST", "/admin/v1/tenants/acme/keys", `{}`, 201, &k)
	b.do("PATCH", "/admin/v1/tenants/acme", `{"suspended":true}`, 200, nil)
	if why := b.identify(k.Credential); why != "permission_denied" {
		t.Errorf("got %q", why)
	}
	b.do("DELETE", "/admin/v1/tenants/acme", "", 409, nil)
	b.do("DELETE", "/admin/v1/tenants/acme/projects/web", "", 204, nil)
}

func TestLimitNames(t *testing.T) {
	for name, c := range map[string]struct {
		limit, amount string
		want          int64 // 0: refused
	}{
		"count":           {"requests_per_minute", "600", 600},
		"thousands":       {"input_tokens_per_day", "200k", 200_000},
		"fraction":        {"output_tokens_per_second", "1.25M", 1_250_000},
		"gauge":           {"kv_tokens", "2G", 2_000_000_000},
		"money":           {"spend_per_month", "$0.000000001", 1},
		"rate by month":   {"requests_per_month", "1", 0},
		"gauge by minute": {"concurrency_per_minute", "1", 0},
		"budget by min":   {"spend_per_minute", "$1", 0},
		"no window":       {"input_tokens", "1", 0},
		"unknown":         {"tokens_per_minute", "1", 0},
		"half a request":  {"requests_per_minute", "0.5", 0},
		"overflow":        {"requests_per_minute", "99999999999G", 0},
		"negative":        {"requests_per_minute", "-5", 0},
		"zero":            {"requests_per_minute", "0", 0},
		"empty":           {"requests_per_minute", " ", 0},
	} {
		l, err := Limits{c.limit: ParseAmount(c.amount)}.apply(nil, "limits")
		switch {
		case c.want == 0 && err == nil:
			t.Errorf("%s: %s=%s was taken as %v", name, c.limit, c.amount, l)
		case c.want != 0 && (err != nil || len(l) != 1 || l[0].Amount != c.want):
			t.Errorf("%s: got %v, %v, want %d", name, l, err, c.want)
		}
	}
}
