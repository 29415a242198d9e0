package dialect

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sluice"
)

// bedrockStops are the words by which an answer ends.
var bedrockStops = map[string]StopReason{
	"end_turn":                      StopEnd,
	"tool_use":                      StopTools,
	"max_tokens":                    StopLength,
	"model_context_window_exceeded": StopContext,
	"stop_sequence":                 StopSequence,
	"guardrail_intervened":          StopRefusal,
	"content_filtered":              StopRefusal,
}

// bedrockStop is why an answer ended. Where the model wrote something that the
// provider could not read, that is an error: what came of it is no answer.
func bedrockStop(word string, more *bedrockMore) (Stop, error) {
	s := Stop{Reason: bedrockStops[word]}
	switch {
	case word == "malformed_model_output" || word == "malformed_tool_use":
		return s, &sluice.Error{
			Kind: sluice.KindUpstream, Reason: sluice.UpstreamError,
			Msg: "the model wrote something that its provider could not read (" + word + ")",
		}
	case s.Reason == StopUnknown:
		return s, uncarried("the stop reason " + clean(word))
	case s.Reason == StopSequence && more != nil:
		s.Sequence = more.Sequence
	}
	return s, nil
}

// bedrockMore is what is asked for of the model's own answer.
type bedrockMore struct {
	Sequence string `json:"stop_sequence"`
}

// bedrockBlock is a block of an answer.
type bedrockBlock struct {
	Text      *string           `json:"text"`
	ToolUse   *bedrockCall      `json:"toolUse"`
	Reasoning *bedrockReasoning `json:"reasoningContent"`
	Cited     *bedrockCited     `json:"citationsContent"`
	Rest      jsontext.Value    `json:",embed"`
}

// bedrockCited is a text with where it has its knowledge from.
type bedrockCited struct {
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
	Citations jsontext.Value `json:"citations"`
}

// bedrockCall is a tool call, its beginning, or a fragment of its arguments, which is
// a text.
type bedrockCall struct {
	ID    string         `json:"toolUseId"`
	Name  string         `json:"name"`
	Type  string         `json:"type"`
	Input jsontext.Value `json:"input"`
}

// bedrockReasoning is a block of reasoning, in an answer or in fragments.
type bedrockReasoning struct {
	Whole *struct {
		Text      string `json:"text"`
		Signature string `json:"signature"`
	} `json:"reasoningText"`
	Text      string         `json:"text"`
	Signature string         `json:"signature"`
	Redacted  string         `json:"redactedContent"` // base64
	Rest      jsontext.Value `json:",embed"`
}

// bedrockAnswer is the answer of a Converse.
type bedrockAnswer struct {
	Output struct {
		Message struct {
			Content []bedrockBlock `json:"content"`
		} `json:"message"`
	} `json:"output"`
	Stop *string      `json:"stopReason"`
	More *bedrockMore `json:"additionalModelResponseFields"`
}

func parseBedrockAnswer(body []byte, o *StreamOptions) (*Answer, error) {
	var in bedrockAnswer
	if err := json.Unmarshal(body, &in, lenient); err != nil {
		return nil, err
	}
	a := &Answer{}
	blocks := in.Output.Message.Content
	for i := range blocks {
		p, ok, err := blocks[i].answer(o)
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
	var err error
	if a.Stop.Reason = StopEnd; in.Stop != nil {
		a.Stop, err = bedrockStop(*in.Stop, in.More)
	}
	return a, err
}

// answer is a whole block; not ok for one that other dialects have no place for.
func (b *bedrockBlock) answer(o *StreamOptions) (p Part, ok bool, err error) {
	if ok, err := b.known(o); !ok || err != nil {
		return Part{}, false, err
	}
	switch {
	case b.Text != nil:
		return Part{Kind: TextPart, Text: *b.Text}, true, nil
	case b.ToolUse != nil:
		args := jsontext.Value("{}")
		if !null(b.ToolUse.Input) {
			args = b.ToolUse.Input
		}
		if err := args.Compact(); err != nil || args[0] != '{' {
			return Part{}, false, uncarried("arguments of a tool call that are no JSON object")
		}
		return Part{Kind: CallPart, Call: Call{b.ToolUse.ID, b.ToolUse.Name, string(args)}}, true, nil
	case b.Reasoning.Whole != nil:
		return Part{Kind: ReasoningPart, Text: b.Reasoning.Whole.Text, Signature: b.Reasoning.Whole.Signature}, true, nil
	}
	return Part{Kind: RedactedPart, Signature: b.Reasoning.Redacted}, true, nil
}

// known tells of what a block, or a part of one, has and other dialects have no place for,
// and reports whether anything is left. A text with its citations becomes the text.
func (b *bedrockBlock) known(o *StreamOptions) (some bool, err error) {
	if b.Cited != nil {
		text := ""
		for i := range b.Cited.Content {
			text += b.Cited.Content[i].Text
		}
		if b.Text = &text; !asksNothing(b.Cited.Citations) {
			if err := o.lose("content.citationsContent"); err != nil {
				return false, err
			}
		}
	}
	lost := false
	for _, m := range members(b.Rest) {
		if null(m.value) {
			continue
		}
		if lost = true; o.lose("content."+clean(m.name)) != nil {
			return false, uncarried("content." + clean(m.name))
		}
	}
	switch {
	case b.ToolUse != nil && b.ToolUse.Type != "":
		return false, o.lose("content.toolUse: " + clean(b.ToolUse.Type))
	case b.Reasoning != nil && len(members(b.Reasoning.Rest)) > 0:
		return false, o.lose("content.reasoningContent")
	case b.Text == nil && b.ToolUse == nil && b.Reasoning == nil && !lost:
		return false, uncarried("an empty block")
	}
	return b.Text != nil || b.ToolUse != nil || b.Reasoning != nil, nil
}
