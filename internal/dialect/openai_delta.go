package dialect

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// openaiDelta is a message of an answer, or a part of one.
type openaiDelta struct {
	Content   content[openaiSaid] `json:"content"`
	Reasoning string              `json:"reasoning_content"`
	Thought   string              `json:"reasoning"`
	Refusal   string              `json:"refusal"`
	ToolCalls []openaiCallDelta   `json:"tool_calls"`
	Function  jsontext.Value      `json:"function_call"`
	Role      jsontext.Value      `json:"role"`
	Details   []openaiReasoning   `json:"reasoning_details"`
	Rest      jsontext.Value      `json:",embed"`
}

// openaiLabels are members of a message that say nothing of what it says.
var openaiLabels = []string{"name", "tool_call_id", "token_ids", "prefix", "provider_specific_fields"}

// openaiSaid is a part of the content of an answer, which most servers send as one text.
// Mistral's models reason in parts of it.
type openaiSaid struct {
	Type     string              `json:"type"`
	Text     string              `json:"text"`
	Refusal  string              `json:"refusal"`
	Thinking content[openaiSaid] `json:"thinking"`
}

type openaiCallDelta struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// reasoning is the reasoning of a delta under either of its names.
func (d *openaiDelta) reasoning() string {
	if d.Reasoning != "" {
		return d.Reasoning
	}
	return d.Thought
}

// strange is the error for a delta that has what no other dialect can carry.
func (d *openaiDelta) strange() error {
	switch {
	case !null(d.Function):
		return uncarried("a function_call")
	}
	for i := range d.ToolCalls {
		if k := d.ToolCalls[i].Type; k != "" && k != "function" {
			return uncarried("a tool call of type " + clean(k))
		}
	}
	return nil
}

// lost tells of what other dialects have no place for: annotations, pictures, sound,
// parts of other kinds, and members that nobody knows. That reasoning is signed is a hint,
// which chat has clients give back and others do not.
func (d *openaiDelta) lost(o *StreamOptions, at string) error {
	for i := range d.Content.parts {
		if k := d.Content.parts[i].Type; k != "text" && k != "refusal" && k != "thinking" {
			if err := o.lose(at + ".content: " + clean(k)); err != nil {
				return err
			}
		}
	}
	for i := range d.Details {
		if r := &d.Details[i]; r.Signature != "" || r.Data != "" {
			o.tell(at + ".reasoning_details")
		}
	}
	for _, m := range members(d.Rest) {
		if asksNothing(m.value) || slices.Contains(openaiLabels, m.name) {
			continue
		}
		if err := o.lose(at + "." + clean(m.name)); err != nil {
			return err
		}
	}
	return nil
}

// said appends the reasoning, the texts and the refusals of a delta in their order,
// neighbours of a kind as one.
func (d *openaiDelta) said(out []Part) []Part {
	from := len(out)
	add := func(k PartKind, text string) {
		switch n := len(out); {
		case text == "":
		case n > from && out[n-1].Kind == k:
			out[n-1].Text += text
		default:
			out = append(out, Part{Kind: k, Text: text})
		}
	}
	add(ReasoningPart, d.reasoning())
	add(TextPart, d.Content.text)
	for i := range d.Content.parts {
		switch p := &d.Content.parts[i]; p.Type {
		case "thinking":
			add(ReasoningPart, p.Thinking.text)
			for j := range p.Thinking.parts {
				add(ReasoningPart, p.Thinking.parts[j].Text)
			}
		case "refusal":
			add(RefusalPart, p.Refusal)
		case "text":
			add(TextPart, p.Text)
		}
	}
	add(RefusalPart, d.Refusal)
	return out
}
