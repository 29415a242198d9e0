package hook

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"sluice/internal/wire"
)

// Every operation that makes a model produce output, and that a client can ask for, has a
// row: a tenant with hooks could not use it else. Add it to rows.
func TestEveryOperationHasARow(t *testing.T) {
	for op := range wire.Operation(wire.NumOperations) {
		if op == wire.Converse { // of backends alone: hooks look on the client's side
			continue
		}
		if op == wire.Responses { // refused to requests with hooks, since its events repeat their texts in several forms
			continue
		}
		if op.Generates() && !Reads(op) {
			t.Errorf("%v has no row", op)
		}
		if p := planOf(op); p != nil && op.Streams() && len(p.deltas) == 0 {
			t.Errorf("%v streams, and its row has no stream", op)
		}
	}
}

const (
	chatBody = `{"model":"m","messages":[{"role":"system","content":"Mail \u0061lice@example.com"},{"role":"user","content":[{"type":"text","text":"my card: 4111 1111 1111 1111"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},
 {"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"to\":\"bob\\u0040example.com\",\"bob@example.com\":4111111111111111}"}}]}],"metadata":{"x":"carol@example.com"}}`
	messagesBody = `{"model":"m","max_tokens":5,"system":[{"type":"text","text":"alice@example.com"}],"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"bob@example.com"}},
 {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"carol@example.com"}]}]},
 {"role":"assistant","content":[{"type":"thinking","thinking":"dave@example.com","signature":"s"},{"type":"tool_use","id":"t","name":"n","input":{"to":["erin@example.com"],"n":4111111111111111}}]}]}`
)

// What is redacted of a request, and what is left alone.
func TestRequestDocuments(t *testing.T) {
	for _, tt := range []struct {
		op        wire.Operation
		body      string
		gone, has []string
	}{
		{wire.Chat, chatBody, []string{"lice@", "4111", `bob\\u0040`}, []string{
			`"content":"Mail [redacted:email]"`, `my card: [redacted:card]`, `data:image/png;base64,AAAA`,
			`"{\"to\":\"[redacted:email]\",\"bob@example.com\":0}"`, `"carol@example.com"`,
		}},
		{wire.Messages, messagesBody, []string{"alice", "bob", "carol", "erin", "4111"}, []string{`"data":"AAAA"`, "dave@example.com", `"input":{"to":["[redacted:email]"],"n":0}`}},
		{wire.CountTokens, messagesBody, []string{"alice"}, nil},
		{wire.Completions, `{"model":"m","prompt":["a alice@example.com","b"]}`, []string{"alice"}, []string{`["a [redacted:email]","b"]`}},
		{wire.Embeddings, `{"model":"m","input":"alice@example.com"}`, []string{"alice"}, []string{`"input":"[redacted:email]"`}},
	} {
		r := redactingRun(tt.op, AllKinds)
		out, err := r.Request(t.Context(), []byte(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range tt.gone {
			if strings.Contains(string(out), s) {
				t.Errorf("%v: %q is in %s", tt.op, s, out)
			}
		}
		for _, s := range tt.has {
			if !strings.Contains(string(out), s) {
				t.Errorf("%v: %q is not in %s", tt.op, s, out)
			}
		}
		if _, err := wire.Scan(tt.op, out); err != nil {
			t.Errorf("%v: %v: %s", tt.op, err, out)
		}
	}
}

// A body without anything to redact is the very bytes that came.
func TestNothingFoundNothingChanged(t *testing.T) {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"hello \u00e9"}]}`)
	out, err := redactingRun(wire.Chat, AllKinds).Request(t.Context(), body)
	if err != nil || &out[0] != &body[0] || len(out) != len(body) {
		t.Errorf("%s, %v", out, err)
	}
}

// An operation that hooks cannot read is refused to those who have any.
func TestUnreadIsRefused(t *testing.T) {
	r := redactingRun(wire.Models, AllKinds)
	if _, err := r.Request(t.Context(), []byte(`{}`)); err == nil {
		t.Error("it passed")
	}
}

// Edits of a text, mapped to its literal, are what they were to the text: for any escapes.
func TestEditsOfLiterals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := textGen().Draw(t, "text")
		literal := string(escape(nil, []byte(text)))
		if rapid.Bool().Draw(t, "ascii") {
			literal = ascii(literal)
		}
		if got := string(unquote(nil, []byte(literal))); got != text {
			t.Fatalf("%s is %q, want %q", literal, got, text)
		}
		var edits []Edit
		at := 0
		for range rapid.IntRange(0, 3).Draw(t, "edits") {
			start := border(text, rapid.IntRange(at, len(text)).Draw(t, "start"))
			end := border(text, rapid.IntRange(start, len(text)).Draw(t, "end"))
			edits = append(edits, Edit{start, end, []byte(rapid.SampledFrom([]string{"", "x", "\"é\n"}).Draw(t, "with"))})
			at = end
		}
		want := string(spliced([]byte(text), edits))
		got := spliced([]byte(literal), rawEdits([]byte(literal), edits))
		if back := string(unquote(nil, got)); back != want || !json.Valid([]byte(`"`+string(got)+`"`)) {
			t.Fatalf("%s with %v is %s, that is %q, want %q", literal, edits, got, back, want)
		}
	})
}

func border(s string, i int) int {
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return i
}

// FuzzDocument: what is JSON stays JSON, and a request that the gateway takes it takes
// redacted too.
func FuzzDocument(f *testing.F) {
	f.Add(chatBody)
	f.Add(messagesBody)
	f.Add(`{"model":"m","messages":[{"content":{"a":[1,{"b":"c"}]}}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		if len(body) > 1<<13 {
			return
		}
		for _, op := range []wire.Operation{wire.Chat, wire.Messages, wire.Completions} {
			if _, err := wire.Scan(op, []byte(body)); err != nil {
				continue
			}
			out, err := redactingRun(op, AllKinds).Request(t.Context(), []byte(body))
			if err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			if _, err := wire.Scan(op, out); err != nil {
				t.Fatalf("%s\nbecomes %s: %v", body, out, err)
			}
		}
		r := redactingRun(wire.Chat, AllKinds)
		out, err := r.Answer(t.Context(), Reply{}, []byte(body))
		if json.Valid([]byte(body)) && (err != nil || !json.Valid(out)) {
			t.Fatalf("%s becomes %s, %v", body, out, err)
		}
	})
}
