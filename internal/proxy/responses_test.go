package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"sluice"
	"sluice/internal/route"
	"sluice/internal/wire"
)

const responsesAt = "/v1/responses"

// responder is a scripted backend of Responses: what it is asked for as a stream it
// answers so.
type responder struct{ end string } // "" completed, "cut", "clean", "error", "failed", "early"

const aResponse = `{"id":"resp_1","object":"response","created_at":1,"model":"up","status":"completed","output":[{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi","annotations":[]}]}],"new_thing":[ 1 ],"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":14}}`

// streamOf is the events of such an answer, to its end.
func (k responder) streamOf() string {
	var b strings.Builder
	n := 0
	event := func(kind, rest string) {
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":%d,%s}\n\n", kind, kind, n, rest)
		n++
	}
	event("response.created", `"response":{"id":"resp_1","object":"response","created_at":1,"model":"up","status":"in_progress","output":[]}`)
	if k.end == "early" {
		event("response.failed", `"response":{"id":"resp_1","status":"failed","error":{"code":"server_error","message":"boom"},"output":[]}`)
		return b.String()
	}
	event("response.output_item.added", `"output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","content":[]}`)
	event("response.content_part.added", `"output_index":0,"item_id":"msg_1","content_index":0,"part":{"type":"output_text","text":"","annotations":[]}`)
	event("response.output_text.delta", `"output_index":0,"item_id":"msg_1","content_index":0,"delta":"hi","obfuscation":"abc"`)
	switch k.end {
	case "cut", "clean":
		return b.String()
	case "error":
		event("error", `"code":"server_error","message":"boom","param":null`)
		return b.String()
	case "failed":
		event("response.failed", `"response":{"id":"resp_1","status":"failed","error":{"code":"server_error","message":"boom"},"output":[],"usage":{"input_tokens":9,"output_tokens":5,"total_tokens":14}}`)
		return b.String()
	}
	event("response.output_text.done", `"output_index":0,"item_id":"msg_1","content_index":0,"text":"hi"`)
	event("response.output_item.done", `"output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi","annotations":[]}]}`)
	event("response.completed", `"response":`+aResponse)
	return b.String()
}

func (k responder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("X-Request-Id", "up-3")
	if !strings.Contains(string(body), `"stream":true`) && r.URL.Query().Get("stream") != "true" {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, aResponse)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	io.WriteString(w, k.streamOf())
	w.(http.Flusher).Flush()
	if k.end == "cut" {
		panic(http.ErrAbortHandler)
	}
}

const asksResponse = `{"model":"m","input":"x","new_thing":{"a":[1]}`

// A Responses request reaches a backend that serves it, and its answer the client, byte
// for byte but for the model's name; usage is disjoint.
func TestResponsesPass(t *testing.T) {
	up := &witness{Handler: responder{}}
	inBubble(t, setup{places: []place{{handler: up}}}, func(t *testing.T, r *rig) {
		for _, stream := range []bool{false, true} {
			body, want := asksResponse+`}`, aResponse
			if stream {
				body, want = asksResponse+`,"stream":true}`, responder{}.streamOf()
			}
			g := r.do(ask{path: responsesAt, body: body})
			if g.status != 200 || g.body != want || g.err != nil {
				t.Errorf("got %d %v %s\nwant %s", g.status, g.err, g.body, want)
			}
			s := up.all[len(up.all)-1]
			if sent := strings.Replace(body, `"model":"m"`, `"model":"up"`, 1); s.path != responsesAt || s.body != sent {
				t.Errorf("the backend was sent %s %s, want %s", s.path, s.body, sent)
			}
			rec := r.want(sluice.Completed, sluice.ReasonNone, 200)
			if u := rec.Usage; u.Input != 3 || u.CacheRead != 4 || u.CacheWrite != 2 || u.Output != 2 || u.Reasoning != 3 || u.Source != sluice.UsageReported || rec.Final.Operation != "responses" {
				t.Errorf("recorded %+v of %s", u, rec.Final.Operation)
			}
		}
	})
}

// A stream that fails, or that lacks its last event, ends in an error event that both
// ways of reading it understand, and in a connection that is cut.
func TestResponsesCut(t *testing.T) {
	for _, tt := range []struct {
		end    string
		reason sluice.Reason
	}{
		{"cut", sluice.UpstreamTruncated},
		{"clean", sluice.UpstreamTruncated},
		{"error", sluice.UpstreamError},
		{"failed", sluice.UpstreamError},
	} {
		t.Run(tt.end, func(t *testing.T) {
			inBubble(t, setup{places: []place{{handler: responder{end: tt.end}}}}, func(t *testing.T, r *rig) {
				g := r.do(ask{path: responsesAt, body: asksResponse + `,"stream":true}`})
				wantCut(t, g)
				if !strings.Contains(g.body, "event: error\ndata: {\"type\":\"error\",\"code\":\"") || !strings.Contains(g.body, `"error":{"message":"`) || !strings.Contains(g.body, `"delta":"hi"`) {
					t.Errorf("got %s", g.body)
				}
				rec := r.last()
				if rec.Final.Outcome != sluice.Failed || rec.Final.Reason != tt.reason || rec.Usage.OutputTotal() == 0 {
					t.Errorf("recorded %v %v %+v", rec.Final.Outcome, rec.Final.Reason, rec.Usage)
				}
			})
		})
	}
}

// What fails before its first content is tried elsewhere, and the client sees nothing
// of it; where there is nowhere else it gets an error with its status.
func TestResponsesFallBack(t *testing.T) {
	inBubble(t, setup{places: []place{{handler: responder{end: "early"}, domain: "a"}, {handler: responder{}, fallback: true, domain: "b"}}}, func(t *testing.T, r *rig) {
		g := r.do(ask{path: responsesAt, body: asksResponse + `,"stream":true}`})
		if g.status != 200 || g.body != (responder{}).streamOf() {
			t.Errorf("got %d %s", g.status, g.body)
		}
	})
	inBubble(t, setup{places: []place{{handler: responder{end: "early"}}}}, func(t *testing.T, r *rig) {
		g := r.do(ask{path: responsesAt, body: asksResponse + `,"stream":true}`})
		if g.status != 502 || !strings.HasPrefix(g.body, `{"error":{"message":`) {
			t.Errorf("got %d %s", g.status, g.body)
		}
	})
}

// Backends without Responses serve it by chat or by messages, and a backend with nothing
// else serves chat.
func TestResponsesElsewhere(t *testing.T) {
	for _, stream := range []string{"", `,"stream":true`} {
		t.Run("by chat"+stream, func(t *testing.T) {
			up := &witness{Handler: talk{chunks: 2, usage: usage(9, 2)}}
			inBubble(t, setup{places: []place{{handler: up, lacks: route.NeedResponses}}}, func(t *testing.T, r *rig) {
				g := r.do(ask{path: responsesAt, body: `{"model":"m","instructions":"i","input":"x"` + stream + `}`})
				if g.status != 200 || !strings.Contains(g.body, `"text":" tok tok"`) || !strings.Contains(g.body, `"store":false`) || !strings.Contains(g.body, `"instructions":"i"`) || !strings.Contains(g.body, `"input_tokens":9`) {
					t.Errorf("got %d %s", g.status, g.body)
				}
				if s := up.all[0]; s.path != "/v1/chat/completions" || !strings.HasPrefix(s.body, `{"model":"up","messages":[{"role":"system","content":"i"},{"role":"user","content":"x"}]`) && !strings.Contains(s.body, `"messages":[{"role":"system","content":"i"},{"role":"user","content":"x"}]`) {
					t.Errorf("the backend was sent %s %s", s.path, s.body)
				}
				rec := r.want(sluice.Completed, sluice.ReasonNone, 200)
				if rec.Usage.Input != 9 || rec.Usage.Output != 2 || !strings.Contains(string(rec.Final.Detail), `"translated":"chat"`) {
					t.Errorf("recorded %+v %s", rec.Usage, rec.Final.Detail)
				}
			})
		})
		t.Run("by messages"+stream, func(t *testing.T) {
			h := http.Handler(answers(200, message))
			if stream != "" {
				h = claude{start: `{"input_tokens":9,"output_tokens":1}`, texts: 3, delta: `{"output_tokens":3}`}
			}
			inBubble(t, setup{places: []place{{handler: h, dialect: wire.Anthropic}}}, func(t *testing.T, r *rig) {
				g := r.do(ask{path: responsesAt, body: `{"model":"m","input":"x"` + stream + `}`})
				if g.status != 200 || !strings.Contains(g.body, `"status":"completed"`) || strings.Count(g.body, "event: response.completed") != strings.Count(stream, "stream") {
					t.Errorf("got %d %s", g.status, g.body)
				}
				r.want(sluice.Completed, sluice.ReasonNone, 200)
			})
		})
		t.Run("chat by responses"+stream, func(t *testing.T) {
			up := &witness{Handler: responder{}}
			inBubble(t, setup{places: []place{{handler: up, lacks: route.NeedChat}}}, func(t *testing.T, r *rig) {
				g := r.do(ask{body: aChat + stream + `}`})
				if g.status != 200 || !strings.Contains(g.body, `"content":"hi"`) || up.all[0].path != responsesAt || !strings.Contains(up.all[0].body, `"store":false`) {
					t.Errorf("got %d %s; the backend was sent %v", g.status, g.body, up.all)
				}
				if rec := r.want(sluice.Completed, sluice.ReasonNone, 200); rec.Usage.Output != 2 || rec.Usage.Reasoning != 3 {
					t.Errorf("recorded %+v", rec.Usage)
				}
			})
		})
	}
	inBubble(t, setup{places: []place{{handler: talk{chunks: 1, usage: usage(9, 1), end: "error"}, lacks: route.NeedResponses}}}, func(t *testing.T, r *rig) {
		g := r.do(ask{path: responsesAt, body: `{"model":"m","input":"x","stream":true}`})
		wantCut(t, g)
		if !strings.Contains(g.body, "event: error\ndata: {\"type\":\"error\"") || !strings.Contains(g.body, `"sequence_number":5`) {
			t.Errorf("got %s", g.body)
		}
	})
}

// What is refused is before it costs anything, and what another dialect cannot say by its
// path.
func TestResponsesRefused(t *testing.T) {
	for _, tt := range []struct{ body, param, code string }{
		{`{"model":"m","input":"x","background":true}`, "background", "untranslatable"},
		{`{"model":"m","input":"x","max_output_tokens":0}`, "max_output_tokens", "invalid_value"},
		{`{"model":"m","input":"x","tools":[{"type":"web_search"}]}`, "tools[0]", "untranslatable"},
		{`{"model":"m","input":"x","store":true}`, "store", "untranslatable"},
	} {
		inBubble(t, setup{places: []place{{handler: talk{}, lacks: route.NeedResponses}}}, func(t *testing.T, r *rig) {
			g := r.do(ask{path: responsesAt, body: tt.body})
			_, code, _ := errorOf(t, g.body)
			if g.status != 400 || code != tt.code || !strings.Contains(g.body, `"param":"`+tt.param+`"`) {
				t.Errorf("%s: got %d %s", tt.body, g.status, g.body)
			}
		})
	}
}
