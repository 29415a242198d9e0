package wire

import (
	"bytes"
	"strings"

	"sluice"
	"sluice/internal/route"
)

// responsesReading: each event has its type as its name too. The last one carries the
// whole response, and usage with it; nothing stands in for it where it is missing.
var responsesReading = reading{
	event: (*Tap).responsesEvent, body: (*Tap).responsesBody,
	whole:   func(*Tap) bool { return false },
	shorten: (*Tap).shortenResponse,
}

// responsesFacts is what one event, or a whole response, was found to hold.
type responsesFacts struct {
	kind, item     []byte
	status, reason string
	delta          span // inside of the string
	escaped        bool
	err            *sluice.Error
	unkept         bool     // the provider does not keep the response
	items          [][]byte // ids of its output
	words          struct{ code, message string }
}

// responsesOutputs is what the deltas of a kind are; of all others nothing is counted.
var responsesOutputs = map[string]outputKind{
	"response.output_text.delta":                textOutput,
	"response.refusal.delta":                    textOutput,
	"response.audio.transcript.delta":           textOutput,
	"response.reasoning_text.delta":             reasoningOutput,
	"response.reasoning_summary_text.delta":     reasoningOutput,
	"response.function_call_arguments.delta":    argumentOutput,
	"response.custom_tool_call_input.delta":     argumentOutput,
	"response.mcp_call_arguments.delta":         argumentOutput,
	"response.code_interpreter_call_code.delta": argumentOutput,
}

// responsesEvent takes one event that has data.
func (t *Tap) responsesEvent(e Event) Step {
	l := lexer{b: e.Data, lax: true}
	var f responsesFacts
	t.responsesMembers(&l, &f)
	l.end()
	kind := string(f.kind)
	failed := kind == "response.failed" || kind == "response.cancelled"
	t.final = t.final || failed && t.reported
	switch {
	case l.err != nil:
		return Step{Err: malformed(l.err)}
	case failed && t.op.Stored(): // that is how it ended, and no failure of what asks for it
		return Step{Out: e.Raw, Content: true, Terminal: true}
	case f.err != nil:
		return Step{Err: f.err}
	case failed, kind == "error", string(e.Name) == "error":
		return Step{Err: upstreamError("", f.words.code, f.words.message)}
	}
	if out, ok := responsesOutputs[kind]; ok && f.delta.ok() {
		return Step{Out: e.Raw, Content: t.count(out, 0, l.b[f.delta.start:f.delta.end], f.escaped)}
	}
	switch kind {
	case "response.completed", "response.incomplete":
		t.final = t.reported
		if t.finish = f.reason; f.reason == "" {
			t.finish = f.status
		}
		return Step{Out: e.Raw, Content: true, Terminal: true}
	case "response.output_item.added":
		return Step{Out: e.Raw, Content: t.responsesItem(&f)}
	case "response.created", "response.queued", "response.in_progress", "response.content_part.added",
		"response.reasoning_summary_part.added", "":
		return Step{Out: e.Raw}
	}
	return Step{Out: e.Raw, Content: true}
}

// responsesItem counts an item that begins and reports whether it is content already:
// a call is, since the client, or the provider, may act on it.
func (t *Tap) responsesItem(f *responsesFacts) bool {
	switch kind := string(f.item); {
	case kind == "message", kind == "reasoning":
		return false
	case kind == "function_call", kind == "custom_tool_call":
		t.toolCalls++
	case kind == "web_search_call":
		t.searches++
	}
	return true
}

// responsesMembers reads the members of an event, or of a whole response, which are
// told apart by their names alone.
func (t *Tap) responsesMembers(l *lexer, f *responsesFacts) {
	for o := l.objectIfAny(); l.member(&o); {
		switch string(l.key(&o)) {
		case "type":
			f.kind = l.bytesOf()
		case "sequence_number":
			t.sequence, _ = l.figure()
		case "delta":
			t.responsesDelta(l, f)
		case "item":
			t.item(l, f)
		case "response":
			t.response(l, f)
		case "code":
			f.words.code = l.scalar(maxWord)
		case "message":
			f.words.message = l.saying()
		case "error":
			if !l.null() {
				f.err = l.errorObject()
			}
		default:
			l.skip()
		}
	}
}

func (t *Tap) responsesDelta(l *lexer, f *responsesFacts) {
	if l.ws() != '"' {
		l.skip()
		return
	}
	f.delta, f.escaped = l.str()
}

// item reads what kind an item of the output is.
func (t *Tap) item(l *lexer, f *responsesFacts) {
	for o := l.objectIfAny(); l.member(&o); {
		switch string(l.key(&o)) {
		case "type":
			f.item = bytes.Clone(l.bytesOf())
		case "id":
			if id := l.bytesOf(); !t.unkept {
				t.keep(route.StateItem, id)
			}
		case "container_id":
			t.kept(l, route.StateContainer)
		case "environment":
			t.keptEnvironment(l)
		default:
			l.skip()
		}
	}
}

// keptEnvironment reads where a provider's shell ran.
func (t *Tap) keptEnvironment(l *lexer) {
	for o := l.objectIfAny(); l.member(&o); {
		if string(l.key(&o)) == "container_id" {
			t.kept(l, route.StateContainer)
		} else {
			l.skip()
		}
	}
}

// response reads the response that an event carries.
func (t *Tap) response(l *lexer, f *responsesFacts) {
	if l.ws() != '{' {
		l.skip()
		return
	}
	for o := l.object(); l.member(&o); {
		key := string(l.key(&o))
		if key == "output" { // its events have told of it
			l.skip()
			continue
		}
		t.responseMember(l, f, key)
	}
	t.keptResponse(f)
}

// keptResponse notes that the provider keeps the response and what it is made of, unless
// it says that it does not.
func (t *Tap) keptResponse(f *responsesFacts) {
	if t.unkept = t.unkept || f.unkept; t.unkept {
		return
	}
	t.keep(route.StateResponse, []byte(t.id))
	for _, id := range f.items {
		t.keep(route.StateItem, id)
	}
}

func (t *Tap) responseMember(l *lexer, f *responsesFacts, key string) {
	switch key {
	case "id":
		l.keepWord(&t.id)
	case "store":
		if l.ws() == 'f' {
			f.unkept = true
		}
		l.skip()
	case "conversation":
		t.keptIn(l, route.StateConversation)
	case "model":
		l.keepWord(&t.model)
	case "service_tier":
		l.keepWord(&t.tier)
	case "status":
		f.status = l.wordOr("")
	case "incomplete_details":
		f.reason = l.reasonIn()
	case "usage":
		var u openaiFigures
		if u.read(l) {
			t.figures(&u)
		}
	case "error":
		if !l.null() {
			f.err = l.errorObject()
		}
	default:
		l.skip()
	}
}

// reasonIn is the member "reason" of an object.
func (l *lexer) reasonIn() (reason string) {
	for o := l.objectIfAny(); l.member(&o); {
		if string(l.key(&o)) == "reason" {
			reason = l.wordOr("")
		} else {
			l.skip()
		}
	}
	return reason
}

// responsesBody reads a response that was not streamed.
func (t *Tap) responsesBody(l *lexer) *sluice.Error {
	var f responsesFacts
	if l.ws() != '{' {
		l.skip()
		return nil
	}
	for o := l.object(); l.member(&o); {
		switch key := string(l.key(&o)); key {
		case "output":
			t.responsesOutput(l, &f)
		default:
			t.responseMember(l, &f, key)
		}
	}
	t.keptResponse(&f)
	if t.finish = f.reason; f.reason == "" {
		t.finish = f.status
	}
	if f.err == nil && (f.status == "failed" || f.status == "cancelled") {
		return upstreamError("", f.status, "")
	}
	return f.err
}

// responsesOutput counts the items of a whole response.
func (t *Tap) responsesOutput(l *lexer, in *responsesFacts) {
	for a := l.arrayIfAny(); l.element(&a); {
		if l.ws() != '{' {
			l.skip()
			continue
		}
		t.wholeItem(l, in)
	}
}

func (t *Tap) wholeItem(l *lexer, in *responsesFacts) {
	var f responsesFacts
	for o := l.object(); l.member(&o); {
		switch string(l.key(&o)) {
		case "id":
			in.items = append(in.items, l.bytesOf())
		case "type":
			f.item = bytes.Clone(l.bytesOf())
		case "content":
			t.wholeParts(l, textOutput)
		case "summary":
			t.wholeParts(l, reasoningOutput)
		case "container_id":
			t.kept(l, route.StateContainer)
		case "environment":
			t.keptEnvironment(l)
		case "arguments", "input", "name", "code":
			t.delta(l, argumentOutput, 0)
		default:
			l.skip()
		}
	}
	t.responsesItem(&f)
}

// wholeParts counts the parts of an item's content.
func (t *Tap) wholeParts(l *lexer, kind outputKind) {
	for a := l.arrayIfAny(); l.element(&a); {
		if l.ws() != '{' {
			l.skip()
			continue
		}
		as := kind
		for o := l.object(); l.member(&o); {
			switch string(l.key(&o)) {
			case "type":
				if strings.HasPrefix(string(l.bytesOf()), "reasoning") {
					as = reasoningOutput
				}
			case "text", "refusal", "transcript":
				t.delta(l, as, 0)
			default:
				l.skip()
			}
		}
	}
}

// Sequence is the number that the event after the last one has, in streams that number
// them.
func (t *Tap) Sequence() int64 { return t.sequence + 1 }

// shortenResponse ends a response at the output bound. What it had come to is told by
// the events before.
func (t *Tap) shortenResponse(_ Event, u sluice.Usage, _ bool) []byte {
	t.finish = "max_output_tokens"
	in, out := int64(u.InputTotal()), int64(u.OutputTotal())
	return appendJSONEvent(nil, "response.incomplete", map[string]any{
		"type": "response.incomplete", "sequence_number": t.Sequence(),
		"response": map[string]any{
			"id": t.id, "object": "response", "model": t.model, "status": "incomplete", "output": []any{},
			"incomplete_details": map[string]string{"reason": "max_output_tokens"},
			"usage":              map[string]int64{"input_tokens": in, "output_tokens": out, "total_tokens": in + out},
		},
	})
}
