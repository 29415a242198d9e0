package dialect

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/wire"
)

const (
	respond = `{"model":"m","input":"x"`
)

func items(list string) string { return `{"model":"m","input":[` + list + `]}` }

// responsesTells has a request for each field that clients of Responses have.
var responsesTells = map[Feature]tells{
	FeatureText:         {"", respond + `}`, nil},
	FeatureInstructions: {"", `{"model":"m","instructions":"i","input":[{"role":"developer","content":"d"},{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}]}`, nil},
	FeatureWithin:       {"input[1]", items(`{"role":"user","content":"x"},{"role":"system","content":"s"},{"role":"user","content":"y"}`), nil},
	FeatureNoTurn:       {"input", items(`{"role":"system","content":"s"}`), nil},
	FeaturePrefill:      {"input[1]", items(`{"role":"user","content":"x"},{"role":"assistant","content":"a"}`), nil},
	FeatureEmptyText:    {"", items(`{"role":"user","content":[{"type":"input_text","text":""},{"type":"input_text","text":"x"}]}`), nil},
	FeatureImage:        {"", items(`{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AAAA","detail":"auto"}]}`), nil},
	FeatureImageKind:    {"input[0].content[0].image_url", items(`{"role":"user","content":[{"type":"input_image","image_url":"data:image/tiff;base64,AAAA"}]}`), nil},
	FeatureImageURL:     {"input[0].content[0].image_url", items(`{"role":"user","content":[{"type":"input_image","image_url":"https://a/b.png"}]}`), nil},
	FeatureOrphan:       {"input[1].call_id", items(`{"role":"user","content":"x"},{"type":"function_call_output","call_id":"c","output":"r"}`), nil},
	FeatureForeign:      {"input[1]", items(`{"role":"user","content":"x"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gemini:c2ln"},{"role":"assistant","content":"a"},{"role":"user","content":"y"}`), nil},
	FeatureChoiceless:   {"tool_choice", respond + `,"tool_choice":{"type":"function","name":"f"}}`, nil},
	FeatureNoCalls:      {"tool_choice", respond + `,"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}],"tool_choice":"none"}`, nil},
	FeatureImageDetail:  {"input[0].content[0].detail", items(`{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AAAA","detail":"low"}]}`), nil},
	FeatureDocument:     {"", items(`{"role":"user","content":[{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,AAAA"}]}`), nil},
	FeatureDocumentURL:  {"input[0].content[0].file_url", items(`{"role":"user","content":[{"type":"input_file","file_url":"https://a/b.pdf"}]}`), nil},
	FeatureFile:         {"input[0].content[0].file_id", items(`{"role":"user","content":[{"type":"input_file","file_id":"file-1"}]}`), nil},
	FeatureAudioInput:   {"input[0].content[0]", items(`{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}`), nil},
	FeatureSearchResult: {"input[0].content[0]", items(`{"role":"user","content":[{"type":"input_video"}]}`), nil},
	FeatureCall:         {"", items(`{"role":"user","content":"x"},{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}","status":"completed"},{"type":"function_call_output","call_id":"c1","output":"r"}`), nil},
	FeatureArguments:    {"input[1].arguments", items(`{"role":"user","content":"x"},{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":"},{"type":"function_call_output","call_id":"c","output":"r"}`), nil},
	FeatureResult:       {"", items(`{"role":"user","content":"x"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call","call_id":"d","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"r"},{"type":"function_call_output","call_id":"d","output":[{"type":"input_text","text":"r"}]}`), nil},
	FeatureResultMedia:  {"input[2].output[0]", items(`{"role":"user","content":"x"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}`), nil},
	FeatureReasoning:    {"input[1]", items(`{"role":"user","content":"x"},{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"t"}]},{"role":"assistant","content":"a"},{"role":"user","content":"y"}`), nil},
	FeatureSigned:       {"input[1]", items(`{"role":"user","content":"x"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"anthropic:ZQ=="},{"role":"assistant","content":"a"},{"role":"user","content":"y"}`), nil},
	FeatureOpenAISealed: {"input[1]", items(`{"role":"user","content":"x"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAAABo"},{"role":"assistant","content":"a"},{"role":"user","content":"y"}`), nil},
	FeatureRefusalText:  {"input[1].content[0]", items(`{"role":"user","content":"x"},{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"refusal","refusal":"no"}]},{"role":"user","content":"y"}`), nil},
	FeatureAnnotations:  {"input[1].content[0].annotations", items(`{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"output_text","text":"a","annotations":[{"type":"url_citation"}]}]},{"role":"user","content":"y"}`), nil},
	FeatureMixedAnswer:  {"input[2]", items(`{"role":"user","content":"x"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"role":"assistant","content":"a"},{"type":"function_call_output","call_id":"c","output":"r"}`), nil},
	FeatureUndeclared:   {"", items(`{"role":"user","content":"x"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call","call_id":"d","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"r"},{"type":"function_call_output","call_id":"d","output":"r"}`), nil},
	FeaturePhase:        {"input[1].phase", items(`{"role":"user","content":"x"},{"role":"assistant","phase":"commentary","content":"a"},{"role":"user","content":"y"}`), nil},
	FeatureToolItem:     {"input[1]", items(`{"role":"user","content":"x"},{"type":"web_search_call","id":"ws_1","status":"completed"}`), nil},
	FeatureKept:         {"previous_response_id", respond + `,"previous_response_id":"resp_1"}`, nil},
	FeaturePrompt:       {"prompt", respond + `,"prompt":{"id":"pmpt_1"}}`, nil},
	FeatureTools:        {"", respond + `,"tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":true}]}`, nil},
	FeatureCustomTool:   {"tools[0]", respond + `,"tools":[{"type":"custom","name":"f"}]}`, nil},
	FeatureServerTool:   {"tools[0]", respond + `,"tools":[{"type":"web_search"}]}`, nil},
	FeatureChoice:       {"", respond + `,"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}],"tool_choice":{"type":"function","name":"f"}}`, nil},
	FeatureAllowedTools: {"tool_choice", respond + `,"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]}}`, nil},
	FeatureSerial:       {"", respond + `,"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}],"parallel_tool_calls":false}`, nil},
	FeatureMaxCalls:     {"", respond + `,"max_tool_calls":3}`, nil},
	FeatureMaxOutput:    {"", respond + `,"max_output_tokens":99}`, nil},
	FeatureTemperature:  {"", respond + `,"temperature":0.5}`, nil},
	FeatureHot:          {"temperature", respond + `,"temperature":1.5}`, nil},
	FeatureTopP:         {"", respond + `,"top_p":0.5}`, nil},
	FeatureLogprobs:     {"top_logprobs", respond + `,"top_logprobs":2,"include":["message.output_text.logprobs"]}`, nil},
	FeatureSchema:       {"", respond + `,"text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"},"strict":true}}}`, nil},
	FeatureObject:       {"text.format", respond + `,"text":{"format":{"type":"json_object"}}}`, nil},
	FeatureFormatNote:   {"text.format.description", respond + `,"text":{"format":{"type":"json_schema","name":"n","description":"d","schema":{"type":"object"},"strict":true}}}`, nil},
	FeatureGrammar:      {"text.format", respond + `,"text":{"format":{"type":"grammar"}}}`, nil},
	FeatureEffort:       {"", respond + `,"reasoning":{"effort":"high"}}`, nil},
	FeatureMinimal:      {"reasoning.effort", respond + `,"reasoning":{"effort":"minimal"}}`, nil},
	FeatureNoThinking:   {"", respond + `,"reasoning":{"effort":"none"}}`, nil},
	FeatureDisplay:      {"reasoning.summary", respond + `,"reasoning":{"summary":"auto"}}`, nil},
	FeatureVerbosity:    {"text.verbosity", respond + `,"text":{"verbosity":"low"}}`, nil},
	FeatureSealed:       {"", respond + `,"include":["reasoning.encrypted_content"]}`, nil},
	FeatureInclude:      {"include[0]", respond + `,"include":["file_search_call.results"]}`, nil},
	FeatureUser:         {"safety_identifier", respond + `,"safety_identifier":"u"}`, nil},
	FeatureSecondUser:   {"user", respond + `,"safety_identifier":"u","user":"v"}`, nil},
	FeatureMetadata:     {"metadata", respond + `,"metadata":{"a":"b"}}`, nil},
	FeatureCache:        {"input[0].content[0].prompt_cache_breakpoint", items(`{"role":"user","content":[{"type":"input_text","text":"x","prompt_cache_breakpoint":{"mode":"explicit"}}]}`), nil},
	FeatureCacheKey:     {"prompt_cache_key", respond + `,"prompt_cache_key":"k"}`, nil},
	FeatureStandard:     {"", respond + `,"service_tier":"default"}`, nil},
	FeatureTier:         {"service_tier", respond + `,"service_tier":"flex"}`, nil},
	FeatureModeration:   {"moderation", respond + `,"moderation":{"model":"m"}}`, nil},
	FeatureStore:        {"store", respond + `,"store":true}`, nil},
	FeatureBackground:   {"background", respond + `,"background":true}`, nil},
	FeatureTruncation:   {"truncation", respond + `,"truncation":"auto"}`, nil},
	FeatureContext:      {"context_management", respond + `,"context_management":[{"type":"compaction"}]}`, nil},
	FeatureObfuscation:  {"stream_options.include_obfuscation", respond + `,"stream":true,"stream_options":{"include_obfuscation":true}}`, nil},
	FeatureBeta:         {"openai-beta:x-v1", respond + `}`, map[string][]string{"Openai-Beta": {"x-v1"}}},
	FeatureUnknown:      {"input[0].new_thing", items(`{"role":"user","content":"x","new_thing":1}`), nil},
}

var responsesNothing = []string{
	respond + `,"store":false,"background":false,"metadata":{},"truncation":"disabled","text":{"format":{"type":"text"},"verbosity":"medium"},"reasoning":{"effort":null,"summary":null},"tools":[],"include":[],"tool_choice":null,"previous_response_id":null,"conversation":null,"new_thing":null,"service_tier":"auto","top_logprobs":0,"context_management":[],"stream_options":{"include_obfuscation":false}}`,
}

// responsesSent is an answer as a Responses backend streams it, by the writer of
// another test: each item with all its events.
func responsesSent(t *rapid.T, a *Answer) []byte {
	var b []byte
	n := 0
	event := func(kind string, o obj) {
		o["type"], o["sequence_number"] = kind, n
		n++
		b = wire.AppendEvent(b, kind, compact(o))
	}
	whole := emitResponsesAnswer(nil, a)
	var full struct{ Output []obj }
	decode(t, whole, &full)
	begun := obj{"id": a.ID, "object": "response", "created_at": a.Created, "model": a.Model, "status": "in_progress", "output": []obj{}, "error": nil}
	event("response.created", obj{"response": begun})
	event("response.in_progress", obj{"response": begun})
	bare := rapid.Bool().Draw(t, "items come whole")
	for i, item := range full.Output {
		at := func(o obj) obj { o["output_index"], o["item_id"] = i, item["id"]; return o }
		switch item["type"] {
		case "message":
			event("response.output_item.added", obj{"output_index": i, "item": obj{"id": item["id"], "type": "message", "role": "assistant", "content": []obj{}}})
			for j, p := range item["content"].([]any) {
				part := p.(obj)
				kind, name := "output_text", "text"
				if part["type"] == "refusal" {
					kind, name = "refusal", "refusal"
				}
				event("response.content_part.added", at(obj{"content_index": j, "part": obj{"type": part["type"], name: "", "annotations": []obj{}}}))
				if !bare {
					said := Part{Text: part[name].(string)}
					if kind == "output_text" {
						said.Logprobs = asJSON[[]Logprob](t, compact(part["logprobs"]))
					}
					for _, s := range pieces(t, &said) {
						event("response."+kind+".delta", at(obj{"content_index": j, "delta": s.text, "logprobs": json.RawMessage(appendLogprobs(nil, s.list, false)), "obfuscation": "xyz"}))
					}
				}
				event("response."+kind+".done", at(obj{"content_index": j, name: part[name]}))
				event("response.content_part.done", at(obj{"content_index": j, "part": part}))
			}
		case "reasoning":
			event("response.output_item.added", obj{"output_index": i, "item": obj{"id": item["id"], "type": "reasoning", "summary": []obj{}}})
			for j, p := range item["summary"].([]any) {
				event("response.reasoning_summary_part.added", at(obj{"summary_index": j, "part": obj{"type": "summary_text", "text": ""}}))
				if !bare {
					for _, s := range cuts(t, p.(obj)["text"].(string)) {
						event("response.reasoning_summary_text.delta", at(obj{"summary_index": j, "delta": s}))
					}
				}
				event("response.reasoning_summary_text.done", at(obj{"summary_index": j, "text": p.(obj)["text"]}))
			}
		case "function_call":
			event("response.output_item.added", obj{"output_index": i, "item": obj{"id": item["id"], "type": "function_call", "call_id": item["call_id"], "name": item["name"], "arguments": ""}})
			if !bare {
				for _, s := range cuts(t, item["arguments"].(string)) {
					event("response.function_call_arguments.delta", at(obj{"delta": s}))
				}
			}
			event("response.function_call_arguments.done", at(obj{"arguments": item["arguments"]}))
		}
		event("response.output_item.done", obj{"output_index": i, "item": item})
	}
	var last obj
	decode(t, whole, &last)
	event("response."+last["status"].(string), obj{"response": last})
	return b
}

// assembleResponse puts a response's events together, and holds what its last event
// says to that.
func assembleResponse(t fataler, stream []byte) any {
	var output []obj
	var last obj
	args := map[string]string{}
	for i, data := range eventsOf(t, stream) {
		var e struct {
			Type     string
			Sequence int    `json:"sequence_number"`
			Output   int    `json:"output_index"`
			Index    int    `json:"content_index"`
			ItemID   string `json:"item_id"`
			Delta    string
			Logprobs []Logprob
			Item     obj
			Part     obj
			Response obj
		}
		decode(t, data, &e)
		if e.Sequence != i {
			t.Fatalf("event %d has the number %d", i, e.Sequence)
		}
		if e.ItemID != "" && output[e.Output]["id"] != e.ItemID {
			t.Fatalf("item %d is %v, and an event says %s", e.Output, output[e.Output]["id"], e.ItemID)
		}
		switch e.Type {
		case "response.output_item.added":
			if e.Output != len(output) {
				t.Fatalf("item %d begins after %d", e.Output, len(output))
			}
			output = append(output, e.Item)
		case "response.content_part.added":
			content := output[e.Output]["content"].([]any)
			if e.Index != len(content) {
				t.Fatalf("part %d begins after %d", e.Index, len(content))
			}
			output[e.Output]["content"] = append(content, e.Part)
		case "response.output_text.delta":
			p := output[e.Output]["content"].([]any)[e.Index].(obj)
			p["text"] = p["text"].(string) + e.Delta
			p["logprobs"] = append(p["logprobs"].([]any), asJSON[[]any](t, appendLogprobs(nil, e.Logprobs, true))...)
		case "response.refusal.delta":
			p := output[e.Output]["content"].([]any)[e.Index].(obj)
			p["refusal"] = p["refusal"].(string) + e.Delta
		case "response.reasoning_summary_part.added":
			output[e.Output]["summary"] = append(output[e.Output]["summary"].([]any), e.Part)
		case "response.reasoning_summary_text.delta":
			p := output[e.Output]["summary"].([]any)[0].(obj)
			p["text"] = p["text"].(string) + e.Delta
		case "response.function_call_arguments.delta":
			args[e.ItemID] += e.Delta
		case "response.output_item.done":
			have := output[e.Output]
			if a, ok := args[e.Item["id"].(string)]; ok {
				have["arguments"] = a
			}
			for _, same := range []string{"content", "summary", "arguments"} {
				if same == "arguments" && have[same] == "" {
					continue
				}
				if d := cmp.Diff(have[same], e.Item[same]); d != "" {
					t.Fatalf("item %d was streamed otherwise than it ends: %s", e.Output, d)
				}
			}
			output[e.Output] = e.Item
		case "response.completed", "response.incomplete":
			last = e.Response
		}
	}
	if last == nil {
		t.Fatalf("no last event in %s", stream)
	}
	whole := []any{}
	for _, item := range output {
		whole = append(whole, item)
	}
	if d := cmp.Diff(whole, last["output"]); d != "" {
		t.Fatalf("the last event has another output: %s", d)
	}
	return last
}

func assembledResponse(t fataler, body []byte) any {
	var r obj
	decode(t, body, &r)
	return r
}

// What the last event of a backend says of why it ended is heeded, and usage told.
func TestResponsesTerminal(t *testing.T) {
	for _, tt := range []struct{ kind, details, want string }{
		{"completed", `null`, "stop"},
		{"incomplete", `{"reason":"max_output_tokens"}`, "length"},
		{"incomplete", `{"reason":"content_filter"}`, "content_filter"},
	} {
		s := NewStream(wire.Responses, wire.Chat, StreamOptions{Told: true, Now: made, Usage: func() sluice.Usage { return sluice.Usage{Input: 3, Output: 4} }})
		data := []byte(`{"type":"response.` + tt.kind + `","response":{"id":"resp_1","model":"m","status":"` + tt.kind + `","incomplete_details":` + tt.details + `,"output":[]}}`)
		out, err := s.Event(&wire.Event{Data: data, Raw: wire.AppendEvent(nil, "response."+tt.kind, data)}, true)
		if err != nil {
			t.Fatal(err)
		}
		if c := assembleCompletion(t, out); c.Finish != tt.want || c.Usage == nil {
			t.Errorf("%s %s: %+v", tt.kind, tt.details, c)
		}
	}
}
