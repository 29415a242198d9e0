package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/wire"
)

var made = time.Unix(1_700_000_000, 0)

// genAnswer is an answer that a backend can give.
func genAnswer(of *rig) *rapid.Generator[*Answer] {
	return rapid.Custom(func(t *rapid.T) *Answer {
		words := rapid.SampledFrom([]string{"a", "Zürich", "日本語", "🙂🙃", "a\"b\\c\n", "\u2028", "<tag>&", " ", "content", "x\ty", "{\"a\":1}", "role"})
		text := func(what string, least int) string {
			return strings.Join(rapid.SliceOfN(words, least, 6).Draw(t, what), "")
		}
		a := &Answer{ID: "id1", Model: "m", Created: made.Unix()}
		for range rapid.IntRange(0, 2).Draw(t, "thoughts") {
			p := Part{Kind: ReasoningPart, Text: text("thought", 1)}
			if of.signs {
				p.Signature = rapid.SampledFrom([]string{"c2ln", ""}).Draw(t, "signature")
			}
			a.Parts = append(a.Parts, p)
			if of.single {
				break
			}
		}
		if of.signs && rapid.Bool().Draw(t, "redacted") {
			a.Parts = append(a.Parts, Part{Kind: RedactedPart, Signature: "c2VhbGVk"})
		}
		texts := rapid.IntRange(0, 2).Draw(t, "texts")
		if of.single {
			texts = min(texts, 1)
		}
		likely := of.likely && rapid.Bool().Draw(t, "log probabilities")
		top := likely && rapid.Bool().Draw(t, "of others too")
		for range texts {
			p := Part{Kind: TextPart, Text: text("text", 1)}
			if likely {
				p.Logprobs = genLogprobs(t, p.Text, top)
			}
			a.Parts = append(a.Parts, p)
		}
		a.Stop.Reason = rapid.SampledFrom(of.stops).Draw(t, "stop")
		if a.Stop.Reason == StopSequence {
			a.Stop.Sequence = "END"
		}
		calls := rapid.IntRange(0, 3).Draw(t, "calls")
		cutOff := calls > 0 && !of.codec.objects && rapid.Bool().Draw(t, "cut off in a call")
		for i := range calls {
			args := rapid.SampledFrom([]string{`{}`, `{"a":1}`, `{"a":{"b":["}",{"c":"\"{"}]},"d":"日本"}`, `{"q":"x\\"}`}).Draw(t, "args")
			a.Parts = append(a.Parts, Part{Kind: CallPart, Call: Call{fmt.Sprintf("call_%d", i), "f", args}})
			if a.Stop = (Stop{Reason: StopTools}); cutOff && i == calls-1 {
				runes := []rune(args)
				a.Parts[len(a.Parts)-1].Call.Arguments = string(runes[:rapid.IntRange(1, len(runes)-1).Draw(t, "length of the arguments")])
				a.Stop.Reason = StopLength
			}
		}
		a.Usage = sluice.Usage{Input: 5, CacheRead: 3, CacheWrite: 2, Output: 7, Reasoning: 1}
		if of.lumps {
			a.Usage.Output, a.Usage.Reasoning = 8, 0
		}
		return a
	})
}

// cuts are the pieces of a text, cut anywhere between its runes.
func cuts(t *rapid.T, s string) (out []string) {
	if rapid.Bool().Draw(t, "one rune at a time") {
		for _, r := range s {
			out = append(out, string(r))
		}
		return out
	}
	for s != "" {
		n := rapid.IntRange(1, len(s)).Draw(t, "cut")
		for n < len(s) && s[n]&0xc0 == 0x80 {
			n++
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

func compact(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

type obj = map[string]any

// openaiSent is an answer as an OpenAI backend streams it.
func openaiSent(t *rapid.T, a *Answer) []byte {
	var b []byte
	every := rapid.Bool().Draw(t, "usage in every chunk")
	usage := openaiUsage(nil, &a.Usage)
	chunk := func(choices ...obj) {
		if choices == nil {
			choices = []obj{}
		}
		o := obj{"id": a.ID, "object": "chat.completion.chunk", "created": a.Created, "model": a.Model, "choices": choices, "error": nil}
		if every || len(choices) == 0 {
			o["usage"] = json.RawMessage(usage)
		}
		b = wire.AppendEvent(b, "", compact(o))
	}
	delta := func(d obj) { chunk(obj{"index": 0, "delta": d, "finish_reason": nil}) }
	late := rapid.Bool().Draw(t, "log probabilities behind their text")
	said := func(s piece) {
		if len(s.list) == 0 {
			delta(obj{"content": s.text})
			return
		}
		likely := obj{"content": json.RawMessage(appendLogprobs(nil, s.list, true)), "refusal": nil}
		if late {
			delta(obj{"content": s.text})
			s.text = ""
		}
		chunk(obj{"index": 0, "delta": obj{"content": s.text}, "logprobs": likely, "finish_reason": nil})
	}
	delta(obj{"role": "assistant", "content": ""})
	type fragment struct {
		call int
		text string
	}
	var apart []fragment
	mixed := rapid.Bool().Draw(t, "fragments of calls mixed")
	calls := 0
	for _, p := range a.Parts {
		switch p.Kind {
		case ReasoningPart:
			for _, s := range cuts(t, p.Text) {
				delta(obj{"reasoning_content": s})
			}
		case TextPart:
			for _, s := range pieces(t, &p) {
				said(s)
			}
		case CallPart:
			begun := obj{"index": calls, "id": p.Call.ID, "type": "function", "function": obj{"name": p.Call.Name, "arguments": ""}}
			delta(obj{"tool_calls": []obj{begun}})
			for _, s := range cuts(t, p.Call.Arguments) {
				if mixed {
					apart = append(apart, fragment{calls, s})
					continue
				}
				delta(obj{"tool_calls": []obj{{"index": calls, "function": obj{"arguments": s}}}})
			}
			calls++
		}
	}
	for len(apart) > 0 { // in any order, but for that of each call's own
		i := rapid.IntRange(0, len(apart)-1).Draw(t, "next fragment")
		for j := range i {
			if apart[j].call == apart[i].call {
				i = j
				break
			}
		}
		delta(obj{"tool_calls": []obj{{"index": apart[i].call, "function": obj{"arguments": apart[i].text}}}})
		apart = append(apart[:i], apart[i+1:]...)
	}
	end := obj{"index": 0, "delta": obj{}, "finish_reason": openaiFinish(a.Stop.Reason)}
	if a.Stop.Sequence != "" {
		end["stop_reason"] = a.Stop.Sequence
	}
	chunk(end)
	chunk()
	return wire.AppendEvent(b, "", []byte("[DONE]"))
}

// anthropicSent is an answer as an Anthropic backend streams it.
func anthropicSent(t *rapid.T, a *Answer) []byte {
	var b []byte
	every := rapid.Bool().Draw(t, "usage in every event")
	usage := json.RawMessage(anthropicUsage(nil, &a.Usage))
	event := func(kind string, o obj) {
		o["type"] = kind
		b = wire.AppendEvent(b, kind, compact(o))
	}
	event("message_start", obj{"message": obj{"id": a.ID, "type": "message", "role": "assistant", "model": a.Model, "content": []obj{}, "usage": usage}})
	for i, p := range a.Parts {
		start := func(block obj) { event("content_block_start", obj{"index": i, "content_block": block}) }
		delta := func(d obj) {
			event("content_block_delta", obj{"index": i, "delta": d})
			if every {
				event("message_delta", obj{"delta": obj{"stop_reason": nil}, "usage": usage})
			}
		}
		switch p.Kind {
		case ReasoningPart:
			start(obj{"type": "thinking", "thinking": "", "signature": ""})
			for _, s := range cuts(t, p.Text) {
				delta(obj{"type": "thinking_delta", "thinking": s})
			}
			delta(obj{"type": "signature_delta", "signature": p.Signature})
		case RedactedPart:
			start(obj{"type": "redacted_thinking", "data": p.Signature})
		case TextPart:
			start(obj{"type": "text", "text": ""})
			event("ping", obj{})
			for _, s := range cuts(t, p.Text) {
				delta(obj{"type": "text_delta", "text": s})
			}
		case CallPart:
			start(obj{"type": "tool_use", "id": p.Call.ID, "name": p.Call.Name, "input": obj{}})
			if p.Call.Arguments != "{}" || rapid.Bool().Draw(t, "empty input is sent") {
				delta(obj{"type": "input_json_delta", "partial_json": ""})
				for _, s := range cuts(t, p.Call.Arguments) {
					delta(obj{"type": "input_json_delta", "partial_json": s})
				}
			}
		}
		event("content_block_stop", obj{"index": i})
	}
	d := obj{"stop_reason": anthropicWord(a.Stop.Reason), "stop_sequence": nil}
	if a.Stop.Sequence != "" {
		d["stop_sequence"] = a.Stop.Sequence
	}
	event("message_delta", obj{"delta": d, "usage": usage})
	event("message_stop", obj{})
	return b
}

// run puts a backend's stream through tap and translation, as exchange does. slow
// reads every event anew.
func run(from, to wire.Operation, r io.Reader, o StreamOptions, slow bool) (out []byte, err error) {
	tap := wire.NewTap(from, wire.TapOptions{})
	if o.Usage == nil {
		o.Usage = func() sluice.Usage { u, _ := tap.Partial(); return u }
	}
	s := NewStream(from, to, o)
	events := wire.NewSource(from, rigs()[from].framed, r, 0)
	for {
		ev, err := events.Next()
		if err != nil {
			step := tap.End(err)
			if step.Err != nil {
				return out, step.Err
			}
			more, err := s.End()
			return append(out, more...), err
		}
		step := tap.Event(ev)
		if step.Err != nil {
			return out, step.Err
		}
		if step.Out == nil {
			continue
		}
		if slow {
			s.like.raw = nil
		}
		more, terr := s.Event(&ev, step.Terminal)
		out = append(out, more...)
		if terr != nil || step.Terminal {
			return out, terr
		}
	}
}

// wellFormed checks what holds of every event that a client gets.
func wellFormed(t fataler, to *rig, stream []byte) {
	events := wire.NewEvents(bytes.NewReader(stream), 0)
	for {
		ev, err := events.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in %s", err, stream)
		}
		if string(ev.Data) == "[DONE]" && to.codec.op == wire.Chat {
			continue
		}
		var data struct {
			Type  string          `json:"type"`
			Error json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(ev.Data, &data); err != nil || data.Error != nil {
			t.Fatalf("event %s: %v", ev.Raw, err)
		}
		if want := to.named; want != (len(ev.Name) > 0) || want && string(ev.Name) != data.Type {
			t.Fatalf("event %s has the name %q", ev.Raw, ev.Name)
		}
	}
}

// A stream that is assembled by the client's rules is the translated whole answer,
// however text, fragments and bytes are cut.
func TestStreamIsTheWholeAnswer(t *testing.T) {
	for _, p := range pairs() {
		t.Run(p.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				from, to := p.backend.codec, p.client.codec
				a := genAnswer(p.backend).Draw(t, "answer")
				stream := p.backend.sent(t, a)
				o := StreamOptions{Told: true, Now: made, ID: "id1", Model: "m"}
				out, err := run(from.op, to.op, bytes.NewReader(stream), o, false)
				if err != nil {
					t.Fatal(err)
				}
				for how, r := range map[string]io.Reader{"a byte at a time": iotest.OneByteReader(bytes.NewReader(stream)), "every event read anew": bytes.NewReader(stream)} {
					again, err := run(from.op, to.op, r, o, how == "every event read anew")
					if err != nil || !bytes.Equal(out, again) {
						t.Fatalf("%s: %v\n%s\n%s", how, err, out, again)
					}
				}
				wellFormed(t, p.client, out)
				whole, err := Whole(from.op, to.op, p.backend.inOnePiece(a), StreamOptions{Usage: func() sluice.Usage { return a.Usage }, Now: made, ID: "id1", Model: "m"})
				if err != nil {
					t.Fatal(err)
				}
				want, got := p.client.whole(t, whole), p.client.assemble(t, out)
				if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
					t.Fatalf("whole and streamed differ: %s\n%s\n%s", d, whole, out)
				}
			})
		})
	}
}
