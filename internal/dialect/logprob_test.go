package dialect

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/wire"
)

// genLogprobs are those of a text, cut into tokens anywhere between its runes.
func genLogprobs(t *rapid.T, s string, top bool) (out []Logprob) {
	figure := rapid.SampledFrom([]string{"-0.25", "0", "-1e-05", "-9999.0", "-3.1415926"})
	for _, token := range cuts(t, s) {
		l := Logprob{Token: token, Logprob: jsontext.Value(figure.Draw(t, "figure"))}
		if top {
			l.Top = []Logprob{{Token: token, Logprob: l.Logprob}, {Token: "other", Logprob: jsontext.Value("-20")}}
		}
		out = append(out, l)
	}
	return out
}

// piece is one of a text that is streamed, and what is told of its tokens.
type piece struct {
	text string
	list []Logprob
}

// pieces are a text as it is streamed: cut anywhere, or where its tokens begin.
func pieces(t *rapid.T, p *Part) (out []piece) {
	if len(p.Logprobs) == 0 {
		for _, s := range cuts(t, p.Text) {
			out = append(out, piece{text: s})
		}
		return out
	}
	for list := p.Logprobs; len(list) > 0; {
		n := rapid.IntRange(1, min(3, len(list))).Draw(t, "tokens of an event")
		s := piece{list: list[:n]}
		for _, l := range s.list {
			s.text += l.Token
		}
		out, list = append(out, s), list[n:]
	}
	return out
}

// asJSON is what a function appends, decoded.
func asJSON[T any](t fataler, b []byte) (v T) {
	decode(t, b, &v)
	return v
}

// crossed is an answer of chat in another dialect and in chat again, and what the other
// made of it.
func crossed(t *testing.T, by wire.Operation, answer string) (there, back []byte) {
	t.Helper()
	o := StreamOptions{Now: made, Usage: func() sluice.Usage { return sluice.Usage{} }}
	there, err := Whole(wire.Chat, by, []byte(answer), o)
	if err != nil {
		t.Fatal(err)
	}
	if back, err = Whole(by, wire.Chat, there, o); err != nil {
		t.Fatal(err)
	}
	return there, back
}

// Log probabilities cross between chat, Responses and Gemini and come back: the bytes of
// a token are those of its text where a dialect does not tell them.
func TestLogprobsCross(t *testing.T) {
	const list = `[{"token":"hé","logprob":-0.25,"bytes":[104,195,169],"top_logprobs":[{"token":"ho","logprob":-2,"bytes":[104,111]}]},{"token":"y","logprob":-0.75,"bytes":[121],"top_logprobs":[]}]`
	const answer = `{"id":"c","model":"m","created":1,"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"héy"},"logprobs":{"content":` + list + `,"refusal":null}}]}`
	for by, want := range map[wire.Operation]string{
		wire.Responses:       `"logprobs":[{"token":"hé","logprob":-0.25,"bytes":[104,195,169],"top_logprobs":[{"token":"ho","logprob":-2,"bytes":[104,111]}]},{"token":"y","logprob":-0.75,"bytes":[121],"top_logprobs":[]}]`,
		wire.GenerateContent: `"logprobsResult":{"chosenCandidates":[{"token":"hé","logProbability":-0.25},{"token":"y","logProbability":-0.75}],"topCandidates":[{"candidates":[{"token":"ho","logProbability":-2}]},{"candidates":[]}]},"avgLogprobs":-0.5`,
	} {
		there, back := crossed(t, by, answer)
		if !strings.Contains(string(there), want) {
			t.Errorf("%v: %s", by, there)
		}
		if want := `"logprobs":{"content":` + list + `,"refusal":null}`; !strings.Contains(string(back), want) {
			t.Errorf("by %v: got %s, want %s", by, back, want)
		}
	}
}

// Log probabilities are asked for in every dialect that has them.
func TestLogprobsAreAskedFor(t *testing.T) {
	for _, tt := range []struct {
		from, to wire.Operation
		in, want string
	}{
		{wire.Chat, wire.GenerateContent, chat + `,"logprobs":true}`, `"generationConfig":{"responseLogprobs":true}`},
		{wire.Chat, wire.GenerateContent, chat + `,"logprobs":true,"top_logprobs":3}`, `"generationConfig":{"responseLogprobs":true,"logprobs":3}`},
		{wire.Responses, wire.GenerateContent, `{"model":"m","input":"x","top_logprobs":3}`, `"generationConfig":{"responseLogprobs":true,"logprobs":3}`},
		{wire.GenerateContent, wire.Chat, configured(`"responseLogprobs":true,"logprobs":3`), `"logprobs":true,"top_logprobs":3`},
		{wire.GenerateContent, wire.Chat, configured(`"responseLogprobs":true`), `"logprobs":true}`},
		{wire.GenerateContent, wire.Responses, configured(`"responseLogprobs":true,"logprobs":3`), `"include":["reasoning.encrypted_content","message.output_text.logprobs"],"top_logprobs":3`},
	} {
		got := translateInto(t, tt.from, tt.to, tt.in, nil, false)
		if got.Err != nil || !strings.Contains(string(got.Body), tt.want) {
			t.Errorf("%v by %v: got %s %v, want %s", tt.from, tt.to, got.Body, got.Err, tt.want)
		}
	}
}

// What Gemini says beside the tokens of texts: numbers of tokens, figures that JSON has
// no number for, and tokens that come before their text or without one.
func TestGeminiLogprobsOfItsOwn(t *testing.T) {
	event := func(parts, tokens, more string) string {
		return `data: {"candidates":[{"content":{"parts":[` + parts + `],"role":"model"},"index":0,"logprobsResult":{"chosenCandidates":[` + tokens + `]}` + more + `}],"responseId":"r","modelVersion":"m","usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2}}` + "\n\n"
	}
	const a, b, c = `{"token":"a","tokenId":7,"logProbability":"-Infinity"}`, `{"token":"b","logProbability":-1}`, `{"token":"c"}`
	const call = `{"functionCall":{"id":"i","name":"f","args":{}}}`
	stop := `,"finishReason":"STOP"`
	for _, tt := range []struct {
		name, stream, whole string
		content             any
	}{
		{
			"before their text", event(`{"text":"t","thought":true}`, a, "") + event(`{"text":"bc"}`, b+`,`+c, stop),
			event(`{"text":"t","thought":true},{"text":"bc"}`, a+`,`+b+`,`+c, stop), "bc",
		},
		{"without a text", event(call, a+`,`+b, "") + event(``, c, stop), event(call, a+`,`+b+`,`+c, stop), nil},
	} {
		o := StreamOptions{Told: true, Now: made, Usage: func() sluice.Usage { return sluice.Usage{} }}
		stream, err := run(wire.GenerateContent, wire.Chat, strings.NewReader(tt.stream), o, false)
		if err != nil {
			t.Fatal(err)
		}
		body := strings.TrimSpace(strings.TrimPrefix(tt.whole, "data: "))
		whole, err := Whole(wire.GenerateContent, wire.Chat, []byte(body), o)
		if err != nil {
			t.Fatal(err)
		}
		want := asJSON[[]any](t, []byte(`[{"token":"a","logprob":-9999.0,"bytes":[97],"top_logprobs":[]},{"token":"b","logprob":-1,"bytes":[98],"top_logprobs":[]},{"token":"c","logprob":0,"bytes":[99],"top_logprobs":[]}]`))
		for how, got := range map[string]completion{"whole": assembledCompletion(t, whole), "streamed": assembleCompletion(t, stream)} {
			if d := cmp.Diff(want, got.Logprobs); d != "" {
				t.Errorf("%s, %s: %s", tt.name, how, d)
			}
		}
		var seen struct {
			Choices []struct{ Message struct{ Content any } }
		}
		if err := json.Unmarshal(whole, &seen); err != nil || seen.Choices[0].Message.Content != tt.content {
			t.Errorf("%s: %s %v", tt.name, whole, err)
		}
	}
}
