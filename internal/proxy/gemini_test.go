package proxy

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/wire"
)

const (
	geminiAt   = "/v1beta/models/m:generateContent"
	geminiSent = `{"contents":[{"role":"user","parts":[{"text":"x"}]}],"tomorrow":[1]`
	geminiSays = `{"candidates":[{"content":{"parts":[{"text":"hi"}],"role":"model"},"finishReason":"STOP","index":0,"new":true}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2,"totalTokenCount":11},"modelVersion":"up","responseId":"r1"}`
)

// speaks is a backend of the Gemini dialect that streams texts, a second apart, and
// ends as it is told.
type speaks struct {
	texts int
	last  string // what the last candidate has beside its text
	after string // in place of an end
}

func (s speaks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	for i := range s.texts {
		more := ""
		if i == s.texts-1 {
			more = s.last
		}
		io.WriteString(w, `data: {"candidates":[{"content":{"parts":[{"text":" tok"}],"role":"model"}`+more+`}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":`+string(rune('1'+i))+`,"totalTokenCount":`+string(rune('1'+i))+`},"responseId":"r1","modelVersion":"up"}`+"\r\n\r\n")
		http.NewResponseController(w).Flush()
		time.Sleep(time.Second)
	}
	io.WriteString(w, s.after)
}

var stops = speaks{texts: 3, last: `,"finishReason":"STOP"`}

// A request in the dialect's own words passes byte for byte, to the path that names the
// backend's model, with the operator's key and without the client's.
func TestGeminiPasses(t *testing.T) {
	for _, tt := range []struct{ name, path, key, bearer string }{
		{"by header", geminiAt, clientSecret, ""},
		{"by query", geminiAt + "?key=" + clientSecret, "", ""},
		{"as bearer", "/v1/models/m:generateContent", "", clientSecret},
	} {
		t.Run(tt.name, func(t *testing.T) {
			up := &witness{Handler: answers(200, geminiSays)}
			inBubble(t, setup{places: []place{{dialect: wire.Gemini, handler: up}}}, func(t *testing.T, r *rig) {
				h := http.Header{"Authorization": {""}, "X-Goog-Fieldmask": {"candidates"}, "X-Goog-User-Project": {"p"}, "X-Title": {"app"}}
				if tt.bearer != "" {
					h.Set("Authorization", "Bearer "+tt.bearer)
				}
				if tt.key != "" {
					h.Set("X-Goog-Api-Key", tt.key)
				}
				body := geminiSent + `,"generation_config":{"candidate_count":1}}`
				g := r.do(ask{path: tt.path, body: body, header: h})
				if g.status != 200 || g.body != geminiSays {
					t.Errorf("got %d %s", g.status, g.body)
				}
				s := up.all[0]
				if want := strings.Replace(body, `{"candidate_count"`, `{"maxOutputTokens":4096,"candidate_count"`, 1); s.path != "/v1/models/up:generateContent" || s.body != body && s.body != want {
					t.Errorf("the backend was sent %s %s", s.path, s.body)
				}
				if s.header.Get("X-Goog-Api-Key") != upstreamSecret || s.header.Get("Authorization") != "" || s.header.Get("X-Title") != "app" {
					t.Errorf("the backend was sent %v", s.header)
				}
				for name := range s.header {
					if strings.HasPrefix(name, "X-Goog-") && name != "X-Goog-Api-Key" {
						t.Errorf("the backend was sent %s", name)
					}
				}
				rec := r.want(sluice.Completed, sluice.ReasonNone, 200)
				if rec.Final.Dialect != "gemini" || rec.Final.Operation != "generate_content" || rec.Usage.Input != 9 || rec.Usage.Output != 2 || rec.Usage.Source != sluice.UsageReported {
					t.Errorf("recorded %+v", rec.Final)
				}
			})
		})
	}
}

// A stream passes event by event, and without alt=sse as a list whose elements are the
// events' data.
func TestGeminiStream(t *testing.T) {
	up := &witness{Handler: stops}
	inBubble(t, setup{places: []place{{dialect: wire.Gemini, handler: up}}}, func(t *testing.T, r *rig) {
		events := r.do(ask{path: "/v1beta/models/m:streamGenerateContent?alt=sse", body: geminiSent + `}`})
		if n := strings.Count(events.body, "data: {"); events.status != 200 || n != 3 || events.err != nil || !strings.HasSuffix(events.body, "\r\n\r\n") || events.header.Get("Content-Type") != "text/event-stream; charset=utf-8" {
			t.Errorf("got %d %v %q %v", events.status, events.header, events.body, events.err)
		}
		if rec := r.want(sluice.Completed, sluice.ReasonNone, 200); rec.Usage.Output != 3 || rec.Usage.Source != sluice.UsageReported || rec.Final.FirstToken >= time.Second {
			t.Errorf("recorded %+v", rec.Final)
		}
		if s := up.all[0]; s.path != "/v1/models/up:streamGenerateContent" {
			t.Errorf("the backend was sent %s", s.path)
		}
		list := r.do(ask{path: "/v1beta/models/m:streamGenerateContent", body: geminiSent + `}`})
		var all []json.RawMessage
		if err := json.Unmarshal([]byte(list.body), &all); err != nil || len(all) != 3 || list.err != nil || list.header.Get("Content-Type") != "application/json" {
			t.Errorf("got %v %q: %v %v", list.header, list.body, err, list.err)
		}
		for i, e := range strings.Split(strings.TrimSpace(events.body), "\r\n\r\n") {
			if i < len(all) && string(all[i]) != strings.TrimPrefix(e, "data: ") {
				t.Errorf("element %d is %s", i, all[i])
			}
		}
		r.want(sluice.Completed, sluice.ReasonNone, 200)
	})
}

// A stream that ends without a finish reason is no answer: the client gets an error and
// a connection that breaks off, in either framing; one that its backend breaks off too.
func TestGeminiTruncated(t *testing.T) {
	for name, h := range map[string]speaks{
		"clean end": {texts: 2},
		"error":     {texts: 2, after: "data: {\"error\":{\"code\":503,\"message\":\"overloaded\",\"status\":\"UNAVAILABLE\"}}\n\n"},
	} {
		for _, framing := range []string{"?alt=sse", ""} {
			inBubble(t, setup{places: []place{{dialect: wire.Gemini, handler: h}}}, func(t *testing.T, r *rig) {
				g := r.do(ask{path: "/v1beta/models/m:streamGenerateContent" + framing, body: geminiSent + `}`})
				if g.status != 200 || g.err == nil || strings.Count(g.body, " tok") != 2 || !strings.Contains(g.body, `"error":{"code":`) {
					t.Errorf("%s%s: got %d %q %v", name, framing, g.status, g.body, g.err)
				}
				reason := sluice.UpstreamTruncated
				if name == "error" {
					reason = sluice.UpstreamLimited
				}
				if rec := r.last(); rec.Final.Outcome != sluice.Failed || rec.Final.Reason != reason {
					t.Errorf("%s: recorded %v %v", name, rec.Final.Outcome, rec.Final.Reason)
				}
			})
		}
	}
}

// What a client is told of its own mistakes is in the dialect's form.
func TestGeminiRefuses(t *testing.T) {
	inBubble(t, setup{places: []place{{dialect: wire.Gemini, handler: answers(200, geminiSays)}}}, func(t *testing.T, r *rig) {
		for _, tt := range []struct {
			name, path, body string
			status           int
			word             string
		}{
			{"twice", geminiAt, geminiSent + `,"generationConfig":{},"generation_config":{}}`, 400, "INVALID_ARGUMENT"},
			{"no such model", "/v1beta/models/nope:generateContent", geminiSent + `}`, 404, "NOT_FOUND"},
			{"no such verb", "/v1beta/models/m:embedContent", geminiSent + `}`, 404, "NOT_FOUND"},
			{"no verb", "/v1beta/models/m", geminiSent + `}`, 405, "INVALID_ARGUMENT"},
			{"no such path", "/v1beta/files", geminiSent + `}`, 404, "NOT_FOUND"},
			{"a mask", geminiAt + "?fields=candidates", geminiSent + `}`, 400, "INVALID_ARGUMENT"},
			{"a mask of the system's", geminiAt + "?$fields=candidates", geminiSent + `}`, 400, "INVALID_ARGUMENT"},
			{"another framing", geminiAt + "?alt=proto", geminiSent + `}`, 400, "INVALID_ARGUMENT"},
			{"two keys", geminiAt + "?key=a&key=b", geminiSent + `}`, 401, "UNAUTHENTICATED"},
		} {
			g := r.do(ask{path: tt.path, body: tt.body})
			var e struct {
				Error struct {
					Code    int
					Status  string
					Message string
				}
			}
			if err := json.Unmarshal([]byte(g.body), &e); err != nil || g.status != tt.status || e.Error.Code != tt.status || e.Error.Status != tt.word || e.Error.Message == "" {
				t.Errorf("%s: got %d %s", tt.name, g.status, g.body)
			}
		}
	})
}

// A count goes to a backend that counts; where none speaks the dialect it is answered
// with the estimate.
func TestGeminiCounts(t *testing.T) {
	const body = `{"contents":[{"parts":[{"text":"one two three four five"}]}]}`
	for _, d := range []wire.Dialect{wire.Gemini, wire.OpenAI} {
		up := &witness{Handler: answers(200, `{"totalTokens":77}`)}
		inBubble(t, setup{places: []place{{dialect: d, handler: up}}}, func(t *testing.T, r *rig) {
			g := r.do(ask{path: "/v1beta/models/m:countTokens", body: body})
			var n struct{ TotalTokens int }
			if err := json.Unmarshal([]byte(g.body), &n); err != nil || g.status != 200 || n.TotalTokens == 0 || (n.TotalTokens == 77) != (d == wire.Gemini) {
				t.Errorf("%s: got %d %s", d, g.status, g.body)
			}
			if rec := r.want(sluice.Completed, sluice.ReasonNone, 200); rec.Cost != 0 || len(up.all) != 0 != (d == wire.Gemini) {
				t.Errorf("%s: asked %d, recorded %+v", d, len(up.all), rec.Final)
			}
		})
	}
}

// The models are listed in the dialect's form, at its path and by its key.
func TestGeminiModels(t *testing.T) {
	inBubble(t, setup{places: []place{{dialect: wire.Gemini, handler: answers(200, geminiSays)}}}, func(t *testing.T, r *rig) {
		for _, path := range []string{"/v1beta/models", "/v1beta/models/m", "/v1/models", "/v1beta/models?pageSize=10"} {
			req := r.request(ask{path: path})
			req.Method, req.Body, req.ContentLength = http.MethodGet, nil, 0
			req.Header.Set("X-Goog-Api-Key", clientSecret)
			req.Header.Del("Authorization")
			resp, err := r.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != 200 || !strings.Contains(string(b), `"name":"models/m"`) || strings.Contains(string(b), `"models":`) == (path == "/v1beta/models/m") {
				t.Errorf("%s: got %d %s", path, resp.StatusCode, b)
			}
		}
	})
}

// A Gemini client is served by backends of other dialects, and their clients by a Gemini
// backend: path, key and body are the backend's, the answer the client's.
func TestGeminiTranslated(t *testing.T) {
	up := &witness{Handler: answers(200, message)}
	inBubble(t, setup{places: []place{{dialect: wire.Anthropic, handler: up}}}, func(t *testing.T, r *rig) {
		g := r.do(ask{path: geminiAt, body: `{"contents":[{"role":"user","parts":[{"text":"x"}]}]}`})
		want := `{"candidates":[{"content":{"parts":[{"text":"hi"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2,"totalTokenCount":11},"modelVersion":"up","responseId":"msg_1"}`
		if g.status != 200 || g.body != want {
			t.Errorf("got %d %s", g.status, g.body)
		}
		if s := up.all[0]; s.path != messagesAt || s.body != `{"model":"up","max_tokens":4096,"messages":[{"role":"user","content":"x"}]}` {
			t.Errorf("the backend was sent %s %s", s.path, s.body)
		}
		r.want(sluice.Completed, sluice.ReasonNone, 200)
	})
	up = &witness{Handler: stops}
	inBubble(t, setup{places: []place{{dialect: wire.Gemini, handler: up}}}, func(t *testing.T, r *rig) {
		g := r.do(ask{body: aChat + `,"stream":true,"stream_options":{"include_usage":true},"temperature":0.5}`})
		if content(g.body) != " tok tok tok" || !strings.HasSuffix(g.body, "data: [DONE]\n\n") || !strings.Contains(g.body, `"completion_tokens":3`) || !strings.Contains(g.body, `"finish_reason":"stop"`) {
			t.Errorf("got %d %s", g.status, g.body)
		}
		want := `{"contents":[{"role":"user","parts":[{"text":"x"}]}],"generationConfig":{"maxOutputTokens":4096,"temperature":0.5}}`
		if s := up.all[0]; s.path != "/v1/models/up:streamGenerateContent" || s.body != want && s.body != strings.Replace(want, `"maxOutputTokens":4096,`, "", 1) {
			t.Errorf("the backend was sent %s %s", s.path, s.body)
		}
		r.want(sluice.Completed, sluice.ReasonNone, 200)
	})
	inBubble(t, setup{places: []place{{handler: talk{chunks: 2, usage: usage(9, 2)}}}}, func(t *testing.T, r *rig) {
		g := r.do(ask{path: "/v1beta/models/m:streamGenerateContent?alt=sse", body: `{"contents":[{"parts":[{"text":"x"}]}]}`})
		if g.status != 200 || strings.Count(g.body, `"text":" tok"`) != 2 || strings.Contains(g.body, "[DONE]") || !strings.Contains(g.body, `"finishReason":"STOP"`) || !strings.Contains(g.body, `"candidatesTokenCount":2`) {
			t.Errorf("got %d %s", g.status, g.body)
		}
		r.want(sluice.Completed, sluice.ReasonNone, 200)
	})
}

// A key that is no good is the operator's trouble, and so is a spent quota: when to come
// back is what the provider says.
func TestGeminiUpstreamRefusals(t *testing.T) {
	limited := `[{"error":{"code":429,"message":"Quota.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"PerMinute"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}]`
	inBubble(t, setup{places: []place{{dialect: wire.Gemini, handler: answers(429, limited)}}}, func(t *testing.T, r *rig) {
		g := r.do(ask{path: geminiAt, body: geminiSent + `}`})
		if g.status != 503 || g.header.Get("Retry-After") == "" || !strings.Contains(g.body, `"retryDelay":"`) || !strings.Contains(g.body, `"status":"UNAVAILABLE"`) {
			t.Errorf("got %d %v %s", g.status, g.header, g.body)
		}
	})
	mistaken := `{"error":{"code":400,"message":"Invalid value at 'contents'","status":"INVALID_ARGUMENT"}}`
	inBubble(t, setup{places: []place{{dialect: wire.Gemini, handler: answers(400, mistaken)}}}, func(t *testing.T, r *rig) {
		if g := r.do(ask{path: geminiAt, body: geminiSent + `}`}); g.status != 400 || g.body != mistaken {
			t.Errorf("got %d %s", g.status, g.body)
		}
	})
	unkeyed := `{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}`
	inBubble(t, setup{places: []place{{dialect: wire.Gemini, handler: answers(400, unkeyed)}}}, func(t *testing.T, r *rig) {
		if g := r.do(ask{path: geminiAt, body: geminiSent + `}`}); g.status != 503 || strings.Contains(g.body, "API key not valid") {
			t.Errorf("got %d %s", g.status, g.body)
		}
	})
}
