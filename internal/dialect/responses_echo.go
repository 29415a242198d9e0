package dialect

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// responsesEchoes are the members of a request that the response repeats, with what is
// told where the request does not have them; empty is nothing.
var responsesEchoes = []struct{ name, otherwise string }{
	{"instructions", "null"},
	{"max_output_tokens", "null"},
	{"max_tool_calls", ""},
	{"metadata", "{}"},
	{"parallel_tool_calls", "true"},
	{"prompt_cache_key", ""},
	{"reasoning", `{"effort":null,"summary":null}`},
	{"safety_identifier", ""},
	{"temperature", "1"},
	{"text", `{"format":{"type":"text"}}`},
	{"tool_choice", `"auto"`},
	{"tools", "[]"},
	{"top_logprobs", ""},
	{"top_p", "1"},
	{"truncation", `"disabled"`},
	{"user", ""},
}

// responsesEcho is what the response to a request repeats of it, each member with a
// comma before it. It is held for as long as the answer lasts.
func responsesEcho(body []byte) []byte {
	have := map[string]jsontext.Value{}
	d := jsontext.NewDecoder(bytes.NewReader(body), lenient)
	if t, err := d.ReadToken(); err == nil && t.Kind() == '{' {
		for d.PeekKind() == '"' {
			name, _ := d.ReadToken() // it is a string
			key := name.String()
			if !repeats(key) {
				if d.SkipValue() != nil {
					break
				}
				continue
			}
			v, err := d.ReadValue()
			if err != nil {
				break
			}
			have[key] = v.Clone()
		}
	}
	var b []byte
	for _, e := range responsesEchoes {
		v := have[e.name]
		if null(v) {
			v = jsontext.Value(e.otherwise)
		} else {
			_ = v.Compact() // it has been read as JSON; a line of an event may not be broken
		}
		if len(v) > 0 {
			b = append(append(append(b, `,"`...), e.name...), `":`...)
			b = append(b, v...)
		}
	}
	return b
}

func repeats(name string) bool {
	for _, e := range responsesEchoes {
		if e.name == name {
			return true
		}
	}
	return false
}
