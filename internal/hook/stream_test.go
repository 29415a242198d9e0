package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"sluice/internal/egress"
	"sluice/internal/wire"
)

// redactingRun is a run of the built-in redaction of some kinds.
func redactingRun(op wire.Operation, kinds Kinds) *Run {
	x := New(Options{Dialer: egress.New(egress.Options{})})
	x.Use([]Spec{{Name: "pii", Redact: kinds, At: 1<<AtRequest | AnswerStages}})
	return x.Begin(Subject{ID: "req_1", Op: op, Stream: true}, []string{"pii"})
}

// script is what a stream brings, part by part, in an order that mixes its texts.
type script struct {
	op     wire.Operation
	events []string // data
}

// through is what a stream's hooks leave of it, event by event.
func (s script) through(t interface {
	Context() context.Context
	Fatal(...any)
}, r *Run,
) (out []byte) {
	st := r.Events(Reply{Status: 200})
	for _, data := range s.events {
		name := ""
		if s.op == wire.Messages || s.op == wire.Responses {
			var e struct{ Type string }
			_ = json.Unmarshal([]byte(data), &e)
			name = e.Type
		}
		part, err := st.Events(t.Context(), wire.AppendEvent(nil, name, []byte(data)))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, part...)
	}
	part, err := st.End(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.events) == 0 {
		return append(out, part...)
	}
	return out
}

// assembled joins the texts of a stream by what they are and by index, as a client does.
// Each event must be JSON in UTF-8.
func assembled(t interface{ Fatalf(string, ...any) }, op wire.Operation, stream []byte) map[string]string {
	out := map[string]string{}
	events := wire.NewEvents(bytes.NewReader(stream), 0)
	for {
		ev, err := events.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatalf("%v in %q", err, stream)
		}
		if string(ev.Data) == "[DONE]" || len(ev.Data) == 0 {
			continue
		}
		if !json.Valid(ev.Data) || !utf8.Valid(ev.Data) {
			t.Fatalf("%q is no JSON in UTF-8", ev.Data)
		}
		var e struct {
			ID      string
			Index   int
			Choices []struct {
				Index int
				Text  string
				Delta struct {
					Content          string
					ReasoningContent string `json:"reasoning_content"`
					ToolCalls        []struct {
						Index    int
						ID       string
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
			}
			Delta struct {
				Text, Thinking string
				PartialJSON    string `json:"partial_json"`
			}
		}
		if err := json.Unmarshal(ev.Data, &e); err != nil {
			t.Fatalf("%q: %v", ev.Data, err)
		}
		for _, c := range e.Choices {
			out[fmt.Sprint("content ", c.Index)] += c.Delta.Content + c.Text
			out[fmt.Sprint("reasoning ", c.Index)] += c.Delta.ReasoningContent
			for _, call := range c.Delta.ToolCalls {
				out[fmt.Sprintf("call %d %d", c.Index, call.Index)] += call.ID + call.Function.Name
				out[fmt.Sprintf("arguments %d %d", c.Index, call.Index)] += call.Function.Arguments
			}
			if e.ID != "c" {
				t.Fatalf("%q has no envelope", ev.Data)
			}
		}
		if op == wire.Messages {
			out[fmt.Sprint("content ", e.Index)] += e.Delta.Text
			out[fmt.Sprint("reasoning ", e.Index)] += e.Delta.Thinking
			out[fmt.Sprint("arguments ", e.Index)] += e.Delta.PartialJSON
		}
	}
}

// runes cuts a text into parts at characters' borders.
func runes(t *rapid.T, name, text string) (out []string) {
	all := []rune(text)
	for len(all) > 0 {
		n := rapid.IntRange(1, min(len(all), 12)).Draw(t, name)
		out = append(out, string(all[:n]))
		all = all[n:]
	}
	return out
}

// arguments is the arguments of a tool call, with what is to be found in them.
func arguments() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		m := map[string]any{}
		for _, k := range rapid.SliceOfN(rapid.SampledFrom([]string{"to", "card", "note", "a@example.com", "list"}), 0, 4).Draw(t, "keys") {
			switch rapid.IntRange(0, 3).Draw(t, "sort") {
			case 0:
				m[k] = textGen().Draw(t, "value")
			case 1:
				m[k] = rapid.SampledFrom([]any{4111111111111111, 12, -1.5e3, true, nil}).Draw(t, "number")
			case 2:
				m[k] = []any{textGen().Draw(t, "item"), map[string]any{"x": textGen().Draw(t, "deep")}}
			}
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(rapid.Bool().Draw(t, "html"))
		_ = e.Encode(m)
		text := strings.TrimSpace(b.String())
		if rapid.Bool().Draw(t, "ascii") {
			text = ascii(text)
		}
		return text
	})
}

// ascii writes what is beyond ASCII, and @, as escapes.
func ascii(s string) string {
	var out strings.Builder
	for _, r := range s {
		switch {
		case r == '@', r >= 0x80 && r < 0x10000:
			fmt.Fprintf(&out, `\u%04X`, r)
		case r >= 0x10000:
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// same reports whether two texts are the same JSON, or the same text where they are none.
func same(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return a == b
	}
	return fmt.Sprintf("%#v", x) == fmt.Sprintf("%#v", y)
}

func quote(s string) string {
	return `"` + string(escape(nil, []byte(s))) + `"`
}

// A stream of several texts that are cut anywhere and mixed gives, put together, what the
// redaction of each whole text gives; a call's id and name come once; every event is JSON.
func TestStreamIsAsItsWhole(t *testing.T) {
	for _, op := range []wire.Operation{wire.Chat, wire.Completions, wire.Messages} {
		t.Run(op.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { streamIsAsItsWhole(t, op) })
		})
	}
}

func streamIsAsItsWhole(t *rapid.T, op wire.Operation) {
	kinds := AllKinds
	contents := []string{textGen().Draw(t, "content 0"), textGen().Draw(t, "content 1")}
	args := []string{arguments().Draw(t, "arguments 0"), arguments().Draw(t, "arguments 1")}
	var lanes [][]string // events of each text, in order
	for i, c := range contents {
		var events []string
		for _, part := range runes(t, "cut", c) {
			switch op {
			case wire.Chat:
				events = append(events, fmt.Sprintf(`{"id":"c","object":"o","choices":[{"index":%d,"delta":{"content":%s},"finish_reason":null}]}`, i, quote(part)))
			case wire.Completions:
				events = append(events, fmt.Sprintf(`{"id":"c","object":"o","choices":[{"text":%s,"index":%d,"finish_reason":null}]}`, quote(part), i))
			case wire.Messages:
				events = append(events, fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":%s}}`, i, quote(part)))
			}
		}
		lanes = append(lanes, events)
	}
	for i, a := range args {
		var events []string
		for k, part := range runes(t, "cut", a) {
			switch op {
			case wire.Chat:
				id := ""
				if k == 0 {
					id = `"id":"call_1","type":"function",`
				}
				events = append(events, fmt.Sprintf(`{"id":"c","object":"o","choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,%s"function":{"arguments":%s}}]}}]}`, i, id, quote(part)))
			case wire.Messages:
				events = append(events, fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%s}}`, 2+i, quote(part)))
			}
		}
		if op != wire.Completions {
			lanes = append(lanes, events)
		}
	}
	s := script{op: op}
	for {
		var left []int
		for i, l := range lanes {
			if len(l) > 0 {
				left = append(left, i)
			}
		}
		if len(left) == 0 {
			break
		}
		i := rapid.SampledFrom(left).Draw(t, "next")
		s.events, lanes[i] = append(s.events, lanes[i][0]), lanes[i][1:]
	}
	switch op {
	case wire.Messages:
		for i := range 4 {
			s.events = append(s.events, fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
		}
		s.events = append(s.events, `{"type":"message_stop"}`)
	default:
		s.events = append(s.events, `{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, `{"id":"c","choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}`, "[DONE]")
	}
	r := redactingRun(op, kinds)
	got := assembled(t, op, s.through(t, r))
	for i, c := range contents {
		if want := redactWhole(kinds, c); got[fmt.Sprint("content ", i)] != want {
			t.Fatalf("content %d of %q:\n got %q\nwant %q", i, c, got[fmt.Sprint("content ", i)], want)
		}
	}
	if op == wire.Completions {
		return
	}
	for i, a := range args {
		var w whole
		var counts Counts
		want := string(spliced([]byte(a), w.findJSON(NewFinder(kinds), []byte(a), &counts)))
		name := fmt.Sprintf("arguments 0 %d", i)
		if op == wire.Messages {
			name = fmt.Sprint("arguments ", 2+i)
		} else if calls := got[fmt.Sprintf("call 0 %d", i)]; calls != "call_1" {
			t.Fatalf("call %d: %q", i, calls)
		}
		if !json.Valid([]byte(want)) || !same(got[name], want) {
			t.Fatalf("arguments %d of %s:\n got %s\nwant %s", i, a, got[name], want)
		}
	}
}

// Half of a surrogate pair in each of two events is a whole one for the client, and what is
// no text passes as it came.
func TestStreamLeavesTheRest(t *testing.T) {
	s := script{op: wire.Chat, events: []string{
		`{"id":"c","odd":[1, 2],"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"content":"x\ud835"}}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"content":"\udd1e y"},"logprobs":{"content":[{"token":"al"}]}}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"content":"z"},"finish_reason":"stop"}],"usage":{"n":1}}`,
		"[DONE]",
	}}
	out := string(s.through(t, redactingRun(wire.Chat, AllKinds)))
	want := `data: {"id":"c","odd":[1, 2],"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}

data: {"id":"c","choices":[{"index":0,"delta":{"content":"x\ud835"}}]}

data: {"id":"c","choices":[{"index":0,"delta":{"content":"\udd1e "},"logprobs":null}]}

data: {"id":"c","choices":[{"index":0,"delta":{"content":"yz"},"finish_reason":"stop"}],"usage":{"n":1}}

data: [DONE]

`
	if out != want {
		t.Errorf("got %s\nwant %s", out, want)
	}
}

// Reasoning that is held comes before the answer that follows it.
func TestReasoningComesFirst(t *testing.T) {
	s := script{op: wire.Chat, events: []string{
		`{"id":"c","choices":[{"index":0,"delta":{"reasoning_content":"I think"}}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"content":"So"}}]}`,
		"[DONE]",
	}}
	out := string(s.through(t, redactingRun(wire.Chat, AllKinds)))
	if i, j := strings.Index(out, `"reasoning_content":"think"`), strings.Index(out, `"content":"`); i < 0 || j < i {
		t.Errorf("got %s", out)
	}
}

// FuzzArguments: a document that is cut anywhere, whole JSON or not, leaves what is as much
// JSON.
func FuzzArguments(f *testing.F) {
	f.Add(`{"to":"alice@example.com","card":4111111111111111,"n":[1,-2.5e3,{"a":"\u0041\ud834\udd1e\n"}]}`, 7, 30)
	f.Add(`{"k":"unfinished \u00`, 3, 5)
	f.Add(`["\\","a\"b",""]`, 2, 4)
	f.Fuzz(func(t *testing.T, text string, a, b int) {
		if len(text) > 1<<12 || !utf8.ValidString(text) {
			return
		}
		n := len(text) + 1
		i, j := ((a%n)+n)%n, ((b%n)+n)%n
		if i > j {
			i, j = j, i
		}
		one := NewArgumentsRedactor(AllKinds)
		want := string(one.End(one.Push(nil, []byte(text))))
		r := NewArgumentsRedactor(AllKinds)
		out := r.Push(nil, []byte(text[:i]))
		out = r.Push(out, []byte(text[i:j]))
		out = r.End(r.Push(out, []byte(text[j:])))
		if string(out) != want {
			t.Fatalf("%q cut at %d, %d:\n got %q\nwant %q", text, i, j, out, want)
		}
		if json.Valid([]byte(text)) && !json.Valid(out) {
			t.Fatalf("%q becomes %q", text, out)
		}
		if json.Valid([]byte(text)) && one.Counts().sum() == 0 && !same(string(out), text) && !strings.Contains(text, "ud") {
			t.Fatalf("%q becomes %q, and nothing was found", text, out)
		}
	})
}

// BenchmarkStream is a stream of 64 events through the redaction.
func BenchmarkStream(b *testing.B) {
	var all [][]byte
	for i := range 64 {
		all = append(all, wire.AppendEvent(nil, "", fmt.Appendf(nil, `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" word%d"},"finish_reason":null}]}`, i)))
	}
	b.ReportAllocs()
	for b.Loop() {
		s := redactingRun(wire.Chat, AllKinds).Events(Reply{})
		for _, ev := range all {
			if _, err := s.Events(b.Context(), ev); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// Gemini's thoughts stand where its text does, and are a text of their own; a stream without
// a marker ends with its last event.
func TestThoughtsApart(t *testing.T) {
	s := script{op: wire.GenerateContent, events: []string{
		`{"candidates":[{"content":{"parts":[{"text":"mail al","thought":true}],"role":"model"},"index":0}],"responseId":"r"}`,
		`{"candidates":[{"content":{"parts":[{"text":"ice@example.com"}],"role":"model"},"index":0}],"responseId":"r"}`,
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"to":"bob@example.com"}}}],"role":"model"},"finishReason":"STOP","index":0}],"responseId":"r"}`,
	}}
	want := `data: {"candidates":[{"content":{"parts":[{"text":"mail ","thought":true}],"role":"model"},"index":0}],"responseId":"r"}

data: {"responseId":"r","candidates":[{"content":{"parts":[{"text":"al","thought":true}],"role":"model"},"index":0}]}

data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"index":0}],"responseId":"r"}

data: {"responseId":"r","candidates":[{"content":{"parts":[{"text":"[redacted:email]"}],"role":"model"},"index":0}]}

data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"to":"[redacted:email]"}}}],"role":"model"},"finishReason":"STOP","index":0}],"responseId":"r"}

`
	if got := string(s.through(t, redactingRun(wire.GenerateContent, AllKinds))); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
