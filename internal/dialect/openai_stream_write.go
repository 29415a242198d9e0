package dialect

import (
	"strconv"
	"strings"

	"sluice/internal/wire"
)

// maxThought bounds the reasoning that is kept for its signature, in bytes. Of more
// the signature is not told, and the next turn does without.
const maxThought = 1 << 20

// openaiWriter writes the chunks of a chat completion.
type openaiWriter struct {
	o       *StreamOptions
	id      string
	model   string
	created int64
	prefix  []byte // of every chunk, up to its choices

	turns turns[openaiWritten]
	nth   int            // the answer that is written
	t     *openaiWritten // what is known of it

	chunk_ []byte
}

// openaiWritten is what is known of one answer.
type openaiWritten struct {
	begun   bool
	thought strings.Builder // since the last signature
	details int
	refused bool
	stopped bool
}

func (w *openaiWriter) write(b []byte, e *Event) ([]byte, error) {
	if e.Kind == EventStart {
		w.begin(e)
	}
	if e.Kind != EventEnd {
		b = w.turn(b, e.Nth)
	}
	switch e.Kind {
	case EventText:
		if len(e.Logprobs) > 0 {
			b = text(append(w.open(b), `"content":`...), e.Text)
			b = openaiLogprobs(append(b, '}'), e.Logprobs)
			return w.tail(append(b, `,"finish_reason":null}]`...)), nil
		}
		return w.text(b, `"content":`, e.Text), nil
	case EventRefusal:
		w.t.refused = true
		return w.text(b, `"refusal":`, e.Text), nil
	case EventReasoning:
		if w.t.thought.Len() < maxThought {
			w.t.thought.WriteString(e.Text)
		}
		return w.text(b, `"reasoning_content":`, e.Text), nil
	case EventSignature, EventRedacted:
		return w.detail(b, e), nil
	case EventCall:
		d := append(w.chunk_[:0], `"tool_calls":[{`...)
		d = pair(pair(figure(d, "index", int64(e.Index)), "id", e.ID), "type", "function")
		d = pair(append(key(d, "function"), '{'), "name", e.Name)
		d = append(pair(d, "arguments", ""), "}}]"...)
		w.chunk_ = d
		return w.delta(b, string(d)), nil
	case EventArguments:
		d := append(w.chunk_[:0], `"tool_calls":[{`...)
		d = append(key(figure(d, "index", int64(e.Index)), "function"), '{')
		d = append(pair(d, "arguments", e.Text), "}}]"...)
		w.chunk_ = d
		return w.delta(b, string(d)), nil
	case EventStop:
		w.t.stopped = true
		return w.finish(b, e.Stop), nil
	case EventEnd:
		return w.end(b), nil
	}
	return b, nil
}

func (w *openaiWriter) passed(k EventKind, text []byte) error {
	if k == EventReasoning && w.t.thought.Len() < maxThought {
		var s []byte
		s, w.chunk_ = unquoted(text, w.chunk_)
		w.t.thought.Write(s)
	}
	return nil
}

// turn turns to an answer, which begins with its role.
func (w *openaiWriter) turn(b []byte, nth int) []byte {
	if w.t != nil && w.nth == nth {
		return b
	}
	w.nth, w.t = nth, w.turns.at(nth)
	if w.t.begun {
		return b
	}
	w.t.begun = true
	return w.delta(b, `"role":"assistant","content":""`)
}

// begin makes the part that all chunks have.
func (w *openaiWriter) begin(e *Event) {
	w.id, w.model, w.created = e.ID, e.Name, e.Created
	if w.created == 0 {
		w.created = w.o.Now.Unix()
	}
	w.prefix = openaiHead(append(w.prefix[:0], "data: {"...), w.id, "chat.completion.chunk", w.created, w.model)
}

// text appends a chunk whose delta is one string.
func (w *openaiWriter) text(b []byte, name, s string) []byte {
	b = w.open(b)
	b = append(b, name...)
	b = text(b, s)
	return w.close(b)
}

func (w *openaiWriter) delta(b []byte, members string) []byte {
	return w.close(append(w.open(b), members...))
}

func (w *openaiWriter) open(b []byte) []byte {
	b = append(append(b, w.prefix...), `,"choices":[{"index":`...)
	return append(strconv.AppendInt(b, int64(w.nth), 10), `,"delta":{`...)
}

func (w *openaiWriter) close(b []byte) []byte {
	return w.tail(append(b, `},"logprobs":null,"finish_reason":null}]`...))
}

// tail ends a chunk: where the client wants usage, all but the last have none.
func (w *openaiWriter) tail(b []byte) []byte {
	if w.o.Told {
		b = append(b, `,"usage":null`...)
	}
	return append(b, "}\n\n"...)
}

// detail appends reasoning that its provider must get back as it is.
func (w *openaiWriter) detail(b []byte, e *Event) []byte {
	thought := w.t.thought.String()
	w.t.thought.Reset()
	if len(thought) >= maxThought || e.Text == "" {
		return b
	}
	d := openaiDetail(append(w.chunk_[:0], `"reasoning_details":[`...), w.t.details, thought, e.Text, e.Kind == EventRedacted)
	w.chunk_ = append(d, ']')
	w.t.details++
	return w.delta(b, string(w.chunk_))
}

func (w *openaiWriter) finish(b []byte, s Stop) []byte {
	b = append(w.open(b), `},"logprobs":null`...)
	b = openaiEnd(b, s, w.t.refused)
	return w.tail(append(b, "}]"...))
}

func (w *openaiWriter) end(b []byte) []byte {
	for nth, t := range w.turns {
		if t != nil && !t.stopped {
			b = w.finish(w.turn(b, nth), Stop{Reason: StopEnd})
		}
	}
	if w.o.Told {
		u := w.o.Usage()
		b = append(b, w.prefix...)
		b = openaiUsage(append(b, `,"choices":[],"usage":`...), &u)
		b = append(b, "}\n\n"...)
	}
	return wire.AppendEvent(b, "", []byte("[DONE]"))
}
