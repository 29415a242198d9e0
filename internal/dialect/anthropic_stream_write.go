package dialect

import (
	"strconv"
)

// anthropicWriter writes the events of a message. Blocks follow each other; only
// tool calls whose fragments come mixed are open side by side.
type anthropicWriter struct {
	o    *StreamOptions
	next int                  // index of the next block
	open []anthropicBlockOpen // in order of index
	stop Stop
}

// anthropicBlockOpen is a block that the client has not seen the end of.
type anthropicBlockOpen struct {
	kind  PartKind
	index int
	call  int
	args  nesting
}

func (w *anthropicWriter) write(b []byte, e *Event) ([]byte, error) {
	switch e.Kind {
	case EventStart:
		return w.start(b, e), nil
	case EventText, EventRefusal:
		b = w.ensure(b, TextPart, `{"type":"text","text":""}`)
		return w.delta(b, "text_delta", "text", e.Text), nil
	case EventReasoning:
		b = w.ensure(b, ReasoningPart, `{"type":"thinking","thinking":"","signature":""}`)
		return w.delta(b, "thinking_delta", "thinking", e.Text), nil
	case EventSignature:
		if e.Text != "" {
			b = w.ensure(b, ReasoningPart, `{"type":"thinking","thinking":"","signature":""}`)
			b = w.delta(b, "signature_delta", "signature", e.Text)
		}
		return w.closeAll(b), nil
	case EventRedacted:
		b = w.closeAll(b)
		b = w.begin(b, RedactedPart, string(append(pair([]byte(`{"type":"redacted_thinking"`), "data", e.Text), '}')))
		return w.closeAll(b), nil
	case EventCall:
		return w.call(b, e), nil
	case EventArguments:
		return w.arguments(b, e)
	case EventCallEnd:
		for i := range w.open {
			if w.open[i].kind == CallPart && w.open[i].call == e.Index {
				return w.close(b, i), nil
			}
		}
	case EventStop:
		w.stop = e.Stop
	case EventEnd:
		return w.end(b), nil
	}
	return b, nil
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

// ensure has a block of the kind open, and no other.
func (w *anthropicWriter) ensure(b []byte, k PartKind, block string) []byte {
	if n := len(w.open); n == 1 && w.open[0].kind == k {
		return b
	}
	return w.begin(w.closeAll(b), k, block)
}

func (w *anthropicWriter) begin(b []byte, k PartKind, block string) []byte {
	w.open = append(w.open, anthropicBlockOpen{kind: k, index: w.next})
	b = event(b, "content_block_start")
	b = figure(b, "index", int64(w.next))
	b = append(key(b, "content_block"), block...)
	w.next++
	return append(b, "}\n\n"...)
}

func (w *anthropicWriter) delta(b []byte, kind, name, s string) []byte {
	return w.deltaAt(b, w.open[len(w.open)-1].index, kind, name, s)
}

func (w *anthropicWriter) deltaAt(b []byte, index int, kind, name, s string) []byte {
	b = append(b, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":"...)
	b = strconv.AppendInt(b, int64(index), 10)
	b = append(b, `,"delta":{"type":"`...)
	b = append(b, kind...)
	b = append(b, `","`...)
	b = append(b, name...)
	b = append(b, `":`...)
	b = text(b, s)
	return append(b, "}}\n\n"...)
}

func (w *anthropicWriter) close(b []byte, i int) []byte {
	b = figure(event(b, "content_block_stop"), "index", int64(w.open[i].index))
	w.open = append(w.open[:i], w.open[i+1:]...)
	return append(b, "}\n\n"...)
}

func (w *anthropicWriter) closeAll(b []byte) []byte {
	for len(w.open) > 0 {
		b = w.close(b, 0)
	}
	return b
}

// call begins a tool call. One before it whose arguments are not whole yet stays
// open: its fragments may still come.
func (w *anthropicWriter) call(b []byte, e *Event) []byte {
	for i := 0; i < len(w.open); {
		if o := &w.open[i]; o.kind == CallPart && !o.args.whole() {
			i++
			continue
		}
		b = w.close(b, i)
	}
	block := append(pair(pair([]byte(`{"type":"tool_use"`), "id", e.ID), "name", e.Name), `,"input":{}}`...)
	b = w.begin(b, CallPart, string(block))
	w.open[len(w.open)-1].call = e.Index
	return b
}

func (w *anthropicWriter) arguments(b []byte, e *Event) ([]byte, error) {
	for i := range w.open {
		if o := &w.open[i]; o.kind == CallPart && o.call == e.Index {
			o.args.add(e.Text)
			return w.deltaAt(b, o.index, "input_json_delta", "partial_json", e.Text), nil
		}
	}
	return b, uncarried("arguments of a tool call that has ended")
}

func (w *anthropicWriter) end(b []byte) []byte {
	b = w.closeAll(b)
	u := w.o.Usage()
	b = append(event(b, "message_delta"), `,"delta":{`...)
	b = append(anthropicEnd(b, w.stop), '}')
	b = append(anthropicUsage(key(b, "usage"), &u), "}\n\n"...)
	return append(event(b, "message_stop"), "}\n\n"...)
}

// nesting follows fragments of a JSON object to its end.
type nesting struct {
	depth         int
	begun         bool
	inside, quote bool // of a string, after a backslash in it
}

func (n *nesting) add(fragment string) {
	for i := range len(fragment) {
		switch c := fragment[i]; {
		case n.quote:
			n.quote = false
		case n.inside && c == '\\':
			n.quote = true
		case c == '"':
			n.inside = !n.inside
		case n.inside:
		case c == '{' || c == '[':
			n.depth++
			n.begun = true
		case c == '}' || c == ']':
			n.depth--
		}
	}
}

// whole reports whether the object has ended.
func (n *nesting) whole() bool { return n.begun && n.depth <= 0 }
