package dialect

import (
	"strings"
	"testing"

	"sluice/internal/wire"
)

// What OpenAI has sealed goes to no provider that would refuse it, and comes back to one
// of its own as it was; what it left in the clear is told with it, or not at all.
func TestSealsOfOpenAI(t *testing.T) {
	const sealed, label = `gAAAAABo`, `rs_68af4030baa48193b0b43b4c`
	in := items(`{"role":"user","content":"x"},{"type":"reasoning","id":"` + label + `","summary":[{"type":"summary_text","text":"t"}],"encrypted_content":"` + sealed + `"},{"role":"assistant","content":[{"type":"output_text","text":"a"}]},{"role":"user","content":"y"}`)
	for _, to := range []wire.Operation{wire.Messages, wire.Converse} {
		strict, warned := translateInto(t, wire.Responses, to, in, nil, false), translateInto(t, wire.Responses, to, in, nil, true)
		if strict.Err == nil || strict.Err.Param != "input[1]" || warned.Err != nil || warned.Report.Paths() != "input[1]" || strings.Contains(string(warned.Body), sealed) {
			t.Errorf("%v: strict %v, warn %v %v: %s", to, strict.Err, warned.Err, warned.Report, warned.Body)
		}
	}
	ours := strings.ReplaceAll(strings.ReplaceAll(in, label, "rs_msg_0123_0"), sealed, "anthropic:c2ln")
	if got := translateInto(t, wire.Responses, wire.Messages, ours, nil, false); got.Err != nil || !strings.Contains(string(got.Body), `"signature":"c2ln"`) {
		t.Errorf("of a translated answer: %v %s", got.Err, got.Body)
	}
	back := chat[:len(chat)-1] + `,{"role":"assistant","content":"a","reasoning_content":"t","reasoning_details":[{"type":"reasoning.text","text":"t","signature":"` + label + `:` + sealed + `"}]},{"role":"user","content":"y"}]}`
	if got := translateInto(t, wire.Chat, wire.Responses, back, nil, false); got.Err != nil || !strings.Contains(string(got.Body), `"id":"`+label+`"`) || !strings.Contains(string(got.Body), `"encrypted_content":"`+sealed+`"`) {
		t.Errorf("back: %v %s", got.Err, got.Body)
	}
	if got := translateInto(t, wire.Chat, wire.Messages, back, nil, true); got.Err != nil || strings.Contains(string(got.Body), sealed) {
		t.Errorf("of chat: %v %s", got.Err, got.Body)
	}
}
