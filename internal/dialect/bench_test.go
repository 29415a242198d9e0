package dialect

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/wire"
)

// words64 are the texts of such a stream, as they stand in JSON.
func words64() (out []string) {
	words := []string{" the", " quick", " brown fox", " jumps", ".\\n\\n", " Zürich"}
	for i := range 64 {
		out = append(out, words[i%len(words)])
	}
	return out
}

// sent64 is a stream of 64 texts as a backend sends it.
func sent64(of *codec) []byte {
	switch of.op {
	case wire.Messages:
		return messages64()
	case wire.GenerateContent:
		return contents64()
	case wire.Responses:
		return responses64()
	case wire.Converse:
		return frames64()
	}
	return chunks64()
}

func chunks64() (b []byte) {
	chunk := func(choices, usage string) {
		b = wire.AppendEvent(b, "", fmt.Appendf(nil, `{"id":"chatcmpl-0123456789","object":"chat.completion.chunk","created":1700000000,"model":"gpt-5.6-luna","service_tier":"default","system_fingerprint":"fp_1","choices":%s,"usage":%s}`, choices, usage))
	}
	chunk(`[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]`, "null")
	for _, w := range words64() {
		chunk(`[{"index":0,"delta":{"content":"`+w+`"},"logprobs":null,"finish_reason":null}]`, "null")
	}
	chunk(`[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]`, "null")
	chunk(`[]`, `{"prompt_tokens":100,"completion_tokens":64,"total_tokens":164}`)
	return wire.AppendEvent(b, "", []byte("[DONE]"))
}

func messages64() (b []byte) {
	b = wire.AppendEvent(b, "message_start", []byte(`{"type":"message_start","message":{"id":"msg_0123456789","type":"message","role":"assistant","model":"claude-fable-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":100,"output_tokens":1}}}`))
	b = wire.AppendEvent(b, "content_block_start", []byte(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`))
	for _, w := range words64() {
		b = wire.AppendEvent(b, "content_block_delta", fmt.Appendf(nil, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}`, w))
	}
	b = wire.AppendEvent(b, "content_block_stop", []byte(`{"type":"content_block_stop","index":0}`))
	b = wire.AppendEvent(b, "message_delta", []byte(`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":64}}`))
	return wire.AppendEvent(b, "message_stop", []byte(`{"type":"message_stop"}`))
}

// contents64 has figures in every event, which grow.
func contents64() (b []byte) {
	for i, w := range append(words64(), "") {
		stop := ""
		if w == "" {
			stop = `"finishReason": "STOP",`
		}
		b = wire.AppendEvent(b, "", fmt.Appendf(nil, `{"candidates": [{"content": {"parts": [{"text": "%s"}],"role": "model"},%s"index": 0}],"usageMetadata": {"promptTokenCount": 100,"candidatesTokenCount": %d,"totalTokenCount": %d,"promptTokensDetails": [{"modality": "TEXT","tokenCount": 100}]},"modelVersion": "gemini-3.5-flash","responseId": "mAITabc123"}`, w, stop, i+1, i+101))
	}
	return b
}

// responses64 has events with numbers, and padding that hides their length.
func responses64() (b []byte) {
	n := 0
	event := func(kind, members string) {
		b = wire.AppendEvent(b, kind, fmt.Appendf(nil, `{"type":"%s","sequence_number":%d,%s}`, kind, n, members))
		n++
	}
	response := func(status, output, usage string) string {
		return `"response":{"id":"resp_0123456789","object":"response","created_at":1700000000,"status":"` + status + `","error":null,"incomplete_details":null,"model":"gpt-5.6-luna","output":` + output + `,"store":true,"usage":` + usage + `}`
	}
	event("response.created", response("in_progress", "[]", "null"))
	event("response.in_progress", response("in_progress", "[]", "null"))
	event("response.output_item.added", `"output_index":0,"item":{"id":"msg_0123","type":"message","status":"in_progress","content":[],"role":"assistant"}`)
	event("response.content_part.added", `"item_id":"msg_0123","output_index":0,"content_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}`)
	all := strings.Join(words64(), "")
	for i, w := range words64() {
		event("response.output_text.delta", `"item_id":"msg_0123","output_index":0,"content_index":0,"delta":"`+w+`","logprobs":[],"obfuscation":"`+"eBjCTcvQlbPkb"[i%8:]+`"`)
	}
	part := `{"type":"output_text","annotations":[],"logprobs":[],"text":"` + all + `"}`
	item := `{"id":"msg_0123","type":"message","status":"completed","content":[` + part + `],"role":"assistant"}`
	event("response.output_text.done", `"item_id":"msg_0123","output_index":0,"content_index":0,"text":"`+all+`","logprobs":[]`)
	event("response.content_part.done", `"item_id":"msg_0123","output_index":0,"content_index":0,"part":`+part)
	event("response.output_item.done", `"output_index":0,"item":`+item)
	event("response.completed", response("completed", "["+item+"]", `{"input_tokens":100,"output_tokens":64,"total_tokens":164}`))
	return b
}

// frames64 has padding too.
func frames64() (b []byte) {
	frame := func(kind, payload string) {
		b = wire.AppendFrame(b, []wire.FrameHeader{{Name: ":event-type", Value: kind}, {Name: ":content-type", Value: "application/json"}, {Name: ":message-type", Value: "event"}}, []byte(payload))
	}
	frame("messageStart", `{"p":"abcd","role":"assistant"}`)
	for i, w := range words64() {
		frame("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"`+w+`"},"p":"`+"abcdefghijklmnopqrs"[i%8:]+`"}`)
	}
	frame("contentBlockStop", `{"contentBlockIndex":0,"p":"abcd"}`)
	frame("messageStop", `{"p":"abcd","stopReason":"end_turn"}`)
	frame("metadata", `{"metrics":{"latencyMs":551},"p":"abcd","usage":{"inputTokens":100,"outputTokens":64,"totalTokens":164}}`)
	return b
}

// passed moves a stream through framing and tap alone, as a client of the backend's own
// dialect gets it.
func passed(t testing.TB, from *rig, stream []byte) {
	tap := wire.NewTap(from.codec.op, wire.TapOptions{StripUsage: true})
	events := wire.NewSource(from.codec.op, from.framed, bytes.NewReader(stream), 0)
	for {
		ev, err := events.Next()
		if err == io.EOF && tap.End(err).Err == nil {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if tap.Event(ev).Terminal {
			return
		}
	}
}

// echo64 is what a request without any settings has its answer repeat.
var echo64 = responsesEcho(nil)

// translated moves it on into the client's dialect, and reports how many of its events
// were like the one before.
func translated(t testing.TB, from, to *rig, stream []byte) (alike int) {
	tap := wire.NewTap(from.codec.op, wire.TapOptions{})
	s := NewStream(from.codec.op, to.codec.op, StreamOptions{Told: true, Now: made, Echo: echo64, Usage: func() sluice.Usage { return sluice.Usage{Input: 100, Output: 64} }})
	events := wire.NewSource(from.codec.op, from.framed, bytes.NewReader(stream), 0)
	for {
		ev, err := events.Next()
		if err == io.EOF && tap.End(err).Err == nil {
			_, err = s.End()
			if err != nil {
				t.Fatal(err)
			}
			return s.alike
		}
		if err != nil {
			t.Fatal(err)
		}
		step := tap.Event(ev)
		if _, err := s.Event(&ev, step.Terminal); err != nil {
			t.Fatal(err)
		}
		if step.Terminal {
			return s.alike
		}
	}
}

// BenchmarkStream64 takes a stream of 64 texts through both by turns, so that their
// ratio, x-passed, is of one run, and of the turns that nothing else of the machine got
// in the way of: that of their medians. It is to be at most 2.
func BenchmarkStream64(b *testing.B) {
	for _, p := range pairs() {
		b.Run(p.backend.codec.op.String()+"-to-"+p.client.codec.op.String(), func(b *testing.B) {
			stream := sent64(p.backend.codec)
			var pass, translate []time.Duration
			for b.Loop() {
				start := time.Now()
				passed(b, p.backend, stream)
				between := time.Now()
				translated(b, p.backend, p.client, stream)
				pass, translate = append(pass, between.Sub(start)), append(translate, time.Since(between))
			}
			slices.Sort(pass)
			slices.Sort(translate)
			through, into := pass[len(pass)/2], translate[len(translate)/2]
			b.ReportMetric(float64(into)/float64(through), "x-passed")
			b.ReportMetric(float64(through), "ns-passed")
			b.ReportMetric(float64(into), "ns-translated")
		})
	}
}

// What a stream takes does not grow with its events, passed or translated: nearly all
// of them go the short way, which allocates nothing. With the race detector, which
// empties pools at times, it is some more.
func TestStreamAllocations(t *testing.T) {
	for _, r := range rigs() {
		stream := sent64(r.codec)
		if n := testing.AllocsPerRun(20, func() { passed(t, r, stream) }); n > 16 {
			t.Errorf("64 texts of %v allocate %v times on their way, want at most 16", r.codec.op, n)
		}
	}
	for _, p := range pairs() {
		stream := sent64(p.backend.codec)
		o := StreamOptions{Told: true, Now: made, Echo: echo64}
		short, err := run(p.backend.codec.op, p.client.codec.op, bytes.NewReader(stream), o, false)
		if long, lerr := run(p.backend.codec.op, p.client.codec.op, bytes.NewReader(stream), o, true); err != nil || lerr != nil || !bytes.Equal(short, long) {
			t.Fatalf("%v: the short way gives another stream: %v, %v\n%s\n%s", p, err, lerr, short, long)
		}
		if alike := translated(t, p.backend, p.client, stream); alike < 60 {
			t.Errorf("%v: %d of 64 texts went the short way, want all but the first few", p, alike)
		}
		if n := testing.AllocsPerRun(20, func() { translated(t, p.backend, p.client, stream) }); n > 100 {
			t.Errorf("%v: 64 texts allocate %v times, want at most 100", p, n)
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
