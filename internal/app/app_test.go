package app

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice/internal/auth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is one gateway over a directory that outlives it.
type bench struct {
	t    *testing.T
	dir  string
	file string
	key  string
	env  map[string]string
	log  *lockedBuffer
	app  *App
}

const plainFile = `
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
  daily: {limits: {spend_per_day: $0.10, requests_per_day: 100}}
tenants:
  acme: {plan: daily, keys: {ci: {secret: ${KEY}}}}
`

func newBench(t *testing.T) *bench {
	t.Helper()
	minted, err := auth.Mint("test")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	b := &bench{t: t, dir: dir, file: filepath.Join(dir, "sluice.yaml"), key: minted.Key.Reveal()}
	b.env = map[string]string{"KEY": b.key, "DATA": filepath.Join(dir, "data")}
	b.write(plainFile)
	t.Cleanup(b.stop)
	return b
}

func (b *bench) write(text string) {
	b.t.Helper()
	if err := os.WriteFile(b.file, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) start() {
	b.t.Helper()
	b.log = &lockedBuffer{}
	a, err := New(b.t.Context(), Options{
		ConfigPath: b.file, Stderr: b.log,
		Getenv: func(name string) (string, bool) { v, ok := b.env[name]; return v, ok },
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.app = a
	if err := a.Start(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) stop() {
	if b.app == nil {
		return
	}
	if err := b.app.Stop(context.WithoutCancel(b.t.Context())); err != nil { // a cleanup's context has ended
		b.t.Error(err)
	}
	b.app = nil
	http.DefaultClient.CloseIdleConnections()
	if strings.Contains(b.log.String(), b.key) {
		b.t.Error("the key stands in the log")
	}
}

func (b *bench) do(method, url, bearer, body string) (int, http.Header, string) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	return b.sent(req)
}

// sent sends a request and reads its answer.
func (b *bench) sent(req *http.Request) (int, http.Header, string) {
	b.t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(text)
}

// ask asks for a number of tokens, which are also the bound.
func (b *bench) ask(tokens string) (int, http.Header, string) {
	b.t.Helper()
	return b.do("POST", "http://"+b.app.Addr()+"/v1/chat/completions", b.key,
		`{"model":"sim-small","max_tokens":`+tokens+`,"messages":[{"role":"user","content":"hello [[tokens=`+tokens+`]]"}]}`)
}

func (b *bench) admin(method, path string) (int, map[string]any) {
	b.t.Helper()
	token, err := os.ReadFile(filepath.Join(b.env["DATA"], bootstrapFile))
	if err != nil {
		b.t.Fatal(err)
	}
	status, _, text := b.do(method, "http://"+b.app.AdminAddr()+path, strings.TrimSpace(string(token)), "")
	var body map[string]any
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		b.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	return status, body
}

// A budget survives a restart: what was spent before is seeded from the ledger.
func TestBudgetSurvivesRestart(t *testing.T) {
	b := newBench(t)
	b.start()
	if status, _, body := b.ask("80"); status != 200 { // $0.08 of $0.10
		t.Fatalf("got %d %s", status, body)
	}
	b.stop()
	b.start()
	status, h, body := b.ask("80")
	if status == 200 { // clamped to what is left
		if !strings.Contains(h.Get("sluice-dropped"), "max_tokens") {
			t.Errorf("sluice-dropped is %q after a restart: the budget looks whole", h.Get("sluice-dropped"))
		}
		status, h, body = b.ask("80")
	}
	if status != 429 || h.Get("sluice-reason") != "budget_spent" {
		t.Errorf("got %d, reason %q: %s", status, h.Get("sluice-reason"), body)
	}
}

// V1: a reload that fails changes nothing, and says what is wrong; the next good
// one is in force.
func TestFailedReloadChangesNothing(t *testing.T) {
	b := newBench(t)
	b.start()
	_, before := b.admin("GET", "/admin/v1/status")
	for name, text := range map[string]string{
		"syntax":        "listen: [",
		"unknown field": plainFile + "\nnonsense: 1\n",
		"unknown pool":  strings.Replace(plainFile, "pools: [small]", "pools: [smal]", 1),
		"bad address":   strings.Replace(plainFile, "simulated: true", "base_url: nowhere", 1),
		"missing env":   strings.Replace(plainFile, "${KEY}", "${NO_SUCH}", 1),
		"empty":         "",
	} {
		b.write(text)
		if err := b.app.Reload(t.Context()); err == nil {
			t.Errorf("%s: the reload succeeded", name)
		}
		if status, _, body := b.ask("2"); status != 200 {
			t.Errorf("%s: a request after it got %d %s", name, status, body)
		}
	}
	_, after := b.admin("GET", "/admin/v1/status")
	if before["policy"] != after["policy"] {
		t.Errorf("the policy went from %v to %v", before["policy"], after["policy"])
	}
	if last := after["config"].(map[string]any)["last_error"]; last == nil || last == "" {
		t.Error("the status does not tell of the failed reload")
	}
	b.write(strings.Replace(plainFile, "  sim-small: {pools: [small]}", "  sim-small: {pools: [small]}\n  again: {pools: [small]}", 1))
	if err := b.app.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, _, body := b.do("GET", "http://"+b.app.Addr()+"/v1/models/again", b.key, ""); status != 200 {
		t.Errorf("the new model: %d %s", status, body)
	}
}

// cT3, without its second half, which the keeper's and the store's tests have: a
// database that is not there leaves the process up, not ready, and never says
// 401 to a key that may be good.
func TestStoreThatIsNotThere(t *testing.T) {
	b := newBench(t)
	b.write(strings.Replace(plainFile, "lame_duck: 0s", "lame_duck: 0s\nstore: postgres://sluice@127.0.0.1:1/none?sslmode=disable", 1))
	b.start()
	if status, h, body := b.ask("2"); status != 503 || h.Get("sluice-reason") != "not_ready" {
		t.Errorf("got %d, reason %q: %s", status, h.Get("sluice-reason"), body)
	}
	if status, _, _ := b.do("GET", "http://"+b.app.AdminAddr()+"/readyz", "", ""); status != 503 {
		t.Errorf("/readyz is %d", status)
	}
	if status, _, _ := b.do("GET", "http://"+b.app.AdminAddr()+"/livez", "", ""); status != 200 {
		t.Errorf("/livez is %d", status)
	}
}

// A setup that fails half-way leaves nothing behind: not even the ports.
func TestFailedStartRollsBack(t *testing.T) {
	b := newBench(t)
	b.start()
	taken := b.app.Addr()
	var log lockedBuffer
	o := Options{
		ConfigPath: b.file, Stderr: &log, Listen: taken, Data: filepath.Join(b.dir, "other"),
		Getenv: func(name string) (string, bool) { v, ok := b.env[name]; return v, ok },
	}
	if _, err := New(t.Context(), o); err == nil || !strings.Contains(err.Error(), taken) {
		t.Errorf("a port in use: %v", err)
	}
	o.Listen, o.Data = "", ""
	if _, err := New(t.Context(), o); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a data directory in use: %v", err)
	}
}

// Stop drains: a stream that runs goes to its end, and its entry is written.
func TestStopDrains(t *testing.T) {
	b := newBench(t)
	b.start()
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+b.app.Addr()+"/v1/chat/completions",
		strings.NewReader(`{"model":"sim-small","stream":true,"max_tokens":30,"messages":[{"role":"user","content":"[[tokens=30!gap=20ms]]"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		b.stop()
	}()
	text, err := io.ReadAll(res.Body)
	if err != nil || !strings.HasSuffix(string(text), "data: [DONE]\n\n") {
		t.Errorf("the stream ended with %v: …%s", err, text[max(0, len(text)-100):])
	}
	<-stopped
	b.start()
	status, page := b.admin("GET", "/admin/v1/requests")
	if list, _ := json.Marshal(page); status != 200 || !bytes.Contains(list, []byte(`"completed"`)) {
		t.Errorf("the drained stream is not in the ledger: %s", list)
	}
}

// A revoked key stops at once where it is revoked; auth's tests hold the 5 s
// for other replicas.
func TestRevokedKeyStops(t *testing.T) {
	b := newBench(t)
	b.write(strings.Replace(plainFile, "  acme:", "  other: {plan: daily}\n  acme:", 1))
	b.start()
	if status, _, _ := b.ask("2"); status != 200 {
		t.Fatalf("the declared key got %d", status)
	}
	began := time.Now()
	b.write(strings.Replace(plainFile, "{secret: ${KEY}}", "{secret: ${KEY}, disabled: true}", 1))
	if err := b.app.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, h, body := b.ask("2"); status != 401 && status != 403 {
		t.Errorf("%v after it was disabled: %d, reason %q: %s", time.Since(began), status, h.Get("sluice-reason"), body)
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
