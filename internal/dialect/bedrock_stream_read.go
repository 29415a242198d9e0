package dialect

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
)

// bedrockEvent is the payload of any event of a ConverseStream: their members differ.
type bedrockEvent struct {
	Role  string        `json:"role"`
	Index *int          `json:"contentBlockIndex"`
	Start *bedrockBlock `json:"start"`
	Delta *bedrockBlock `json:"delta"`
	Stop  *string       `json:"stopReason"`
	More  *bedrockMore  `json:"additionalModelResponseFields"`
}

// bedrockReader reads the events of a ConverseStream. Only tool calls have an event
// for their beginning: other blocks begin with their first part.
type bedrockReader struct {
	o     *StreamOptions
	begun bool
	calls int
	open  map[int]*bedrockOpen // by index of the block
}

// lostPart is the kind of a block that other dialects have no place for.
const lostPart = PartKind(numPartKinds)

// bedrockOpen is a block that has begun.
type bedrockOpen struct {
	kind   PartKind
	call   int    // of a tool call, among the calls of the answer
	filled bool   // some of its arguments came
	signed string // what came of its signature
}

func (r *bedrockReader) read(out []Event, data []byte) ([]Event, error) {
	var e bedrockEvent
	if err := json.Unmarshal(data, &e, lenient); err != nil {
		return out, err
	}
	switch {
	case e.Role != "":
		if !r.begun {
			r.begun = true
			out = append(out, Event{Kind: EventStart})
		}
	case e.Start != nil && e.Index != nil:
		return r.start(out, *e.Index, e.Start)
	case e.Delta != nil && e.Index != nil:
		return r.delta(out, *e.Index, e.Delta)
	case e.Index != nil:
		return r.stop(out, *e.Index), nil
	case e.Stop != nil:
		s, err := bedrockStop(*e.Stop, e.More)
		if err != nil {
			return out, err
		}
		return append(out, Event{Kind: EventStop, Stop: s}), nil
	}
	return out, nil // metadata, which the tap reads, and events that nobody knows
}

func (r *bedrockReader) start(out []Event, index int, b *bedrockBlock) ([]Event, error) {
	ok, err := b.known(r.o)
	if err != nil {
		return out, err
	}
	if !ok {
		r.block(index, lostPart)
		return out, nil
	}
	if b.ToolUse == nil {
		return r.delta(out, index, b)
	}
	out = r.stop(out, index) // of a server that gives two blocks one index
	o := r.block(index, CallPart)
	o.call = r.calls
	r.calls++
	return append(out, Event{Kind: EventCall, Index: o.call, ID: b.ToolUse.ID, Name: b.ToolUse.Name}), nil
}

// block is the open block of an index, which begins where there is none.
func (r *bedrockReader) block(index int, k PartKind) *bedrockOpen {
	if o := r.open[index]; o != nil {
		return o
	}
	if r.open == nil {
		r.open = map[int]*bedrockOpen{}
	}
	o := &bedrockOpen{kind: k}
	r.open[index] = o
	return o
}

func (r *bedrockReader) delta(out []Event, index int, d *bedrockBlock) ([]Event, error) {
	if o := r.open[index]; o != nil && o.kind == lostPart {
		return out, nil
	}
	if ok, err := d.known(r.o); !ok || err != nil {
		return out, err
	}
	switch {
	case d.Text != nil:
		r.block(index, TextPart)
		return texted(out, EventText, *d.Text), nil
	case d.ToolUse != nil:
		o := r.open[index]
		if o == nil || o.kind != CallPart {
			return out, uncarried("arguments of a tool call that has not begun")
		}
		fragment, ok := plainText(d.ToolUse.Input)
		if !ok {
			return out, uncarried("arguments of a tool call that are no text")
		}
		if fragment == "" {
			return out, nil
		}
		o.filled = true
		return append(out, Event{Kind: EventArguments, Index: o.call, Text: fragment}), nil
	}
	return r.reasoning(out, index, d.Reasoning), nil
}

func (r *bedrockReader) reasoning(out []Event, index int, d *bedrockReasoning) []Event {
	o := r.block(index, ReasoningPart)
	if d.Redacted != "" {
		o.kind = RedactedPart
		return append(out, Event{Kind: EventRedacted, Text: d.Redacted})
	}
	out = texted(out, EventReasoning, d.Text)
	o.signed += d.Signature
	return out
}

// stop ends a block. Its signature, and arguments of which none came, are told now.
func (r *bedrockReader) stop(out []Event, index int) []Event {
	o := r.open[index]
	if o == nil {
		return out
	}
	delete(r.open, index)
	switch {
	case o.kind == ReasoningPart:
		return append(out, Event{Kind: EventSignature, Text: o.signed})
	case o.kind != CallPart:
		return out
	case !o.filled:
		out = append(out, Event{Kind: EventArguments, Index: o.call, Text: "{}"})
	}
	return append(out, Event{Kind: EventCallEnd, Index: o.call})
}

// end ends the blocks that the backend has not ended.
func (r *bedrockReader) end(out []Event) []Event {
	for _, i := range slices.Sorted(maps.Keys(r.open)) {
		out = r.stop(out, i)
	}
	return out
}
