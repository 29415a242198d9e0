package dialect

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"sluice/internal/route"
	"sluice/internal/wire"
)

// genRequest is a request of features that both dialects keep.
var genRequest = rapid.Custom(func(t *rapid.T) *Request {
	word := rapid.SampledFrom([]string{"x", "Zürich\n", "日本\"語\\", "🙂", "</tag>", "{\"a\":1}"})
	text := func() Part { return Part{Kind: TextPart, Text: word.Draw(t, "text")} }
	user := func() []Part {
		parts := []Part{text()}
		for range rapid.IntRange(0, 2).Draw(t, "more parts") {
			parts = append(parts, rapid.SampledFrom([]Part{
				{Kind: ImagePart, Media: Media{Type: "image/png", Data: "AAAA"}},
				{Kind: ImagePart, Media: Media{URL: "https://example.com/a.png?b=c&d"}},
				{Kind: DocumentPart, Media: Media{Type: "application/pdf", Data: "BBBB", Title: "a.pdf"}},
				{Kind: DocumentPart, Media: Media{URL: "https://example.com/a", Title: "b.pdf"}},
				{Kind: TextPart, Text: "more"},
			}).Draw(t, "part"))
		}
		return parts
	}
	r := &Request{
		Model: "m", Stream: rapid.Bool().Draw(t, "stream"), MaxOutput: int64(rapid.IntRange(1, 9000).Draw(t, "bound")),
		Stop: rapid.SliceOfN(rapid.SampledFrom([]string{"END", "\nHuman:"}), 0, 2).Draw(t, "stop"),
		User: rapid.SampledFrom([]string{"", "u1"}).Draw(t, "user"), Standard: rapid.Bool().Draw(t, "standard"),
		Effort: rapid.SampledFrom([]string{"", "low", "medium", "high", "xhigh", "max"}).Draw(t, "effort"),
	}
	for range rapid.IntRange(0, 2).Draw(t, "instructions") {
		r.System = append(r.System, text())
	}
	r.Messages = append(r.Messages, Message{Role: User, Parts: user()})
	for i := range rapid.IntRange(0, 2).Draw(t, "turns") {
		answer := Message{Role: Assistant, Parts: []Part{text()}}
		next := Message{Role: User, Parts: user()}
		for j := range rapid.IntRange(0, 2).Draw(t, "calls") {
			id := fmt.Sprintf("call_%d_%d", i, j)
			answer.Parts = append(answer.Parts, Part{Kind: CallPart, Call: Call{id, "f", rapid.SampledFrom([]string{`{}`, `{"a":"日本","b":[1,2]}`}).Draw(t, "arguments")}})
			result := Result{ID: id, Parts: []Part{text()}}
			if rapid.Bool().Draw(t, "several texts") {
				result.Parts = append(result.Parts, text())
			}
			next.Parts = append([]Part{{Kind: ResultPart, Result: result}}, next.Parts...)
		}
		r.Messages = append(r.Messages, answer, next)
	}
	if rapid.Bool().Draw(t, "tools") {
		r.Tools = []Tool{{Name: "f", Description: "d", Schema: jsontext.Value(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`), Strict: rapid.Bool().Draw(t, "strict")}}
		r.Choice = rapid.SampledFrom([]Choice{{}, {Kind: ChoiceAuto}, {Kind: ChoiceNone}, {Kind: ChoiceAny}, {Kind: ChoiceOne, Name: "f"}}).Draw(t, "choice")
		if r.Choice.Kind == ChoiceAuto && r.Tools[0].Strict || r.Choice.Kind == ChoiceAny {
			r.Choice.Only = rapid.SampledFrom([][]string{nil, {"f", "g"}}).Draw(t, "only")
		}
		for _, name := range r.Choice.Only[min(1, len(r.Choice.Only)):] {
			r.Tools = append(r.Tools, Tool{Name: name, Description: "d", Schema: r.Tools[0].Schema, Strict: r.Tools[0].Strict})
		}
		r.Serial = r.Choice.Kind > ChoiceNone && rapid.Bool().Draw(t, "one at a time")
	}
	if rapid.Bool().Draw(t, "sampling") {
		r.Temperature, r.TopP = jsontext.Value("0.25"), jsontext.Value("0.9")
	}
	if rapid.Bool().Draw(t, "log probabilities") {
		r.ask(FeatureLogprobs, "", jsontext.Value("true"))
		if rapid.Bool().Draw(t, "of others too") {
			r.ask(FeatureLogprobs, "", jsontext.Value("3"))
		}
	}
	if rapid.Bool().Draw(t, "format") {
		r.Format = &Format{Name: "response", Schema: jsontext.Value(`{"type":"object","additionalProperties":false}`)}
	}
	return r
})

// fetched is a part with the bytes of what it names by URL, for dialects that take them
// alone.
func (p *Part) fetched() {
	switch m := &p.Media; {
	case m.URL == "":
	case p.Kind == DocumentPart:
		*m = Media{Type: "application/pdf", Data: "DDDD", Title: m.Title}
	default:
		*m = Media{Type: "image/webp", Data: "CCCC"}
	}
}

// meaning is a request without what only says how it was written.
func meaning(t fataler, op wire.Operation, body []byte) *Request {
	r, err := codecOf(op).parseRequest(body)
	if err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	if r.Format != nil && r.Format.Name == "" {
		r.Format.Name = "response" // what it is called where it has no name
	}
	r.Echo = nil
	var turns []Message
	for _, m := range r.Messages { // turns of one side are one turn
		if n := len(turns); n > 0 && turns[n-1].Role == m.Role {
			turns[n-1].Parts = append(turns[n-1].Parts, m.Parts...)
			continue
		}
		turns = append(turns, m)
	}
	r.Messages = turns
	if r.Choice.Kind == ChoiceNone && !slices.ContainsFunc(r.Tools, func(t Tool) bool { return t.Description != "" || string(t.Schema) != noParameters }) {
		r.Tools, r.Choice = nil, Choice{} // of calls that stand in the history, for a dialect that wants them declared
	}
	return r
}

// noParameters is the schema of a tool of which nothing is known.
const noParameters = `{"type":"object","properties":{}}`

// back is a translated request in its own dialect again.
func (p couple) back(t fataler, there *Translation) []byte {
	own := p.client.codec
	if p.backend.parse != nil {
		return own.emitRequest(nil, p.backend.parse(t, there.Body), &reporter{from: own, to: own})
	}
	back := Translate(there.Head, there.Body, nil, own.op, Options{})
	if back.Err != nil || len(back.Report) > 0 {
		t.Fatalf("%s: %v %v", there.Body, back.Err, back.Report)
	}
	return back.Body
}

// A request of what the table keeps comes back from the other dialect with its
// meaning, and asks for nothing that was not asked for.
func TestRequestsComeBack(t *testing.T) {
	for _, p := range pairs() {
		t.Run(p.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				own, other := p.client.codec, p.backend.codec
				r := genRequest.Draw(t, "request")
				for _, side := range []*rig{p.client, p.backend} {
					if side.keeps != nil {
						side.keeps(r)
					}
				}
				first := own.emitRequest(nil, r, &reporter{from: own, to: own})
				h, err := wire.ScanIn(own.op, first, wire.InPath{Model: r.Model, Stream: r.Stream})
				if err != nil {
					t.Fatalf("%v in %s", err, first)
				}
				there := Translate(h, first, nil, other.op, Options{})
				if there.Err != nil || len(there.Report) > 0 {
					t.Fatalf("%s: %v %v", first, there.Err, there.Report)
				}
				back := p.back(t, there)
				want, got := meaning(t, own.op, first), meaning(t, own.op, back)
				if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(Request{}, Message{}, Part{}, Tool{}, Format{}), cmpopts.IgnoreFields(Message{}, "Plain"), cmpopts.IgnoreFields(Result{}, "Plain")); d != "" {
					t.Fatalf("%s\n%s\n%s\n%s", d, first, there.Body, back)
				}
				if n := there.Head.Needs &^ (h.Needs | route.NeedTools); n != 0 {
					t.Fatalf("%s needs %v, which %s does not", there.Body, n, first)
				}
			})
		})
	}
}

// What the two dialects write differently.
func TestRequestShapes(t *testing.T) {
	long := strings.Repeat("u", 65)
	for _, tt := range []struct {
		name, in, want string
		op             wire.Operation
	}{
		{
			"tool results of a turn are one message, first, and their ids fit", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[{"id":"a b","type":"function","function":{"name":"f","arguments":""}}]},{"role":"tool","tool_call_id":"a b","content":"1"},{"role":"user","content":"y"}]}`,
			`{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"call_c8687a08aa5d6ed2044328fa","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_c8687a08aa5d6ed2044328fa","content":"1"}]},{"role":"user","content":"y"}],"tools":[{"name":"f","input_schema":{"type":"object","properties":{}}}],"tool_choice":{"type":"none"}}`, wire.Chat,
		},
		{
			"a tool without parameters takes an empty object", chat + `,"tools":[{"type":"function","function":{"name":"f"}}],"parallel_tool_calls":false}`,
			`{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"f","input_schema":{"type":"object","properties":{}}}],"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`, wire.Chat,
		},
		{
			"results come before what the user says to them", called(`{"type":"tool_use","id":"c","name":"f","input":{"a":1}}`, `{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"1"},{"type":"text","text":"2"}]},{"type":"text","text":"y"}`),
			`{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"1"},{"type":"text","text":"2"}]},{"role":"user","content":[{"type":"text","text":"y"}]}],"max_completion_tokens":9}`, wire.Messages,
		},
		{
			"a label that is too long is hashed", asked + `,"metadata":{"user_id":"` + long + `"}}`,
			`{"model":"m","messages":[{"role":"user","content":"x"}],"max_completion_tokens":9,"user":"` + userLabel(long) + `"}`, wire.Messages,
		},
	} {
		got := translate(t, tt.op, tt.in, nil, false)
		if got.Err != nil || string(got.Body) != tt.want {
			t.Errorf("%s:\ngot  %s %v\nwant %s", tt.name, got.Body, got.Err, tt.want)
		}
	}
	if len(userLabel(long)) != maxUser {
		t.Errorf("a hashed label has %d bytes", len(userLabel(long)))
	}
}

// Losses keep as much as they can: what becomes of them under warn.
func TestApproximations(t *testing.T) {
	for _, tt := range []struct {
		name, in, want string
		op             wire.Operation
	}{
		{
			"instructions within the conversation are moved before it", openaiTells[FeatureWithin].body,
			`{"model":"m","max_tokens":100,"system":"s","messages":[{"role":"user","content":"x"},{"role":"user","content":"y"}]}`, wire.Chat,
		},
		{
			"an image in a result is the user's", anthropicTells[FeatureResultMedia].body,
			`{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"r"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}],"max_completion_tokens":9}`, wire.Messages,
		},
		{
			"an error says so", anthropicTells[FeatureResultError].body,
			`{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"Error: r"}],"max_completion_tokens":9}`, wire.Messages,
		},
		{
			"a budget becomes an effort", anthropicTells[FeatureBudget].body,
			`{"model":"m","messages":[{"role":"user","content":"x"}],"max_completion_tokens":9,"reasoning_effort":"medium"}`, wire.Messages,
		},
		{
			"a document of text becomes a text", anthropicTells[FeatureDocumentText].body,
			`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"max_completion_tokens":9}`, wire.Messages,
		},
		{
			"a mark lasts", openaiTells[FeatureCache].body,
			`{"model":"m","max_tokens":100,"messages":[{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}]}`, wire.Chat,
		},
	} {
		got := translate(t, tt.op, tt.in, nil, true)
		if got.Err != nil || string(got.Body) != tt.want || len(got.Report) == 0 {
			t.Errorf("%s:\ngot  %s %v\nwant %s", tt.name, got.Body, got.Err, tt.want)
		}
	}
}
