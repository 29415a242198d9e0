package wire

import (
	"errors"
	"testing"

	"sluice"
)

// What is wrong with a request is told where its client wrote it, and a name that has an
// underscore of its own is none that is written in another way.
func TestGeminiPaths(t *testing.T) {
	for body, want := range map[string]string{
		`{"contents":[],"systemInstruction":"be brief"}`:            "systemInstruction",
		`{"contents":[],"system_instruction":{"parts":"be brief"}}`: "systemInstruction.parts",
		`{"contents":["x"]}`: "contents",
		`{"contents":[],"generationConfig":{"response_JsonSchema":{}}}`:                            "generationConfig.responseJsonSchema",
		`{"contents":[],"generationConfig":{"_responseJsonSchema":{"type":"object"}}}`:             "",
		`{"contents":[],"generationConfig":{"_response_json_schema":{"type":"object"}}}`:           "",
		`{"contents":[],"generationConfig":{"_responseJsonSchema":{},"_response_json_schema":{}}}`: "generationConfig._responseJsonSchema",
	} {
		_, err := ScanIn(GenerateContent, []byte(body), InPath{Model: "m"})
		got := ""
		if e, ok := errors.AsType[*sluice.Error](err); ok {
			got = e.Param
		}
		if got != want || (err == nil) != (want == "") {
			t.Errorf("%s: %v at %q, want %q", body, err, got, want)
		}
	}
}
