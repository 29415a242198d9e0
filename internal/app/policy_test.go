package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/sched"
)

// operator changes something through the admin API.
func (b *bench) operator(method, path, body string, into any) {
	b.t.Helper()
	token, err := os.ReadFile(filepath.Join(b.env["DATA"], bootstrapFile))
	if err != nil {
		b.t.Fatal(err)
	}
	status, _, text := b.do(method, "http://"+b.app.AdminAddr()+path, strings.TrimSpace(string(token)), body)
	if status > 299 {
		b.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		b.t.Fatal(err)
	}
}

// slow asks for an answer of 60 tokens in a second and a half, and tells the status and the
// answer when it has come.
func (b *bench) slow(key string) <-chan string {
	b.t.Helper()
	return b.slowly(key, 60)
}

func (b *bench) slowly(key string, tokens int) <-chan string {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), "POST", "http://"+b.app.Addr()+"/v1/chat/completions",
		strings.NewReader(fmt.Sprintf(`{"model":"sim-small","stream":true,"max_tokens":%d,"messages":[{"role":"user","content":"[[tokens=%[1]d!gap=25ms]]"}]}`, tokens)))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	done := make(chan string, 1)
	go func() {
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			done <- err.Error()
			return
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			done <- err.Error()
			return
		}
		done <- res.Status + string(text[max(0, len(text)-len("data: [DONE]\n\n")):])
	}()
	return done
}

// flow waits until the pool's flow of a tenant is as wanted.
func (b *bench) flow(tenant sluice.TenantID, want func(sched.FlowView) bool) sched.FlowView {
	b.t.Helper()
	patience := time.After(10 * time.Second)
	for {
		v := b.app.gate.Look(engine.Zoom{Tenant: tenant}, 10)
		for _, p := range v.Pools {
			for _, f := range p.Flows {
				if f.Tenant == tenant && want(f) {
					return f
				}
			}
		}
		select {
		case <-time.After(time.Millisecond):
		case <-patience:
			b.t.Fatalf("the flow of %s is not as wanted: %+v", tenant, v.Pools)
		}
	}
}

// A plan of the store gives its tenant its weight, a changed plan another; a
// reload changes shares and the policy while requests run and wait, and none of
// them is lost.
func TestSharesWeightsAndPolicyAreLive(t *testing.T) {
	b := newBench(t)
	file := strings.Replace(plainFile, "small: {backends", "small: {classes: {standard: {share: 50%, ceiling: 90%}}, backends", 1)
	b.write(file)
	b.start()
	var created struct{ Credential string }
	b.operator("POST", "/admin/v1/plans", `{"id":"gold","weight":3,"limits":{"concurrency":1}}`, &struct{}{})
	b.operator("POST", "/admin/v1/tenants", `{"id":"beta","plan":"gold"}`, &struct{}{})
	b.operator("POST", "/admin/v1/tenants/beta/keys", `{}`, &created)

	first := b.slow(created.Credential)
	if f := b.flow("beta", func(f sched.FlowView) bool { return f.Running == 1 }); f.Weight != 3 {
		t.Errorf("a plan of weight 3: %+v", f)
	}
	b.operator("PATCH", "/admin/v1/plans/gold", `{"weight":5}`, &struct{}{})
	second := b.slow(created.Credential)
	if f := b.flow("beta", func(f sched.FlowView) bool { return f.Waiting == 1 }); f.Weight != 5 || f.Running != 1 {
		t.Errorf("the plan has weight 5 and one request at a time: %+v", f)
	}

	standard := func() sched.Class {
		return b.app.gate.Look(engine.Zoom{}, 1).Pools[0].Classes[sluice.Standard].Policy
	}
	if got := standard(); got != (sched.Class{Share: 500, Ceiling: 900}) {
		t.Errorf("got %+v", got)
	}
	b.write(strings.Replace(file, "share: 50%", "share: 70%", 1))
	if err := b.app.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := standard(); got != (sched.Class{Share: 700, Ceiling: 900}) {
		t.Errorf("after the reload: %+v", got)
	}
	b.write(file + "policy: naive\n")
	if err := b.app.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	third := b.slow(created.Credential) // the naive policy knows no limit of concurrency
	b.flow("", func(f sched.FlowView) bool { return f.Running >= 2 && f.Waiting == 0 })
	for i, done := range []<-chan string{first, second, third} {
		if got := <-done; got != "200 OKdata: [DONE]\n\n" {
			t.Errorf("request %d: %s", i+1, got)
		}
	}
	b.write(file)
	if err := b.app.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, _, body := b.ask("2"); status != 200 {
		t.Errorf("fair again: %d %s", status, body)
	}
}

// What waits for a limit of concurrency starts when that is raised, or is refused nobody
// any more, though nothing else comes or ends.
func TestLimitsReachWhatWaits(t *testing.T) {
	b := newBench(t)
	b.write(plainFile)
	b.start()
	var created struct{ Credential string }
	b.operator("POST", "/admin/v1/plans", `{"id":"gold","limits":{"concurrency":1}}`, &struct{}{})
	b.operator("POST", "/admin/v1/tenants", `{"id":"beta","plan":"gold"}`, &struct{}{})
	b.operator("POST", "/admin/v1/tenants/beta/keys", `{}`, &created)
	runs, waits := 0, 0
	are := func(f sched.FlowView) bool { return f.Running == runs && f.Waiting == waits }

	const minutes = 4000 // tokens: they end with the test
	for range 3 {
		b.slowly(created.Credential, minutes)
	}
	runs, waits = 1, 2
	b.flow("beta", are)
	b.operator("PATCH", "/admin/v1/plans/gold", `{"limits":{"concurrency":2}}`, &struct{}{})
	runs, waits = 2, 1
	b.flow("beta", are)
	b.operator("PATCH", "/admin/v1/plans/gold", `{"limits_mode":"off"}`, &struct{}{})
	runs, waits = 3, 0
	b.flow("beta", are)
}
