package wire

import "sluice"

// anthropicEventFacts is what one event of an Anthropic stream was found to hold.
type anthropicEventFacts struct {
	kind    []byte
	content bool
	stopped bool // it has a stop reason
	usage   bool
	err     *sluice.Error
}

// anthropicEvent takes one event that has data. Members are read whatever the
// event's type is, since the type may come after them.
func (t *Tap) anthropicEvent(e Event) Step {
	l := lexer{b: e.Data, lax: true}
	var f anthropicEventFacts
	index := int64(0)
	for o := l.object(); l.member(&o); {
		switch string(l.key(&o)) {
		case "type":
			f.kind = l.bytesOf()
		case "index":
			index, _ = l.figure()
		case "message":
			t.anthropicMessage(&l, &f)
		case "content_block", "delta":
			t.anthropicBlock(&l, &f, index)
		case "usage":
			f.usage = t.anthropic.merge(&l) || f.usage
		case "error":
			if !l.null() {
				f.err = l.errorObject()
			}
		default:
			l.skip()
		}
	}
	l.end()
	switch {
	case l.err != nil:
		return Step{Err: malformed(l.err)}
	case f.err != nil:
		return Step{Err: f.err}
	case string(f.kind) == "error" || string(e.Name) == "error":
		return Step{Err: upstreamError("", "", "")}
	}
	if f.usage {
		t.report(t.anthropic.usage(t.o.Ceiling))
		t.final = t.final || f.stopped
	}
	switch string(f.kind) {
	case "message_stop":
		t.final = t.final || t.reported
		return Step{Out: e.Raw, Content: true, Terminal: true}
	case "message_start", "ping", "content_block_stop":
		return Step{Out: e.Raw}
	}
	return Step{Out: e.Raw, Content: f.content || f.stopped}
}

// anthropicMessage reads message_start's message, or a whole answer's parts.
func (t *Tap) anthropicMessage(l *lexer, f *anthropicEventFacts) {
	for o := l.objectIfAny(); l.member(&o); {
		t.anthropicMember(l, f, string(l.key(&o)))
	}
}

func (t *Tap) anthropicMember(l *lexer, f *anthropicEventFacts, key string) {
	switch key {
	case "type":
		f.kind = l.bytesOf()
	case "model":
		l.keepWord(&t.model)
	case "content":
		t.anthropicContent(l, f)
	case "stop_reason":
		t.stopReason(l, f)
	case "usage":
		f.usage = t.anthropic.merge(l) || f.usage
	case "error":
		if !l.null() {
			f.err = l.errorObject()
		}
	case "container":
		t.keptContainer(l)
	default:
		l.skip()
	}
}

func (t *Tap) stopReason(l *lexer, f *anthropicEventFacts) {
	if w := l.wordOr(""); w != "" {
		t.finish, f.stopped = w, true
	}
}

func (t *Tap) anthropicContent(l *lexer, f *anthropicEventFacts) {
	if l.ws() != '[' {
		l.skip()
		return
	}
	index := int64(0)
	for a := l.array(); l.element(&a); index++ {
		t.anthropicBlock(l, f, index)
	}
}

// anthropicBlock reads a content block or a delta of one. An empty text or
// thinking block is preamble; every other block is content from its start on.
func (t *Tap) anthropicBlock(l *lexer, f *anthropicEventFacts, index int64) {
	for o := l.objectIfAny(); l.member(&o); {
		switch string(l.key(&o)) {
		case "type":
			switch string(l.bytesOf()) {
			case "tool_use":
				t.toolCalls++
				f.content = true
			case "text", "thinking", "text_delta", "thinking_delta", "input_json_delta", "":
			default:
				f.content = true
			}
		case "text":
			f.content = t.delta(l, textOutput, index) || f.content
		case "thinking":
			f.content = t.delta(l, reasoningOutput, index) || f.content
		case "partial_json", "name":
			f.content = t.delta(l, argumentOutput, index) || f.content
		case "input":
			if at := l.skip(); at.len() > 2 { // whole, in an answer that is not streamed; {} while streaming
				t.count(argumentOutput, index, l.b[at.start:at.end], false)
			}
		case "stop_reason":
			t.stopReason(l, f)
		case "container": // of a delta, as the answer ends
			t.keptContainer(l)
		case "content": // of the result of a tool that the provider has run
			t.toolFiles(l)
		default:
			l.skip()
		}
	}
}

// anthropicBody reads an answer that was not streamed.
func (t *Tap) anthropicBody(l *lexer) *sluice.Error {
	var f anthropicEventFacts
	t.anthropicMessage(l, &f)
	if f.usage {
		t.report(t.anthropic.usage(t.o.Ceiling))
	}
	if f.err == nil && string(f.kind) == "error" {
		return upstreamError("", "", "")
	}
	return f.err
}
