package dialect

import (
	"bytes"
	"fmt"
	"testing"

	"sluice"
	"sluice/internal/wire"
)

// chunks64 is a stream of 64 texts as an OpenAI backend sends it, and as an Anthropic
// one does.
func chunks64(of wire.Dialect) []byte {
	var b []byte
	words := []string{" the", " quick", " brown fox", " jumps", ".\\n\\n", " Zürich"}
	if of == wire.Anthropic {
		b = wire.AppendEvent(b, "message_start", []byte(`{"type":"message_start","message":{"id":"msg_0123456789","type":"message","role":"assistant","model":"claude-fable-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":100,"output_tokens":1}}}`))
		b = wire.AppendEvent(b, "content_block_start", []byte(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`))
		for i := range 64 {
			b = wire.AppendEvent(b, "content_block_delta", fmt.Appendf(nil, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}`, words[i%len(words)]))
		}
		b = wire.AppendEvent(b, "content_block_stop", []byte(`{"type":"content_block_stop","index":0}`))
		b = wire.AppendEvent(b, "message_delta", []byte(`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":64}}`))
		return wire.AppendEvent(b, "message_stop", []byte(`{"type":"message_stop"}`))
	}
	chunk := func(choices, usage string) {
		b = wire.AppendEvent(b, "", fmt.Appendf(nil, `{"id":"chatcmpl-0123456789","object":"chat.completion.chunk","created":1700000000,"model":"gpt-5.6-luna","service_tier":"default","system_fingerprint":"fp_1","choices":%s,"usage":%s}`, choices, usage))
	}
	chunk(`[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]`, "null")
	for i := range 64 {
		chunk(`[{"index":0,"delta":{"content":"`+words[i%len(words)]+`"},"logprobs":null,"finish_reason":null}]`, "null")
	}
	chunk(`[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]`, "null")
	chunk(`[]`, `{"prompt_tokens":100,"completion_tokens":64,"total_tokens":164}`)
	return wire.AppendEvent(b, "", []byte("[DONE]"))
}

// passed moves a stream through framing and tap alone, as a client of the backend's own
// dialect gets it.
func passed(b testing.TB, op wire.Operation, stream []byte) (n int) {
	tap := wire.NewTap(op, wire.TapOptions{StripUsage: true})
	events := wire.NewEvents(bytes.NewReader(stream), 0)
	for {
		ev, err := events.Next()
		if err != nil {
			b.Fatal(err)
		}
		step := tap.Event(ev)
		if n += len(step.Out); step.Terminal {
			return n
		}
	}
}

// BenchmarkStream64 compares the CPU of a stream of 64 texts that passes with that of
// one that is translated.
func BenchmarkStream64(b *testing.B) {
	for _, c := range []struct{ from, to *codec }{{&openai, &anthropic}, {&anthropic, &openai}} {
		stream := chunks64(c.from.dialect)
		b.Run(string(c.from.dialect)+"/passed", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				passed(b, c.from.op, stream)
			}
		})
		b.Run(string(c.from.dialect)+"/translated", func(b *testing.B) {
			b.ReportAllocs()
			o := StreamOptions{Told: true, Now: made, Usage: func() sluice.Usage { return sluice.Usage{Input: 100, Output: 64} }}
			for b.Loop() {
				tap := wire.NewTap(c.from.op, wire.TapOptions{})
				s := NewStream(c.from.op, c.to.op, o)
				events := wire.NewEvents(bytes.NewReader(stream), 0)
				for {
					ev, err := events.Next()
					if err != nil {
						b.Fatal(err)
					}
					step := tap.Event(ev)
					if _, err := s.Event(&ev, step.Terminal); err != nil {
						b.Fatal(err)
					}
					if step.Terminal {
						break
					}
				}
			}
		})
	}
}

// BenchmarkTranslate is a request of about 8 KB.
func BenchmarkTranslate(b *testing.B) {
	var body bytes.Buffer
	body.WriteString(`{"model":"m","max_tokens":1000,"messages":[`)
	for i := range 40 {
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		fmt.Fprintf(&body, `{"role":"%s","content":"%s"},`, role, bytes.Repeat([]byte("some words of a turn, "), 8))
	}
	body.WriteString(`{"role":"user","content":"and?"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}]}`)
	h, err := wire.Scan(wire.Chat, body.Bytes())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(body.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if t := Translate(h, body.Bytes(), nil, wire.Anthropic, Options{}); t.Err != nil {
			b.Fatal(t.Err)
		}
	}
}
