package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"sluice"
	"sluice/internal/wire"
)

// both serves streams and whole answers of a dialect and keeps what it is sent.
type both struct {
	dialect wire.Dialect
	sent    *string
}

func (b both) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	*b.sent = string(body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	switch {
	case b.dialect == wire.OpenAI:
		talk{chunks: 1, usage: usage(9, 1)}.ServeHTTP(w, r)
	case strings.Contains(*b.sent, `"stream":true`):
		claude{start: `{"input_tokens":9,"output_tokens":1}`, texts: 1, delta: `{"output_tokens":3}`}.ServeHTTP(w, r)
	default:
		answers(200, `{"id":"msg","type":"message","role":"assistant","model":"up","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":1}}`).ServeHTTP(w, r)
	}
}

func spend(n sluice.Nano) [sluice.NumScopes][]sluice.Limit {
	return limits(sluice.Limit{Dimension: sluice.Spend, Window: sluice.PerDay, Amount: int64(n)})
}

// What is asked of a backend is what is held, whatever the client asks for, and the
// answer says so: in both dialects, streamed or not. The rig's backends write at
// most 4096 tokens.
func TestBoundIsForwardedAndNamed(t *testing.T) {
	const rich, poor = 100 * sluice.Dollar, sluice.Dollar / 500 // the poor one has room for less than 1000 tokens of output
	for _, tt := range []struct {
		name            string
		dialect         wire.Dialect
		bound           string // members of the body
		hard            bool
		budget          sluice.Nano
		status          int
		forwarded, told string // %d is a bound below 1000
	}{
		{"fits", wire.OpenAI, `,"max_tokens":4096`, true, rich, 200, `"max_tokens":4096`, ""},
		{"beyond the model", wire.OpenAI, `,"max_tokens":50000`, true, rich, 200, `"max_tokens":4096`, "max_tokens=4096"},
		{"beyond the model, soft", wire.OpenAI, `,"max_completion_tokens":99999999999999999999`, false, rich, 200, `"max_completion_tokens":4096`, "max_completion_tokens=4096"},
		{"none", wire.OpenAI, ``, true, rich, 200, `"max_completion_tokens":4096`, ""},
		{"none, soft", wire.OpenAI, ``, false, rich, 200, "", ""},
		{"null", wire.OpenAI, `,"max_tokens":null`, true, rich, 200, `"max_completion_tokens":4096`, ""},
		{"beyond the budget", wire.OpenAI, `,"max_tokens":1000`, true, poor, 200, `"max_tokens":%d`, "max_tokens=%d"},
		{"none, beyond the budget", wire.OpenAI, ``, true, poor, 200, `"max_completion_tokens":%d`, "max_completion_tokens=%d"},
		{"0", wire.OpenAI, `,"max_tokens":0`, true, rich, 400, "", ""},
		{"0, soft", wire.OpenAI, `,"max_completion_tokens":0`, false, rich, 400, "", ""},

		{"fits", wire.Anthropic, `,"max_tokens":4096`, true, rich, 200, `"max_tokens":4096`, ""},
		{"beyond the model", wire.Anthropic, `,"max_tokens":50000`, true, rich, 200, `"max_tokens":4096`, "max_tokens=4096"},
		{"beyond the budget", wire.Anthropic, `,"max_tokens":1000`, true, poor, 200, `"max_tokens":%d`, "max_tokens=%d"},
		{"0", wire.Anthropic, `,"max_tokens":0`, true, rich, 200, `"max_tokens":1`, "max_tokens=1"},
		{"0, soft", wire.Anthropic, `,"max_tokens":0`, false, rich, 200, `"max_tokens":0`, ""},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.dialect, " ", tt.name, " stream ", stream), func(t *testing.T) {
				var sent string
				inBubble(t, setup{
					places: []place{{handler: both{tt.dialect, &sent}, dialect: tt.dialect}},
					policy: sluice.Policy{HardSpend: tt.hard, Limits: spend(tt.budget)},
				}, func(t *testing.T, r *rig) {
					path := "/v1/chat/completions"
					if tt.dialect == wire.Anthropic {
						path = "/v1/messages"
					}
					g := r.do(ask{path: path, body: fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"hi"}]%s,"stream":%v}`, tt.bound, stream)})
					if g.status != tt.status {
						t.Fatalf("got %d %s", g.status, g.body)
					}
					like(t, "forwarded", sent, tt.forwarded)
					if tt.forwarded == "" && strings.Contains(sent, "max_") {
						t.Errorf("forwarded %s", sent)
					}
					told := g.header.Get("Sluice-Dropped")
					if like(t, "sluice-dropped", told, tt.told); tt.told == "" && told != "" {
						t.Errorf("sluice-dropped is %q", told)
					}
				})
			})
		}
	}
}

// like checks that s has what is wanted, where %d stands for a number below 1000.
func like(t *testing.T, what, s, want string) {
	t.Helper()
	before, _, numeric := strings.Cut(want, "%d")
	_, after, found := strings.Cut(s, before)
	if !numeric {
		if !strings.Contains(s, want) {
			t.Errorf("%s: got %q, want %q", what, s, want)
		}
		return
	}
	var n int
	if _, err := fmt.Sscanf(after, "%d", &n); err != nil || !found || n < 16 || n >= 1000 {
		t.Errorf("%s: got %q, want %q with a bound from 16 to 1000", what, s, want)
	}
}

// A hard budget holds the fees of searches, and what nothing bounds it does not
// serve.
func TestHardSpendHoldsServerTools(t *testing.T) {
	for _, tt := range []struct {
		tools  string
		hard   bool
		status int
	}{
		{`[{"type":"web_search_20250305","name":"web_search","max_uses":2}]`, true, 200},
		{`[{"type":"web_search_20250305","name":"web_search","max_uses":2000}]`, true, 400},
		{`[{"type":"web_search_20250305","name":"web_search"}]`, true, 400},
		{`[{"type":"code_execution_20250825","name":"code_execution"}]`, true, 400},
		{`[{"type":"web_search_20250305","name":"web_search"}]`, false, 200},
		{`[{"type":"bash_20250124","name":"bash"}]`, true, 200},
	} {
		var sent string
		inBubble(t, setup{
			places: []place{{handler: both{wire.Anthropic, &sent}, dialect: wire.Anthropic}},
			policy: sluice.Policy{HardSpend: tt.hard, Limits: spend(sluice.Dollar)},
		}, func(t *testing.T, r *rig) {
			g := r.do(ask{path: "/v1/messages", body: `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"hi"}],"tools":` + tt.tools + `}`})
			if g.status != tt.status {
				t.Errorf("%s, hard %v: got %d %s", tt.tools, tt.hard, g.status, g.body)
			}
			if held := r.last().Final.HeldSpend; tt.status == 200 && tt.hard && strings.Contains(tt.tools, "max_uses") && held < 3*200_000*1000+2*10_000_000 {
				t.Errorf("%s: %v are held", tt.tools, held)
			}
		})
	}
}

// Where no limit of spend applies, there is no budget that tools could exceed.
func TestServerToolsWithoutABudget(t *testing.T) {
	var sent string
	inBubble(t, setup{
		places: []place{{handler: both{wire.Anthropic, &sent}, dialect: wire.Anthropic}}, policy: sluice.Policy{HardSpend: true},
	}, func(t *testing.T, r *rig) {
		g := r.do(ask{path: "/v1/messages", body: `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"code_execution_20250825","name":"code_execution"}]}`})
		if g.status != 200 {
			t.Errorf("status %d: %s", g.status, g.body)
		}
	})
}

// An input beyond the model's context is told in the words that clients look for.
func TestContextExceeded(t *testing.T) {
	long := strings.Repeat("word ", 250_000)
	for _, tt := range []struct {
		dialect    wire.Dialect
		path, code string
	}{
		{wire.OpenAI, "/v1/chat/completions", "context_length_exceeded"},
		{wire.Anthropic, "/v1/messages", "<nil>"},
	} {
		var sent string
		inBubble(t, setup{places: []place{{handler: both{tt.dialect, &sent}, dialect: tt.dialect}}}, func(t *testing.T, r *rig) {
			g := r.do(ask{path: tt.path, body: `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"` + long + `"}]}`})
			kind, code, msg := errorOf(t, g.body)
			if g.status != 400 || kind != "invalid_request_error" || code != tt.code || !strings.HasPrefix(msg, "prompt is too long: 25") || !strings.Contains(msg, " tokens > 200000 maximum") || g.header.Get("Sluice-Reason") != "never_fits" {
				t.Errorf("%s: got %d %s", tt.dialect, g.status, g.body)
			}
		})
	}
}
