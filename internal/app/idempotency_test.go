package app

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice/internal/idempotency"
)

// keyed asks with an Idempotency-Key.
func (b *bench) keyed(key, body string) (*http.Response, string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, "http://"+b.app.Addr()+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+b.key)
	r.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return res, string(text)
}

// C11: an answer is kept over restarts, with a zero row for each time that it is given
// again, and a reload changes for how long.
func TestFault_C11_AcrossRestarts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start()
	const stream = `{"model":"sim-small","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hello [[tokens=9]]"}]}`
	first, answer := b.keyed("order-1", stream)
	if first.StatusCode != http.StatusOK || !strings.Contains(answer, "[DONE]") {
		t.Fatalf("got %d %s", first.StatusCode, answer)
	}
	b.stop()
	b.start()
	id := first.Header.Get("Sluice-Request-Id")
	again, replay := b.keyed("order-1", stream)
	if again.StatusCode != http.StatusOK || replay != answer || again.Header.Get("Idempotent-Replayed") != "true" || again.Header.Get("Sluice-Original-Request") != id {
		t.Fatalf("got %d %v %q, want %q", again.StatusCode, again.Header, replay, answer)
	}
	if other, text := b.keyed("order-1", strings.Replace(stream, "hello", "hullo", 1)); other.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("another body: got %d %s", other.StatusCode, text)
	}
	billed, free := b.explained(id), b.explained(again.Header.Get("Sluice-Request-Id"))
	if cost := billed["total"].(map[string]any)["cost_nanodollars"]; cost == 0.0 {
		t.Errorf("the first costs %v", cost)
	}
	step := free["steps"].([]any)[0].(map[string]any)
	if cost := free["total"].(map[string]any)["cost_nanodollars"]; cost != 0.0 || step["replayed"] != id || free["outcome"] != "completed" {
		t.Errorf("the replay is told as %v", free)
	}
	b.write(plainFile + "\nidempotency: {keep: 1m}\n")
	if err := b.app.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.keyed("order-2", stream)
	if l := b.app.keys.Level(); l.Bytes == 0 || l.Held != 0 {
		t.Errorf("%+v", l)
	}
	has, err := b.app.store.SweepKeys(t.Context(), time.Now().Add(2*time.Minute), idempotency.Bounds{PerTenant: 1 << 30, Total: 1 << 30})
	if err != nil || len(has) != 1 {
		t.Fatalf("%v, %v", has, err)
	}
	if third, _ := b.keyed("order-2", stream); third.Header.Get("Idempotent-Replayed") != "" {
		t.Error("an answer outlived its time")
	}
	if third, _ := b.keyed("order-1", stream); third.Header.Get("Idempotent-Replayed") != "true" {
		t.Error("an answer lost the time that it was kept for")
	}
}
