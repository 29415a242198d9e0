package fakellm

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func asked(t *testing.T, s *Server, path, body string) (int, string) {
	t.Helper()
	srv := httptest.NewServer(s)
	defer srv.Close()
	resp, err := http.Post(srv.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// The Gemini surface: streams tell figures in every event and end with a reason, calls
// come whole and the first is signed, and errors say when to come back in the body.
func TestGeminiSurface(t *testing.T) {
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	status, out := asked(t, s, "/v1beta/models/sim-small:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"[[tokens=12!gap=0s]]"}]}]}`)
	events := strings.Split(strings.TrimSpace(out), "\n\n")
	last := events[len(events)-1]
	if status != 200 || strings.Count(out, "usageMetadata") != len(events) || !strings.Contains(last, `"finishReason":"STOP"`) || !strings.Contains(last, `"candidatesTokenCount":12`) {
		t.Errorf("got %d %s", status, out)
	}
	status, out = asked(t, s, "/v1beta/models/sim-small:generateContent", `{"contents":[{"role":"user","parts":[{"text":"x"}]}],"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT","properties":{"a":{"type":"INTEGER"}}}}]}]}`)
	var got struct {
		Candidates []struct {
			Content struct {
				Parts []struct {
					FunctionCall     *struct{ Name string }
					ThoughtSignature string
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != 200 {
		t.Fatalf("%d %s: %v", status, out, err)
	}
	if parts := got.Candidates[0].Content.Parts; len(parts) != 2 || parts[0].FunctionCall == nil || parts[0].ThoughtSignature == "" || parts[1].ThoughtSignature != "" {
		t.Errorf("got %s", out)
	}
	if status, out = asked(t, s, "/v1/models/sim-small:countTokens", `{"contents":[{"parts":[{"text":"x"}]}]}`); status != 200 || !strings.HasPrefix(out, `{"totalTokens":`) {
		t.Errorf("got %d %s", status, out)
	}
	if status, out = asked(t, s, "/v1beta/models/sim-small!429=7:generateContent", `{"contents":[{"parts":[{"text":"x"}]}]}`); status != 429 || !strings.Contains(out, `"retryDelay":"7s"`) || !strings.Contains(out, "RESOURCE_EXHAUSTED") {
		t.Errorf("got %d %s", status, out)
	}
	if status, out = asked(t, s, "/v1beta/models/sim-small:generateContent", `{"contents":[]}`); status != 400 || !strings.Contains(out, "INVALID_ARGUMENT") {
		t.Errorf("got %d %s", status, out)
	}
}

// Log probabilities are told where they are asked for, in each dialect that has them: of
// every token, streamed and whole.
func TestLogprobs(t *testing.T) {
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const prompt = `[[tokens=12!gap=0s]]`
	for _, tt := range []struct{ path, body, plain, token string }{
		{"/v1/chat/completions", `{"model":"sim-small","messages":[{"role":"user","content":"` + prompt + `"}],"stream":false%s}`, `,"logprobs":true,"top_logprobs":2`, `"logprob":-`},
		{"/v1/responses", `{"model":"sim-small","input":"` + prompt + `","stream":false%s}`, `,"include":["message.output_text.logprobs"],"top_logprobs":2`, `"logprob":-`},
		{"/v1beta/models/sim-small:generateContent", `{"contents":[{"parts":[{"text":"` + prompt + `"}]}]%s}`, `,"generationConfig":{"responseLogprobs":true,"logprobs":2}`, `"logProbability":-`},
	} {
		status, without := asked(t, s, tt.path, strings.Replace(tt.body, "%s", "", 1))
		body := strings.Replace(tt.body, "%s", tt.plain, 1)
		_, whole := asked(t, s, tt.path, body)
		path := strings.Replace(tt.path, ":generateContent", ":streamGenerateContent?alt=sse", 1)
		_, stream := asked(t, s, path, strings.Replace(body, `"stream":false`, `"stream":true`, 1))
		stream, _, _ = strings.Cut(stream, "event: response.output_text.done")
		n := strings.Count(whole, tt.token)
		if status != 200 || strings.Contains(without, tt.token) || n < 3 || n%3 != 0 || strings.Count(stream, tt.token) != n {
			t.Errorf("%s: %d: %s\n%s\n%s", tt.path, status, without, whole, stream)
		}
	}
	if status, out := asked(t, s, "/v1/chat/completions", `{"model":"sim-small","messages":[{"role":"user","content":"x"}],"top_logprobs":2}`); status != 400 {
		t.Errorf("others without their own: %d %s", status, out)
	}
}
