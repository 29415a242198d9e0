package dialect

import "strconv"

// maxArguments bounds the arguments of a call that are collected, in bytes: its
// clients get calls whole.
const maxArguments = 8 << 20

// geminiWriter writes the events of an answer.
type geminiWriter struct {
	o         *StreamOptions
	model, id string
	tail      []byte // of every event, behind its candidates
	turns     turns[geminiWritten]
	nth       int            // the candidate that is written
	t         *geminiWritten // what is known of it
}

// geminiWritten is what is known of one candidate.
type geminiWritten struct {
	calls []geminiOpen
	stop  Stop
	mean  likelihood
}

// geminiOpen is a call whose arguments may go on.
type geminiOpen struct {
	index    int
	id, name string
	args     []byte
	told     bool
}

func (w *geminiWriter) write(b []byte, e *Event) ([]byte, error) {
	if e.Kind != EventEnd {
		w.turn(e.Nth)
	}
	switch e.Kind {
	case EventStart:
		w.model, w.id = e.Name, e.ID
		w.tail = append(geminiHead(append(w.tail[:0], ']'), w.model, w.id), "}\n\n"...)
	case EventText, EventRefusal:
		w.t.mean.add(e.Logprobs)
		return w.part(b, &Part{Kind: TextPart, Text: e.Text, Logprobs: e.Logprobs}), nil
	case EventReasoning:
		return w.part(b, &Part{Kind: ReasoningPart, Text: e.Text}), nil
	case EventSignature:
		if e.Text != "" {
			return w.part(b, &Part{Kind: ReasoningPart, Signature: e.Text}), nil
		}
	case EventRedacted:
		return w.part(b, &Part{Kind: RedactedPart, Signature: e.Text}), nil
	case EventCall:
		w.t.calls = append(w.t.calls, geminiOpen{index: e.Index, id: e.ID, name: e.Name})
	case EventArguments:
		return b, w.arguments(e)
	case EventCallEnd:
		return w.whole(b, e.Index, false)
	case EventStop:
		w.t.stop = e.Stop
	case EventEnd:
		return w.end(b)
	}
	return b, nil
}

func (w *geminiWriter) passed(EventKind, []byte) error { return nil }

func (w *geminiWriter) turn(nth int) { w.nth, w.t = nth, w.turns.at(nth) }

// part appends an event of one part.
func (w *geminiWriter) part(b []byte, p *Part) []byte {
	b = append(b, `data: {"candidates":[{"content":{"parts":[`...)
	b = geminiAnswerPart(b, p)
	b = append(b, `],"role":"model"}`...)
	b = append(geminiLikely(b, p.Logprobs), `,"index":`...)
	b = append(strconv.AppendInt(b, int64(w.nth), 10), '}')
	return append(b, w.tail...)
}

func (w *geminiWriter) arguments(e *Event) error {
	for i := range w.t.calls {
		if c := &w.t.calls[i]; c.index == e.Index && !c.told {
			if len(c.args)+len(e.Text) > maxArguments {
				return uncarried("a tool call that is too large")
			}
			c.args = append(c.args, e.Text...)
			return nil
		}
	}
	return uncarried("arguments of a tool call that has ended")
}

// whole appends a call whose arguments are all there. Some that are no object wait for
// the end, which says whether they were cut off.
func (w *geminiWriter) whole(b []byte, index int, last bool) ([]byte, error) {
	for i := range w.t.calls {
		c := &w.t.calls[i]
		if c.index != index || c.told {
			continue
		}
		args, ok := objectOf(string(c.args), w.t.stop)
		if !ok && last {
			return b, uncarried("arguments of a tool call that are no JSON object")
		}
		if c.told = ok; ok {
			return w.part(b, &Part{Kind: CallPart, Call: Call{c.id, c.name, args}}), nil
		}
	}
	return b, nil
}

// end appends an event for each candidate that ends it. The last has the figures.
func (w *geminiWriter) end(b []byte) ([]byte, error) {
	var err error
	for nth, t := range w.turns {
		if t == nil {
			continue
		}
		w.turn(nth)
		for i := range t.calls {
			if b, err = w.whole(b, t.calls[i].index, true); err != nil {
				return b, err
			}
		}
		b = append(b, `data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"}`...)
		b = t.mean.append(pair(b, "finishReason", geminiFinish(t.stop.Reason)))
		b = append(figure(b, "index", int64(nth)), '}')
		if nth < len(w.turns)-1 {
			b = append(b, w.tail...)
		}
	}
	u := w.o.Usage()
	return append(geminiEnd(append(b, ']'), &u, w.model, w.id), "}\n\n"...), nil
}
