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
	Rest      jsontext.Value    `json:",embed"`
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

func parseBedrockAnswer(body []byte, _ *StreamOptions) (*Answer, error) {
	var in bedrockAnswer
	if err := json.Unmarshal(body, &in, lenient); err != nil {
		return nil, err
	}
	a := &Answer{}
	blocks := in.Output.Message.Content
	for i := range blocks {
		p, err := blocks[i].answer()
		if err != nil {
			return nil, err
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

// answer is a whole block.
func (b *bedrockBlock) answer() (Part, error) {
	if err := b.strange(); err != nil {
		return Part{}, err
	}
	switch {
	case b.Text != nil:
		return Part{Kind: TextPart, Text: *b.Text}, nil
	case b.ToolUse != nil:
		args := jsontext.Value("{}")
		if !null(b.ToolUse.Input) {
			args = b.ToolUse.Input
		}
		if err := args.Compact(); err != nil || args[0] != '{' {
			return Part{}, uncarried("arguments of a tool call that are no JSON object")
		}
		return Part{Kind: CallPart, Call: Call{b.ToolUse.ID, b.ToolUse.Name, string(args)}}, nil
	case b.Reasoning.Whole != nil:
		return Part{Kind: ReasoningPart, Text: b.Reasoning.Whole.Text, Signature: b.Reasoning.Whole.Signature}, nil
	}
	return Part{Kind: RedactedPart, Signature: b.Reasoning.Redacted}, nil
}

// strange is the error for a block, or a part of one, that no other dialect can carry.
func (b *bedrockBlock) strange() error {
	for _, m := range members(b.Rest) {
		if !null(m.value) {
			return uncarried("a block of type " + clean(m.name))
		}
	}
	switch {
	case b.ToolUse != nil && b.ToolUse.Type != "":
		return uncarried("a tool call of type " + clean(b.ToolUse.Type))
	case b.Reasoning != nil && len(members(b.Reasoning.Rest)) > 0:
		return uncarried("reasoning of another kind")
	case b.Text == nil && b.ToolUse == nil && b.Reasoning == nil:
		return uncarried("an empty block")
	}
	return nil
}
