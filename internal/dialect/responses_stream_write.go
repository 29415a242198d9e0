package dialect

import (
	"strconv"

	"sluice"
)

// maxResponse bounds the answer that a stream keeps for its last event, which repeats
// all of it, in bytes.
const maxResponse = 32 << 20

// responsesWriter writes the events of a response. Items follow each other; only calls
// whose fragments come mixed are open side by side.
type responsesWriter struct {
	o    *StreamOptions
	head responsesHead
	out  responsesOutput
	next int64 // number of the next event
	kept int   // bytes of out
	stop Stop
}

func newResponsesWriter(o *StreamOptions) *responsesWriter {
	return &responsesWriter{o: o, stop: Stop{Reason: StopEnd}}
}

func (w *responsesWriter) sequence() int64 { return w.next }

func (w *responsesWriter) passed(k EventKind, text []byte) error {
	w.next++
	if k == EventReasoning {
		x := w.last(ReasoningPart)
		x.text = append(x.text, text...)
	} else {
		parts := w.last(TextPart).parts
		p := parts[len(parts)-1]
		p.text = append(p.text, text...)
	}
	return w.keep(len(text))
}

// keep counts what is kept for the last event.
func (w *responsesWriter) keep(n int) error {
	if w.kept += n; w.kept > maxResponse {
		return &sluice.Error{Kind: sluice.KindUpstream, Reason: sluice.UpstreamTooLarge, Msg: "the answer is larger than a response may be"}
	}
	return nil
}

func (w *responsesWriter) write(b []byte, e *Event) ([]byte, error) {
	if err := w.keep(len(e.Text)); err != nil {
		return b, err
	}
	switch e.Kind {
	case EventStart:
		return w.start(b, e), nil
	case EventText, EventRefusal:
		return w.said(b, e), nil
	case EventReasoning:
		return w.reasoned(b, e), nil
	case EventSignature:
		if w.last(ReasoningPart) == nil && e.Text != "" {
			b = w.begin(b, ReasoningPart)
		}
		if x := w.last(ReasoningPart); x != nil {
			x.seal = e.Text
		}
		return w.closeBefore(b, false), nil
	case EventRedacted:
		b = w.closeBefore(b, false)
		b = w.begin(b, RedactedPart)
		w.last(RedactedPart).seal = e.Text
		return w.closeBefore(b, false), nil
	case EventCall:
		return w.call(b, e), nil
	case EventArguments:
		return w.arguments(b, e)
	case EventCallEnd:
		if i := w.callAt(e.Index); i >= 0 {
			w.out.items[i].over = true
		}
	case EventStop:
		w.stop = e.Stop
	case EventEnd:
		return w.end(b), nil
	}
	return b, nil
}

// event appends the beginning of an event and of its data.
func (w *responsesWriter) event(b []byte, kind string) []byte {
	b = append(append(b, "event: "...), kind...)
	b = append(append(b, "\ndata: {\"type\":\""...), kind...)
	b = append(b, `","sequence_number":`...)
	b = strconv.AppendInt(b, w.next, 10)
	w.next++
	return b
}

// at appends the beginning of an event of the item at i.
func (w *responsesWriter) at(b []byte, kind string, i int) []byte {
	b = figure(w.event(b, kind), "output_index", int64(i))
	return pair(b, "item_id", w.out.items[i].id)
}

func (w *responsesWriter) start(b []byte, e *Event) []byte {
	w.head = responsesHead{id: e.ID, model: e.Name, created: e.Created, echo: w.o.Echo}
	if w.head.created == 0 {
		w.head.created = w.o.Now.Unix()
	}
	w.out.answer = e.ID
	b = key(w.event(b, "response.created"), "response")
	from := len(b)
	b = append(w.head.response(b, "in_progress", "", &w.out, nil), "}\n\n"...)
	to := len(b)
	b = key(w.event(b, "response.in_progress"), "response")
	return append(b, b[from:to]...)
}

func (w *responsesWriter) last(k PartKind) *responsesOut { return w.out.last(k) }

// begin begins an item, which is empty.
func (w *responsesWriter) begin(b []byte, k PartKind) []byte {
	x := w.out.begin(k)
	b = figure(w.event(b, "response.output_item.added"), "output_index", int64(len(w.out.items)-1))
	b = append(key(b, "item"), `{"id":`...)
	b = text(b, x.id)
	switch k {
	case TextPart:
		b = append(b, `,"type":"message","status":"in_progress","role":"assistant","content":[]}`...)
	default:
		b = append(b, `,"type":"reasoning","summary":[]}`...)
	}
	b = append(b, "}\n\n"...)
	if k == ReasoningPart {
		b = figure(w.at(b, "response.reasoning_summary_part.added", len(w.out.items)-1), "summary_index", 0)
		b = append(b, `,"part":{"type":"summary_text","text":""}}`+"\n\n"...)
	}
	return b
}

// said writes a text or a refusal.
func (w *responsesWriter) said(b []byte, e *Event) []byte {
	refusal := e.Kind == EventRefusal
	x := w.last(TextPart)
	if x == nil {
		b = w.begin(w.closeBefore(b, false), TextPart)
		x = w.last(TextPart)
	}
	i := len(w.out.items) - 1
	if n := len(x.parts); n == 0 || x.parts[n-1].refusal != refusal {
		if n > 0 {
			b = w.partDone(b, i)
		}
		b = figure(w.at(b, "response.content_part.added", i), "content_index", int64(n))
		empty := responsesSaid{refusal: refusal}
		b = append(empty.part(key(b, "part")), "}\n\n"...)
	}
	w.out.say(refusal, e.Text, e.Logprobs)
	kind := "response.output_text.delta"
	if refusal {
		kind = "response.refusal.delta"
	}
	b = figure(w.at(b, kind, i), "content_index", int64(len(x.parts)-1))
	b = pair(b, "delta", e.Text)
	if !refusal {
		b = appendLogprobs(key(b, "logprobs"), e.Logprobs, false)
	}
	return append(b, "}\n\n"...)
}

// partDone ends the last part of the message at i.
func (w *responsesWriter) partDone(b []byte, i int) []byte {
	x := w.out.items[i]
	p := x.parts[len(x.parts)-1]
	if p.refusal {
		b = figure(w.at(b, "response.refusal.done", i), "content_index", int64(len(x.parts)-1))
		b = quote(b, "refusal", p.text)
	} else {
		b = figure(w.at(b, "response.output_text.done", i), "content_index", int64(len(x.parts)-1))
		b = appendLogprobs(key(quote(b, "text", p.text), "logprobs"), p.logprobs, false)
	}
	b = append(b, "}\n\n"...)
	b = figure(w.at(b, "response.content_part.done", i), "content_index", int64(len(x.parts)-1))
	return append(p.part(key(b, "part")), "}\n\n"...)
}

func (w *responsesWriter) reasoned(b []byte, e *Event) []byte {
	x := w.last(ReasoningPart)
	if x == nil {
		b = w.begin(w.closeBefore(b, false), ReasoningPart)
		x = w.last(ReasoningPart)
	}
	x.text = inside(x.text, e.Text)
	b = figure(w.at(b, "response.reasoning_summary_text.delta", len(w.out.items)-1), "summary_index", 0)
	return append(pair(b, "delta", e.Text), "}\n\n"...)
}

// call begins a call. One before it whose arguments are not whole yet stays open: its
// fragments may still come.
func (w *responsesWriter) call(b []byte, e *Event) []byte {
	b = w.closeBefore(b, false)
	x := w.out.begin(CallPart)
	x.call = Call{ID: e.ID, Name: e.Name}
	x.index = e.Index
	b = figure(w.event(b, "response.output_item.added"), "output_index", int64(len(w.out.items)-1))
	b = pair(pair(append(key(b, "item"), '{'), "id", x.id), "type", "function_call")
	b = pair(pair(pair(b, "status", "in_progress"), "call_id", e.ID), "name", e.Name)
	return append(pair(b, "arguments", ""), "}}\n\n"...)
}

// callAt is where the call of an index stands among the items, -1 if it is none.
func (w *responsesWriter) callAt(index int) int {
	for i := len(w.out.items) - 1; i >= 0; i-- {
		if x := w.out.items[i]; x.kind == CallPart && x.index == index {
			return i
		}
	}
	return -1
}

func (w *responsesWriter) arguments(b []byte, e *Event) ([]byte, error) {
	i := w.callAt(e.Index)
	if i < 0 || w.out.items[i].closed {
		return b, uncarried("arguments of a tool call that has ended")
	}
	x := w.out.items[i]
	x.args.WriteString(e.Text)
	x.nesting.add(e.Text)
	b = w.at(b, "response.function_call_arguments.delta", i)
	return append(pair(b, "delta", e.Text), "}\n\n"...), nil
}

// closeBefore closes the items that are open, but calls of which more may come, unless it
// is the end.
func (w *responsesWriter) closeBefore(b []byte, end bool) []byte {
	for i := w.out.open; i < len(w.out.items); i++ {
		x := w.out.items[i]
		if x.closed || !end && x.kind == CallPart && !x.over && !x.nesting.whole() {
			continue
		}
		b = w.close(b, i)
	}
	for w.out.open < len(w.out.items) && w.out.items[w.out.open].closed {
		w.out.open++
	}
	return b
}

// close ends the item at i.
func (w *responsesWriter) close(b []byte, i int) []byte {
	x := w.out.items[i]
	x.closed = true
	switch x.kind {
	case TextPart:
		if len(x.parts) > 0 {
			b = w.partDone(b, i)
		}
	case ReasoningPart:
		b = figure(w.at(b, "response.reasoning_summary_text.done", i), "summary_index", 0)
		b = append(quote(b, "text", x.text), "}\n\n"...)
		b = figure(w.at(b, "response.reasoning_summary_part.done", i), "summary_index", 0)
		b = quote(pair(append(key(b, "part"), '{'), "type", "summary_text"), "text", x.text)
		b = append(b, "}}\n\n"...)
	case CallPart:
		if x.args.Len() == 0 {
			x.args.WriteString("{}")
		}
		b = w.at(b, "response.function_call_arguments.done", i)
		b = append(pair(pair(b, "name", x.call.Name), "arguments", x.args.String()), "}\n\n"...)
	}
	b = figure(w.event(b, "response.output_item.done"), "output_index", int64(i))
	return append(x.item(key(b, "item")), "}\n\n"...)
}

func (w *responsesWriter) end(b []byte) []byte {
	w.out.stop(w.stop)
	b = w.closeBefore(b, true)
	status, reason := w.out.status(w.stop)
	u := w.o.Usage()
	b = key(w.event(b, "response."+status), "response")
	return append(w.head.response(b, status, reason, &w.out, &u), "}\n\n"...)
}
