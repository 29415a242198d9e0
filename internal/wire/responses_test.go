package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/route"
)

func TestScanResponses(t *testing.T) {
	h := mustScan(t, Responses, `{"model":"m","instructions":"Be brief.","input":[{"role":"user","content":[{"type":"input_text","text":"Hi"},
		{"type":"input_image","image_url":"https://example.com/a.png","detail":"low"}]},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"abc"},
		{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"42"}],
		"stream":true,"max_output_tokens":100,"tools":[{"type":"function","name":"f","parameters":{}},{"type":"web_search"}],"max_tool_calls":3,"parallel_tool_calls":true,
		"text":{"format":{"type":"json_schema","name":"n","schema":{}}},"reasoning":{"effort":"low"},"include":["message.output_text.logprobs"],"user":"u"}`)
	type facts struct {
		Stream, Has, Store, Background bool
		Max                            sluice.Tokens
		Param, User                    string
		Messages, Tools, Server        int
		Uses, Searches                 int64
		Needs                          route.Needs
	}
	want := facts{
		true, true, true, false, 100, "max_output_tokens", "u", 4, 2, 1, 3, 3,
		route.NeedStream | route.NeedImage | route.NeedMediaURL | route.NeedTools | route.NeedParallel | route.NeedServerTools | route.NeedJSONSchema | route.NeedReasoning | route.NeedLogprobs,
	}
	got := facts{h.Stream, h.HasMaxOutput, h.Store, h.Background, h.MaxOutput, h.MaxParam, h.User, h.Messages, h.Tools, h.ServerTools, h.ServerUses, h.Searches, h.Needs}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if h.Estimate <= 0 || h.Bound < h.Estimate || !h.Unbounded {
		t.Errorf("estimate %d, bound %d, unbounded %v", h.Estimate, h.Bound, h.Unbounded)
	}
}

// What a provider keeps is named, and is of no size that the body tells.
func TestScanResponsesState(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m","input":"x"}`: "",
		`{"model":"m","input":"x","previous_response_id":null,"store":false}`:                      "",
		`{"model":"m","input":"x","previous_response_id":"resp_1"}`:                                "response resp_1",
		`{"model":"m","conversation":{"id":"conv_1"}}`:                                             "conversation conv_1",
		`{"model":"m","input":[{"type":"item_reference","id":"msg_1"}]}`:                           "item",
		`{"model":"m","input":[{"type":"message","id":"msg_1","role":"assistant","content":"a"}]}`: "",
	} {
		h := mustScan(t, Responses, body)
		got := ""
		for _, s := range h.Refs {
			got += s.Kind.String() + " " + s.ID
		}
		if h.Items {
			got = "item"
		}
		if got != want || h.Unbounded != (want != "") || h.Store == strings.Contains(body, "false") {
			t.Errorf("%s: refers to %q, unbounded %v, store %v", body, got, h.Unbounded, h.Store)
		}
	}
	for body, want := range map[string]string{
		`{"model":"m","input":"x","max_output_tokens":0}`: "max_output_tokens",
		`{"model":"m","input":7}`:                         "input",
		`{"model":"m","input":["x"]}`:                     "input",
		`{"model":"m","input":"x","Max_Output_Tokens":7}`: "max_output_tokens",
		`{"model":"m","input":"x","background":1}`:        "background",
	} {
		if _, err := Scan(Responses, []byte(body)); sluice.AsError(err).Param != want {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}

// A bound is lowered or put in under its own name, and usage is not asked for: it comes
// unasked.
func TestSpliceResponses(t *testing.T) {
	for _, tt := range []struct{ body, want, changed string }{
		{`{"model":"m","input":"x","stream":true}`, `{"model":"n","max_output_tokens":50,"input":"x","stream":true}`, "max_output_tokens=50"},
		{`{"model":"m","max_output_tokens":99}`, `{"model":"n","max_output_tokens":50}`, "max_output_tokens=50"},
		{`{"model":"m","max_output_tokens":9}`, `{"model":"n","max_output_tokens":9}`, ""},
	} {
		h := mustScan(t, Responses, tt.body)
		e := Edit{Model: "n", MaxOutput: 50, IncludeUsage: true, LegacyMaxTokens: true}
		if got := string(h.Splice([]byte(tt.body), e)); got != tt.want || h.Changed(e) != tt.changed {
			t.Errorf("%s: got %s, %s", tt.body, got, h.Changed(e))
		}
	}
}
