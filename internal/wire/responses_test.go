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
		`{"model":"m","input":[{"type":"message","id":"msg_1","role":"assistant","content":"a"}]}`: "",
	} {
		h := mustScan(t, Responses, body)
		var named []string
		for _, s := range h.Refs {
			named = append(named, s.Kind.String()+" "+s.ID)
		}
		got := strings.Join(named, ", ")
		if got != want || h.Unbounded != (want != "") || h.Store == strings.Contains(body, "false") {
			t.Errorf("%s: refers to %q, unbounded %v, store %v", body, got, h.Unbounded, h.Store)
		}
	}
	for body, want := range map[string]string{
		`{"model":"m","input":"x","max_output_tokens":0}`:                                                      "max_output_tokens",
		`{"model":"m","input":7}`:                                                                              "input",
		`{"model":"m","input":["x"]}`:                                                                          "input",
		`{"model":"m","input":"x","Max_Output_Tokens":7}`:                                                      "max_output_tokens",
		`{"model":"m","input":"x","background":1}`:                                                             "background",
		`{"model":"m","input":[{"type":"item_reference","id":7}]}`:                                             "input",
		`{"model":"m","input":[{"id":"msg 1"}]}`:                                                               "input",
		`{"model":"m","input":[{"type":"item_reference","id":"` + strings.Repeat("x", maxStateID+1) + `"}]}`:   "input",
		`{"model":"m","input":[{"type":"item_reference","id":"` + strings.Repeat("x", 6*maxStateID+1) + `"}]}`: "input",
	} {
		if _, err := Scan(Responses, []byte(body)); sluice.AsError(err).Param != want {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}

// An item stands for one that the provider has where it has an id and does not say itself
// what it is read by.
func TestScanItems(t *testing.T) {
	for item, want := range map[string]string{
		`{"type":"item_reference","id":"msg_1"}`:                             "msg_1",
		`{"id":"fc_1"}`:                                                      "fc_1",
		`{"type":null,"id":"m\u0073g_1"}`:                                    "msg_1",
		`{"id":"msg_1","content":"a"}`:                                       "msg_1",
		`{"id":"msg_1","type":"item_reference","role":"user","content":"a"}`: "msg_1",
		`{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[ ]}`:              "msg_1",
		`{"type":"reasoning","id":"rs_1","summary":[]}`:                                                      "rs_1",
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":null}`:                             "rs_1",
		`{"type":"reasoning","id":"rs_0123456789abcdef0123","summary":[{"type":"summary_text","text":"t"}]}`: "rs_0123456789abcdef0123",
		`{"type":"web_search_call","id":"ws_1","status":"completed"}`:                                        "ws_1",
		`{"type":"image_generation_call","id":"ig_1","status":"completed","result":null}`:                    "ig_1",

		`{"role":"assistant","id":"msg_1","content":"a"}`:                                                               "",
		`{"type":"message","role":"assistant","id":"msg_1","content":[{"type":"output_text","text":"a"}]}`:              "",
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"ZQ=="}`:                                      "",
		`{"type":"reasoning","id":"rs_0123456789abcdef","summary":[],"content":[{"type":"reasoning_text","text":"t"}]}`: "",
		`{"type":"reasoning","id":"rs_chatcmpl-1_0","summary":[{"type":"summary_text","text":"t"}]}`:                    "",
		`{"type":"reasoning","summary":[]}`:                                                                             "",
		`{"type":"reasoning","id":null,"summary":[]}`:                                                                   "",
		`{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}"}`:                                "",
		`{"type":"function_call_output","id":"fco_1","call_id":"c","output":""}`:                                        "",
		`{"type":"image_generation_call","id":"ig_1","result":"aGk="}`:                                                  "",
		`{"type":"web_search_call","id":"ws_1","action":{"type":"search","query":"q"}}`:                                 "",
		`{"type":"message","role":"user","id":7,"content":"a"}`:                                                         "",
	} {
		h := mustScan(t, Responses, `{"model":"m","input":[{"role":"user","content":"x"},`+item+`]}`)
		var got []route.State
		if want != "" {
			got = []route.State{{Kind: route.StateItem, ID: want}}
		}
		if d := cmp.Diff(got, h.Refs); d != "" || h.Unbounded != (want != "") {
			t.Errorf("%s: %s, unbounded %v", item, d, h.Unbounded)
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
