package dialect

import (
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

	thought strings.Builder // since the last signature
	details int
	refused bool
	stopped bool
	chunk_  []byte
}

func (w *openaiWriter) write(b []byte, e *Event) ([]byte, error) {
	switch e.Kind {
	case EventStart:
		w.begin(e)
		return w.delta(b, `"role":"assistant","content":""`), nil
	case EventText:
		if len(e.Logprobs) > 0 {
			b = text(append(w.open(b), `"content":`...), e.Text)
			b = openaiLogprobs(append(b, '}'), e.Logprobs)
			return w.tail(append(b, `,"finish_reason":null}]`...)), nil
		}
		return w.text(b, `"content":`, e.Text), nil
	case EventRefusal:
		w.refused = true
		return w.text(b, `"refusal":`, e.Text), nil
	case EventReasoning:
		if w.thought.Len() < maxThought {
			w.thought.WriteString(e.Text)
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
		w.stopped = true
		return w.finish(b, e.Stop), nil
	case EventEnd:
		return w.end(b), nil
	}
	return b, nil
}

func (w *openaiWriter) passed(k EventKind, text []byte) error {
	if k == EventReasoning && w.thought.Len() < maxThought {
		var s []byte
		s, w.chunk_ = unquoted(text, w.chunk_)
		w.thought.Write(s)
	}
	return nil
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
	b = append(b, w.prefix...)
	return append(b, `,"choices":[{"index":0,"delta":{`...)
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
	thought := w.thought.String()
	w.thought.Reset()
	if len(thought) >= maxThought || e.Text == "" {
		return b
	}
	d := openaiDetail(append(w.chunk_[:0], `"reasoning_details":[`...), w.details, thought, e.Text, e.Kind == EventRedacted)
	w.chunk_ = append(d, ']')
	w.details++
	return w.delta(b, string(w.chunk_))
}

func (w *openaiWriter) finish(b []byte, s Stop) []byte {
	b = append(b, w.prefix...)
	b = append(b, `,"choices":[{"index":0,"delta":{},"logprobs":null`...)
	b = openaiEnd(b, s, w.refused)
	return w.tail(append(b, "}]"...))
}

func (w *openaiWriter) end(b []byte) []byte {
	if !w.stopped {
		b = w.finish(b, Stop{Reason: StopEnd})
	}
	if w.o.Told {
		u := w.o.Usage()
		b = append(b, w.prefix...)
		b = openaiUsage(append(b, `,"choices":[],"usage":`...), &u)
		b = append(b, "}\n\n"...)
	}
	return wire.AppendEvent(b, "", []byte("[DONE]"))
}
