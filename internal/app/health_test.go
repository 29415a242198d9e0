package app

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/engine"
)

const healthFile = `
listen: 127.0.0.1:0
admin: {listen: 127.0.0.1:0, open_metrics: true}
data: ${DATA}
lame_duck: 0s
providers:
  far: {dialect: openai, base_url: "${FAR}/v1", price: free, api_keys: ["${A}", {name: b, key: "${B}"}], probe: {path: /health, every: 100ms}}
breaker: {failures: 2, cooldown: 1h, ramp: 1h}
pools:
  p: {backends: [{name: x, provider: far, model: m}]}
models:
  m: {pools: [p]}
tenants:
  acme: {keys: {ci: {secret: ${KEY}}}}
`

// provider is one that refuses a key, and can be down.
type provider struct {
	down atomic.Bool
	bad  atomic.Pointer[string] // the key that it refuses

	mu   sync.Mutex
	keys []string
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.down.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if r.URL.Path == "/health" {
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	p.mu.Lock()
	p.keys = append(p.keys, key)
	p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if bad := p.bad.Load(); bad != nil && *bad == key {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error":{"message":"no","type":"invalid_request_error","code":"invalid_api_key"}}`)
		return
	}
	fmt.Fprint(w, `{"id":"1","object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hi"}}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}`)
}

func (p *provider) sent() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	keys := p.keys
	p.keys = nil
	return keys
}

// TestCredentialsAndProbes: through the whole gateway, a key that is refused is told of
// and left alone until a reload, and a probe takes a backend that was down back
// through its ramp without a request.
func TestCredentialsAndProbes(t *testing.T) {
	far := &provider{}
	server := httptest.NewServer(far)
	defer server.Close()
	b := newBench(t)
	b.env["FAR"], b.env["A"], b.env["B"] = server.URL, "canary-one", "canary-two"
	b.write(healthFile)
	b.start()
	ask := func() int {
		status, _, _ := b.do("POST", "http://"+b.app.Addr()+"/v1/chat/completions", b.key, `{"model":"m","max_tokens":8,"messages":[{"role":"user","content":"hello"}]}`)
		return status
	}
	for ready := 0; ready < 200 && ask() != http.StatusOK; ready++ {
		time.Sleep(10 * time.Millisecond)
	}
	far.sent()
	bad := "canary-one"
	far.bad.Store(&bad)
	for range 4 {
		if got := ask(); got != 200 {
			t.Errorf("got %d with a key that works beside one that is refused", got)
		}
	}
	if keys := far.sent(); len(keys) != 5 || len(slices.DeleteFunc(keys, func(k string) bool { return k == "canary-two" })) != 1 {
		t.Errorf("sent with %v, want one refusal", keys)
	}
	_, _, text := b.do("GET", "http://"+b.app.AdminAddr()+"/metrics", "", "")
	for _, want := range []string{`sluice_credential_disabled{credential="far/1"} 1`, `sluice_credential_disabled{credential="far/b"} 0`, `sluice_backend_share{backend="x"} 1`, `sluice_domain_failed{domain="far"} 0`, `sluice_pool_failed{pool="p"} 0`} {
		if !strings.Contains(text, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	if _, status := b.admin("GET", "/admin/v1/status"); fmt.Sprint(status["credentials"]) == "" || !strings.Contains(fmt.Sprint(status["credentials"]), "state:disabled") {
		t.Errorf("the status says %v", status["credentials"])
	}
	far.bad.Store(nil)
	if err := b.app.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		ask()
	}
	if keys := far.sent(); !slices.Contains(keys, "canary-one") {
		t.Errorf("after a reload: sent with %v", keys)
	}

	far.down.Store(true)
	b.backend(0, func(v engine.BackendView) bool { return v.Health == "cooling" }) // by probes alone
	if got := ask(); got != 503 {
		t.Errorf("down: got %d", got)
	}
	far.down.Store(false)
	back := b.backend(0, func(v engine.BackendView) bool { return v.Health == "ramping" })
	if back.Share > 200 || len(far.sent()) != 0 {
		t.Errorf("came back as %+v", back)
	}
	if got := ask(); got != 200 {
		t.Errorf("back: got %d", got)
	}
	log := b.log.String()
	for _, want := range []string{"credential is refused by its provider", `"credential":"far/1"`, "backend is left out", "pool is failed", "backend is coming back"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	if strings.Contains(log+text, "canary-") {
		t.Error("a provider's key is in the log or the metrics")
	}
}
