package dialect

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/wire"
)

var bedrockRig = &rig{
	codec: &bedrock, sent: bedrockSent, answer: bedrockWhole, parse: parseConverse, keeps: keepsInConverse, signs: true, lumps: true, framed: true,
	stops: []StopReason{StopEnd, StopLength, StopSequence, StopRefusal},
}

// keepsInConverse takes out of a request what the dialect does not keep.
func keepsInConverse(r *Request) {
	r.Serial, r.Choice.Only, r.Asks = false, nil, nil
	if r.Choice.Kind == ChoiceNone {
		r.Choice = Choice{}
	}
	for i := range r.Messages {
		parts := r.Messages[i].Parts
		for j := range parts {
			if parts[j].Kind == CallPart && len(r.Tools) == 0 {
				r.Tools = []Tool{{Name: "f", Schema: jsontext.Value(`{"type":"object"}`)}}
			}
			parts[j].fetched()
			if m := &parts[j].Media; m.Title != "" {
				m.Title = fmt.Sprintf("a%d-%d", i, j)
			}
		}
	}
}

func bedrockWord(r StopReason) string {
	return map[StopReason]string{
		StopEnd: "end_turn", StopLength: "max_tokens", StopSequence: "stop_sequence", StopTools: "tool_use", StopRefusal: "content_filtered",
	}[r]
}

func bedrockStopped(s Stop) obj {
	o := obj{"stopReason": bedrockWord(s.Reason)}
	if s.Sequence != "" {
		o["additionalModelResponseFields"] = obj{"stop_sequence": s.Sequence}
	}
	return o
}

func bedrockTold(u *sluice.Usage) obj {
	return obj{
		"inputTokens": u.Input, "outputTokens": u.OutputTotal(), "totalTokens": u.InputTotal() + u.OutputTotal(),
		"cacheReadInputTokens": u.CacheRead, "cacheWriteInputTokens": u.CacheWrite, "cacheDetails": []obj{{"ttl": "5m", "inputTokens": u.CacheWrite}},
	}
}

// bedrockWhole is an answer in one piece.
func bedrockWhole(a *Answer) []byte {
	blocks := []obj{}
	for _, p := range a.Parts {
		switch p.Kind {
		case ReasoningPart:
			blocks = append(blocks, obj{"reasoningContent": obj{"reasoningText": obj{"text": p.Text, "signature": p.Signature}}})
		case RedactedPart:
			blocks = append(blocks, obj{"reasoningContent": obj{"redactedContent": p.Signature}})
		case CallPart:
			blocks = append(blocks, obj{"toolUse": obj{"toolUseId": p.Call.ID, "name": p.Call.Name, "input": json.RawMessage(p.Call.Arguments)}})
		default:
			blocks = append(blocks, obj{"text": p.Text})
		}
	}
	o := bedrockStopped(a.Stop)
	o["output"] = obj{"message": obj{"role": "assistant", "content": blocks}}
	o["usage"], o["metrics"] = bedrockTold(&a.Usage), obj{"latencyMs": 1}
	return compact(o)
}

// bedrockSent is an answer as a backend streams it: in frames, its events padded.
func bedrockSent(t *rapid.T, a *Answer) []byte {
	var b []byte
	event := func(kind string, o obj) {
		payload := compact(o)
		if n := rapid.IntRange(0, 3).Draw(t, "padding"); n > 0 {
			payload = append(payload[:len(payload)-1], `,"p":"`+strings.Repeat("aZ9", n)+`"}`...)
		}
		b = wire.AppendFrame(b, []wire.FrameHeader{{Name: ":event-type", Value: kind}, {Name: ":content-type", Value: "application/json"}, {Name: ":message-type", Value: "event"}}, payload)
	}
	event("messageStart", obj{"role": "assistant"})
	for i, p := range a.Parts {
		delta := func(d obj) { event("contentBlockDelta", obj{"contentBlockIndex": i, "delta": d}) }
		switch p.Kind {
		case ReasoningPart:
			for _, s := range cuts(t, p.Text) {
				delta(obj{"reasoningContent": obj{"text": s}})
			}
			if p.Signature != "" {
				delta(obj{"reasoningContent": obj{"signature": p.Signature}})
			}
		case RedactedPart:
			delta(obj{"reasoningContent": obj{"redactedContent": p.Signature}})
		case TextPart:
			for _, s := range cuts(t, p.Text) {
				delta(obj{"text": s})
			}
		case CallPart:
			event("contentBlockStart", obj{"contentBlockIndex": i, "start": obj{"toolUse": obj{"toolUseId": p.Call.ID, "name": p.Call.Name}}})
			if p.Call.Arguments != "{}" || rapid.Bool().Draw(t, "empty input is sent") {
				for _, s := range cuts(t, p.Call.Arguments) {
					delta(obj{"toolUse": obj{"input": s}})
				}
			}
		}
		event("contentBlockStop", obj{"contentBlockIndex": i})
	}
	event("messageStop", bedrockStopped(a.Stop))
	event("metadata", obj{"usage": bedrockTold(&a.Usage), "metrics": obj{"latencyMs": 1}})
	return b
}

// converse is the body of a Converse request, as the provider reads it.
type converse struct {
	Model    string
	Stream   bool
	System   []converseBlock
	Messages []struct {
		Role    string
		Content []converseBlock
	}
	InferenceConfig struct {
		MaxTokens         int64
		Temperature, TopP json.RawMessage
		StopSequences     []string
	}
	ToolConfig struct {
		Tools []struct {
			ToolSpec struct {
				Name, Description string
				InputSchema       struct{ JSON json.RawMessage }
				Strict            bool
			}
		}
		ToolChoice map[string]struct{ Name string }
	}
	OutputConfig struct {
		Effort     string
		TextFormat *struct {
			Type      string
			Structure struct {
				JSONSchema struct{ Schema, Name string }
			}
		}
	}
	AdditionalModelRequestFields struct {
		TopK     json.RawMessage `json:"top_k"`
		Thinking *struct {
			Type   string
			Budget int64 `json:"budget_tokens"`
		}
	}
	AdditionalModelResponseFieldPaths []string
	RequestMetadata                   map[string]string
	ServiceTier                       *struct{ Type string }
}

type converseBlock struct {
	Text  *string
	Image *struct {
		Format string
		Source struct{ Bytes string }
	}
	Document *struct {
		Format, Name string
		Source       struct{ Bytes, Text string }
	}
	ToolUse *struct {
		ToolUseID, Name string
		Input           json.RawMessage
	}
	ToolResult *struct {
		ToolUseID, Status string
		Content           []converseBlock
	}
	ReasoningContent *struct {
		ReasoningText   *struct{ Text, Signature string }
		RedactedContent string
	}
}

func (b *converseBlock) part() Part {
	switch {
	case b.Image != nil:
		return Part{Kind: ImagePart, Media: Media{Type: "image/" + b.Image.Format, Data: b.Image.Source.Bytes}}
	case b.Document != nil && b.Document.Source.Text != "":
		return Part{Kind: CitedTextPart, Text: b.Document.Source.Text, Media: Media{Title: b.Document.Name}}
	case b.Document != nil:
		return Part{Kind: DocumentPart, Media: Media{Type: "application/" + b.Document.Format, Data: b.Document.Source.Bytes, Title: b.Document.Name}}
	case b.ToolUse != nil:
		return Part{Kind: CallPart, Call: Call{b.ToolUse.ToolUseID, b.ToolUse.Name, string(b.ToolUse.Input)}}
	case b.ToolResult != nil:
		p := Part{Kind: ResultPart, Result: Result{ID: b.ToolResult.ToolUseID, Error: b.ToolResult.Status == "error"}}
		for i := range b.ToolResult.Content {
			p.Result.Parts = append(p.Result.Parts, b.ToolResult.Content[i].part())
		}
		return p
	case b.ReasoningContent != nil && b.ReasoningContent.ReasoningText != nil:
		return Part{Kind: ReasoningPart, Text: b.ReasoningContent.ReasoningText.Text, Signature: b.ReasoningContent.ReasoningText.Signature}
	case b.ReasoningContent != nil:
		return Part{Kind: RedactedPart, Signature: b.ReasoningContent.RedactedContent}
	}
	return Part{Kind: TextPart, Text: *b.Text}
}

// parseConverse reads a request back: what the provider understands of it. A member
// that is not in the dialect fails.
func parseConverse(t fataler, body []byte) *Request {
	var in converse
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	r := &Request{
		Model: in.Model, Stream: in.Stream, MaxOutput: in.InferenceConfig.MaxTokens, Stop: in.InferenceConfig.StopSequences, Effort: in.OutputConfig.Effort,
		Temperature: jsontext.Value(in.InferenceConfig.Temperature), TopP: jsontext.Value(in.InferenceConfig.TopP), User: in.RequestMetadata["user"], Standard: in.ServiceTier != nil,
	}
	for i := range in.System {
		r.System = append(r.System, in.System[i].part())
	}
	for i, m := range in.Messages {
		out := Message{at: place{i, itself, -1}}
		if m.Role == "assistant" {
			out.Role = Assistant
		}
		for j := range m.Content {
			out.Parts = append(out.Parts, m.Content[j].part())
		}
		r.Messages = append(r.Messages, out)
	}
	for _, x := range in.ToolConfig.Tools {
		s := x.ToolSpec
		r.Tools = append(r.Tools, Tool{Name: s.Name, Description: s.Description, Schema: jsontext.Value(s.InputSchema.JSON), Strict: s.Strict})
	}
	for kind, x := range in.ToolConfig.ToolChoice {
		r.Choice = Choice{Kind: map[string]ChoiceKind{"auto": ChoiceAuto, "any": ChoiceAny, "tool": ChoiceOne}[kind], Name: x.Name}
	}
	if f := in.OutputConfig.TextFormat; f != nil {
		r.Format = &Format{Schema: jsontext.Value(f.Structure.JSONSchema.Schema), Name: f.Structure.JSONSchema.Name}
	}
	return r
}

// What Converse wants in a way of its own.
func TestConverseShapes(t *testing.T) {
	for _, tt := range []struct {
		name, in, want string
		op             wire.Operation
	}{
		{
			"turns of one side are one, and an empty one is none",
			`{"model":"m","messages":[{"role":"user","content":"x"},{"role":"user","content":"y"},{"role":"assistant","content":""},{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":"z"}]}],"max_tokens":5}`,
			`{"model":"m","messages":[{"role":"user","content":[{"text":"x"},{"text":"y"},{"text":"z"}]}],"inferenceConfig":{"maxTokens":5}}`, wire.Chat,
		},
		{
			"ids fit, results come first", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[{"id":"a b","type":"function","function":{"name":"f","arguments":""}}]},{"role":"tool","tool_call_id":"a b","content":"1"},{"role":"user","content":"y"}],"max_tokens":5}`,
			`{"model":"m","messages":[{"role":"user","content":[{"text":"x"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"call_c8687a08aa5d6ed2044328fa","name":"f","input":{}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"call_c8687a08aa5d6ed2044328fa","content":[{"text":"1"}]}},{"text":"y"}]}],"inferenceConfig":{"maxTokens":5}}`, wire.Chat,
		},
		{
			"what some models have, and what is asked for of the answer", asked + `,"top_k":5,"thinking":{"type":"enabled","budget_tokens":1024},"stop_sequences":["END"],"stream":true,"service_tier":"standard_only","metadata":{"user_id":"ü"}}`,
			`{"model":"m","stream":true,"messages":[{"role":"user","content":[{"text":"x"}]}],"inferenceConfig":{"maxTokens":9,"stopSequences":["END"]},"additionalModelResponseFieldPaths":["/stop_sequence"],"additionalModelRequestFields":{"top_k":5,"thinking":{"type":"enabled","budget_tokens":1024}},"requestMetadata":{"user":"` + metadataLabel("ü") + `"},"serviceTier":{"type":"default"}}`, wire.Messages,
		},
		{
			"the schema is a text", asked + `,"output_config":{"effort":"high","format":{"type":"json_schema","schema":{"type":"object"}}},"tools":[{"name":"f","input_schema":{"type":"object"},"strict":true}],"tool_choice":{"type":"any"}}`,
			`{"model":"m","messages":[{"role":"user","content":[{"text":"x"}]}],"inferenceConfig":{"maxTokens":9},"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object","additionalProperties":false}},"strict":true}}],"toolChoice":{"any":{}}},"outputConfig":{"effort":"high","textFormat":{"type":"json_schema","structure":{"jsonSchema":{"schema":"{\"type\":\"object\",\"additionalProperties\":false}"}}}}}`, wire.Messages,
		},
		{
			"media by their bytes, documents under names that differ",
			turn(`{"type":"text","text":"x"},{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"AAAA"}},{"type":"document","title":"Q3 / report.pdf","source":{"type":"base64","media_type":"application/pdf","data":"BBBB"}},{"type":"document","title":"Q3 / report.pdf","source":{"type":"text","media_type":"text/plain","data":"t"}}`),
			`{"model":"m","messages":[{"role":"user","content":[{"text":"x"},{"image":{"format":"jpeg","source":{"bytes":"AAAA"}}},{"document":{"format":"pdf","name":"Q3 - report","source":{"bytes":"BBBB"}}},{"document":{"format":"txt","name":"Q3 - report [2]","source":{"text":"t"}}}]}],"inferenceConfig":{"maxTokens":9}}`, wire.Messages,
		},
	} {
		got := translateInto(t, tt.op, wire.Converse, tt.in, nil, false)
		if got.Err != nil || string(got.Body) != tt.want {
			t.Errorf("%s:\ngot  %s %v\nwant %s", tt.name, got.Body, got.Err, tt.want)
		}
		if got.Body != nil {
			parseConverse(t, got.Body)
		}
	}
	marked := translateInto(t, wire.Messages, wire.Converse, `{"model":"m","max_tokens":9,"cache_control":{"type":"ephemeral"},"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"x"}]}`, nil, true)
	if want := `{"model":"m","system":[{"text":"s"},{"cachePoint":{"type":"default"}}],"messages":[{"role":"user","content":[{"text":"x"},{"cachePoint":{"type":"default"}}]}],"inferenceConfig":{"maxTokens":9}}`; string(marked.Body) != want {
		t.Errorf("marks: got %s\nwant %s", marked.Body, want)
	}
	labels := translateInto(t, wire.Chat, wire.Converse, chat+`,"user":"u","metadata":{"team":"a b","user":"other","é":"x","big":"`+strings.Repeat("x", 300)+`"},"max_tokens":5}`, nil, true)
	if !strings.Contains(string(labels.Body), `"requestMetadata":{"user":"u","team":"a b"}`) || labels.Report.Paths() != "metadata" {
		t.Errorf("labels: got %s, %s", labels.Body, labels.Report.Paths())
	}
	foreign := translateInto(t, wire.Messages, wire.Converse, called(`{"type":"thinking","thinking":"t","signature":"other:AAAA"},{"type":"text","text":"a"}`, `{"type":"text","text":"y"}`), nil, true)
	if strings.Contains(string(foreign.Body), "reasoningContent") || foreign.Report.Paths() != "messages[1].content[0]" {
		t.Errorf("another's signature: got %s, %s", foreign.Body, foreign.Report.Paths())
	}
}

// What no client's dialect has a place for is an error and no part of an answer; nor is
// what the model could not write.
func TestConverseAnswersThatAreNone(t *testing.T) {
	whole := func(content, stop string) string {
		return `{"output":{"message":{"role":"assistant","content":[` + content + `]}},"stopReason":"` + stop + `","usage":{"inputTokens":1,"outputTokens":1}}`
	}
	for name, body := range map[string]string{
		"citations":          whole(`{"citationsContent":{"content":[{"text":"a"}],"citations":[{"title":"x"}]}}`, "end_turn"),
		"an image":           whole(`{"image":{"format":"png","source":{"bytes":"AA=="}}}`, "end_turn"),
		"a provider's tool":  whole(`{"toolUse":{"toolUseId":"t","name":"n","input":{},"type":"server_tool_use"}}`, "tool_use"),
		"malformed_tool_use": whole(`{"text":"a"}`, "malformed_tool_use"),
		"stop reason":        whole(`{"text":"a"}`, "other_reason"),
		"no JSON object":     whole(`{"toolUse":{"toolUseId":"t","name":"n","input":[1]}}`, "tool_use"),
	} {
		_, err := Whole(wire.Converse, wire.Chat, []byte(body), StreamOptions{Usage: func() sluice.Usage { return sluice.Usage{} }, Now: made})
		if err == nil || !strings.Contains(err.Error(), name) && !strings.Contains(err.Error(), "place for") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	out, err := Whole(wire.Converse, wire.Messages, []byte(whole(`{"text":"Sorry"}`, "guardrail_intervened")), StreamOptions{Usage: func() sluice.Usage { return sluice.Usage{} }, Now: made, ID: "req_1", Model: "fast"})
	if want := `"stop_reason":"refusal"`; err != nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), `"id":"req_1"`) || !strings.Contains(string(out), `"model":"fast"`) {
		t.Errorf("got %s, %v", out, err)
	}
}
