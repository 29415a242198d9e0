package dialect

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"sluice/internal/wire"
)

// A schema is strict for OpenAI where its objects name all their properties and need them
// all. Objects that say nothing of others are closed; what is said stays.
func TestStrictSchemas(t *testing.T) {
	for _, tt := range []struct {
		name, in, want string
		strict         bool
	}{
		{"closed", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, true},
		{"closed already", `{"type":"object","properties":{},"additionalProperties":false}`, "", true},
		{"within", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"object"}}},"required":["a"],"$defs":{"b":{"type":["object","null"]}},"additionalProperties":false}`, `{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","additionalProperties":false}}},"required":["a"],"$defs":{"b":{"type":["object","null"],"additionalProperties":false}},"additionalProperties":false}`, true},
		{"of several", `{"type":"object","properties":{"a":{"anyOf":[{"type":"object","properties":{"b":{}}},{"type":"null"}]}},"required":["a"]}`, `{"type":"object","properties":{"a":{"anyOf":[{"type":"object","properties":{"b":{}},"additionalProperties":false},{"type":"null"}]}},"required":["a"],"additionalProperties":false}`, false},
		{"optional", `{"type":"object","properties":{"a":{}},"additionalProperties":false}`, "", false},
		{"open", `{"type":"object","additionalProperties":{"type":"string"}}`, "", false},
		{"a list", `{"type":"array","items":{"type":"string"}}`, "", false},
		{"a word that it does not know", `{"type":"object","properties":{"a":{"allOf":[{"type":"string"}]}},"required":["a"],"additionalProperties":false}`, "", false},
		{"a property called allOf", `{"type":"object","properties":{"allOf":{"type":"string"}},"required":["allOf"],"additionalProperties":false}`, "", true},
		{"no object", `true`, "", true},
	} {
		if tt.want == "" {
			tt.want = tt.in
		}
		got, traits := closed(jsontext.Value(tt.in))
		if string(got) != tt.want || traits.strict() != tt.strict {
			t.Errorf("%s: %v\ngot  %s\nwant %s", tt.name, traits, got, tt.want)
		}
	}
	deep := strings.Repeat(`{"items":`, 200) + `{}` + strings.Repeat(`}`, 200)
	if _, traits := closed(jsontext.Value(deep)); traits.strict() {
		t.Error("what is too deep to be looked into is strict")
	}
}

// OpenAI is asked to hold an answer, or a tool's arguments, to a schema only where it takes
// the schema for that; where it does not, that is told.
func TestSchemasForOpenAI(t *testing.T) {
	const fits, loose = `{"type":"OBJECT","properties":{"a":{"type":"STRING"}},"required":["a"]}`, `{"type":"OBJECT","properties":{"a":{"type":"STRING"}}}`
	format := func(s string) string {
		return configured(`"responseMimeType":"application/json","responseSchema":` + s)
	}
	tool := func(s string) string {
		return said + `,"tools":[{"functionDeclarations":[{"name":"f","parameters":` + s + `}]}],"toolConfig":{"functionCallingConfig":{"mode":"VALIDATED"}}}`
	}
	for _, to := range []wire.Operation{wire.Chat, wire.Responses} {
		for body, path := range map[string]string{format(fits): "", tool(fits): "", format(loose): "generationConfig.responseSchema", tool(loose): "tools[0].functionDeclarations[0]"} {
			tr := translateInto(t, wire.GenerateContent, to, body, nil, true)
			strict := strings.Contains(string(tr.Body), `"strict":true`)
			closed := strings.Contains(string(tr.Body), `"additionalProperties":false`)
			if tr.Err != nil || tr.Report.Paths() != path || strict != (path == "") || strict && !closed {
				t.Errorf("%v: %s: %v %q %s", to, body, tr.Err, tr.Report.Paths(), tr.Body)
			}
		}
	}
	// Anthropic needs every object closed, and takes optional properties.
	tr := translateInto(t, wire.GenerateContent, wire.Messages, format(loose), nil, false)
	if tr.Err != nil || !strings.Contains(string(tr.Body), `"additionalProperties":false`) {
		t.Errorf("%v %s", tr.Err, tr.Body)
	}
}

// Tools of Responses are strict where nothing is said, as far as their schemas are.
func TestToolsOfResponsesAreStrict(t *testing.T) {
	tool := func(more, schema string) string {
		return respond + `,"tools":[{"type":"function","name":"f"` + more + `,"parameters":` + schema + `}]}`
	}
	const fits, optional = `{"type":"object","properties":{},"additionalProperties":false}`, `{"type":"object","properties":{"a":{}},"additionalProperties":false}`
	for body, want := range map[string]bool{
		tool(``, fits): true, tool(`,"strict":null`, fits): true, tool(`,"strict":true`, fits): true, tool(`,"strict":false`, fits): false, tool(``, optional): false, tool(``, `null`): false,
	} {
		for _, to := range []wire.Operation{wire.Chat, wire.Messages, wire.Converse} {
			tr := translateInto(t, wire.Responses, to, body, nil, false)
			if got := strings.Contains(string(tr.Body), `"strict":true`); tr.Err != nil || got != want {
				t.Errorf("%v: %s: %v %s", to, body, tr.Err, tr.Body)
			}
		}
	}
}

// The order that Gemini's clients want of properties is that of the schema elsewhere, whose
// backends write them as they stand.
func TestPropertiesKeepTheirOrder(t *testing.T) {
	body := configured(`"responseMimeType":"application/json","responseSchema":{"type":"OBJECT","propertyOrdering":["b","c"],"required":["a","b","c"],"properties":{"a":{"type":"OBJECT","propertyOrdering":["z","y"],"required":["y","z"],"properties":{"y":{"type":"STRING"},"z":{"type":"STRING"}}},"b":{"type":"STRING"},"c":{"type":"STRING"}}}`)
	for _, to := range []wire.Operation{wire.Chat, wire.Responses, wire.Messages} {
		tr := translateInto(t, wire.GenerateContent, to, body, nil, false)
		got, last := string(tr.Body), 0
		for _, name := range []string{`"b":{`, `"c":{`, `"a":{`, `"z":{`, `"y":{`} {
			at := strings.Index(got, name)
			if tr.Err != nil || at < last {
				t.Errorf("%v: %s at %d after %d: %v %s", to, name, at, last, tr.Err, got)
			}
			last = at
		}
	}
}

// A schema of Gemini's that may be null may be null elsewhere too, whatever else it says.
func TestNullStaysAllowed(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"STRING","nullable":true,"enum":["x","nullable"]}`:                `{"enum":["x","nullable",null],"type":["string","null"]}`,
		`{"type":"STRING","nullable":true,"enum":["x",null]}`:                      `{"enum":["x",null],"type":["string","null"]}`,
		`{"nullable":true,"anyOf":[{"type":"STRING"},{"type":"INTEGER"}]}`:         `{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"null"}]}`,
		`{"type":"STRING","enum":["x"]}`:                                           `{"enum":["x"],"type":"string"}`,
		`{"type":"OBJECT","properties":{"nullable":{"type":"STRING"}}}`:            `{"properties":{"nullable":{"type":"string"}},"type":"object"}`,
		`{"type":"OBJECT","property_ordering":["b"],"properties":{"a":{},"b":{}}}`: `{"properties":{"b":{},"a":{}},"type":"object"}`,
	} {
		if got := string(openAPISchema(jsontext.Value(in))); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", in, got, want)
		}
	}
}

// A model that is known not to reason is not asked for sealed reasoning, which it refuses.
func TestSealsAreAskedOfModelsThatReason(t *testing.T) {
	for thoughtless, want := range map[bool]string{false: `"include":["reasoning.encrypted_content","message.output_text.logprobs"]`, true: `"include":["message.output_text.logprobs"]`} {
		for _, likely := range []string{`,"logprobs":true}`, `}`} {
			body := chat + likely
			h, err := scan(wire.Chat, []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			tr := Translate(h, []byte(body), nil, wire.Responses, Options{Thoughtless: thoughtless})
			if likely == `}` {
				want = strings.Replace(strings.Replace(want, `,"message.output_text.logprobs"`, "", 1), `"message.output_text.logprobs"`, "", 1)
				if thoughtless {
					want = `"store":false}`
				}
			}
			if tr.Err != nil || !strings.Contains(string(tr.Body), want) {
				t.Errorf("%v: %v %s, want %s", thoughtless, tr.Err, tr.Body, want)
			}
		}
	}
}
