package dialect

import "github.com/go-json-experiment/json"

// geminiReader reads the events of an answer. Parts come in pieces of text, and calls
// whole.
type geminiReader struct {
	o     *StreamOptions
	begun bool
	turns turns[geminiTurn]
}

// geminiTurn is what is known of one candidate.
type geminiTurn struct {
	g      geminiPieces
	parts  []Part
	thinks bool      // the last part was a thought that may go on
	early  []Logprob // of tokens whose text has not come yet
}

// maxEarly bounds the log probabilities that wait for their text.
const maxEarly = 4 << 10

func (r *geminiReader) read(out []Event, data []byte) ([]Event, error) {
	var a geminiAnswer
	if err := json.Unmarshal(data, &a, lenient); err != nil {
		return out, err
	}
	if !r.begun {
		r.begun = true
		out = append(out, Event{Kind: EventStart, ID: a.ID, Name: a.Model})
	}
	if a.blocked() && len(a.Candidates) == 0 {
		return append(out, Event{Kind: EventStop, Stop: Stop{Reason: StopRefusal}}), nil
	}
	for i := range a.Candidates {
		c := &a.Candidates[i]
		if c.Index < 0 || c.Index >= maxAnswers {
			return out, uncarried("more answers than can be asked for")
		}
		t, from := r.turns.at(c.Index), len(out)
		t.g.o, t.g.request = r.o, answerID(r.o.ID, c.Index)
		err := c.lost(r.o)
		if err != nil {
			return out, err
		}
		if out, err = t.read(out, c); err != nil {
			return out, err
		}
		nthAnswer(out[from:], c.Index)
	}
	return out, nil
}

// read tells what an event has of a candidate.
func (r *geminiTurn) read(out []Event, c *geminiCandidate) ([]Event, error) {
	out, err := r.content(out, c)
	if err != nil {
		return out, err
	}
	s, ok, err := c.stopped(r.g.calls > 0)
	if err == nil && ok {
		out = append(r.overdue(r.thought(out)), Event{Kind: EventStop, Stop: s})
	}
	return out, err
}

// content tells the parts of an event.
func (r *geminiTurn) content(out []Event, c *geminiCandidate) ([]Event, error) {
	from := len(out)
	for i := range c.Content.Parts {
		var err error
		calls := r.g.calls
		if r.parts, err = r.g.add(r.parts[:0], &c.Content.Parts[i]); err != nil {
			return out, err
		}
		for j := range r.parts {
			out = r.part(out, &r.parts[j], calls)
		}
	}
	if r.early = append(r.early, c.Logprobs.list()...); len(r.early) == 0 {
		return out, nil
	}
	if spread(out[from:], r.early) {
		r.early = nil
	} else if len(r.early) > maxEarly {
		out = r.overdue(out)
	}
	return out, nil
}

// overdue tells log probabilities whose text has not come.
func (r *geminiTurn) overdue(out []Event) []Event {
	if len(r.early) > 0 {
		out = append(out, Event{Kind: EventText, Logprobs: r.early})
	}
	r.early = nil
	return out
}

// part tells one part; call is its index among the calls of the answer if it is one.
func (r *geminiTurn) part(out []Event, p *Part, call int) []Event {
	if p.Kind == ReasoningPart {
		r.thinks = true
		out = texted(out, EventReasoning, p.Text)
		if p.Signature != "" {
			r.thinks = false
			out = append(out, Event{Kind: EventSignature, Text: p.Signature})
		}
		return out
	}
	out = r.thought(out)
	switch p.Kind {
	case RedactedPart:
		return append(out, Event{Kind: EventRedacted, Text: p.Signature})
	case CallPart:
		return append(
			out, Event{Kind: EventCall, Index: call, ID: p.Call.ID, Name: p.Call.Name},
			Event{Kind: EventArguments, Index: call, Text: p.Call.Arguments}, Event{Kind: EventCallEnd, Index: call},
		)
	}
	return texted(out, EventText, p.Text)
}

// thought ends the reasoning that went before, which has no signature.
func (r *geminiTurn) thought(out []Event) []Event {
	if !r.thinks {
		return out
	}
	r.thinks = false
	return append(out, Event{Kind: EventSignature})
}

func (r *geminiReader) end(out []Event) []Event {
	for nth, t := range r.turns {
		if t != nil {
			from := len(out)
			out = t.thought(out)
			nthAnswer(out[from:], nth)
		}
	}
	return out
}
