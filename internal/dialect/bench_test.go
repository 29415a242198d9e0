package dialect

import (
	"bytes"
	"fmt"
	"testing"
	"time"

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
func passed(t testing.TB, from *codec, stream []byte) {
	tap := wire.NewTap(from.op, wire.TapOptions{StripUsage: true})
	events := wire.NewEvents(bytes.NewReader(stream), 0)
	for {
		ev, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		if tap.Event(ev).Terminal {
			return
		}
	}
}

// translated moves it on into the client's dialect.
func translated(t testing.TB, from, to *codec, stream []byte) {
	tap := wire.NewTap(from.op, wire.TapOptions{})
	s := NewStream(from.op, to.op, StreamOptions{Told: true, Now: made, Usage: func() sluice.Usage { return sluice.Usage{Input: 100, Output: 64} }})
	events := wire.NewEvents(bytes.NewReader(stream), 0)
	for {
		ev, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		step := tap.Event(ev)
		if _, err := s.Event(&ev, step.Terminal); err != nil {
			t.Fatal(err)
		}
		if step.Terminal {
			return
		}
	}
}

var directions = []struct{ from, to *codec }{{&openai, &anthropic}, {&anthropic, &openai}}

// BenchmarkStream64 takes a stream of 64 texts through both by turns, so that their
// ratio, x-passed, is of one run. It is to be at most 2.
func BenchmarkStream64(b *testing.B) {
	for _, d := range directions {
		b.Run("from-"+string(d.from.dialect), func(b *testing.B) {
			stream := chunks64(d.from.dialect)
			var pass, translate time.Duration
			for b.Loop() {
				start := time.Now()
				passed(b, d.from, stream)
				between := time.Now()
				translated(b, d.from, d.to, stream)
				pass, translate = pass+between.Sub(start), translate+time.Since(between)
			}
			b.ReportMetric(float64(translate)/float64(pass), "x-passed")
			b.ReportMetric(float64(pass)/float64(b.N), "ns-passed")
			b.ReportMetric(float64(translate)/float64(b.N), "ns-translated")
		})
	}
}

// What a stream's translation allocates does not grow with its events: with the race
// detector, which empties pools at times, it is some more.
func TestStreamAllocations(t *testing.T) {
	for _, d := range directions {
		stream := chunks64(d.from.dialect)
		if n := testing.AllocsPerRun(20, func() { translated(t, d.from, d.to, stream) }); n > 56 {
			t.Errorf("64 texts from %s allocate %v times, want at most 56", d.from.dialect, n)
		}
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
		if t := Translate(h, body.Bytes(), nil, wire.Messages, Options{}); t.Err != nil {
			b.Fatal(t.Err)
		}
	}
}
