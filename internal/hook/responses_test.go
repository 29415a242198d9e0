package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/wire"
)

// responsesScript is the events of a response with a reasoning summary, a text and a call.
func responsesScript(summary, text, args []string) script {
	s := script{op: wire.Responses}
	event := func(kind, rest string) {
		s.events = append(s.events, fmt.Sprintf(`{"type":"%s","sequence_number":%d%s}`, kind, len(s.events), rest))
	}
	q := func(v string) string { b, _ := json.Marshal(v); return string(b) }
	join := func(parts []string) string { return q(strings.Join(parts, "")) }
	reasoning := `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":` + join(summary) + `}]}`
	message := `{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":` + join(text) + `,"annotations":[],"logprobs":[]}]}`
	call := `{"id":"fc_1","type":"function_call","call_id":"c","name":"f","arguments":` + join(args) + `}`
	event("response.created", `,"response":{"id":"resp_1","output":[]}`)
	event("response.output_item.added", `,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}`)
	for _, p := range summary {
		event("response.reasoning_summary_text.delta", `,"item_id":"rs_1","output_index":0,"summary_index":0,"delta":`+q(p))
	}
	event("response.reasoning_summary_text.done", `,"item_id":"rs_1","output_index":0,"summary_index":0,"text":`+join(summary))
	event("response.output_item.done", `,"output_index":0,"item":`+reasoning)
	event("response.output_item.added", `,"output_index":1,"item":{"id":"msg_1","type":"message","content":[]}`)
	for _, p := range text {
		event("response.output_text.delta", `,"item_id":"msg_1","output_index":1,"content_index":0,"delta":`+q(p)+`,"logprobs":[{"token":"4111","logprob":-1}]`)
	}
	event("response.output_text.done", `,"item_id":"msg_1","output_index":1,"content_index":0,"text":`+join(text)+`,"logprobs":[]`)
	event("response.content_part.done", `,"item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":`+join(text)+`}`)
	event("response.output_item.done", `,"output_index":1,"item":`+message)
	for _, p := range args {
		event("response.function_call_arguments.delta", `,"item_id":"fc_1","output_index":2,"delta":`+q(p))
	}
	event("response.function_call_arguments.done", `,"item_id":"fc_1","output_index":2,"arguments":`+join(args))
	event("response.output_item.done", `,"output_index":2,"item":`+call)
	event("response.completed", `,"response":{"id":"resp_1","status":"completed","output":[`+reasoning+`,`+message+`,`+call+`]}`)
	return s
}

// responseRead is what a client makes of a stream: each text in parts, and each place where
// it is told whole.
type responseRead struct {
	parts map[string]string
	whole map[string][]string
	bad   string
}

// readResponse reads a stream of which all events are there, or those behind a number.
func readResponse(stream []byte, first int) (r responseRead) {
	r.parts, r.whole = map[string]string{}, map[string][]string{}
	events := wire.NewEvents(bytes.NewReader(stream), 0)
	type item struct {
		Type      string
		Content   []struct{ Text string }
		Summary   []struct{ Text string }
		Arguments string
	}
	tell := func(it item) {
		for _, c := range it.Content {
			r.whole["text"] = append(r.whole["text"], c.Text)
		}
		for _, c := range it.Summary {
			r.whole["summary"] = append(r.whole["summary"], c.Text)
		}
		if it.Type == "function_call" {
			r.whole["arguments"] = append(r.whole["arguments"], it.Arguments)
		}
	}
	for n := first; ; n++ {
		ev, err := events.Next()
		if err == io.EOF {
			return r
		}
		var e struct {
			Type      string
			Sequence  int     `json:"sequence_number"`
			Item      string  `json:"item_id"`
			Index     int     `json:"output_index"`
			Delta     string  `json:"delta"`
			Text      *string `json:"text"`
			Arguments *string `json:"arguments"`
			Part      struct{ Text *string }
			Own       item `json:"item"`
			Logprobs  json.RawMessage
			Response  struct{ Output []item }
		}
		if err := json.Unmarshal(ev.Data, &e); err != nil {
			r.bad = fmt.Sprintf("%q: %v", ev.Data, err)
			return r
		}
		if e.Sequence != n || string(ev.Name) != e.Type {
			r.bad = fmt.Sprintf("event %d is numbered %d and named %s: %s", n, e.Sequence, ev.Name, ev.Data)
			return r
		}
		kind := map[string]string{
			"response.output_text": "text", "response.reasoning_summary_text": "summary", "response.function_call_arguments": "arguments",
		}[strings.TrimSuffix(strings.TrimSuffix(e.Type, ".delta"), ".done")]
		switch {
		case strings.HasSuffix(e.Type, ".delta"):
			r.parts[kind] += e.Delta
			if want := map[string]string{"text": "msg_1", "summary": "rs_1", "arguments": "fc_1"}[kind]; e.Item != want {
				r.bad = fmt.Sprintf("%s is of no item", ev.Data)
			}
			if kind == "text" && string(e.Logprobs) != "[]" {
				r.bad = fmt.Sprintf("%s repeats the text", ev.Data)
			}
		case e.Text != nil:
			r.whole[kind] = append(r.whole[kind], *e.Text)
		case e.Arguments != nil:
			r.whole[kind] = append(r.whole[kind], *e.Arguments)
		case e.Part.Text != nil:
			r.whole["text"] = append(r.whole["text"], *e.Part.Text)
		}
		tell(e.Own)
		for _, it := range e.Response.Output {
			tell(it)
		}
	}
}

// However the texts of a response are cut into events, what its parts come to is the
// redaction of the whole, every event that tells it again tells the same, and the events
// are numbered one by one; also where a client goes on behind one of them.
func TestResponsesStreamIsRedacted(t *testing.T) {
	texts := []string{"mail bob@example.com or 4111 1111 1111 1111", "nothing", "card 4111111111111111", "x@example.com", ""}
	rapid.Check(t, func(t *rapid.T) {
		text, summary := rapid.SampledFrom(texts).Draw(t, "text"), rapid.SampledFrom(texts).Draw(t, "summary")
		args := arguments().Draw(t, "arguments")
		s := responsesScript(runes(t, "summary part", summary), runes(t, "text part", text), runes(t, "argument part", args))
		out := s.through(t, redactingRun(wire.Responses, AllKinds))
		r := readResponse(out, 0)
		if r.bad != "" {
			t.Fatal(r.bad)
		}
		f := NewFinder(AllKinds)
		for kind, was := range map[string]string{"text": text, "summary": summary} {
			var counts Counts
			if want := string(spliced([]byte(was), matches(f, []byte(was), &counts))); r.parts[kind] != want {
				t.Fatalf("%s: %q, want %q", kind, r.parts[kind], want)
			}
		}
		for kind, all := range r.whole {
			for _, w := range all {
				if kind == "arguments" && !sameJSON(w, r.parts[kind]) || kind != "arguments" && w != r.parts[kind] {
					t.Fatalf("%s is told again as %q, its parts are %q", kind, w, r.parts[kind])
				}
			}
		}
		after := rapid.IntRange(0, bytes.Count(out, []byte("\n\n"))-1).Draw(t, "after")
		st := redactingRun(wire.Responses, AllKinds).Events(Reply{Status: 200})
		st.After(int64(after))
		var rest []byte
		for _, data := range s.events {
			var e struct{ Type string }
			_ = json.Unmarshal([]byte(data), &e)
			part, err := st.Events(t.Context(), wire.AppendEvent(nil, e.Type, []byte(data)))
			if err != nil {
				t.Fatal(err)
			}
			rest = append(rest, part...)
		}
		if !bytes.HasSuffix(out, rest) || bytes.Count(rest, []byte("\n\n")) != bytes.Count(out, []byte("\n\n"))-after-1 {
			t.Fatalf("behind %d: %s\nof %s", after, rest, out)
		}
	})
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && fmt.Sprint(x) == fmt.Sprint(y)
}

// The texts of a request are redacted, those of a whole answer too, and of items that are
// listed.
func TestResponsesDocuments(t *testing.T) {
	const secret = "bob@example.com"
	for _, tt := range []struct {
		op   wire.Operation
		at   Stage
		body string
		n    int
	}{
		{wire.Responses, AtRequest, `{"instructions":"S","input":"S"}`, 2},
		{wire.Responses, AtRequest, `{"input":[{"role":"user","content":[{"type":"input_text","text":"S"},{"type":"input_image","image_url":"S"}]},{"type":"function_call","arguments":"{\"a\":\"S\"}"},{"type":"function_call_output","output":"S"},{"type":"custom_tool_call","input":"S"},{"type":"reasoning","summary":[{"text":"S"}],"encrypted_content":"S"}],"tools":[{"type":"function","name":"S","description":"S"}],"metadata":{"x":"S"}}`, 6},
		{wire.Responses, AtCommit, `{"id":"resp_1","instructions":"S","output":[{"type":"message","content":[{"type":"output_text","text":"S","logprobs":[{"token":"S"}]}]},{"type":"function_call","arguments":"{\"a\":\"S\"}"},{"type":"web_search_call","action":{"query":"S"}}]}`, 3},
		{wire.ResponseGet, AtCommit, `{"output":[{"content":[{"text":"S"}]}]}`, 1},
		{wire.ResponseItems, AtCommit, `{"data":[{"id":"msg_1","content":[{"text":"S"}]}]}`, 1},
		{wire.ResponseDelete, AtCommit, `{"id":"S","deleted":true}`, 0},
	} {
		r := redactingRun(tt.op, AllKinds)
		out, err := r.Try(t.Context(), tt.at, []byte(strings.ReplaceAll(tt.body, "S", secret)))
		if got := strings.Count(string(out), "[redacted:email]"); err != nil || got != tt.n || !json.Valid(out) {
			t.Errorf("%v at %v: %d of %d, %v: %s", tt.op, tt.at, got, tt.n, err, out)
		}
	}
}
