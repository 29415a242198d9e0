package dialect

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// anthropicEvent is one event of a message's stream.
type anthropicEvent struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		ID    string `json:"id"`
		Model string `json:"model"`
	} `json:"message"`
	Block anthropicBlock `json:"content_block"`
	Delta struct {
		Type      string         `json:"type"`
		Text      string         `json:"text"`
		Thinking  string         `json:"thinking"`
		Signature string         `json:"signature"`
		Partial   string         `json:"partial_json"`
		Stop      *string        `json:"stop_reason"`
		Sequence  *string        `json:"stop_sequence"`
		Details   jsontext.Value `json:"stop_details"`
	} `json:"delta"`
}

// anthropicReader reads the events of a message.
type anthropicReader struct {
	o     *StreamOptions
	begun bool
	calls int
	open  map[int]*anthropicOpen // by index of the block
	event anthropicEvent         // room for one
}

// anthropicOpen is a block that has begun.
type anthropicOpen struct {
	kind   string
	lost   bool           // other dialects have no place for it
	call   int            // of a tool_use, among the calls of the answer
	filled bool           // some of its arguments came
	signed string         // by its last signature: one that comes later replaces it, as in its clients
	begun  jsontext.Value // the input that it began with
}

// blockStop is what ends a block, up to its index, as it is written everywhere: most
// streams have few blocks, and their ends are read without JSON.
var blockStop = []byte(`{"type":"content_block_stop","index":`)

func (r *anthropicReader) read(out []Event, data []byte) ([]Event, error) {
	if rest, ok := bytes.CutPrefix(data, blockStop); ok && len(rest) == 2 && rest[1] == '}' && digits(rest) == 1 {
		return r.stop(out, int(rest[0]-'0')), nil
	}
	r.event = anthropicEvent{}
	e := &r.event
	if err := json.Unmarshal(data, e, lenient); err != nil {
		return out, err
	}
	switch e.Type {
	case "message_start":
		if !r.begun {
			r.begun = true
			out = append(out, Event{Kind: EventStart, ID: e.Message.ID, Name: e.Message.Model})
		}
	case "content_block_start":
		return r.start(out, e)
	case "content_block_delta":
		return r.delta(out, e)
	case "content_block_stop":
		return r.stop(out, e.Index), nil
	case "message_delta":
		if !asksNothing(e.Delta.Details) {
			r.o.tell("stop_details")
		}
		if e.Delta.Stop == nil {
			break
		}
		s, err := anthropicStopOf(*e.Delta.Stop, e.Delta.Sequence)
		if err != nil {
			return out, err
		}
		out = append(out, Event{Kind: EventStop, Stop: s})
	}
	return out, nil // ping, and events that clients of the dialect pass over too
}

func (r *anthropicReader) start(out []Event, e *anthropicEvent) ([]Event, error) {
	p, ok, err := e.Block.answer(r.o)
	if err != nil {
		return out, err
	}
	out = r.stop(out, e.Index) // of a server that gives two blocks one index
	o := &anthropicOpen{kind: e.Block.Type, lost: !ok}
	if r.open == nil {
		r.open = map[int]*anthropicOpen{}
	}
	if r.open[e.Index] = o; !ok {
		return out, nil
	}
	switch p.Kind {
	case TextPart:
		out = texted(out, EventText, p.Text)
	case ReasoningPart:
		out = texted(out, EventReasoning, p.Text)
		o.signed = p.Signature
	case RedactedPart:
		out = append(out, Event{Kind: EventRedacted, Text: p.Signature})
	case CallPart:
		o.call, o.begun = r.calls, jsontext.Value(p.Call.Arguments)
		r.calls++
		out = append(out, Event{Kind: EventCall, Index: o.call, ID: p.Call.ID, Name: p.Call.Name})
	}
	return out, nil
}

func texted(out []Event, k EventKind, text string) []Event {
	if text == "" {
		return out
	}
	return append(out, Event{Kind: k, Text: text})
}

func (r *anthropicReader) delta(out []Event, e *anthropicEvent) ([]Event, error) {
	o, d := r.open[e.Index], &e.Delta
	if o == nil {
		return out, uncarried("a part of a block that has not begun")
	}
	if o.lost {
		return out, nil
	}
	switch d.Type {
	case "text_delta":
		return texted(out, EventText, d.Text), nil
	case "thinking_delta":
		return texted(out, EventReasoning, d.Thinking), nil
	case "signature_delta":
		o.signed = cmp.Or(d.Signature, o.signed)
		return out, nil
	case "input_json_delta":
		if d.Partial == "" {
			return out, nil
		}
		o.filled = true
		return append(out, Event{Kind: EventArguments, Index: o.call, Text: d.Partial}), nil
	}
	return out, r.o.lose("content: " + clean(d.Type))
}

// stop ends a block. Its signature, and arguments that came with the beginning or not at
// all, are told now.
func (r *anthropicReader) stop(out []Event, index int) []Event {
	o := r.open[index]
	if o == nil {
		return out
	}
	delete(r.open, index)
	if o.kind == "thinking" {
		return append(out, Event{Kind: EventSignature, Text: o.signed})
	}
	if o.kind != "tool_use" {
		return out
	}
	if !o.filled {
		out = append(out, Event{Kind: EventArguments, Index: o.call, Text: strings.TrimSpace(string(o.begun))})
	}
	return append(out, Event{Kind: EventCallEnd, Index: o.call})
}

// end ends the blocks that the backend has not ended.
func (r *anthropicReader) end(out []Event) []Event {
	for _, i := range slices.Sorted(maps.Keys(r.open)) {
		out = r.stop(out, i)
	}
	return out
}
