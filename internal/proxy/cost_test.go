package proxy

import (
	"strings"
	"testing"

	"sluice"
)

// What a provider says that an answer has cost is charged where its operator says so, of
// answers that came whole, to the nano-dollar, and by the client's dialect and without;
// else prices say.
func TestReportedCost(t *testing.T) {
	const usage = `"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"cost":1.4925e-4,"is_byok":false,"cost_details":{"upstream_inference_cost":null}}`
	whole := `{"id":"c1","object":"chat.completion","created":1,"model":"up","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],` + usage + `}`
	stream := "data: " + `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"up","choices":[{"index":0,"delta":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}` + "\n\n" +
		"data: " + `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"up","choices":[],` + usage + `}` + "\n\ndata: [DONE]\n\n"
	cut := stream[:strings.Index(stream, `"choices":[]`)]
	for _, tt := range []struct {
		name     string
		reported bool
		ask      ask
		answer   string
		status   int
		cost     sluice.Nano
		version  string
	}{
		{"whole", true, ask{body: aChat + `}`}, whole, 200, 149_250, "reported"},
		{"streamed", true, ask{body: aChat + `,"stream":true}`}, stream, 200, 149_250, "reported"},
		{"of another dialect", true, ask{path: messagesAt, body: aMessage + `}`}, whole, 200, 149_250, "reported"},
		{"not told", true, ask{body: aChat + `}`}, strings.Replace(whole, `"cost":1.4925e-4`, `"cost":null`, 1), 200, 9*1000 + 2*2000, "v1"},
		{"cut", true, ask{body: aChat + `,"stream":true}`}, cut, 200, -1, "v1"},
		{"prices", false, ask{body: aChat + `}`}, whole, 200, 9*1000 + 2*2000, "v1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := answers(200, tt.answer)
			if strings.HasPrefix(tt.answer, "data:") {
				h = inPieces(tt.answer, 1<<20)
			}
			inBubble(t, setup{places: []place{{handler: h, reported: tt.reported}}}, func(t *testing.T, r *rig) {
				if g := r.do(tt.ask); g.status != tt.status {
					t.Errorf("got %d %s", g.status, g.body)
				}
				e := r.last().Final
				if tt.cost >= 0 && (e.Cost != tt.cost || e.CostHigh != tt.cost) || e.PriceVersion != tt.version || strings.Contains(string(e.Detail), `"rates"`) == (tt.version == "reported") {
					t.Errorf("charged %v (%v) at %s, want %v at %s: %s", e.Cost, e.CostHigh, e.PriceVersion, tt.cost, tt.version, e.Detail)
				}
			})
		})
	}
}
