package wire

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

// someEvents writes events of one dialect, most of them like the one before, with
// whatever providers put around and between them.
func someEvents(r *rand.Rand, dialect Dialect, n int) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	texts := []string{" a", "token", "é", "水", "😀", `\n`, `\u00e9`, `\"`, "", "x=y", "\xff", "\t", `a\\`, `{"content":"x"}`[:1], strings.Repeat("long ", 40)}
	var b strings.Builder
	open := ` "logprobs":null,`
	for range n {
		text := pick(texts...)
		if r.IntN(20) == 0 {
			open = pick(` "logprobs":null,`, ` "logprobs":{"content":[{"token":"x"}]},`, "")
		}
		var data, name string
		if dialect == OpenAI {
			delta := `{"content":"` + text + `"}`
			switch r.IntN(12) {
			case 0:
				delta = `{"reasoning_content":"` + text + `","content":null}`
			case 1:
				delta = `{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"` + text + `"}}]}`
			case 2:
				delta = `{"tool_calls":[{"index":0,"function":{"arguments":"` + text + `"}}]}`
			case 3:
				delta = `{"content":"` + text + `","refusal":"` + pick(texts...) + `"}`
			}
			usage := pick("", "", "", `,"usage":null`, `,"usage":null`, `,"error":null`, `,"usage":{"prompt_tokens":5,"completion_tokens":`+fmt.Sprint(r.IntN(200))+`}`)
			data = `{"id":"x","model":"m","choices":[{"index":` + pick("0", "0", "0", "1") + `,` + open + `"delta":` + delta + `,"finish_reason":` + pick("null", "null", "null", "null", `"stop"`) + `}]` + usage + `}`
			if r.IntN(6) == 0 { // what is cut stands before the text
				data = `{"usage":null,` + data[1:]
			}
		} else {
			name = "event: content_block_delta\n"
			delta := pick(`{"type":"text_delta","text":"`+text+`"}`, `{"type":"text_delta","text":"`+text+`"}`, `{"type":"thinking_delta","thinking":"`+text+`"}`,
				`{"type":"input_json_delta","partial_json":"`+text+`"}`, `{"type":"tool_use","name":"`+text+`","input":{}}`)
			data = `{"type":"content_block_delta","index":` + pick("0", "0", "0", "1") + `,"delta":` + delta + pick("", "", "", `,"usage":{"input_tokens":9,"output_tokens":7}`) + `}`
		}
		switch r.IntN(15) {
		case 0:
			b.WriteString(": ping\n\n")
		case 1:
			name += "id: 7\n"
		case 2:
			data = strings.Replace(data, ",", ",\ndata: ", 1)
		}
		b.WriteString(name + pick("data: ", "data: ", "data:") + data + pick("\n\n", "\n\n", "\n\n", "\r\n\r\n"))
	}
	return b.String()
}

// What is taken for like the last event is read as it would be by itself.
func TestAgain(t *testing.T) {
	hits := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 0))
		op := []Operation{Chat, Messages}[seed%2]
		o := TapOptions{StripUsage: seed%3 > 0, StripContinuous: seed%3 == 2}
		fast, slow := NewTap(op, o), NewTap(op, o)
		events := NewEvents(strings.NewReader(someEvents(r, op.Dialect(), 200)), 0)
		for i := 0; ; i++ {
			e, err := events.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			slow.shape.raw = slow.shape.raw[:0] // it remembers nothing
			want := slow.Event(e)
			want.Out = bytes.Clone(want.Out)
			probe := *fast
			probe.out = nil
			if _, again := probe.again(&e); again {
				hits++
			}
			got := fast.Event(e)
			if !bytes.Equal(got.Out, want.Out) || got.Content != want.Content || got.Terminal != want.Terminal || (got.Err == nil) != (want.Err == nil) {
				t.Fatalf("seed %d, event %d, %q:\ngot  %q %v\nwant %q %v", seed, i, e.Raw, got.Out, got, want.Out, want)
			}
			u, ok := fast.Partial()
			v, ok2 := slow.Partial()
			if u != v || ok != ok2 || fast.Delivered() != slow.Delivered() || fast.Reasoned() != slow.Reasoned() || fast.Covered() != slow.Covered() ||
				fast.ToolCalls() != slow.ToolCalls() || fast.Finished() != slow.Finished() || fast.FinishReason() != slow.FinishReason() || fast.Mended() != slow.Mended() {
				t.Fatalf("seed %d, event %d, %q: %d delivered and %+v, want %d and %+v", seed, i, e.Raw, fast.Delivered(), u, slow.Delivered(), v)
			}
		}
	}
	if hits < 500 {
		t.Errorf("only %d events were like the last one", hits)
	}
}
