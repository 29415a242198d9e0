package dialect

import (
	"strings"
	"testing"

	"sluice/internal/wire"
)

// Some of the tools in each dialect that can say so: those that may be called, those of
// which one must be, and the one that must be.
func TestChoiceAmongTools(t *testing.T) {
	const (
		chatTools = `,"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}},{"type":"function","function":{"name":"h"}}]`
		geminis   = `,"tools":[{"functionDeclarations":[{"name":"f"},{"name":"g"},{"name":"h"}]}]`
	)
	among := func(mode, names string) string {
		return chat + chatTools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"` + mode + `","tools":[` + names + `]}}}`
	}
	one, two := `{"type":"function","function":{"name":"f"}}`, `{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}`
	for _, tt := range []struct {
		from, to wire.Operation
		in, want string
	}{
		{wire.Chat, wire.GenerateContent, among("required", two), `"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f","g"]}`},
		{wire.Chat, wire.GenerateContent, among("required", one), `"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}`},
		{wire.Chat, wire.GenerateContent, among("auto", one), `"functionCallingConfig":{"mode":"VALIDATED","allowedFunctionNames":["f"]}`},
		{wire.Chat, wire.Responses, among("auto", two), `"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"},{"type":"function","name":"g"}]}`},
		{wire.Chat, wire.Responses, among("required", one), `"tool_choice":{"type":"function","name":"f"}`},
		{wire.Responses, wire.Chat, respond + `,"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]}}`, `"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}}]}}`},
		{wire.GenerateContent, wire.Chat, said + geminis + `,"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f","g"]}}}`, `"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}]}}`},
		{wire.GenerateContent, wire.Messages, said + geminis + `,"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["g"]}}}`, `"tool_choice":{"type":"tool","name":"g"}`},
	} {
		got := translateInto(t, tt.from, tt.to, tt.in, nil, false)
		if got.Err != nil || !strings.Contains(string(got.Body), tt.want) {
			t.Errorf("%v into %v: %v\ngot  %s\nwant %s", tt.from, tt.to, got.Err, got.Body, tt.want)
		}
	}
	for _, odd := range []string{`{"type":"custom","custom":{"name":"f"}}`, `{"type":"mcp","server_label":"s"}`} {
		if got := translateInto(t, wire.Chat, wire.Responses, among("auto", one+","+odd), nil, true); got.Err == nil || got.Err.Param != "tool_choice" {
			t.Errorf("with %s: got %v", odd, got.Err)
		}
	}
}

// A cache mark of a message lasts as long at Bedrock.
func TestCacheMarksLast(t *testing.T) {
	in := asked[:len(asked)-1] + `,{"role":"assistant","content":"a"},{"role":"user","content":[{"type":"text","text":"b","cache_control":{"type":"ephemeral","ttl":"5m"}}]}],"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral","ttl":"1h"}}],"tools":[{"name":"f","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral","ttl":"1h"}}]}`
	got := translateInto(t, wire.Messages, wire.Converse, in, nil, false)
	if got.Err != nil || len(got.Report) > 0 {
		t.Fatalf("got %v, %v", got.Err, got.Report)
	}
	for _, want := range []string{
		`"system":[{"text":"s"},{"cachePoint":{"type":"default","ttl":"1h"}}]`, `{"text":"b"},{"cachePoint":{"type":"default"}}`,
		`{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object"}}}},{"cachePoint":{"type":"default","ttl":"1h"}}`,
	} {
		if !strings.Contains(string(got.Body), want) {
			t.Errorf("%s lacks %s", got.Body, want)
		}
	}
}
