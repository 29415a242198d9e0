package dialect

import (
	"cmp"

	"github.com/go-json-experiment/json"
)

// openaiReader reads the chunks of a chat completion.
type openaiReader struct {
	o     *StreamOptions
	begun bool
	turns turns[openaiTurn]
}

// openaiTurn is what is known of one answer.
type openaiTurn struct {
	id      string       // of which ids of calls are made, where the server gives none
	calls   []openaiOpen // by their order in the answer
	parts   []Part       // room for those of a delta
	refused bool
}

// openaiOpen is a tool call whose arguments may go on.
type openaiOpen struct {
	index int
	id    string // empty if the server gives none
	args  nesting
}

// goesOn reports whether a fragment is one of this call. Some servers give all calls of an
// answer the same index: there another call is one that has a name, and another id or
// arguments that come after whole ones. Some give each fragment an id of its own, which
// says nothing.
func (o *openaiOpen) goesOn(c *openaiCallDelta) bool {
	switch {
	case c.Function.Name == "":
		return true
	case c.ID != "":
		return c.ID == o.id
	}
	return !o.args.whole() || c.Function.Arguments == ""
}

func (r *openaiReader) read(out []Event, data []byte) ([]Event, error) {
	var c openaiAnswer
	if err := json.Unmarshal(data, &c, lenient); err != nil {
		return out, err
	}
	if err := c.lost(r.o); err != nil {
		return out, err
	}
	if !r.begun && (c.ID != "" || len(c.Choices) > 0) {
		r.begun = true
		out = append(out, Event{Kind: EventStart, ID: c.ID, Name: c.Model, Created: c.Created})
	}
	for i := range c.Choices {
		choice := &c.Choices[i]
		if choice.Index < 0 || choice.Index >= maxAnswers {
			return out, uncarried("more answers than can be asked for")
		}
		nth := int(choice.Index)
		t, from := r.turns.at(nth), len(out)
		t.id = answerID(r.o.ID, nth)
		err := cmp.Or(choice.Delta.strange(), choice.Delta.lost(r.o, "delta"))
		if err != nil {
			return out, err
		}
		if out, err = t.delta(out, &choice.Delta, choice.Logprobs.Content); err != nil {
			return out, err
		}
		if choice.Finish != nil && *choice.Finish != "" {
			s, err := choice.stop(len(t.calls) > 0, t.refused)
			if err != nil {
				return out, err
			}
			out = append(out, Event{Kind: EventStop, Stop: s})
		}
		nthAnswer(out[from:], nth)
	}
	return out, nil
}

func (r *openaiTurn) delta(out []Event, d *openaiDelta, logprobs []Logprob) ([]Event, error) {
	r.parts = d.said(r.parts[:0])
	for i := range r.parts {
		switch p := &r.parts[i]; p.Kind {
		case ReasoningPart:
			out = append(out, Event{Kind: EventReasoning, Text: p.Text})
		case RefusalPart:
			r.refused = true
			out = append(out, Event{Kind: EventRefusal, Text: p.Text})
		default:
			out = append(out, Event{Kind: EventText, Text: p.Text, Logprobs: logprobs})
			logprobs = nil
		}
	}
	if len(logprobs) > 0 {
		out = append(out, Event{Kind: EventText, Logprobs: logprobs})
	}
	for i := range d.ToolCalls {
		out = r.call(out, &d.ToolCalls[i])
	}
	return out, nil
}

// call reads a fragment of a tool call. One of an index that has not been seen
// begins a call; a server that gives no index begins one with each id.
func (r *openaiTurn) call(out []Event, c *openaiCallDelta) []Event {
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
	if at >= 0 && !r.calls[at].goesOn(c) {
		at = -1
	}
	if at < 0 {
		at = len(r.calls)
		index := at
		if c.Index != nil {
			index = *c.Index
		}
		r.calls = append(r.calls, openaiOpen{index: index, id: c.ID})
		out = append(out, Event{Kind: EventCall, Index: at, ID: callID(c.ID, r.id, at), Name: c.Function.Name})
	}
	if c.Function.Arguments != "" {
		r.calls[at].args.add(c.Function.Arguments)
		out = append(out, Event{Kind: EventArguments, Index: at, Text: c.Function.Arguments})
	}
	return out
}

func (r *openaiReader) end(out []Event) []Event {
	for nth, t := range r.turns {
		if t == nil {
			continue
		}
		for i := range t.calls {
			out = append(out, Event{Kind: EventCallEnd, Nth: nth, Index: i})
		}
	}
	return out
}
