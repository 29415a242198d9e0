package wire

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice"
)

// U20 as the tap tells it.
func TestTapTooLarge(t *testing.T) {
	s := NewTap(Chat, TapOptions{}).End(ErrEventTooLarge)
	if s.Err == nil || s.Err.Reason != sluice.UpstreamTooLarge {
		t.Errorf("got %+v", s)
	}
}

// A reset is no clean end, even after the finish reason: the marker is not made up.
func TestTapReset(t *testing.T) {
	tap := NewTap(Chat, TapOptions{})
	tap.Event(one(t, `data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`+"\n\n"))
	if s := tap.End(io.ErrUnexpectedEOF); s.Err == nil || s.Err.Reason != sluice.UpstreamTruncated {
		t.Errorf("got %+v", s)
	}
}

// U19: bytes that are no UTF-8 become U+FFFD.
func TestTapMends(t *testing.T) {
	tap := NewTap(Chat, TapOptions{})
	s := tap.Event(one(t, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\xe7\xbd\"},\"finish_reason\":null}]}\n\n"))
	if !strings.Contains(string(s.Out), "\"a\ufffd\"") || tap.Mended() != 1 || !s.Content {
		t.Errorf("got %q, mended %d", s.Out, tap.Mended())
	}
}

// A last event without its blank line counts if it is whole, and is completed.
func TestTapUnterminated(t *testing.T) {
	events := NewEvents(strings.NewReader("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]"), 0)
	tap := NewTap(Chat, TapOptions{})
	ev, _ := events.Next()
	tap.Event(ev)
	ev, err := events.Next()
	s := tap.Event(ev)
	if err != ErrUnterminated || string(s.Out) != "data: [DONE]\n\n" || !s.Terminal {
		t.Errorf("got %q %v, %v", s.Out, s.Terminal, err)
	}
}

func one(t *testing.T, stream string) Event {
	t.Helper()
	ev, err := NewEvents(strings.NewReader(stream), 0).Next()
	if err != nil {
		t.Fatal(err)
	}
	return ev
}

// U25: whatever the parts, they are disjoint and sum to the provider's total.
func TestUsageSumsToTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(name string, most int) int { return rapid.IntRange(0, most).Draw(t, name) }
		prompt, completion := n("prompt", 1000)+1, n("completion", 1000)+1
		cached := n("cached", prompt)
		write := n("write", prompt-cached)
		reasoning := n("reasoning", completion)
		body := map[string]any{
			"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
			"prompt_tokens_details":     map[string]any{"cached_tokens": cached, "cache_write_tokens": write, "audio_tokens": n("audio", prompt)},
			"completion_tokens_details": map[string]any{"reasoning_tokens": reasoning, "audio_tokens": n("audioOut", completion-reasoning)},
		}
		raw, _ := json.Marshal(map[string]any{"choices": []any{}, "usage": body})
		tap := NewTap(Chat, TapOptions{})
		if _, err := tap.Body(raw); err != nil {
			t.Fatal(err)
		}
		u, ok := tap.Usage()
		if !ok || u.Anomalous || int(u.Total()) != prompt+completion || int(u.InputTotal()) != prompt || int(u.CacheRead) != cached || int(u.CacheWrite) != write || int(u.Reasoning) != reasoning {
			t.Fatalf("got %+v, %v of %s", u, ok, raw)
		}

		five, hour := n("five", 100), n("hour", 100)
		body = map[string]any{
			"input_tokens": prompt, "cache_read_input_tokens": cached, "cache_creation_input_tokens": five + hour, "output_tokens": completion,
			"cache_creation":        map[string]any{"ephemeral_5m_input_tokens": five, "ephemeral_1h_input_tokens": hour},
			"output_tokens_details": map[string]any{"thinking_tokens": reasoning},
		}
		raw, _ = json.Marshal(map[string]any{"type": "message", "usage": body})
		tap = NewTap(Messages, TapOptions{})
		if _, err := tap.Body(raw); err != nil {
			t.Fatal(err)
		}
		u, ok = tap.Usage()
		if !ok || u.Anomalous || int(u.Total()) != prompt+cached+five+hour+completion || int(u.CacheWrite1h) != hour {
			t.Fatalf("got %+v, %v of %s", u, ok, raw)
		}
	})
}

func relay(t testing.TB, op Operation, chunk string, o TapOptions) func() {
	events := NewEvents(&loop{s: chunk}, 0)
	tap := NewTap(op, o)
	return func() {
		ev, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		if s := tap.Event(ev); s.Err != nil || len(s.Out) == 0 {
			t.Fatalf("got %+v", s)
		}
	}
}

const anthropicChunk = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hello there\"}}\n\n"

// A relayed event costs little garbage, splicing included.
func TestRelayAllocs(t *testing.T) {
	for name, step := range map[string]func(){
		"openai":    relay(t, Chat, chatChunk("hello"), TapOptions{StripUsage: true}),
		"anthropic": relay(t, Messages, anthropicChunk, TapOptions{}),
	} {
		step()
		if got := testing.AllocsPerRun(1000, step); got > 0 {
			t.Errorf("%s: got %v allocations per event, want 0", name, got)
		}
	}
}

func BenchmarkRelay(b *testing.B) {
	for name, step := range map[string]func(){
		"openai":    relay(b, Chat, chatChunk("hello"), TapOptions{StripUsage: true}),
		"anthropic": relay(b, Messages, anthropicChunk, TapOptions{}),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
		})
	}
}

// What cumulative figures cover is not counted again; what came after them, or is
// beyond belief, is.
func TestTapCovered(t *testing.T) {
	text := `{"choices":[{"index":0,"delta":{"content":"one two three four five"}}]`
	usage := func(n string) string {
		return `,"usage":{"prompt_tokens":9,"completion_tokens":` + n + `,"total_tokens":9}}`
	}
	chunk := func(b string) string { return "data: " + b + "\n\n" }
	for name, tt := range map[string]struct {
		events []string
		want   int // covered is what was delivered by then, in events
	}{
		"none":             {[]string{text + "}"}, 0},
		"in the event":     {[]string{text + usage("5"), text + usage("11")}, 2},
		"usage first":      {[]string{`{"usage":{"prompt_tokens":9,"completion_tokens":5},` + text[1:] + "}"}, 1},
		"then text":        {[]string{text + usage("5"), text + "}", text + "}"}, 1},
		"by itself":        {[]string{text + "}", text + "}", `{"choices":[]` + usage("10"), text + "}"}, 2},
		"before all":       {[]string{`{"choices":[]` + usage("1"), text + "}"}, 0},
		"zero":             {[]string{text + usage("0"), text + usage("0")}, 0},
		"the same":         {[]string{text + usage("1"), text + usage("1"), text + usage("1")}, 1},
		"beyond all doubt": {[]string{strings.Replace(text, "one", strings.Repeat("one ", 400), 1) + usage("7")}, 0},
	} {
		tap := NewTap(Chat, TapOptions{})
		delivered := []sluice.Tokens{0}
		for _, e := range tt.events {
			if s := tap.Event(one(t, chunk(e))); s.Err != nil {
				t.Fatalf("%s: %v", name, s.Err)
			}
			delivered = append(delivered, tap.Delivered())
		}
		if got := tap.Covered(); got != delivered[tt.want] {
			t.Errorf("%s: %d is covered, want %d of %v", name, got, delivered[tt.want], delivered)
		}
		u, _ := tap.Partial()
		if got, want := tap.Output(), u.OutputTotal()+tap.Delivered()-delivered[tt.want]; got != want {
			t.Errorf("%s: output of %d, want the %d that were told and what came after, %d", name, got, u.OutputTotal(), want)
		}
	}
	tap := NewTap(Messages, TapOptions{})
	for _, e := range []string{
		`{"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"one two three"}}`,
	} {
		tap.Event(one(t, chunk(e)))
	}
	if u, ok := tap.Partial(); !ok || u.Output != 1 || tap.Covered() != 0 || tap.Delivered() == 0 {
		t.Errorf("got %+v, %v, covered %d of %d", u, ok, tap.Covered(), tap.Delivered())
	}
}

// An answer of a lone blank, of which the counter makes nothing, and a figure that
// cannot be: it was one token at least, and the provider did not report it.
func TestImpossibleUsageOfNextToNothing(t *testing.T) {
	tap := NewTap(Chat, TapOptions{Input: 7})
	_, err := tap.Body([]byte(`{"choices":[{"index":0,"message":{"content":" "},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2305843009213693951}}`))
	if err != nil {
		t.Fatal(err)
	}
	if u, ok := tap.Usage(); !ok || u.Output != 1 || u.Input != 9 || !u.Anomalous || u.Source != sluice.UsageCounted {
		t.Errorf("got %+v, %v", u, ok)
	}
}
