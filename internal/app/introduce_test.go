package app

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/engine"
	"sluice/internal/ledger"
)

// openFile bounds nobody.
const openFile = `
listen: 127.0.0.1:0
admin: {listen: 127.0.0.1:0}
data: ${DATA}
lame_duck: 0s
providers:
  sim: {dialect: openai, engine: vllm, simulated: true, price: {input: $1, output: $1000}}
pools:
  small: {backends: [{name: small-a, provider: sim, model: sim-small, context: 128k, max_output: 8k}]}
models:
  sim-small: {pools: [small]}
plans:
  open: {}
tenants:
  acme: {plan: open, keys: {ci: {secret: ${KEY}}}}
`

// chat asks for ten tokens, a cent, as a user of whose key it is.
func (b *bench) chat(key, user string) (status int, reason, body string) {
	b.t.Helper()
	status, h, body := b.do("POST", "http://"+b.app.Addr()+"/v1/chat/completions", key,
		fmt.Sprintf(`{"model":"sim-small","user":%q,"max_tokens":10,"messages":[{"role":"user","content":"hello [[tokens=10]]"}]}`, user))
	return status, h.Get("sluice-reason"), body
}

// used is what a refusal says that a limit has counted. It does not of what tenants share.
var used = regexp.MustCompile(`"scope":"\w+"|"used":\d+`)

// A limit of a fixed window that comes into force while the gateway runs counts what
// was used before, as after a start; other limits of the file go on.
func TestIntroducedByTheFile(t *testing.T) {
	for name, tt := range map[string]struct {
		from, to string // in the file
		left     int    // requests that are served after two
	}{
		"spend of a tenant":    {"acme: {plan: open,", "acme: {plan: open, limits: {spend_per_day: $0.02},", 0},
		"requests of a tenant": {"acme: {plan: open,", "acme: {plan: open, limits: {requests_per_day: 3},", 1},
		"output of a tenant":   {"acme: {plan: open,", "acme: {plan: open, limits: {output_tokens_per_day: 30},", 1},
		"requests of a plan":   {"open: {}", "open: {limits: {requests_per_day: 3}}", 1},
		"another plan":         {"open: {}\ntenants:\n  acme: {plan: open,", "shut: {limits: {spend_per_month: $0.02}}\ntenants:\n  acme: {plan: shut,", 0},
		"of each project":      {"open: {}", "open: {per_project: {requests_per_day: 3}}", 1},
		"of each key":          {"open: {}", "open: {per_key: {requests_per_day: 2}}", 0},
		"of a key":             {"{secret: ${KEY}}", "{secret: ${KEY}, limits: {requests_per_day: 2}}", 0},
		"of each user":         {"open: {}", "open: {per_user: {output_tokens_per_day: 30}}", 1},
		"of a tenant's model":  {"open: {}", "open: {per_model: {sim-small: {spend_per_day: $0.02}}}", 0},
		"of a model":           {"{pools: [small]}", "{pools: [small], limits: {requests_per_day: 3}}", 1},
		"spend of a model":     {"{pools: [small]}", "{pools: [small], limits: {spend_per_day: $0.02}}", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.write(openFile)
			b.start()
			served := func(n int) {
				t.Helper()
				for range n {
					if status, _, body := b.chat(b.key, "ann"); status != 200 {
						t.Fatalf("got %d %s", status, body)
					}
				}
			}
			refused := func() string {
				t.Helper()
				status, reason, body := b.chat(b.key, "ann")
				if status != 429 && status != 503 {
					t.Fatalf("got %d, reason %q: %s", status, reason, body)
				}
				return strings.Join(used.FindAllString(body, -1), " ")
			}
			served(2)
			b.reload(strings.Replace(openFile, tt.from, tt.to, 1))
			served(tt.left)
			live := refused()
			b.reload(openFile)
			served(1)
			b.reload(strings.Replace(openFile, tt.from, tt.to, 1))
			lifted := refused()
			b.stop()
			b.start()
			if again := refused(); again != lifted || strings.Contains(live, "used") && live == lifted {
				t.Errorf("refused by %q, then %q as it was lifted meanwhile, and %q after a start", live, lifted, again)
			}
		})
	}
}

// The same by the admin API; and neither a changed amount nor a new key asks the ledger.
func TestIntroducedByThePlan(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write(openFile)
	b.start()
	var created struct{ Credential string }
	b.operator("POST", "/admin/v1/plans", `{"id":"bud"}`, &struct{}{})
	b.operator("POST", "/admin/v1/tenants", `{"id":"beta","plan":"bud"}`, &struct{}{})
	b.operator("POST", "/admin/v1/tenants/beta/keys", `{}`, &created)
	for range 2 {
		if status, _, body := b.chat(created.Credential, ""); status != 200 {
			t.Fatalf("got %d %s", status, body)
		}
	}
	spent := func() string {
		t.Helper()
		status, reason, body := b.chat(created.Credential, "")
		if status != 429 || reason != "budget_spent" {
			t.Fatalf("got %d, reason %q: %s", status, reason, body)
		}
		return regexp.MustCompile(`spent \$[0-9.]+`).FindString(body)
	}
	b.operator("PATCH", "/admin/v1/plans/bud", `{"limits":{"spend_per_day":"$0.02"}}`, &struct{}{})
	live := spent()
	if !strings.HasPrefix(live, "spent $0.02") {
		t.Errorf("it says %q of two cents", live)
	}
	const asked = "limits that are new"
	introduced := strings.Count(b.log.String(), asked)
	b.operator("PATCH", "/admin/v1/plans/bud", `{"limits":{"spend_per_day":"$0.015"}}`, &struct{}{})
	b.operator("POST", "/admin/v1/tenants/beta/keys", `{}`, &struct{}{})
	b.operator("POST", "/admin/v1/tenants", `{"id":"gamma","plan":"bud"}`, &struct{}{})
	if n := strings.Count(b.log.String(), asked); introduced != 1 || n != 1 {
		t.Errorf("the ledger was asked %d times, and %d times when nothing was new: %s", introduced, n-introduced, b.log)
	}
	b.stop()
	b.start()
	if again := spent(); again != live {
		t.Errorf("%s, and %s after a start", live, again)
	}
}

// A ledger that does not answer holds no reload up for long: it is in force, and told.
func TestIntroducedWithoutTheLedger(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write(openFile)
	b.start()
	if status, _, body := b.chat(b.key, ""); status != 200 {
		t.Fatalf("got %d %s", status, body)
	}
	resume, err := b.app.store.still(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	b.reload(strings.Replace(openFile, "open: {}", "open: {limits: {requests_per_day: 1}}", 1))
	if took := time.Since(began); took > introduceWithin+10*time.Second {
		t.Errorf("the reload took %v", took)
	}
	resume()
	if log := b.log.String(); !strings.Contains(log, "count from now on") || !strings.Contains(log, "tenant requests_per_day of acme") {
		t.Errorf("the log does not tell: %s", log)
	}
	for i, want := range []int{200, 429} {
		if status, _, body := b.chat(b.key, ""); status != want {
			t.Errorf("request %d: %d %s", i+1, status, body)
		}
	}
}

// A key that moved between projects has one counter, with the sum of both.
func TestIntroducedSums(t *testing.T) {
	t.Parallel()
	limit := auth.Introduced{Scope: sluice.ScopeKey, Tenant: "acme", Dimension: sluice.Requests, Window: sluice.PerDay}
	m := introducedSums{wanted: map[auth.Introduced]bool{limit: true}, at: map[engine.Spent]int{}}
	m.add([]ledger.Spend{
		{Scope: sluice.ScopeKey, Tenant: "acme", Project: "a", Key: "k", Window: sluice.PerDay, Requests: 2, CostHigh: 9},
		{Scope: sluice.ScopeKey, Tenant: "acme", Project: "b", Key: "k", Window: sluice.PerDay, Requests: 3},
		{Scope: sluice.ScopeKey, Tenant: "acme", Project: "b", Key: "k", Window: sluice.PerMonth, Requests: 7},
		{Scope: sluice.ScopeKey, Tenant: "other", Project: "b", Key: "k", Window: sluice.PerDay, Requests: 7},
		{Scope: sluice.ScopeTenant, Tenant: "acme", Window: sluice.PerDay, Requests: 7},
	})
	if len(m.seeds) != 1 || m.seeds[0].Amount != 5 || m.seeds[0].Key != "k" {
		t.Errorf("got %+v", m.seeds)
	}
}
