package fakellm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// toolCall is a call that the answer makes.
type toolCall struct{ id, name, args string }

func wantsTools(in *body) bool {
	if len(in.Tools) == 0 || bytes.Contains(in.ToolChoice, []byte("none")) || len(in.Messages) == 0 {
		return false
	}
	last := in.Messages[len(in.Messages)-1]
	return last.Role != "tool" && !bytes.Contains(last.Content, []byte("tool_result"))
}

// callsFor makes two parallel calls, or one where the request forbids two.
func callsFor(sf surface, in *body) []toolCall {
	type spec struct {
		Name        string          `json:"name"`
		InputSchema json.RawMessage `json:"input_schema"`
		Parameters  json.RawMessage `json:"parameters"` // of Responses
		Function    struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	}
	var specs []spec
	for _, raw := range in.Tools {
		var t spec
		if json.Unmarshal(raw, &t) != nil {
			continue
		}
		if t.Function.Name != "" {
			t.Name, t.InputSchema = t.Function.Name, t.Function.Parameters
		}
		if t.InputSchema == nil {
			t.InputSchema = t.Parameters
		}
		if t.Name != "" {
			specs = append(specs, t)
		}
	}
	if len(specs) == 0 {
		return nil
	}
	n := 2
	if in.Parallel != nil && !*in.Parallel || bytes.Contains(in.ToolChoice, []byte(`"disable_parallel_tool_use":true`)) {
		n = 1
	}
	prefix := "call_"
	if sf.anthropic() {
		prefix = "toolu_"
	}
	if sf == surfaceConverse {
		prefix = "tooluse_"
	}
	var calls []toolCall
	for i := range n {
		t := specs[i%len(specs)]
		calls = append(calls, toolCall{
			id:   fmt.Sprintf("%s%016x", prefix, mix(uint64(i)+uint64(len(t.Name)))),
			name: t.Name, args: arguments(t.InputSchema, i),
		})
	}
	return calls
}

// arguments fills a JSON schema's first properties, in order of name.
func arguments(schema json.RawMessage, i int) string {
	var s struct {
		Properties map[string]struct {
			Type string            `json:"type"`
			Enum []json.RawMessage `json:"enum"`
		} `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return "{}"
	}
	out := map[string]any{}
	words := strings.Fields(latinWords)
	for name, p := range s.Properties {
		if len(out) == 8 {
			break
		}
		switch {
		case len(p.Enum) > 0:
			out[name] = p.Enum[0]
		case p.Type == "integer" || p.Type == "number":
			out[name] = 7 + i
		case p.Type == "boolean":
			out[name] = true
		case p.Type == "array":
			out[name] = []string{}
		case p.Type == "object":
			out[name] = map[string]any{}
		default:
			out[name] = words[(len(name)*7+i*31)%len(words)] + " " + words[(len(name)+i)%len(words)]
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		return "{}"
	}
	return string(b)
}
