package dialect

import (
	"github.com/go-json-experiment/json"
)

// openaiReader reads the chunks of a chat completion.
type openaiReader struct {
	begun   bool
	id      string
	calls   []openaiOpen // by their order in the answer
	refused bool
	stop    Stop
}

// openaiOpen is a tool call whose arguments may go on.
type openaiOpen struct{ index int }

func (r *openaiReader) read(out []Event, data []byte) ([]Event, error) {
	var c openaiAnswer
	if err := json.Unmarshal(data, &c, lenient); err != nil {
		return out, err
	}
	if !r.begun && (c.ID != "" || len(c.Choices) > 0) {
		r.begun, r.id = true, c.ID
		out = append(out, Event{Kind: EventStart, ID: c.ID, Name: c.Model, Created: c.Created})
	}
	for i := range c.Choices {
		choice := &c.Choices[i]
		if choice.Index != 0 {
			return out, uncarried("several choices")
		}
		var err error
		if out, err = r.delta(out, &choice.Delta, choice.Logprobs.Content); err != nil {
			return out, err
		}
		if choice.Finish != nil && *choice.Finish != "" {
			if r.stop, err = choice.stop(len(r.calls) > 0, r.refused); err != nil {
				return out, err
			}
			out = append(out, Event{Kind: EventStop, Stop: r.stop})
		}
	}
	return out, nil
}

func (r *openaiReader) delta(out []Event, d *openaiDelta, logprobs []Logprob) ([]Event, error) {
	if err := d.strange(); err != nil {
		return out, err
	}
	add := func(k EventKind, text string) {
		if text != "" {
			out = append(out, Event{Kind: k, Text: text})
		}
	}
	add(EventReasoning, d.reasoning())
	if text := d.texts(); text != "" || len(logprobs) > 0 {
		out = append(out, Event{Kind: EventText, Text: text, Logprobs: logprobs})
	}
	if d.Refusal != "" {
		r.refused = true
		add(EventRefusal, d.Refusal)
	}
	for i := range d.ToolCalls {
		out = r.call(out, &d.ToolCalls[i])
	}
	return out, nil
}

// call reads a fragment of a tool call. One of an index that has not been seen
// begins a call; a server that gives no index begins one with each id.
func (r *openaiReader) call(out []Event, c *openaiCallDelta) []Event {
	at := -1
	switch {
	case c.Index == nil && c.ID == "" && len(r.calls) > 0:
		at = len(r.calls) - 1
	case c.Index != nil:
		for i := range r.calls {
			if r.calls[i].index == *c.Index {
				at = i
			}
		}
	}
	if at < 0 {
		at = len(r.calls)
		index := at
		if c.Index != nil {
			index = *c.Index
		}
		r.calls = append(r.calls, openaiOpen{index})
		out = append(out, Event{Kind: EventCall, Index: at, ID: callID(c.ID, r.id, at), Name: c.Function.Name})
	}
	if c.Function.Arguments != "" {
		out = append(out, Event{Kind: EventArguments, Index: at, Text: c.Function.Arguments})
	}
	return out
}

func (r *openaiReader) end(out []Event) []Event {
	for i := range r.calls {
		out = append(out, Event{Kind: EventCallEnd, Index: i})
	}
	return out
}
