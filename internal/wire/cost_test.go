package wire

import (
	"strings"
	"testing"

	"sluice"
)

// Amounts are read to the nano-dollar, in every form that JSON has for a number.
func TestReportedCost(t *testing.T) {
	for usage, want := range map[string]sluice.Nano{
		`"cost":0.00014925`:                      149_250,
		`"cost":1.4925e-04`:                      149_250,
		`"cost":"0.00014925"`:                    149_250,
		`"cost":0`:                               0,
		`"cost":12`:                              12 * sluice.Dollar,
		`"cost":0.1`:                             100_000_000,
		`"cost":0.0000000005`:                    0, // half to even
		`"cost":0.0000000015`:                    2,
		`"cost":0.00000000050000000000000000001`: 1,
		`"cost":123456.789012345`:                123_456_789_012_345,
		`"cost":0.01,"is_byok":false`:            10_000_000,
		`"cost":0.01,"cost_details":{"upstream_inference_cost":0.2},"is_byok":true`:  210_000_000,
		`"is_byok":true,"cost":0.01,"cost_details":{"upstream_inference_cost":null}`: -1,
		`"cost":null`:                       -1,
		`"cost":-0.1`:                       -1,
		`"cost":1e300`:                      -1,
		`"cost":1e-999999`:                  -1,
		`"cost":10000000`:                   -1,
		`"cost":"1/3"`:                      -1,
		`"cost":{"a":1}`:                    -1,
		`"other":1`:                         -1,
		`"cost":` + strings.Repeat("1", 65): -1,
	} {
		body := `{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,` + usage + `}}`
		tap := NewTap(Chat, TapOptions{})
		if _, err := tap.Body([]byte(body)); err != nil {
			if want == -1 {
				continue
			}
			t.Errorf("%s: %v", usage, err)
		}
		got, ok := tap.Cost()
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%s: got %d, %v, want %d", usage, got, ok, want)
		}
		stream := NewTap(Chat, TapOptions{})
		for _, data := range []string{`{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}`, strings.Replace(strings.Replace(body, `[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]`, `[]`, 1), "\n", "", -1)} {
			stream.Event(Event{Raw: []byte("data: " + data + "\n\n"), Data: []byte(data), dataAt: 6})
		}
		if streamed, sok := stream.Cost(); streamed != got || sok != ok {
			t.Errorf("%s: streamed %d, %v", usage, streamed, sok)
		}
	}
}
