package dialect

import (
	"strings"
	"testing"

	"sluice/internal/wire"
)

// What the dialects write differently.
func TestGeminiShapes(t *testing.T) {
	for _, tt := range []struct {
		name, in, want string
		op, to         wire.Operation
	}{
		{
			"a streamed answer is one, however many contents its events are kept as",
			`{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"b"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},{"role":"model","parts":[{"text":""}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"r"}}}]}]}`,
			`{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"ab","tool_calls":[{"id":"call_3_0","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_3_0","content":"r"}]}`,
			wire.GenerateContent, wire.Chat,
		},
		{
			"two calls of one name are answered in their order, and objects are JSON",
			ran(callF+`,{"functionCall":{"name":"f","args":{"a":2}}}`, resultF+`,{"functionResponse":{"name":"f","response":{"b":{ "c":1}}}}`),
			`{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_1_0","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"call_1_1","type":"function","function":{"name":"f","arguments":"{\"a\":2}"}}]},{"role":"tool","tool_call_id":"call_1_0","content":"r"},{"role":"tool","tool_call_id":"call_1_1","content":"{\"b\":{\"c\":1}}"}]}`,
			wire.GenerateContent, wire.Chat,
		},
		{
			"a schema of OpenAPI becomes one of JSON",
			said + `,"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT","properties":{"a":{"type":"STRING","nullable":true,"format":"enum","enum":["x"]},"b":{"type":"ARRAY","items":{"type":"INTEGER"},"min_items":"1"}},"required":["a"],"propertyOrdering":["a"]}}]}]}`,
			`{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"a":{"enum":["x",null],"type":["string","null"]},"b":{"items":{"type":"integer"},"minItems":1,"type":"array"}},"required":["a"],"type":"object"}}}]}`,
			wire.GenerateContent, wire.Chat,
		},
		{
			"seed, penalties and JSON without a schema go into chat",
			configured(`"seed":7,"presencePenalty":0.5,"frequencyPenalty":0.25,"responseMimeType":"application/json"`),
			`{"model":"m","messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_object"},"seed":7,"presence_penalty":0.5,"frequency_penalty":0.25}`,
			wire.GenerateContent, wire.Chat,
		},
		{
			"and out of it", chat + `,"seed":7,"presence_penalty":0.5,"frequency_penalty":0.25,"response_format":{"type":"json_object"}}`,
			said + `,"generationConfig":{"responseMimeType":"application/json","seed":7,"presencePenalty":0.5,"frequencyPenalty":0.25}}`,
			wire.Chat, wire.GenerateContent,
		},
		{
			"a signature goes onto the call that it stood before, and the first of another model's gets the word for none",
			`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"redacted_thinking","data":"gemini:c2ln"},{"type":"text","text":"a"},{"type":"tool_use","id":"c","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"}]},{"role":"assistant","content":[{"type":"tool_use","id":"d","name":"f","input":{}},{"type":"tool_use","id":"e","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"d","is_error":true,"content":"r"},{"type":"tool_result","tool_use_id":"e","content":[{"type":"text","text":"1"},{"type":"text","text":"2"}]}]}]}`,
			`{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"text":"a"},{"functionCall":{"id":"c","name":"f","args":{}},"thoughtSignature":"c2ln"}]},{"role":"user","parts":[{"functionResponse":{"id":"c","name":"f","response":{"output":"r"}}}]},{"role":"model","parts":[{"functionCall":{"id":"d","name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"id":"e","name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"d","name":"f","response":{"error":"r"}}},{"functionResponse":{"id":"e","name":"f","response":{"output":["1","2"]}}}]}],"generationConfig":{"maxOutputTokens":9}}`,
			wire.Messages, wire.GenerateContent,
		},
		{
			"thoughts of a stream are one up to what is signed, and go back to who signed them",
			`{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"text":"t","thought":true},{"text":"u","thought":true},{"text":"","thought":true,"thoughtSignature":"` + marked(signedMark, "s") + `"},{"text":"","thought":true,"thoughtSignature":"` + marked(sealedMark, "d") + `"},{"text":"a"}]},{"role":"user","parts":[{"text":"y"}]}],"generationConfig":{"maxOutputTokens":9}}`,
			`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"thinking","thinking":"tu","signature":"s"},{"type":"redacted_thinking","data":"d"},{"type":"text","text":"a"}]},{"role":"user","content":"y"}]}`,
			wire.GenerateContent, wire.Messages,
		},
		{
			"a strict tool holds calls to its schema", chat + `,"tools":[{"type":"function","function":{"name":"f","strict":true}}]}`,
			said + `,"tools":[{"functionDeclarations":[{"name":"f"}]}],"toolConfig":{"functionCallingConfig":{"mode":"VALIDATED"}}}`,
			wire.Chat, wire.GenerateContent,
		},
	} {
		got := translateInto(t, tt.op, tt.to, tt.in, nil, false)
		if got.Err != nil || string(got.Body) != tt.want {
			t.Errorf("%s:\ngot  %s %v\nwant %s", tt.name, got.Body, got.Err, tt.want)
		}
	}
}

// How much a model thinks is said in what its generation understands.
func TestGeminiEffort(t *testing.T) {
	for _, tt := range []struct{ model, effort, want string }{
		{"gemini-2.5-flash", "low", `{"thinkingBudget":1024}`},
		{"models/gemini-2.5-pro", "max", `{"thinkingBudget":24576}`},
		{"gemini-2.5-flash", "none", `{"thinkingBudget":0}`},
		{"gemini-3.5-flash", "low", `{"thinkingLevel":"LOW"}`},
		{"gemini-3.5-flash", "xhigh", `{"thinkingLevel":"HIGH"}`},
		{"gemini-3.5-flash", "none", `{"thinkingLevel":"MINIMAL"}`},
		{"", "minimal", `{"thinkingLevel":"MINIMAL"}`},
	} {
		body := []byte(chat + `,"reasoning_effort":"` + tt.effort + `"}`)
		h, err := scan(wire.Chat, body)
		if err != nil {
			t.Fatal(err)
		}
		got := Translate(h, body, nil, wire.GenerateContent, Options{Warn: true, Model: tt.model})
		if !strings.HasSuffix(string(got.Body), `"thinkingConfig":`+tt.want+"}}") {
			t.Errorf("%s on %s: %s", tt.effort, tt.model, got.Body)
		}
		exact := tt.want == `{"thinkingLevel":"LOW"}` || tt.want == `{"thinkingBudget":0}` || tt.model == ""
		if exact != (len(got.Report) == 0) || !exact && got.Report[0].Path != "reasoning_effort" {
			t.Errorf("%s on %s is told as %v", tt.effort, tt.model, got.Report)
		}
	}
}

// A Gemini model's signature reaches no backend of another dialect.
func TestSignaturesStayWithTheirProvider(t *testing.T) {
	body := `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"a","reasoning_details":[{"type":"reasoning.encrypted","data":"gemini:c2ln","index":0}]},` + after
	got := translateInto(t, wire.Chat, wire.Messages, body, nil, true)
	if got.Err != nil || strings.Contains(string(got.Body), "c2ln") || got.Report.Paths() != "messages[1].reasoning_details" {
		t.Errorf("sent %s, told %s %v", got.Body, got.Report.Paths(), got.Err)
	}
}
