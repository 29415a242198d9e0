package dialect

import (
	"slices"
	"strconv"
	"strings"
)

// anthropicWriter writes the events of a message. Blocks follow each other strictly, as
// clients of the dialect take them: what comes for one while a tool call before it is not
// whole waits until that has ended.
type anthropicWriter struct {
	o     *StreamOptions
	next  int                  // index of the next block
	open  []anthropicBlockOpen // the first is open at the client, the others wait
	ended []int                // calls of the blocks that have ended
	held  int                  // bytes that wait
	part  bool                 // the arguments of a call were not whole, or no object
	stop  Stop
}

// anthropicBlockOpen is a block that the client has not seen the end of.
type anthropicBlockOpen struct {
	kind  PartKind
	block string // that it begins with
	call  int
	args  nesting
	lead  string // of arguments, what came before the object
	over  bool   // all of it has come
	waits []anthropicDelta
}

// anthropicDelta is a part of a block.
type anthropicDelta struct{ kind, name, text string }

// maxHeld bounds what waits for the end of a block, in bytes, and maxWaiting the blocks.
const (
	maxHeld    = 8 << 20
	maxWaiting = 4 << 10
)

func (w *anthropicWriter) write(b []byte, e *Event) ([]byte, error) {
	switch e.Kind {
	case EventStart:
		return w.start(b, e), nil
	case EventText, EventRefusal:
		b = w.ensure(b, TextPart, `{"type":"text","text":""}`)
		return w.add(b, len(w.open)-1, anthropicDelta{"text_delta", "text", e.Text})
	case EventReasoning:
		b = w.ensure(b, ReasoningPart, emptyThinking)
		return w.add(b, len(w.open)-1, anthropicDelta{"thinking_delta", "thinking", e.Text})
	case EventSignature:
		return w.signature(b, e.Text)
	case EventRedacted:
		b = w.begin(b, RedactedPart, string(append(pair([]byte(`{"type":"redacted_thinking"`), "data", e.Text), '}')))
		return w.over(b), nil
	case EventCall:
		b = w.begin(b, CallPart, string(append(pair(pair([]byte(`{"type":"tool_use"`), "id", e.ID), "name", e.Name), `,"input":{}}`...)))
		w.open[len(w.open)-1].call = e.Index
		return b, w.bounded()
	case EventArguments:
		return w.arguments(b, e)
	case EventCallEnd:
		if i := w.callAt(e.Index); i >= 0 {
			w.open[i].over = true
			return w.advance(b), nil
		}
	case EventStop:
		w.stop = e.Stop
	case EventEnd:
		return w.end(b)
	}
	return b, nil
}

const emptyThinking = `{"type":"thinking","thinking":"","signature":""}`

// signature ends a block of reasoning.
func (w *anthropicWriter) signature(b []byte, signature string) ([]byte, error) {
	var err error
	if signature != "" {
		b = w.ensure(b, ReasoningPart, emptyThinking)
		b, err = w.add(b, len(w.open)-1, anthropicDelta{"signature_delta", "signature", signature})
	}
	return w.over(b), err
}

func (w *anthropicWriter) passed(EventKind, []byte) error { return nil }

// event appends the beginning of an event and of its data.
func event(b []byte, name string) []byte {
	b = append(b, "event: "...)
	b = append(b, name...)
	b = append(b, "\ndata: {\"type\":\""...)
	b = append(b, name...)
	return append(b, '"')
}

func (w *anthropicWriter) start(b []byte, e *Event) []byte {
	b = append(event(b, "message_start"), `,"message":{`...)
	b = pair(pair(pair(pair(b, "id", e.ID), "type", "message"), "role", "assistant"), "model", e.Name)
	return append(b, `,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0}}}`+"\n\n"...)
}

// ensure has a block of the kind last, and going on.
func (w *anthropicWriter) ensure(b []byte, k PartKind, block string) []byte {
	if n := len(w.open); n > 0 && w.open[n-1].kind == k && !w.open[n-1].over {
		return b
	}
	return w.begin(b, k, block)
}

// begin begins a block, at once if all before it have ended. Those that are no calls, and
// calls whose arguments are whole, end with it.
func (w *anthropicWriter) begin(b []byte, k PartKind, block string) []byte {
	for i := range w.open {
		o := &w.open[i]
		o.over = o.over || o.kind != CallPart || o.args.whole()
	}
	b = w.advance(b)
	if w.open = append(w.open, anthropicBlockOpen{kind: k, block: block}); len(w.open) == 1 {
		b = w.head(b)
	}
	return b
}

// head writes the beginning of the first block, and what has waited for it.
func (w *anthropicWriter) head(b []byte) []byte {
	o := &w.open[0]
	b = figure(event(b, "content_block_start"), "index", int64(w.next))
	b = append(append(key(b, "content_block"), o.block...), "}\n\n"...)
	for _, d := range o.waits {
		w.held -= len(d.text)
		b = w.delta(b, d)
	}
	o.waits = nil
	return b
}

// over ends the last block: what follows is another.
func (w *anthropicWriter) over(b []byte) []byte {
	if n := len(w.open); n > 0 && w.open[n-1].kind != CallPart {
		w.open[n-1].over = true
	}
	return w.advance(b)
}

// advance ends the blocks that are over, up to the first that is not.
func (w *anthropicWriter) advance(b []byte) []byte {
	for len(w.open) > 0 && w.open[0].over {
		if o := &w.open[0]; o.kind == CallPart {
			w.ended = append(w.ended, o.call)
			_, none := objectOf(o.lead, Stop{})
			w.part = w.part || !o.args.whole() && (o.args.begun || !none)
		}
		b = append(figure(event(b, "content_block_stop"), "index", int64(w.next)), "}\n\n"...)
		w.next++
		if w.open = append(w.open[:0], w.open[1:]...); len(w.open) > 0 {
			b = w.head(b)
		}
	}
	return b
}

// add adds to the block at i, which waits if it is not the first.
func (w *anthropicWriter) add(b []byte, i int, d anthropicDelta) ([]byte, error) {
	if i == 0 {
		return w.delta(b, d), nil
	}
	w.held += len(d.text)
	w.open[i].waits = append(w.open[i].waits, d)
	return b, w.bounded()
}

func (w *anthropicWriter) bounded() error {
	if w.held > maxHeld || len(w.open) > maxWaiting {
		return uncarried("more parts side by side than can wait for each other")
	}
	return nil
}

// delta appends a part of the first block.
func (w *anthropicWriter) delta(b []byte, d anthropicDelta) []byte {
	b = append(b, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":"...)
	b = strconv.AppendInt(b, int64(w.next), 10)
	b = append(b, `,"delta":{"type":"`...)
	b = append(b, d.kind...)
	b = append(b, `","`...)
	b = append(b, d.name...)
	b = append(b, `":`...)
	b = text(b, d.text)
	return append(b, "}}\n\n"...)
}

// callAt is where the block of a call stands, -1 if it has ended.
func (w *anthropicWriter) callAt(call int) int {
	return slices.IndexFunc(w.open, func(o anthropicBlockOpen) bool { return o.kind == CallPart && o.call == call })
}

// arguments adds to a call. The end of one before which others wait is that of its JSON.
func (w *anthropicWriter) arguments(b []byte, e *Event) ([]byte, error) {
	i := w.callAt(e.Index)
	if i < 0 {
		if slices.Contains(w.ended, e.Index) && strings.TrimSpace(e.Text) == "" {
			return b, nil
		}
		return b, uncarried("arguments of a tool call that has ended")
	}
	o := &w.open[i]
	if o.args.add(e.Text); !o.args.begun {
		w.held += len(e.Text)
		o.lead += e.Text // null is no object, and means none
		return b, w.bounded()
	}
	fragment := strings.TrimLeft(o.lead, " \t\r\n") + e.Text
	w.held -= len(o.lead)
	o.lead = ""
	b, err := w.add(b, i, anthropicDelta{"input_json_delta", "partial_json", fragment})
	if i < len(w.open)-1 && o.args.whole() {
		o.over = true
	}
	return w.advance(b), err
}

func (w *anthropicWriter) end(b []byte) ([]byte, error) {
	for i := range w.open {
		w.open[i].over = true
	}
	if b = w.advance(b); w.part && !w.stop.cutsOff() {
		return b, uncarried("arguments of a tool call that are no JSON object")
	}
	u := w.o.Usage()
	b = append(event(b, "message_delta"), `,"delta":{`...)
	b = append(anthropicEnd(b, w.stop), '}')
	b = append(anthropicUsage(key(b, "usage"), &u), "}\n\n"...)
	return append(event(b, "message_stop"), "}\n\n"...), nil
}
