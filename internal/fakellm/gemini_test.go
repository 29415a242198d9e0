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
