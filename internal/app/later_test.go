package app

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// laterFile bounds answers, keeps them, and has a model of little context.
const laterFile = `
listen: 127.0.0.1:0
admin: {listen: 127.0.0.1:0}
data: ${DATA}
lame_duck: 0s
providers:
  sim: {dialect: openai, engine: vllm, simulated: true, price: {input: $1, output: $1000}}
pools:
  small: {backends: [{name: small-a, provider: sim, model: sim-small, context: 2k, max_output: 1k}]}
models:
  sim-small: {pools: [small]}
plans:
  daily: {output_ceiling: 16, output_cache: {ttl: 10m, for: asked}}
tenants:
  acme: {plan: daily, keys: {ci: {secret: ${KEY}}}}
`

// asked sends a chat and returns its answer.
func (b *bench) asked(body string, header http.Header) (int, http.Header, string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, "http://"+b.app.Addr()+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	maps.Copy(r.Header, header)
	r.Header.Set("Authorization", "Bearer "+b.key)
	return b.sent(r)
}

// later sends a chat that is answered later and returns what it was answered.
func (b *bench) later(body string, header http.Header) (int, http.Header, string) {
	b.t.Helper()
	header = header.Clone()
	header.Set("Prefer", "respond-async")
	status, h, text := b.asked(body, header)
	if status != http.StatusAccepted {
		b.t.Fatalf("got %d %s", status, text)
	}
	at := "http://" + b.app.Addr() + h.Get("Location")
	for deadline := time.Now().Add(30 * time.Second); status == http.StatusAccepted; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("it is never answered: %s", text)
		}
		status, h, text = b.do(http.MethodGet, at, b.key, "")
	}
	return status, h, text
}

// ofAMoment are headers that differ from one answer to the next, or tell of counters.
var ofAMoment = regexp.MustCompile(`^(Date|Content-Length|Sluice-Request-Id|Sluice-Queue-Ms|Sluice-Answers|X-Ratelimit-.*|Openai-Processing-Ms|X-Request-Id|Sluice-Cache)$`)

// An answer that is fetched later has the headers that it would have had at once, and its
// id is one that can be explained.
func TestLaterAnswerHasItsHeaders(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write(laterFile)
	b.start()
	chat := func(text string) string {
		return `{"model":"sim-small","max_tokens":99,"messages":[{"role":"user","content":"` + text + ` [[tokens=9]]"}]}`
	}
	use := http.Header{"Sluice-Cache": {"use"}}
	for _, tt := range []struct {
		name   string
		body   string
		header http.Header
		want   http.Header // of what it has to say
	}{
		{
			"an answer", chat("hello"),
			http.Header{},
			http.Header{"Sluice-Backend": {"small-a"}, "Sluice-Dropped": {"max_tokens=16"}, "Content-Type": {"application/json"}},
		},
		{"one that is kept", chat("kept"), use, http.Header{"Sluice-Cache": {"hit; age="}}},
		{"a refusal", chat(strings.Repeat("long ", 4000)), http.Header{}, http.Header{"Sluice-Reason": {"never_fits"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.header.Get("Sluice-Cache") != "" { // it is the first that puts it there
				b.asked(tt.body, tt.header)
			}
			status, atOnce, text := b.asked(tt.body, tt.header)
			laterStatus, later, laterText := b.later(tt.body, tt.header)
			if status != laterStatus || (status == 200) != strings.Contains(laterText, `"choices"`) {
				t.Fatalf("at once %d %s\nlater %d %s", status, text, laterStatus, laterText)
			}
			for name := range tt.want {
				if !strings.HasPrefix(atOnce.Get(name), tt.want.Get(name)) || !strings.HasPrefix(later.Get(name), tt.want.Get(name)) {
					t.Errorf("%s is %q at once and %q later, want %q", name, atOnce.Get(name), later.Get(name), tt.want.Get(name))
				}
			}
			names := slices.Sorted(maps.Keys(atOnce))
			for _, name := range names {
				if later.Get(name) == "" && !strings.HasPrefix(name, "X-Ratelimit-") {
					t.Errorf("it has no %s", name)
				}
				if !ofAMoment.MatchString(name) && later.Get(name) != atOnce.Get(name) {
					t.Errorf("%s is %q, and at once it is %q", name, later.Get(name), atOnce.Get(name))
				}
			}
			told := b.explained(later.Get("Sluice-Answers"))
			if status == 200 && told["outcome"] != "completed" || status != 200 && told["reason"] != atOnce.Get("Sluice-Reason") {
				t.Errorf("explained as %v", told)
			}
		})
	}
}

// A line that is refused before anything runs is in the ledger under the id that its
// result names.
func TestRefusedLineIsExplained(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write(laterFile)
	b.start()
	base := "http://" + b.app.Addr() + "/v1/messages/batches"
	status, _, text := b.do(http.MethodPost, base, b.key, `{"requests": [
		{"custom_id": "wrong", "params": {"model": "none", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}},
		{"custom_id": "streams", "params": {"model": "sim-small", "stream": true, "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}}]}`)
	var batch struct {
		ID     string `json:"id"`
		Status string `json:"processing_status"`
	}
	if err := json.Unmarshal([]byte(text), &batch); err != nil || status != http.StatusOK {
		t.Fatalf("got %d %s", status, text)
	}
	for deadline := time.Now().Add(30 * time.Second); batch.Status != "ended"; time.Sleep(5 * time.Millisecond) {
		_, _, text = b.do(http.MethodGet, base+"/"+batch.ID, b.key, "")
		if err := json.Unmarshal([]byte(text), &batch); err != nil || time.Now().After(deadline) {
			t.Fatalf("%v: %s", err, text)
		}
	}
	_, _, text = b.do(http.MethodGet, base+"/"+batch.ID+"/results", b.key, "")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 2 {
		t.Fatalf("results %s", text)
	}
	for i, want := range []string{"model_not_found", "invalid_request"} {
		var l struct {
			Result struct{ Type string }
			Sluice struct {
				Request string `json:"request_id"`
				Reason  string
			}
		}
		if err := json.Unmarshal([]byte(lines[i]), &l); err != nil || l.Result.Type != "errored" || l.Sluice.Reason != want {
			t.Fatalf("%v, want %s: %s", err, want, lines[i])
		}
		if told := b.explained(l.Sluice.Request); told["outcome"] != "rejected" || told["reason"] != want || told["tenant"] != "acme" {
			t.Errorf("explained as %v", told)
		}
	}
}
