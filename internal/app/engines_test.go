package app

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice/internal/engine"
)

// backend waits until the only backend of a pool is as wanted, and returns it.
func (b *bench) backend(pool int, want func(engine.BackendView) bool) engine.BackendView {
	b.t.Helper()
	var got engine.BackendView
	for range 500 {
		got = b.app.gate.Dump(10).Pools[pool].Backends[0]
		if want(got) {
			return got
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.t.Fatalf("never as wanted: %+v", got)
	return got
}

const capacityFile = `
listen: 127.0.0.1:0
admin: {listen: 127.0.0.1:0, open_metrics: true}
data: ${DATA}
lame_duck: 0s
providers:
  engines: {dialect: openai, engine: vllm, simulated: true, metrics: 200ms, price: free}
  hosted: {dialect: openai, simulated: true, price: free}
  messages: {dialect: anthropic, simulated: true, price: free}
pools:
  engine: {backends: [{name: engine, provider: engines, model: sim-small}]}
  hosted: {backends: [{name: hosted, provider: hosted, model: gpt-like}]}
  limited: {backends: [{name: limited, provider: hosted, model: "gpt-like!status=429!retry-after=2", capacity: {requests_per_minute: 600}}]}
  messages: {backends: [{name: messages, provider: messages, model: "claude-like!status=529"}]}
models:
  e: {pools: [engine]}
  h: {pools: [hosted]}
  l: {pools: [limited]}
  m: {pools: [messages]}
tenants:
  acme: {keys: {ci: {secret: ${KEY}}}}
plans: {}
`

// TestCapacityIsLearnt: an engine's metrics, a provider's headers and its refusals
// reach the backend that they are about, through the real gateway and a provider
// that speaks like the real ones.
func TestCapacityIsLearnt(t *testing.T) {
	b := newBench(t)
	b.write(capacityFile)
	b.start()
	call := func(path, model string) int {
		status, _, _ := b.do("POST", "http://"+b.app.Addr()+path, b.key, `{"model":"`+model+`","max_tokens":8,"messages":[{"role":"user","content":"hello"}]}`)
		return status
	}
	e := b.backend(0, func(v engine.BackendView) bool { return v.KVPermille >= 0 })
	if e.KVCapacity < 442_000 || e.KVCapacity > 443_000 || !e.Adaptive || e.Concurrency != 16 {
		t.Errorf("engine: %+v", e)
	}
	for ready := 0; ready < 200 && call("/v1/chat/completions", "h") != http.StatusOK; ready++ {
		time.Sleep(10 * time.Millisecond)
	}
	if h := b.backend(1, func(v engine.BackendView) bool { return len(v.Rates) == 2 }); h.Rates[0].All != 10_000 || h.Rates[0].Left > 10_000 || h.Rates[1].All != 30_000_000 {
		t.Errorf("hosted: %+v", h.Rates)
	}
	call("/v1/chat/completions", "l")
	if l := b.backend(2, func(v engine.BackendView) bool { return len(v.Rates) == 1 && v.Rates[0].Left <= 0 }); l.Health != "cooling" {
		t.Errorf("limited: %+v", l)
	}
	call("/v1/messages", "m")
	if m := b.backend(3, func(v engine.BackendView) bool { return v.Concurrency < 16 }); m.Concurrency != 8 {
		t.Errorf("messages: %+v", m)
	}
	_, _, text := b.do("GET", "http://"+b.app.AdminAddr()+"/metrics", "", "")
	for _, want := range []string{`sluice_backend_limit{backend="messages"} 8`, `sluice_backend_kv_usage{backend="engine"} 0`, `sluice_backend_rate_remaining{backend="hosted",rate="tokens"}`} {
		if !strings.Contains(text, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}
