package wire

import "testing"

// What is passed on has the dialect's form, and its own bytes where it had it.
func TestRefusalBody(t *testing.T) {
	for _, tt := range []struct {
		name    string
		dialect Dialect
		status  int
		body    string
		want    string // empty: as it came
	}{
		{"OpenAI", OpenAI, 400, `{"error":{"message":"m","type":"t","param":null,"code":null},"x":[1]}`, ""},
		{"vLLM", OpenAI, 400, `{"error":{"message":"m","type":"BadRequestError","param":null,"code": 400}}`, `{"error":{"message":"m","type":"BadRequestError","param":null,"code": "400"}}`},
		{"SGLang", OpenAI, 400, `{"object":"error","message":"m","type":"BadRequestError","param":null,"code":400}`, `{"error":{"message":"m","type":"BadRequestError","param":null,"code":"400"}}`},
		{"Ollama", OpenAI, 404, `{"error":"model \"x\" not found"}`, `{"error":{"message":"model \"x\" not found","type":"invalid_request_error","param":null,"code":null}}`},
		{"TGI", OpenAI, 422, `{"error":"Input validation error: m","error_type":"validation"}`, `{"error":{"message":"Input validation error: m","type":"validation","param":null,"code":null}}`},
		{
			"Mistral", OpenAI, 422,
			`{"detail":[{"type":"extra_forbidden","loc":["body","tools",0,"x"],"msg":"Extra inputs are not permitted","input":1},{"loc":["body","n"],"msg":"Input should be 1"}]}`,
			`{"error":{"message":"tools.0.x: Extra inputs are not permitted; n: Input should be 1","type":"invalid_request_error","param":null,"code":null}}`,
		},
		{
			"Mistral, wrapped", OpenAI, 422,
			`{"object":"error","message":{"detail":[{"loc":["body","messages"],"msg":"Field required"}]},"type":"invalid_request_error","param":null,"code":null}`,
			`{"error":{"message":"messages: Field required","type":"invalid_request_error","param":null,"code":null}}`,
		},
		{"a page", OpenAI, 404, `<html>`, `{"error":{"message":"Not Found","type":"invalid_request_error","param":null,"code":null}}`},
		{"cut short", OpenAI, 400, `{"error":{"message":"half`, `{"error":{"message":"Bad Request","type":"invalid_request_error","param":null,"code":null}}`},
		{"Anthropic", Anthropic, 400, `{"type":"error","error":{"type":"invalid_request_error","message":"m"},"request_id":"r"}`, ""},
		{"Ollama's messages", Anthropic, 400, `{"error":"m"}`, `{"type":"error","error":{"type":"invalid_request_error","message":"m"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == "" {
				tt.want = tt.body
			}
			r := Refused(tt.dialect, tt.status, nil, []byte(tt.body))
			if got := string(r.Body(tt.dialect, []byte(tt.body))); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
