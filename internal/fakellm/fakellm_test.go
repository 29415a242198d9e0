package fakellm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// provider starts a server on a loopback socket.
func provider(t testing.TB, o Options) (*Server, string) {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	hs := httptest.NewServer(s)
	t.Cleanup(func() {
		hs.CloseClientConnections()
		hs.Close()
		s.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return s, hs.URL
}

type answer struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body, or of the call
}

func post(t testing.TB, url, body string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("anthropic-version", "2023-06-01")
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(b), err}
}

func chat(model, prompt, more string) string {
	return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%q}]%s}`, model, prompt, more)
}

const streamed = `,"stream":true,"stream_options":{"include_usage":true}`

// events are the data lines of a stream.
func events(body string) []string {
	var out []string
	for line := range strings.SplitSeq(strings.ReplaceAll(body, "\r\n", "\n"), "\n") {
		if data, ok := strings.CutPrefix(line, "data:"); ok {
			out = append(out, strings.TrimPrefix(data, " "))
		}
	}
	return out
}

// names are the event lines of a stream.
func names(body string) []string {
	var out []string
	for line := range strings.SplitSeq(body, "\n") {
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			out = append(out, name)
		}
	}
	return out
}

type chunk struct {
	Choices []struct {
		Index int
		Text  string
		Delta struct {
			Content   string
			ToolCalls []struct {
				Index    int
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		FinishReason string `json:"finish_reason"`
	}
	Usage *usage
	Error *struct{ Message, Type string }
}

type usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
	Details    struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
	Read   int64 `json:"cache_read_input_tokens"`
	Write  int64 `json:"cache_creation_input_tokens"`
}

func chunks(t *testing.T, body string) []chunk {
	t.Helper()
	var out []chunk
	for _, e := range events(body) {
		if e == "[DONE]" {
			continue
		}
		var c chunk
		if err := json.Unmarshal([]byte(e), &c); err != nil {
			t.Fatalf("event %q: %v", e, err)
		}
		out = append(out, c)
	}
	return out
}

// only is the one request in the book.
func only(t *testing.T, s *Server) Served {
	t.Helper()
	settled(t, s, 1)
	return s.Account(Filter{}).Served[0]
}

// settled waits until n requests have ended.
func settled(t testing.TB, s *Server, n int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := s.Await(ctx, func(all Total) bool { return all.Requests == n && all.Running == 0 }); err != nil {
		t.Fatalf("%d requests are not in the book: %v", n, err)
	}
}

func TestChatStreamsTextThenUsageThenDone(t *testing.T) {
	s, url := provider(t, Options{Instant: true})
	got := post(t, url+"/v1/chat/completions", chat("sim-small", "Say something. [[tokens=130]]", streamed))
	if got.status != http.StatusOK || got.err != nil {
		t.Fatalf("got %d, %v: %s", got.status, got.err, got.body)
	}
	all := events(got.body)
	if all[len(all)-1] != "[DONE]" {
		t.Errorf("last event is %q", all[len(all)-1])
	}
	cs := chunks(t, got.body)
	last := cs[len(cs)-1]
	if len(last.Choices) != 0 || last.Usage == nil || last.Usage.Completion != 130 {
		t.Fatalf("last chunk %+v: want no choices and 130 tokens", last)
	}
	if f := cs[len(cs)-2].Choices[0].FinishReason; f != "stop" {
		t.Errorf("finish reason %q", f)
	}
	var text strings.Builder
	for _, c := range cs[:len(cs)-1] {
		if c.Usage != nil {
			t.Error("a chunk before the last has usage")
		}
		text.WriteString(c.Choices[0].Delta.Content)
	}
	if n := len(cs) - 3; n >= 130 || n < 50 {
		t.Errorf("130 tokens came in %d events: want several in some", n)
	}
	// Own tokens are the o200k tokens of the text times the ratio.
	raw := s.count.text(text.String())
	if own := scale(raw, 1070); own < 125 || own > 135 {
		t.Errorf("the text has %d o200k tokens, %d of the model's: want about 130", raw, own)
	}
	e := only(t, s)
	if e.Output != 130 || int64(e.Input) != last.Usage.Prompt || !e.Reported || !e.Billed || e.End != EndCompleted {
		t.Errorf("book: %+v", e)
	}
	if e.ID != got.header.Get("x-request-id") {
		t.Errorf("book has id %s, the header %s", e.ID, got.header.Get("x-request-id"))
	}
}

func TestInputIsCountedWithTheModelsRatio(t *testing.T) {
	prompt := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 100)
	for model, ratio := range map[string]int64{"sim-small": 1070, "sim-large": 930, "claude-like": 1180} {
		s, url := provider(t, Options{Instant: true})
		post(t, url+"/v1/chat/completions", chat(model, prompt, `,"max_tokens":1`))
		if got, want := only(t, s).Input, scale(s.count.text(prompt)+perMessage+perReply, ratio); got != want {
			t.Errorf("%s: got %d, want %d", model, got, want)
		}
	}
}

func TestBoundCutsTheAnswer(t *testing.T) {
	tests := []struct{ name, path, more, want string }{
		{"chat", "/v1/chat/completions", `,"max_tokens":7`, `"finish_reason":"length"`},
		{"chat, newer field", "/v1/chat/completions", `,"max_completion_tokens":7`, `"finish_reason":"length"`},
		{"completions", "/v1/completions", `,"prompt":"go on","max_tokens":7`, `"finish_reason":"length"`},
		{"messages", "/v1/messages", `,"max_tokens":7`, `"stop_reason":"max_tokens"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, url := provider(t, Options{Instant: true})
			got := post(t, url+tt.path, chat("sim-small!tokens=50", "x", tt.more))
			if !strings.Contains(got.body, tt.want) {
				t.Errorf("got %s, want %s", got.body, tt.want)
			}
			if e := only(t, s); e.Output != 7 {
				t.Errorf("book: %d tokens, want 7", e.Output)
			}
		})
	}
}

func TestBracketsThatAreNoInstruction(t *testing.T) {
	s, url := provider(t, Options{Instant: true})
	got := post(t, url+"/v1/chat/completions", chat("sim-small", "See [[tokens=12]] and [[other-page]].", ""))
	if e := only(t, s); got.status != http.StatusOK || e.Output != 12 {
		t.Errorf("got %d and %d tokens, want 200 and 12: %s", got.status, e.Output, got.body)
	}
}

func TestWarmingTheCacheGeneratesNothing(t *testing.T) {
	s, url := provider(t, Options{})
	got := post(t, url+"/v1/messages", chat("claude-like", "Hello", `,"max_tokens":0`))
	if e := only(t, s); got.status != http.StatusOK || e.Output != 0 || !e.Billed {
		t.Errorf("got %d, book %+v", got.status, e)
	}
}

func TestSeveralChoices(t *testing.T) {
	s, url := provider(t, Options{Instant: true})
	got := post(t, url+"/v1/chat/completions", chat("sim-small", "[[tokens=10]]", `,"n":3`+streamed))
	finished := map[int]bool{}
	for _, c := range chunks(t, got.body) {
		for _, ch := range c.Choices {
			if ch.FinishReason == "stop" {
				finished[ch.Index] = true
			}
		}
	}
	if len(finished) != 3 || only(t, s).Output != 30 {
		t.Errorf("got %d finished choices and %d tokens, want 3 and 30", len(finished), only(t, s).Output)
	}
}

const oneTool = `,"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}}}}}]`

func TestTwoParallelToolCalls(t *testing.T) {
	_, url := provider(t, Options{Instant: true})
	got := post(t, url+"/v1/chat/completions", chat("sim-small", "weather?", oneTool+streamed))
	args := map[int]string{}
	ids := map[string]bool{}
	var finish strings.Builder
	for _, c := range chunks(t, got.body) {
		for _, ch := range c.Choices {
			for _, call := range ch.Delta.ToolCalls {
				args[call.Index] += call.Function.Arguments
				if call.ID != "" {
					ids[call.ID] = true
				}
			}
			finish.WriteString(ch.FinishReason)
		}
	}
	if len(ids) != 2 || len(args) != 2 || finish.String() != "tool_calls" {
		t.Fatalf("got calls %v, ids %v, finish %q", args, ids, finish.String())
	}
	for i, a := range args {
		if !json.Valid([]byte(a)) {
			t.Errorf("arguments of call %d are not JSON: %s", i, a)
		}
	}
	got = post(t, url+"/v1/chat/completions", chat("sim-small", "weather?", oneTool+`,"parallel_tool_calls":false`))
	if n := strings.Count(got.body, `"call_`); n != 1 {
		t.Errorf("%d calls where parallel ones are forbidden", n)
	}
}

func TestMessagesStreamInOrder(t *testing.T) {
	s, url := provider(t, Options{Instant: true})
	got := post(t, url+"/v1/messages", `{"model":"claude-like!reasoning=9!cached=50!cache-write=10","max_tokens":500,"stream":true,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"user","content":[{"type":"text","text":"Hello there, how are you doing today? [[tokens=20]]"}]}]}`)
	var order []string
	for _, n := range names(got.body) {
		if len(order) == 0 || order[len(order)-1] != n {
			order = append(order, n)
		}
	}
	want := []string{
		"message_start", "content_block_start", "ping", "content_block_delta", "content_block_stop",
		"content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop",
	}
	if strings.Join(order, " ") != strings.Join(want, " ") {
		t.Errorf("got  %v\nwant %v", order, want)
	}
	for _, part := range []string{`"thinking_delta"`, `"signature_delta"`, `"text_delta"`, `"thinking_tokens":9`} {
		if !strings.Contains(got.body, part) {
			t.Errorf("no %s in %s", part, got.body)
		}
	}
	var final struct{ Usage usage }
	for _, e := range events(got.body) {
		if strings.Contains(e, `"message_delta"`) {
			if err := json.Unmarshal([]byte(e), &final); err != nil {
				t.Fatal(err)
			}
		}
	}
	e := only(t, s)
	u := final.Usage
	if sluice.Tokens(u.Input+u.Read+u.Write) != e.Input || sluice.Tokens(u.Read) != e.Cached || u.Write == 0 || u.Output != 20 {
		t.Errorf("usage %+v does not add up to the book's %+v", u, e)
	}
	if e.ID != got.header.Get("request-id") {
		t.Errorf("book has id %s, the header %s", e.ID, got.header.Get("request-id"))
	}
}

func TestMessagesTools(t *testing.T) {
	_, url := provider(t, Options{Instant: true})
	tools := `,"max_tokens":500,"tools":[{"name":"weather","input_schema":{"type":"object","properties":{"city":{"type":"string"}}}},{"name":"clock","input_schema":{"type":"object"}}]`
	got := post(t, url+"/v1/messages", chat("claude-like", "?", tools+`,"stream":true`))
	if n := strings.Count(got.body, `"type":"tool_use"`); n != 2 {
		t.Errorf("%d tool_use blocks, want 2: %s", n, got.body)
	}
	whole := post(t, url+"/v1/messages", chat("claude-like", "?", tools))
	if !strings.Contains(whole.body, `"stop_reason":"tool_use"`) || strings.Count(whole.body, `"type":"tool_use"`) != 2 {
		t.Errorf("got %s", whole.body)
	}
}

func TestAnthropicVersions(t *testing.T) {
	_, url := provider(t, Options{Instant: true})
	tests := []struct {
		version, more string
		want          int
	}{
		{"", "", 400},
		{"2020-01-01", "", 400},
		{"2023-06-01", `,"temperature":1`, 200},
		{"2026-10-21", "", 200},
		{"2026-10-21", `,"temperature":1`, 400},
		{"2026-10-21", `,"top_k":5`, 400},
	}
	for _, tt := range tests {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/messages", strings.NewReader(chat("claude-like", "x", `,"max_tokens":5`+tt.more)))
		if tt.version != "" {
			req.Header.Set("anthropic-version", tt.version)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != tt.want {
			t.Errorf("version %q%s: got %d, want %d: %s", tt.version, tt.more, resp.StatusCode, tt.want, b)
		}
		if tt.want == 400 && !bytes.Contains(b, []byte(`"type":"error"`)) {
			t.Errorf("not the dialect's error: %s", b)
		}
	}
}

func TestSmallSurfaces(t *testing.T) {
	s, url := provider(t, Options{})
	count := post(t, url+"/v1/messages/count_tokens", chat("claude-like", "Hello", ""))
	message := post(t, url+"/tokenize", chat("sim-small", "Hello", ""))
	embed := post(t, url+"/v1/embeddings", `{"model":"sim-small","input":["a","b"],"dimensions":8}`)
	packed := post(t, url+"/v1/embeddings", `{"model":"sim-small","input":[1,2,3],"encoding_format":"base64"}`)
	for name, got := range map[string]struct{ body, want string }{
		"count_tokens": {count.body, fmt.Sprintf(`"input_tokens":%d`, scale(1+perMessage+perReply, 1180))},
		"tokenize":     {message.body, `"max_model_len":131072`},
		"embeddings":   {embed.body, `"prompt_tokens":2`},
		"base64":       {packed.body, `"prompt_tokens":3`},
	} {
		if !strings.Contains(got.body, got.want) {
			t.Errorf("%s: got %s, want %s", name, got.body, got.want)
		}
	}
	settled(t, s, 4)
	if e := s.Account(Filter{Model: "claude-like"}).Served; len(e) != 1 || e[0].Billed {
		t.Errorf("count_tokens is billed: %+v", e)
	}
	get := func(path, version string) string {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		if version != "" {
			req.Header.Set("anthropic-version", version)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return string(b)
	}
	for name, got := range map[string]struct{ body, want string }{
		"models, OpenAI":    {get("/v1/models", ""), `"max_model_len":131072`},
		"models, Anthropic": {get("/v1/models", "2023-06-01"), `"has_more":false`},
		"one model":         {get("/v1/models/sim-small", ""), `"id":"sim-small"`},
		"metrics":           {get("/metrics", ""), `vllm:kv_cache_usage_perc{engine="0",model_name="sim-small"} 0`},
		"served":            {get("/fakellm/served?model=sim-small", ""), `"total"`},
	} {
		if !strings.Contains(got.body, got.want) {
			t.Errorf("%s: got %s, want %s", name, got.body, got.want)
		}
	}
}

func TestStrictAndKey(t *testing.T) {
	_, url := provider(t, Options{Instant: true, Strict: true, APIKey: "k"})
	if got := post(t, url+"/v1/chat/completions", chat("sim-small", "x", "")); got.status != http.StatusUnauthorized {
		t.Errorf("got %d without the key, want 401", got.status)
	}
	_, url = provider(t, Options{Instant: true, Strict: true})
	if got := post(t, url+"/v1/chat/completions", chat("other", "x", "")); got.status != http.StatusNotFound || !strings.Contains(got.body, "model_not_found") {
		t.Errorf("got %d %s, want 404", got.status, got.body)
	}
	if got := post(t, url+"/v1/chat/completions", chat("sim-small!no-such", "x", "")); got.status != http.StatusBadRequest {
		t.Errorf("got %d for an unknown fault, want 400", got.status)
	}
	if got := post(t, url+"/v1/chat/completions", chat("sim-small", "x", `,"max_tokens":999999`)); !strings.Contains(got.body, "context_length_exceeded") {
		t.Errorf("got %s, want context_length_exceeded", got.body)
	}
}

// The header that asks for it is answered with the engine's load.
func TestLoadHeader(t *testing.T) {
	_, url := provider(t, Options{})
	ask := func(prompt, extra, format string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions", strings.NewReader(chat("sim-small", prompt, extra)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("endpoint-load-metrics-format", format)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	// One request runs throughout, so that the load does not depend on the moment.
	running := ask("x [[tokens=5000]]", `,"stream":true`, "TEXT")
	defer running.Body.Close()
	if _, err := io.ReadFull(running.Body, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string]string{"TEXT": "named_metrics.num_requests_waiting=", "JSON": `"num_requests_running":[1-9]`} {
		resp := ask("x [[tokens=1]]", "", format)
		resp.Body.Close()
		if got := resp.Header.Get("endpoint-load-metrics"); !strings.HasPrefix(got, format+" ") || !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("got %q, want %s", got, want)
		}
	}
}

func TestContinuousUsage(t *testing.T) {
	_, url := provider(t, Options{Instant: true})
	got := post(t, url+"/v1/chat/completions", chat("sim-small", "[[tokens=10]]", `,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}`))
	seen := int64(-1)
	for _, c := range chunks(t, got.body) {
		if c.Usage == nil || c.Usage.Completion < seen {
			t.Fatalf("usage falls or is missing: %s", got.body)
		}
		seen = c.Usage.Completion
	}
	if seen != 10 {
		t.Errorf("got %d, want 10", seen)
	}
}

// A client that leaves is seen to leave, and billed for what there was.
func TestCancelIsObserved(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		t.Run(fmt.Sprintf("stream %t", streaming), func(t *testing.T) {
			s, url := provider(t, Options{Instant: true})
			more := ""
			if streaming {
				more = streamed
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(chat("sim-small!stall-after=5!delay=1ms", "[[tokens=100]]", more)))
			if streaming {
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				sc := bufio.NewScanner(resp.Body)
				for n := 0; n < 6 && sc.Scan(); {
					if strings.HasPrefix(sc.Text(), "data:") {
						n++
					}
				}
			} else {
				req.Body = io.NopCloser(strings.NewReader(chat("sim-small!delay=5s", "x", "")))
				req.ContentLength = -1
				go func() {
					_ = s.Await(ctx, func(all Total) bool { return all.Running == 1 })
					cancel()
				}()
				if _, err := http.DefaultClient.Do(req); err == nil {
					t.Fatal("the call came back")
				}
			}
			left := time.Now()
			cancel()
			e := only(t, s)
			if e.End != EndCancelled || e.Left == nil || e.Reported || !e.Billed {
				t.Fatalf("book: %+v", e)
			}
			if late := e.Left.Sub(left); late > 100*time.Millisecond {
				t.Errorf("seen to leave after %s", late)
			}
			if streaming && (e.Sent == 0 || e.Output < e.Sent || e.Output >= 100) {
				t.Errorf("book: %+v", e)
			}
		})
	}
}

func TestBookIsBounded(t *testing.T) {
	s, url := provider(t, Options{Instant: true, Book: 3})
	for i := range 5 {
		post(t, url+"/v1/chat/completions", chat(fmt.Sprintf("invented-%d", i), "x [[tokens=1]]", ""))
		settled(t, s, int64(i+1))
	}
	a := s.Account(Filter{})
	if a.Kept != 3 || a.Total.Requests != 5 || a.Models[otherModels].Output != 5 || len(a.Models) != 1 {
		t.Errorf("got %+v", a)
	}
	if a.Served[2].Model != "invented-4" {
		t.Errorf("the newest is not kept: %+v", a.Served)
	}
}

func TestRecordedRequests(t *testing.T) {
	s, url := provider(t, Options{Instant: true, Record: 2})
	for i := range 3 {
		post(t, url+"/v1/chat/completions", chat("sim-small", fmt.Sprintf("prompt %d [[tokens=1]]", i), ""))
	}
	got := s.Requests()
	if len(got) != 2 || !bytes.Contains(got[1].Body, []byte("prompt 2")) || got[1].Path != "/v1/chat/completions" {
		t.Errorf("got %+v", got)
	}
}

func TestServiceRuns(t *testing.T) {
	svc, err := Listen(Config{Listen: "127.0.0.1:0", Instant: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- svc.Run(ctx) }()
	if got := post(t, "http://"+svc.Addr()+"/v1/chat/completions", chat("sim-small", "x", "")); got.status != http.StatusOK {
		t.Errorf("got %d, %v", got.status, got.err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", svc.Addr()); err == nil {
		t.Error("it still listens")
	}
}
