package crash

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"sluice/internal/auth"
	"sluice/internal/fakellm"
	"sluice/test/gateway"
)

// TestHandOverKilled kills the gateway when its provider has made a batch of a job's lines
// and it has not heard of it, and again when it looks for it: the batch is found, no line is
// run twice by anybody, and the tenant pays for each once.
func TestHandOverKilled(t *testing.T) {
	t.Parallel()
	const lines, served = refusedEach, refusedEach - 1 // one is too large for the model
	fleet, err := fakellm.New(fakellm.Options{Book: 1 << 10, Seed: 1})
	must(t, err)
	defer fleet.Close()
	kill, made, looked := make(chan struct{}, 2), 0, 0
	dies := func(r *http.Request) {
		kill <- struct{}{}
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path { // one at a time: it asks so
		case "POST /v1/batches":
			made++
			fleet.ServeHTTP(httptest.NewRecorder(), r)
			dies(r)
		case "GET /v1/batches":
			if looked++; looked == 1 {
				dies(r)
			}
		}
		fleet.ServeHTTP(w, r)
	}))
	defer provider.Close()
	g := gateway.New(t, gateway.Options{Tenants: map[string]string{soft: soft}, Config: fmt.Sprintf(`
lame_duck: 0s
log: {level: warn}
providers:
  partner: {dialect: openai, base_url: "%s/v1", price: {input: $0.10, output: $0.40, batch: 50%%}, batch: {hand_over: true, least_lines: 10}}
pools:
  first: {backends: [{name: a, provider: partner, model: sim-small, context: 128k, max_output: 8k}]}
models:
  fast: {pools: [first]}
plans:
  soft: {class: interactive, spend: soft, limits: {spend_per_month: $10}}
batch: {lines: %d}
`, provider.URL, lines)})
	g.Start() // so that the database is there
	g.Stop()
	key, err := auth.Parse(g.Key(soft))
	must(t, err)
	id := submit(t, g.Dir, key.ID, lines)
	for range 2 {
		g.Start()
		select {
		case <-kill:
		case <-time.After(gateway.Patience):
			t.Fatal("the provider is not asked")
		}
		g.Kill()
	}
	g.Start()
	for deadline := time.Now().Add(2 * gateway.Patience); g.Metrics()[`sluice_batch_jobs_total{kind="batch",state="completed"}`] == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the batch does not end")
		}
		time.Sleep(50 * time.Millisecond)
	}
	g.Quiet()
	g.Stop()
	if n := len(fleet.Account(fakellm.Filter{}).Served); made != 1 || n != served {
		t.Errorf("the provider was asked for %d batches, and served %d requests; want 1 and %d", made, n, served)
	}
	b := books{t: t, db: openStore(t, g.Dir), job: id, lines: lines}
	b.results()
	b.ledger(served)
	if b.voided == 0 {
		t.Error("no attempt was voided: nothing was in flight when the gateway was killed")
	}
}
