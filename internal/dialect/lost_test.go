package dialect

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sluice/internal/wire"
)

// What an answer has and the client's dialect has no place for is an error where the
// tenant's translation is strict, and else told, by its name in the backend's answer: whole
// and streamed, and what is left is the answer.
func TestAnswersLoseNothingInSilence(t *testing.T) {
	frame := func(kind, payload string) []byte {
		return wire.AppendFrame(nil, []wire.FrameHeader{{Name: ":event-type", Value: kind}, {Name: ":content-type", Value: "application/json"}, {Name: ":message-type", Value: "event"}}, []byte(payload))
	}
	chat := func(member string) (whole, stream []byte) {
		return completed("stop", `{"role":"assistant","content":"hi",`+member+`}`), deltas("stop", `{"content":"hi"}`, `{`+member+`}`)
	}
	messages := func(block string) (whole, stream []byte) {
		whole = []byte(`{"id":"m1","model":"m","content":[{"type":"text","text":"hi"},` + block + `],"stop_reason":"end_turn","usage":{}}`)
		return whole, sse(
			`{"type":"message_start","message":{"id":"m1","model":"m","usage":{"input_tokens":1,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":`+block+`}`, `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}`, `{"type":"content_block_stop","index":1}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}`, `{"type":"message_stop"}`,
		)
	}
	gemini := func(part, candidate string) (whole, stream []byte) {
		whole = []byte(`{"candidates":[{"content":{"parts":[{"text":"hi"}` + part + `]},"finishReason":"STOP"` + candidate + `}],"modelVersion":"m","responseId":"r"}`)
		return whole, wire.AppendEvent(nil, "", whole)
	}
	responses := func(part, item string) (whole, stream []byte) {
		said := `{"type":"message","id":"m1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"hi"` + part + `}]}`
		response := `{"id":"r","model":"m","created_at":1,"status":"completed","output":[` + said + item + `],"usage":{"input_tokens":1,"output_tokens":1}}`
		events := []string{`{"type":"response.created","response":{"id":"r","model":"m","created_at":1,"status":"in_progress"}}`, `{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m1","content":[]}}`, `{"type":"response.output_item.done","output_index":0,"item":` + said + `}`}
		if item != "" {
			events = append(events, `{"type":"response.output_item.added","output_index":1,"item":`+item[1:]+`}`, `{"type":"response.output_item.done","output_index":1,"item":`+item[1:]+`}`)
		}
		return []byte(response), sse(append(events, `{"type":"response.completed","response":`+response+`}`)...)
	}
	converse := func() (whole, stream []byte) {
		return []byte(`{"output":{"message":{"content":[{"citationsContent":{"content":[{"text":"hi"}],"citations":[{"title":"x"}]}}]}},"stopReason":"end_turn"}`), bytes.Join([][]byte{
			frame("messageStart", `{"role":"assistant"}`), frame("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"hi"}}`), frame("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"citation":{"title":"x"}}}`),
			frame("contentBlockStop", `{"contentBlockIndex":0}`), frame("messageStop", `{"stopReason":"end_turn"}`), frame("metadata", `{"usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}`),
		}, nil)
	}
	type sent struct {
		name string
		of   wire.Operation
		lost string // in the names
		hint bool   // it refuses nothing
		both [2][]byte
	}
	add := func(all *[]sent, name string, of wire.Operation, lost string, hint bool, whole, stream []byte) {
		*all = append(*all, sent{name, of, lost, hint, [2][]byte{whole, stream}})
	}
	var all []sent
	for _, tt := range []struct{ member, lost string }{
		{`"annotations":[{"type":"url_citation","url_citation":{"url":"https://x.test","title":"x","start_index":0,"end_index":2}}]`, "annotations"},
		{`"images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]`, "images"},
		{`"audio":{"id":"a","data":"AA=="}`, "audio"},
		{`"new_thing":{"a":1}`, "new_thing"},
	} {
		w, s := chat(tt.member)
		add(&all, "chat "+tt.lost, wire.Chat, tt.lost, false, w, s)
	}
	w, s := chat(`"reasoning_details":[{"type":"reasoning.encrypted","data":"AA=="}]`)
	add(&all, "chat seal", wire.Chat, "reasoning_details", true, w, s)
	w, s = chat(`"new_thing":[],"refusal":null,"annotations":[],"provider_specific_fields":{"a":1}`)
	add(&all, "chat nothing", wire.Chat, "", true, w, s)
	w, s = messages(`{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`)
	add(&all, "messages search", wire.Messages, "server_tool_use", false, w, s)
	w, s = gemini(`,{"zz":{"a":1}}`, "")
	add(&all, "gemini part", wire.GenerateContent, "zz", false, w, s)
	w, s = gemini(`,{"inlineData":{"mimeType":"image/png","data":"AA=="}}`, "")
	add(&all, "gemini image", wire.GenerateContent, "image", false, w, s)
	w, s = gemini("", `,"groundingMetadata":{"groundingChunks":[{"web":{"uri":"https://x.test"}}]}`)
	add(&all, "gemini grounding", wire.GenerateContent, "groundingMetadata", false, w, s)
	w, s = gemini("", `,"citationMetadata":{"citationSources":[{"uri":"https://x.test"}]}`)
	add(&all, "gemini citations", wire.GenerateContent, "citationMetadata", false, w, s)
	w, s = responses(`,"annotations":[{"type":"url_citation","url":"https://x.test"}]`, "")
	add(&all, "responses annotations", wire.Responses, "annotations", false, w, s)
	w, s = responses("", `,{"type":"web_search_call","id":"ws_1","status":"completed"}`)
	add(&all, "responses search", wire.Responses, "web_search_call", false, w, s)
	w, s = converse()
	add(&all, "converse citations", wire.Converse, "citation", false, w, s)
	for _, tt := range all {
		t.Run(tt.name, func(t *testing.T) {
			for _, c := range codecs {
				if c.op == tt.of || c.parseRequest == nil || c.newWriter == nil {
					continue
				}
				for _, warn := range []bool{true, false} {
					for how, sent := range tt.both {
						var lost []string
						o := naming()
						o.Warn, o.Lost = warn, func(what string) { lost = append(lost, what) }
						var out []byte
						var err error
						if how == 0 {
							out, err = Whole(tt.of, c.op, sent, o)
						} else {
							out, err = run(tt.of, c.op, bytes.NewReader(sent), o, false)
						}
						where := fmt.Sprintf("to %s, warn %v, streamed %v", c.op, warn, how == 1)
						if !warn && !tt.hint {
							if err == nil || !strings.Contains(err.Error(), tt.lost) {
								t.Errorf("%s: %v", where, err)
							}
							continue
						}
						if err != nil || !bytes.Contains(out, []byte(`hi"`)) {
							t.Errorf("%s: %v %s", where, err, out)
						}
						if told := slices.ContainsFunc(lost, func(s string) bool { return strings.Contains(s, tt.lost) }); told != (tt.lost != "") {
							t.Errorf("%s: told of %q, want %q", where, lost, tt.lost)
						}
					}
				}
			}
		})
	}
}
