package dialect

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// responsesEvent is one event of a response's stream.
type responsesEvent struct {
	Type     string        `json:"type"`
	Output   int           `json:"output_index"`
	Part     int           `json:"summary_index"`
	Delta    string        `json:"delta"`
	Logprobs []Logprob     `json:"logprobs"`
	Item     responsesItem `json:"item"`
	Content  struct {
		Type        string         `json:"type"`
		Annotations jsontext.Value `json:"annotations"`
	} `json:"part"`
	Response responsesState `json:"response"`
}

// responsesReader reads the events of a response.
type responsesReader struct {
	o       *StreamOptions
	begun   bool
	items   map[int]*responsesOpen // by output_index
	calls   int
	refused bool
	stopped bool
	event   responsesEvent // room for one
}

// responsesOpen is an item that has begun.
type responsesOpen struct {
	call   int // of a function_call, among the calls of the answer
	id     string
	filled bool // some of its text or of its arguments came
	part   int  // of the summary that is told
	done   bool
}

func (r *responsesReader) read(out []Event, data []byte) ([]Event, error) {
	r.event = responsesEvent{}
	e := &r.event
	if err := json.Unmarshal(data, e, lenient); err != nil {
		return out, err
	}
	switch e.Type {
	case "response.created", "response.in_progress", "response.queued":
		return r.start(out, e), nil
	case "response.output_item.added":
		return r.added(out, e)
	case "response.output_item.done":
		return r.done(out, e)
	case "response.output_text.delta":
		o := r.open(e)
		o.filled = true
		if e.Delta != "" || len(e.Logprobs) > 0 {
			out = append(out, Event{Kind: EventText, Text: e.Delta, Logprobs: e.Logprobs})
		}
	case "response.refusal.delta":
		r.open(e).filled, r.refused = true, true
		out = texted(out, EventRefusal, e.Delta)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		o := r.open(e)
		if e.Part > o.part && o.filled {
			out = append(out, Event{Kind: EventReasoning, Text: betweenSummaries})
		}
		o.part, o.filled = e.Part, true
		out = texted(out, EventReasoning, e.Delta)
	case "response.function_call_arguments.delta":
		o := r.open(e)
		if e.Delta != "" {
			o.filled = true
			out = append(out, Event{Kind: EventArguments, Index: o.call, Text: e.Delta})
		}
	case "response.output_text.annotation.added":
		return out, r.o.lose("output.content.annotations")
	case "response.content_part.added", "response.content_part.done":
		_, _, err := (&responsesPart{Type: e.Content.Type, Annotations: e.Content.Annotations}).answer(r.o)
		return out, err
	case "response.completed", "response.incomplete":
		return r.stop(r.start(out, e), e)
	}
	return out, nil // what ends a part says again what its deltas have said
}

func (r *responsesReader) start(out []Event, e *responsesEvent) []Event {
	if r.begun || e.Response.ID == "" {
		return out
	}
	r.begun = true
	return append(out, Event{Kind: EventStart, ID: e.Response.ID, Name: e.Response.Model, Created: int64(e.Response.Created)})
}

// open is the item of an event.
func (r *responsesReader) open(e *responsesEvent) *responsesOpen {
	if r.items == nil {
		r.items = map[int]*responsesOpen{}
	}
	o := r.items[e.Output]
	if o == nil {
		o = &responsesOpen{call: -1}
		r.items[e.Output] = o
	}
	return o
}

func (r *responsesReader) added(out []Event, e *responsesEvent) ([]Event, error) {
	o := r.open(e)
	switch e.Item.Type {
	case "message", "reasoning":
		return out, nil
	case "function_call":
		if o.call >= 0 && o.id == e.Item.CallID {
			return out, nil
		}
		if o.call >= 0 { // of a server that gives two items one index
			if !o.done {
				out = append(out, Event{Kind: EventCallEnd, Index: o.call})
			}
			*o = responsesOpen{}
		}
		o.call, o.id = r.calls, e.Item.CallID
		r.calls++
		out = append(out, Event{Kind: EventCall, Index: o.call, ID: e.Item.CallID, Name: e.Item.Name})
		if e.Item.Arguments != "" {
			o.filled = true
			out = append(out, Event{Kind: EventArguments, Index: o.call, Text: e.Item.Arguments})
		}
		return out, nil
	}
	return out, e.Item.lost(r.o)
}

// done ends an item. What its deltas have not told is told now.
func (r *responsesReader) done(out []Event, e *responsesEvent) ([]Event, error) {
	o := r.open(e)
	if o.done {
		return out, nil
	}
	parts, err := e.Item.answer(r.o)
	if err != nil {
		return out, err
	}
	if e.Item.Type == "function_call" && (o.call < 0 || o.id != e.Item.CallID) {
		if out, err = r.added(out, e); err != nil {
			return out, err
		}
	}
	o.done = true
	for i := range parts {
		switch p := &parts[i]; p.Kind {
		case TextPart, RefusalPart:
			if !o.filled {
				out = r.said(out, p)
			}
		case CallPart:
			if !o.filled {
				out = append(out, Event{Kind: EventArguments, Index: o.call, Text: p.Call.Arguments})
			}
			out = append(out, Event{Kind: EventCallEnd, Index: o.call})
		case RedactedPart:
			out = append(out, Event{Kind: EventRedacted, Text: p.Signature})
		case ReasoningPart:
			if !o.filled {
				out = texted(out, EventReasoning, p.Text)
			}
			out = append(out, Event{Kind: EventSignature, Text: p.Signature})
		}
	}
	return out, nil
}

func (r *responsesReader) said(out []Event, p *Part) []Event {
	if p.Kind == RefusalPart {
		r.refused = true
		return texted(out, EventRefusal, p.Text)
	}
	if p.Text == "" && len(p.Logprobs) == 0 {
		return out
	}
	return append(out, Event{Kind: EventText, Text: p.Text, Logprobs: p.Logprobs})
}

func (r *responsesReader) stop(out []Event, e *responsesEvent) ([]Event, error) {
	if r.stopped {
		return out, nil
	}
	r.stopped = true
	s, err := e.Response.stop(r.calls > 0, r.refused)
	if err != nil {
		return out, err
	}
	return append(out, Event{Kind: EventStop, Stop: s}), nil
}

func (r *responsesReader) last(out []Event, data []byte) ([]Event, error) { return r.read(out, data) }

func (r *responsesReader) end(out []Event) []Event { return out }
