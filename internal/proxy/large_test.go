package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"sluice/internal/price"
	"sluice/internal/wire"
)

// streams is a backend that streams what it is given.
func streams(said string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, said)
	})
}

// A picture in an event, which has more than a million bytes, passes as it is: in every
// dialect and operation that streams pictures; and so does a text as large, in the
// client's own dialect and in another.
func TestLargeEventsPass(t *testing.T) {
	picture := strings.Repeat("iVBORw0KGgo+", 125_000)
	gemini := `data: {"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"` + picture + `"}}],"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":1290,"totalTokenCount":1299},"responseId":"r1","modelVersion":"up"}` + "\r\n\r\n"
	image := "event: image_generation.completed\ndata: {\"type\":\"image_generation.completed\",\"b64_json\":\"" + picture + "\",\"usage\":{\"input_tokens\":9,\"output_tokens\":272,\"total_tokens\":281}}\n\n"
	item := `{"type":"image_generation_call","id":"ig_1","status":"completed","result":"` + picture + `"}`
	response := `{"id":"resp_1","object":"response","created_at":1,"model":"up","status":"completed","output":[` + item + `],"usage":{"input_tokens":9,"output_tokens":5,"total_tokens":14}}`
	items := "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_1\",\"status\":\"in_progress\",\"output\":[]}}\n\n" +
		"event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"sequence_number\":1,\"output_index\":0,\"item\":" + item + "}\n\n" +
		"event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":2,\"response\":" + response + "}\n\n"
	message := "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"up\",\"content\":[],\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"" + picture + "\"}}\n\n" +
		"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":3}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	for _, tt := range []struct {
		name, path, body, said string
		place                  place
		translated             bool
	}{
		{"gemini", "/v1beta/models/m:streamGenerateContent?alt=sse", geminiSent + "}", gemini, place{dialect: wire.Gemini}, false},
		{"images", "/v1/images/generations", `{"model":"m","prompt":"x","stream":true}`, image, place{price: each(price.Image, 40_000)}, false},
		{"responses", responsesAt, `{"model":"m","input":"x","stream":true}`, items, place{}, false},
		{"messages", "/v1/messages", `{"model":"m","max_tokens":99,"messages":[{"role":"user","content":"x"}],"stream":true}`, message, place{dialect: wire.Anthropic}, false},
		{"messages for a chat client", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}],"stream":true}`, message, place{dialect: wire.Anthropic}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.place.handler = streams(tt.said)
			inBubble(t, setup{places: []place{tt.place}}, func(t *testing.T, r *rig) {
				a := ask{path: tt.path, body: tt.body}
				if tt.place.dialect == wire.Gemini {
					a.header = http.Header{"Authorization": {""}, "X-Goog-Api-Key": {clientSecret}}
				}
				g := r.do(a)
				if g.status != 200 || !tt.translated && g.body != tt.said || strings.Count(g.body, picture) == 0 || tt.translated && !strings.HasSuffix(g.body, "[DONE]\n\n") {
					t.Errorf("got %d, %d bytes: %.300s", g.status, len(g.body), g.body)
				}
			})
		})
	}
}
