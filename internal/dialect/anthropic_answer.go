package dialect

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sluice"
)

// anthropicStops are the words by which an answer ends.
var anthropicStops = []struct {
	word   string
	reason StopReason
}{
	{"end_turn", StopEnd},
	{"max_tokens", StopLength},
	{"model_context_window_exceeded", StopContext},
	{"stop_sequence", StopSequence},
	{"tool_use", StopTools},
	{"refusal", StopRefusal},
}

func anthropicStop(word string) StopReason {
	for _, s := range anthropicStops {
		if s.word == word {
			return s.reason
		}
	}
	return StopUnknown
}

func anthropicWord(r StopReason) string {
	for _, s := range anthropicStops {
		if s.reason == r {
			return s.word
		}
	}
	return "end_turn"
}

// anthropicAnswer is a message.
type anthropicAnswer struct {
	ID       string           `json:"id"`
	Model    string           `json:"model"`
	Content  []anthropicBlock `json:"content"`
	Stop     *string          `json:"stop_reason"`
	Sequence *string          `json:"stop_sequence"`
	Details  jsontext.Value   `json:"stop_details"`
}

func parseAnthropicAnswer(body []byte, o *StreamOptions) (*Answer, error) {
	var in anthropicAnswer
	if err := json.Unmarshal(body, &in, lenient); err != nil {
		return nil, err
	}
	a := &Answer{ID: in.ID, Model: in.Model}
	for i := range in.Content {
		p, ok, err := in.Content[i].answer(o)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if p.Kind != TextPart || p.Text != "" {
			a.Parts = append(a.Parts, p)
		}
	}
	if !asksNothing(in.Details) {
		o.tell("stop_details")
	}
	var err error
	if in.Stop != nil {
		a.Stop, err = anthropicStopOf(*in.Stop, in.Sequence)
	} else {
		a.Stop.Reason = StopEnd
	}
	return a, err
}

// anthropicStopOf is why an answer ended.
func anthropicStopOf(word string, sequence *string) (Stop, error) {
	s := Stop{Reason: anthropicStop(word)}
	if s.Reason == StopUnknown {
		return s, uncarried("the stop reason " + clean(word))
	}
	if sequence != nil {
		s.Sequence = *sequence
	}
	return s, nil
}

// answer is a block of an answer, or the beginning of one in a stream; not ok for one
// that other dialects have no place for.
func (b *anthropicBlock) answer(o *StreamOptions) (p Part, ok bool, err error) {
	if !asksNothing(b.Citations) {
		if err := o.lose("content.citations"); err != nil {
			return Part{}, false, err
		}
	}
	switch b.Type {
	case "text":
		return Part{Kind: TextPart, Text: b.Text}, true, nil
	case "thinking":
		return Part{Kind: ReasoningPart, Text: b.Thinking, Signature: b.Signature}, true, nil
	case "redacted_thinking":
		return Part{Kind: RedactedPart, Signature: b.Data}, true, nil
	case "tool_use":
		args := jsontext.Value("{}")
		if !null(b.Input) {
			args = b.Input
		}
		if err := args.Compact(); err != nil {
			return Part{}, false, err
		}
		return Part{Kind: CallPart, Call: Call{b.ID, b.Name, string(args)}}, true, nil
	}
	return Part{}, false, o.lose("content: " + clean(b.Type))
}

// emitAnthropicAnswer appends an answer as a message.
func emitAnthropicAnswer(b []byte, a *Answer) []byte {
	b = append(b, '{')
	b = pair(pair(pair(pair(b, "id", a.ID), "type", "message"), "role", "assistant"), "model", a.Model)
	b = append(key(b, "content"), '[')
	for i := range a.Parts {
		p := &a.Parts[i]
		b = append(sep(b), '{')
		switch p.Kind {
		case ReasoningPart:
			b = pair(pair(pair(b, "type", "thinking"), "thinking", p.Text), "signature", p.Signature)
		case RedactedPart:
			b = pair(pair(b, "type", "redacted_thinking"), "data", p.Signature)
		case CallPart:
			b = pair(pair(pair(b, "type", "tool_use"), "id", p.Call.ID), "name", p.Call.Name)
			b = append(key(b, "input"), p.Call.Arguments...)
		default:
			b = pair(pair(b, "type", "text"), "text", p.Text)
		}
		b = append(b, '}')
	}
	b = append(b, ']')
	b = anthropicEnd(b, a.Stop)
	b = anthropicUsage(key(b, "usage"), &a.Usage)
	return append(b, '}')
}

// anthropicEnd appends why an answer ended.
func anthropicEnd(b []byte, s Stop) []byte {
	b = pair(b, "stop_reason", anthropicWord(s.Reason))
	if s.Reason == StopSequence && s.Sequence != "" {
		return pair(b, "stop_sequence", s.Sequence)
	}
	return append(key(b, "stop_sequence"), "null"...)
}

// anthropicUsage appends usage as the dialect has it: input excludes the cache,
// output includes the reasoning.
func anthropicUsage(b []byte, u *sluice.Usage) []byte {
	b = append(b, '{')
	b = figure(b, "input_tokens", int64(u.Input+u.AudioInput))
	b = figure(b, "cache_creation_input_tokens", int64(u.CacheWrite+u.CacheWrite1h))
	b = figure(b, "cache_read_input_tokens", int64(u.CacheRead))
	b = figure(b, "output_tokens", int64(u.OutputTotal()))
	if u.Reasoning > 0 {
		b = append(figure(append(key(b, "output_tokens_details"), '{'), "thinking_tokens", int64(u.Reasoning)), '}')
	}
	return append(b, '}')
}
