package proxy

import (
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"

	"sluice"
	"sluice/internal/upstream"
	"sluice/internal/wire"
)

// invoked is Claude on Bedrock in Anthropic's own dialect: each of its events is a frame
// that holds one in base64.
type invoked struct {
	sent   sent
	events []string
	fails  string // an exception after them
	cut    int    // bytes of the last frame that are lost
}

func (h *invoked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	h.sent = sent{r.URL.EscapedPath(), r.Header.Clone(), string(b)}
	if strings.HasSuffix(r.URL.Path, "/invoke") {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, message)
		return
	}
	w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	header := func(kind, name string) []wire.FrameHeader {
		return []wire.FrameHeader{{Name: ":message-type", Value: kind}, {Name: ":" + kind + "-type", Value: name}, {Name: ":content-type", Value: "application/json"}}
	}
	var all []byte
	for _, e := range h.events {
		all = wire.AppendFrame(all, header("event", "chunk"), []byte(`{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(e))+`","p":"abcdef"}`))
	}
	if h.fails != "" {
		all = wire.AppendFrame(all, header("exception", h.fails), []byte(`{"message":"too many"}`))
	}
	_, _ = w.Write(all[:len(all)-h.cut])
}

// invokedSays is an answer of it; its figures are told again in its last event, by the
// service.
var invokedSays = []string{
	`{"type":"message_start","message":{"id":"msg_bdrk_1","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":1}}}`,
	`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Zürich "}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"is here"}}`,
	`{"type":"content_block_stop","index":0}`,
	`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}}`,
	`{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":9,"outputTokenCount":5,"invocationLatency":500,"firstByteLatency":100}}`,
}

// Claude on Bedrock by InvokeModel serves Anthropic's clients event by event as they are,
// and others translated; a frame that is an exception, or not whole, is an error.
func TestInvokeOnBedrock(t *testing.T) {
	whole := strings.Join(invokedSays, "")
	for _, tt := range []struct {
		name   string
		up     invoked
		ask    ask
		status int
		reason sluice.Reason
		check  func(g got) bool
	}{
		{"streamed", invoked{events: invokedSays}, ask{path: messagesAt, body: aMessage + `,"stream":true}`}, 200, sluice.ReasonNone, func(g got) bool {
			var said []string
			for line := range strings.Lines(g.body) {
				if data, ok := strings.CutPrefix(line, "data: "); ok {
					said = append(said, strings.TrimSpace(data))
				}
			}
			return strings.Join(said, "") == whole && strings.HasPrefix(g.body, "event: message_start\ndata: ")
		}},
		{"streamed to chat", invoked{events: invokedSays}, ask{body: aChat + `,"stream":true}`}, 200, sluice.ReasonNone, func(g got) bool {
			return content(g.body) == "Zürich is here" && strings.HasSuffix(g.body, "data: [DONE]\n\n")
		}},
		{"in one piece", invoked{}, ask{path: messagesAt, body: aMessage + `}`}, 200, sluice.ReasonNone, func(g got) bool { return g.body == message }},
		{"an exception first", invoked{fails: "throttlingException"}, ask{path: messagesAt, body: aMessage + `,"stream":true}`}, 529, sluice.UpstreamLimited, nil},
		{"an exception in mid-stream", invoked{events: invokedSays[:4], fails: "modelStreamErrorException"}, ask{path: messagesAt, body: aMessage + `,"stream":true}`}, 200, sluice.UpstreamError, func(g got) bool {
			return strings.Contains(g.body, "event: error\n") && g.err != nil
		}},
		{"cut within a frame", invoked{events: invokedSays[:6], cut: 3}, ask{path: messagesAt, body: aMessage + `,"stream":true}`}, 200, sluice.UpstreamTruncated, func(g got) bool {
			return strings.Contains(g.body, "event: error\n") && g.err != nil
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			up := tt.up
			s := setup{places: []place{{dialect: wire.Anthropic, service: upstream.Bedrock, handler: &up, model: "us.anthropic.claude-x-v1:0"}}}
			inBubble(t, s, func(t *testing.T, r *rig) {
				g := r.do(tt.ask)
				if g.status != tt.status || tt.check != nil && !tt.check(g) {
					t.Errorf("got %d %v %s", g.status, g.err, g.body)
				}
				path := "/v1/model/us.anthropic.claude-x-v1%3A0/invoke"
				if strings.Contains(tt.ask.body, `"stream":true`) {
					path += "-with-response-stream"
				}
				if up.sent.path != path || !strings.Contains(up.sent.body, `"anthropic_version":"bedrock-2023-05-31"`) || strings.Contains(up.sent.body, `"model"`) || strings.Contains(up.sent.body, `"stream"`) {
					t.Errorf("the backend was sent %s %s", up.sent.path, up.sent.body)
				}
				rec := r.last()
				if rec.Final.Reason != tt.reason {
					t.Errorf("recorded %v, want %v", rec.Final.Reason, tt.reason)
				}
				if tt.reason == sluice.ReasonNone && (rec.Usage.Source != sluice.UsageReported || rec.Usage.Input != 9 || rec.Usage.Output < 2) {
					t.Errorf("settled %+v", rec.Usage)
				}
			})
		})
	}
}
