package dialect

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/wire"
)

// What is left of arguments that are cut off: nothing that may be another value.
func TestWholeOfArguments(t *testing.T) {
	for args, want := range map[string]string{
		`{`: `{}`, `{"a`: `{}`, `{"a":`: `{}`, `{"a":1`: `{}`, `{"a":12,`: `{"a":12}`, `{"a":"x`: `{}`, `{"a":"x"`: `{"a":"x"}`,
		`{"a":tr`: `{}`, `{"a":{"b":[1,{"c":"d"},"e`: `{"a":{"b":[1,{"c":"d"}]}}`, `{"a":"é","b`: `{"a":"é"}`, `{"a":[`: `{"a":[]}`, `{"a":-`: `{}`,
		`[1`: "", `{a`: "", `"x`: "", `{"a":1}}`: "",
	} {
		if got, ok := wholeOf(args); got != want || ok != (want != "") {
			t.Errorf("of %s: %q %v, want %q", args, got, ok, want)
		}
	}
}

// An answer that is cut off in the middle of a call is an answer, whole and streamed: to
// clients that have arguments as texts as it is, to others as what has come whole.
func TestCallThatIsCutOff(t *testing.T) {
	const said = `{"a":"x","b":12`
	whole := completed("length", `{"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":`+string(compact(said))+`}}]}`)
	stream := deltas("length", `{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":""}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":`+string(compact(said))+`}}]}`)
	for to, want := range map[wire.Operation][]string{
		wire.Messages:        {`{"a":"x"}`, `max_tokens`},
		wire.Responses:       {`{\"a\":\"x\",\"b\":12`, `max_output_tokens`, `"status":"incomplete","call_id":"c1"`},
		wire.GenerateContent: {`{"a":"x"}`, "MAX_TOKENS"},
	} {
		r := rigs()[to]
		full := inFull(t, wire.Chat, to, whole)
		if d := cmp.Diff(r.whole(t, full), r.assemble(t, streamed(t, wire.Chat, to, stream))); d != "" {
			t.Errorf("to %s: whole and streamed differ: %s", to, d)
		}
		for _, w := range want {
			if !strings.Contains(string(full), w) {
				t.Errorf("to %s: %s is not in %s", to, w, full)
			}
		}
	}
}

// Arguments that are no object, and were not cut off, are an error to clients that have
// objects, whole and streamed. null is none.
func TestArgumentsThatAreNoObject(t *testing.T) {
	for args, good := range map[string]bool{"null": true, " ": true, `{"a":1} `: true, `[1]`: false, `{"a":`: false, "x": false} {
		call := `{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":` + string(compact(args)) + `}}]}`
		for _, to := range []wire.Operation{wire.Messages, wire.GenerateContent} {
			full, err := Whole(wire.Chat, to, completed("tool_calls", call), naming())
			out, serr := run(wire.Chat, to, bytes.NewReader(deltas("tool_calls", call)), naming(), false)
			if (err == nil) != good || (serr == nil) != good {
				t.Errorf("%s to %s: whole %v, streamed %v", args, to, err, serr)
				continue
			}
			if r := rigs()[to]; good {
				if d := cmp.Diff(r.whole(t, full), r.assemble(t, out)); d != "" {
					t.Errorf("%s to %s: whole and streamed differ: %s", args, to, d)
				}
			}
		}
		if _, err := Whole(wire.Chat, wire.Responses, completed("tool_calls", call), naming()); err != nil {
			t.Errorf("%s to responses: %v", args, err)
		}
	}
}

// Blocks of a message follow each other, whatever a backend mixes: clients of the dialect
// add what comes to the block that began last.
func TestBlocksFollowEachOther(t *testing.T) {
	call := func(i int, id, args string) string {
		if id != "" {
			return fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":"f","arguments":""}}]}`, i, id)
		}
		return fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%q}}]}`, i, args)
	}
	stream := deltas(
		"tool_calls", `{"content":"so"}`, call(0, "a", ""), call(1, "b", ""), call(1, "", `{"q":`), call(0, "", `{"p":`), call(2, "c", ""), call(2, "", `{}`),
		`{"content":"and"}`, call(0, "", `1}`), call(1, "", `2}`),
	)
	out := streamed(t, wire.Chat, wire.Messages, stream)
	last, open := -1, false
	for _, data := range eventsOf(t, out) {
		var e struct {
			Type  string
			Index int
		}
		decode(t, data, &e)
		switch e.Type {
		case "content_block_start":
			if open || e.Index != last+1 {
				t.Errorf("block %d begins, the last was %d, open %v", e.Index, last, open)
			}
			last, open = e.Index, true
		case "content_block_delta":
			if !open || e.Index != last {
				t.Errorf("a part of block %d in %d", e.Index, last)
			}
		case "content_block_stop":
			open = false
		}
	}
	m := assembleMessage(t, out)
	if d := cmp.Diff([]string{`a f{"p":1}`, `b f{"q":2}`, `c f{}`}, callsOf(m)); d != "" {
		t.Error(d)
	}
	if first, end := m.Content[0]["text"], m.Content[len(m.Content)-1]["text"]; first != "so" || end != "and" {
		t.Errorf("the texts are %v and %v", first, end)
	}
	flood := make([]string, 0, 10)
	flood = append(flood, call(0, "a", ""), call(1, "b", ""))
	for range 9 {
		flood = append(flood, call(1, "", `{"q":"`+strings.Repeat("x", 1<<20)))
	}
	if _, err := run(wire.Chat, wire.Messages, bytes.NewReader(deltas("tool_calls", flood...)), naming(), false); err == nil {
		t.Error("what waits has no bound")
	}
}
