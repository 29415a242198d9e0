package wire

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice"
)

// What steps beside the answer took counts: the figures of a message leave it out.
func TestCompactionCounts(t *testing.T) {
	const usage = `{"input_tokens":23,"output_tokens":10,"iterations":[{"type":"compaction","input_tokens":180,"output_tokens":35,"cache_read_input_tokens":7},{"type":"message","input_tokens":23,"output_tokens":10}]}`
	want := sluice.Usage{Input: 203, CacheRead: 7, Output: 45, Source: sluice.UsageCounted}
	whole := NewTap(Messages, TapOptions{})
	if _, err := whole.Body([]byte(`{"id":"m","type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":` + usage + `}`)); err != nil {
		t.Fatal(err)
	}
	got, _ := whole.Partial()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("whole: %s", d)
	}
	streamed := NewTap(Messages, TapOptions{})
	for _, data := range []string{
		`{"type":"message_start","message":{"id":"m","usage":{"input_tokens":23,"output_tokens":1}}}`,
		fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":%s}`, usage), `{"type":"message_stop"}`,
	} {
		if step := streamed.Event(Event{Raw: []byte("data: " + data + "\n\n"), Data: []byte(data)}); step.Err != nil {
			t.Fatal(step.Err)
		}
	}
	got, _ = streamed.Partial()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("streamed: %s", d)
	}
}
