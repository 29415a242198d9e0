package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/wire"
)

// sse is a stream of events of the data that is given, each an OpenAI chunk's choice, or
// whole where it is an object with a type or candidates.
func sse(data ...string) []byte {
	var b []byte
	for _, d := range data {
		var of struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal([]byte(d), &of)
		b = wire.AppendEvent(b, of.Type, []byte(d))
	}
	return b
}

// deltas is a stream of an OpenAI backend whose chunks have these deltas, and which ends
// for a reason.
func deltas(finish string, all ...string) []byte {
	var b []byte
	for _, d := range all {
		b = wire.AppendEvent(b, "", fmt.Appendf(nil, `{"id":"id1","created":1700000000,"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":null}]}`, d))
	}
	b = wire.AppendEvent(b, "", fmt.Appendf(nil, `{"id":"id1","created":1700000000,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, finish))
	return wire.AppendEvent(b, "", []byte("[DONE]"))
}

// completed is an OpenAI backend's answer with a message, which ended for a reason.
func completed(finish, message string) []byte {
	return fmt.Appendf(nil, `{"id":"id1","created":1700000000,"model":"m","choices":[{"index":0,"message":%s,"finish_reason":%q}]}`, message, finish)
}

func naming() StreamOptions {
	return StreamOptions{Usage: func() sluice.Usage { return sluice.Usage{Input: 1, Output: 1} }, Now: made, ID: "req1", Model: "m"}
}

func streamed(t *testing.T, from, to wire.Operation, stream []byte) []byte {
	t.Helper()
	out, err := run(from, to, bytes.NewReader(stream), naming(), false)
	if err != nil {
		t.Fatalf("%v after %s", err, out)
	}
	wellFormed(t, rigs()[to], out)
	return out
}

func inFull(t *testing.T, from, to wire.Operation, body []byte) []byte {
	t.Helper()
	out, err := Whole(from, to, body, naming())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// callsOf are the calls of a message, in short.
func callsOf(m message) (out []string) {
	for _, c := range m.Content {
		if c["type"] == "tool_use" {
			out = append(out, fmt.Sprint(c["id"], " ", c["name"], c["input"]))
		}
	}
	return out
}

// Servers give parallel calls one index: another call is then one with another id, or,
// where there are none, a name after arguments that are whole. An id that each fragment
// has anew says nothing.
func TestCallsThatShareAnIndex(t *testing.T) {
	call := func(id, name, args string) string {
		c := map[string]any{"index": 0, "function": map[string]any{"name": name, "arguments": args}}
		if id != "" {
			c["id"] = id
		}
		return string(compact(obj{"tool_calls": []obj{c}}))
	}
	for _, tt := range []struct {
		name   string
		deltas []string
		want   []string
	}{
		{"whole calls", []string{call("a", "f", `{"p":"x"}`), call("b", "g", `{"q":"y"}`)}, []string{`a f{"p":"x"}`, `b g{"q":"y"}`}},
		{"the same tool twice", []string{call("a", "f", `{"p":"x"}`), call("b", "f", `{"p":"y"}`)}, []string{`a f{"p":"x"}`, `b f{"p":"y"}`}},
		{"in fragments", []string{call("a", "f", ""), call("", "", `{"p":`), call("", "", `1}`), call("b", "g", ""), call("", "", `{"q":2}`)}, []string{`a f{"p":1}`, `b g{"q":2}`}},
		{"without ids", []string{call("", "f", `{"p":1}`), call("", "g", `{"q":2}`)}, []string{`call_req1_0 f{"p":1}`, `call_req1_1 g{"q":2}`}},
		{"the same id and name in each fragment", []string{call("a", "f", ""), call("a", "f", `{"p":`), call("a", "f", `1}`)}, []string{`a f{"p":1}`}},
		{"another id in each fragment", []string{call("a", "f", `{"p":`), call("b", "", `1}`)}, []string{`a f{"p":1}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stream := deltas("tool_calls", tt.deltas...)
			if d := cmp.Diff(tt.want, callsOf(assembleMessage(t, streamed(t, wire.Chat, wire.Messages, stream)))); d != "" {
				t.Errorf("to messages: %s", d)
			}
			for _, to := range []wire.Operation{wire.Responses, wire.GenerateContent} {
				out := string(streamed(t, wire.Chat, to, stream))
				for _, want := range tt.want {
					id, _, _ := strings.Cut(want, " ")
					if !strings.Contains(out, `"`+id+`"`) {
						t.Errorf("to %s: %s is not in %s", to, id, out)
					}
				}
			}
		})
	}
}

// Likewise where blocks and items have an index.
func TestBlocksThatShareAnIndex(t *testing.T) {
	want := []string{`a f{"p":1}`, `b g{}`}
	frame := func(kind, payload string) []byte {
		return wire.AppendFrame(nil, []wire.FrameHeader{{Name: ":event-type", Value: kind}, {Name: ":content-type", Value: "application/json"}, {Name: ":message-type", Value: "event"}}, []byte(payload))
	}
	frames := bytes.Join([][]byte{
		frame("messageStart", `{"role":"assistant"}`),
		frame("contentBlockStart", `{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"a","name":"f"}}}`),
		frame("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"toolUse":{"input":"{\"p\":1}"}}}`),
		frame("contentBlockStart", `{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"b","name":"g"}}}`),
		frame("contentBlockStop", `{"contentBlockIndex":0}`),
		frame("messageStop", `{"stopReason":"tool_use"}`),
		frame("metadata", `{"usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}`),
	}, nil)
	if d := cmp.Diff(want, callsOf(assembleMessage(t, streamed(t, wire.Converse, wire.Messages, frames)))); d != "" {
		t.Errorf("of converse: %s", d)
	}
	item := `"item":{"type":"function_call","id":"fc_%[1]s","call_id":"%[1]s","name":"%[2]s","arguments":"%[3]s"}`
	events := sse(
		`{"type":"response.created","response":{"id":"r","model":"m","created_at":1,"status":"in_progress"}}`,
		`{"type":"response.output_item.added","output_index":0,`+fmt.Sprintf(item, "a", "f", "")+`}`,
		`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"p\":1}"}`,
		`{"type":"response.output_item.done","output_index":0,`+fmt.Sprintf(item, "a", "f", `{\"p\":1}`)+`}`,
		`{"type":"response.output_item.added","output_index":0,`+fmt.Sprintf(item, "b", "g", "")+`}`,
		`{"type":"response.output_item.done","output_index":0,`+fmt.Sprintf(item, "b", "g", "{}")+`}`,
		`{"type":"response.completed","response":{"id":"r","model":"m","created_at":1,"status":"completed","usage":{"input_tokens":1,"output_tokens":1}}}`,
	)
	if d := cmp.Diff(want, callsOf(assembleMessage(t, streamed(t, wire.Responses, wire.Messages, events)))); d != "" {
		t.Errorf("of responses: %s", d)
	}
}

// Mistral's models reason in parts of the content.
func TestReasoningInParts(t *testing.T) {
	thinking := `{"content":[{"type":"thinking","thinking":[{"type":"text","text":"th"},{"type":"text","text":"ought"}]}]}`
	stream := deltas("stop", thinking, `{"content":[{"type":"text","text":"h"}]}`, `{"content":"i"}`)
	whole := completed("stop", `{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"thought"}]},{"type":"text","text":"hi"}]}`)
	for _, c := range codecs {
		if c == &openai || c.parseRequest == nil || c.newWriter == nil {
			continue
		}
		r := rigs()[c.op]
		got, want := r.assemble(t, streamed(t, wire.Chat, c.op, stream)), r.whole(t, inFull(t, wire.Chat, c.op, whole))
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("to %s: whole and streamed differ: %s", c.op, d)
		}
		if s := fmt.Sprint(want); !strings.Contains(s, "thought") || !strings.Contains(s, "hi") {
			t.Errorf("to %s: %s", c.op, s)
		}
	}
}

// An answer that refuses in words has ended as it meant to: clients read the words, and
// take content_filter for a failure.
func TestRefusalInWordsIsAStop(t *testing.T) {
	said := `{"id":"m1","type":"message","status":"completed","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`
	response := `{"id":"r","object":"response","model":"m","created_at":1,"status":"completed","output":[` + said + `],"usage":{"input_tokens":1,"output_tokens":1}}`
	stream := sse(
		`{"type":"response.created","response":{"id":"r","model":"m","created_at":1,"status":"in_progress"}}`,
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m1","content":[]}}`,
		`{"type":"response.refusal.delta","output_index":0,"delta":"no"}`,
		`{"type":"response.output_item.done","output_index":0,"item":`+said+`}`,
		`{"type":"response.completed","response":`+response+`}`,
	)
	for how, got := range map[string]completion{
		"whole":    assembledCompletion(t, inFull(t, wire.Responses, wire.Chat, []byte(response))),
		"streamed": assembleCompletion(t, streamed(t, wire.Responses, wire.Chat, stream)),
	} {
		if got.Refusal != "no" || got.Finish != "stop" {
			t.Errorf("%s: refusal %q, finish reason %q", how, got.Refusal, got.Finish)
		}
	}
	filtered := []byte(`{"id":"x","model":"m","content":[{"type":"text","text":"I"}],"stop_reason":"refusal","usage":{}}`)
	if got := assembledCompletion(t, inFull(t, wire.Messages, wire.Chat, filtered)); got.Finish != "content_filter" {
		t.Errorf("without words: finish reason %q, want content_filter", got.Finish)
	}
}

// Calls without an id have one that no other answer has, also where answers have none.
func TestMadeCallIDsDiffer(t *testing.T) {
	gemini := []byte(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]},"finishReason":"STOP"}],"modelVersion":"m"}`)
	chat := completed("tool_calls", `{"tool_calls":[{"type":"function","function":{"name":"f","arguments":"{}"}}]}`)
	for from, body := range map[wire.Operation][]byte{wire.GenerateContent: gemini, wire.Chat: chat} {
		ids := map[string]bool{}
		for _, request := range []string{"req1", "req2"} {
			o := naming()
			o.ID = request
			whole, err := Whole(from, wire.Messages, body, o)
			if err != nil {
				t.Fatal(err)
			}
			stream := wire.AppendEvent(nil, "", body)
			if from == wire.Chat {
				stream = deltas("tool_calls", `{"tool_calls":[{"index":0,"type":"function","function":{"name":"f","arguments":"{}"}}]}`)
			}
			out, err := run(from, wire.Messages, bytes.NewReader(stream), o, false)
			if err != nil {
				t.Fatal(err)
			}
			got, want := callsOf(assembleMessage(t, out)), callsOf(assembledMessage(t, whole))
			if d := cmp.Diff(want, got); d != "" || len(want) != 1 {
				t.Fatalf("of %s: whole and streamed differ: %s", from, d)
			}
			ids[want[0]] = true
		}
		if len(ids) != 2 {
			t.Errorf("of %s: two answers have the ids %v", from, ids)
		}
	}
}

// Of several signatures of a block the last counts, as in the provider's own clients, and
// a block that is not ended has its one too.
func TestLastSignatureCounts(t *testing.T) {
	begin := []string{
		`{"type":"message_start","message":{"id":"m1","model":"m","usage":{"input_tokens":1,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"th"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"first"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"anthropic:second"}}`,
	}
	end := []string{`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}`, `{"type":"message_stop"}`}
	for how, between := range map[string][]string{"ended": {`{"type":"content_block_stop","index":0}`}, "not ended": nil} {
		events := append(append(append([]string{}, begin...), between...), end...)
		got := assembleCompletion(t, streamed(t, wire.Messages, wire.Chat, sse(events...)))
		if len(got.Details) != 1 || got.Details[0]["signature"] != "anthropic:second" || got.Details[0]["text"] != "th" {
			t.Errorf("%s: %v", how, got.Details)
		}
	}
}
