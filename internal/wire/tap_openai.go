package wire

import (
	"bytes"

	"sluice"
	"sluice/internal/route"
)

// openaiChunk is what one event of an OpenAI stream was found to hold.
type openaiChunk struct {
	choices int  // of the choices array
	content bool // a delta is not empty, or a choice ends
	usage   bool // it has figures
	members int
	cuts    [2]cut // members that may have to go: usage and a null error
	numCuts int
	err     *sluice.Error
	odd     oddChunk
}

// cut is a member of the top-level object.
type cut struct {
	comma, start, end int
	index             int // how many members stand before it
	usage             bool
}

func (c *openaiChunk) cut(l *lexer, o *object, usage bool) {
	if c.numCuts < len(c.cuts) {
		c.cuts[c.numCuts] = cut{o.comma, o.key.start, l.i, c.members - 1, usage}
		c.numCuts++
	}
}

// openaiEvent takes one event that has data.
func (t *Tap) openaiEvent(e Event) Step {
	if string(bytes.TrimSpace(e.Data)) == "[DONE]" {
		t.final = t.reported
		return Step{Out: e.Raw, Content: true, Terminal: true}
	}
	l := lexer{b: e.Data, lax: true}
	var c openaiChunk
	t.openaiObject(&l, &c)
	l.end()
	if string(e.Name) == "error" {
		c.odd.failed = true
	}
	if l.err != nil {
		return Step{Err: malformed(l.err)}
	}
	only := c.usage && c.choices == 0
	if c.usage && (only || t.begun == t.ended) {
		t.final = true
	}
	if err := c.failure(); err != nil {
		return Step{Err: err}
	}
	if only && t.o.StripUsage {
		return Step{}
	}
	t.seen.chunk = c
	return Step{Out: t.spliced(e, &c), Content: c.content}
}

// openaiObject reads a chunk, or a whole answer.
func (t *Tap) openaiObject(l *lexer, c *openaiChunk) {
	for o := l.object(); l.member(&o); {
		c.members++
		switch key := l.key(&o); string(key) {
		case "choices":
			t.openaiChoices(l, c)
		case "usage":
			var f openaiFigures
			if f.read(l) {
				c.usage = true
				t.figures(&f)
			}
			c.cut(l, &o, true)
		case "error":
			if l.null() {
				c.cut(l, &o, false)
			} else {
				c.err = l.errorObject()
			}
		case "id":
			if t.o.Stored {
				t.kept(l, route.StateResponse)
			} else {
				l.skip()
			}
		case "model":
			l.keepWord(&t.model)
		case "service_tier":
			l.keepWord(&t.tier)
		default:
			t.oddMember(l, c, key)
		}
	}
	t.timed(c)
}

func (t *Tap) openaiChoices(l *lexer, c *openaiChunk) {
	for a := l.arrayIfAny(); l.element(&a); {
		if l.ws() != '{' {
			l.skip()
			continue
		}
		c.choices++
		t.openaiChoice(l, c)
	}
}

// openaiChoice reads one choice. Its index, which usually comes first, only tells
// apart the texts that are counted.
func (t *Tap) openaiChoice(l *lexer, c *openaiChunk) {
	var index int64
	ended := false
	for o := l.object(); l.member(&o); {
		switch string(l.key(&o)) {
		case "index":
			index, _ = l.figure()
		case "delta", "message":
			c.content = t.openaiDelta(l, index) || c.content
		case "text":
			c.content = t.delta(l, textOutput, index) || c.content
		case "finish_reason":
			if l.ws() == '"' {
				if w := l.wordOr(""); w != "" {
					t.finish, ended = w, true
					c.odd.ended(w)
				}
			} else {
				l.skip()
			}
		case "error":
			if !l.null() {
				c.err = l.errorObject()
			}
		default:
			l.skip()
		}
	}
	t.begun.add(index)
	if ended {
		t.ended.add(index)
		c.content = true
	}
}

// openaiDelta reads a delta or a message and reports whether it has content.
func (t *Tap) openaiDelta(l *lexer, choice int64) (content bool) {
	if l.ws() != '{' {
		l.skip()
		return false
	}
	reasoned := false // some servers write reasoning under two names
	for o := l.object(); l.member(&o); {
		some := false
		switch string(l.key(&o)) {
		case "content":
			some = t.openaiContent(l, choice)
		case "reasoning_content", "reasoning":
			if reasoned {
				l.skip()
				continue
			}
			some = t.delta(l, reasoningOutput, choice)
			reasoned = some
		case "refusal":
			some = t.delta(l, textOutput, choice)
		case "tool_calls":
			some = t.openaiCalls(l, choice)
		case "function_call":
			some = t.openaiCall(l, choice)
		case "audio":
			some = t.openaiAudio(l, choice)
		case "images":
			some = l.ws() == '['
			l.skip()
		default:
			l.skip()
		}
		content = content || some
	}
	return content
}

// openaiContent reads text, or the parts that some providers send in its place.
func (t *Tap) openaiContent(l *lexer, choice int64) (some bool) {
	if l.ws() != '[' {
		return t.delta(l, textOutput, choice)
	}
	for a := l.array(); l.element(&a); {
		if l.ws() != '{' {
			some = t.delta(l, textOutput, choice) || some
			continue
		}
		for o := l.object(); l.member(&o); {
			switch string(l.key(&o)) {
			case "text":
				some = t.delta(l, textOutput, choice) || some
			case "thinking":
				some = t.thinkingParts(l, choice) || some
			default:
				l.skip()
			}
		}
	}
	return some
}

// thinkingParts reads thinking as text or as an array of text parts.
func (t *Tap) thinkingParts(l *lexer, choice int64) (some bool) {
	if l.ws() != '[' {
		return t.delta(l, reasoningOutput, choice)
	}
	for a := l.array(); l.element(&a); {
		for o := l.objectIfAny(); l.member(&o); {
			if string(l.key(&o)) == "text" {
				some = t.delta(l, reasoningOutput, choice) || some
			} else {
				l.skip()
			}
		}
	}
	return some
}

func (t *Tap) openaiCalls(l *lexer, choice int64) (some bool) {
	if l.ws() != '[' {
		l.skip()
		return false
	}
	for a := l.array(); l.element(&a); {
		some = t.openaiCall(l, choice) || some
	}
	return some
}

// openaiCall reads a tool call or a part of one. The first part of a call, which
// has its name, is content even with no arguments yet: the client may act on it.
func (t *Tap) openaiCall(l *lexer, choice int64) (some bool) {
	if l.ws() != '{' {
		l.skip()
		return false
	}
	for o := l.object(); l.member(&o); {
		switch string(l.key(&o)) {
		case "function", "custom":
			some = t.openaiCall(l, choice) || some
		case "name":
			if t.delta(l, argumentOutput, choice) {
				t.toolCalls++
				some = true
			}
		case "arguments", "input":
			some = t.delta(l, argumentOutput, choice) || some
		default:
			l.skip()
		}
	}
	return some
}

// openaiAudio counts the transcript; audio itself is billed by the provider's count.
func (t *Tap) openaiAudio(l *lexer, choice int64) (some bool) {
	if l.ws() != '{' {
		l.skip()
		return false
	}
	for o := l.object(); l.member(&o); {
		switch string(l.key(&o)) {
		case "id":
			t.kept(l, route.StateAudio)
		case "transcript":
			some = t.delta(l, textOutput, choice) || some
		case "data":
			c := l.ws()
			at := l.skip()
			some = some || c == '"' && at.len() > 2
		default:
			l.skip()
		}
	}
	return some
}

// spliced is the event without the members that must not reach the client.
func (t *Tap) spliced(e Event, c *openaiChunk) []byte {
	strip := t.o.StripUsage || t.o.StripContinuous && c.choices > 0
	gone := 0
	out := t.out[:0]
	from := 0
	data := e.Data
	for _, k := range c.cuts[:c.numCuts] {
		if k.usage && !strip {
			continue
		}
		at := span{k.comma, k.end}
		if k.index-gone == 0 { // nothing is kept before it: the comma after it goes
			at.start = k.start
			for at.end < len(data) && data[at.end] != '"' && data[at.end] != '}' {
				at.end++
			}
		}
		if gone == 0 && e.dataAt >= 0 {
			out = append(out, e.Raw[:e.dataAt]...)
		}
		out = append(out, data[from:at.start]...)
		from = at.end
		gone++
	}
	if gone == 0 {
		return e.Raw
	}
	out = append(out, data[from:]...)
	if e.dataAt >= 0 {
		out = append(out, e.Raw[e.dataAt+len(data):]...)
	} else {
		out = AppendEvent(nil, string(e.Name), out)
	}
	t.out = out
	return out
}

// openaiBody reads an answer that was not streamed.
func (t *Tap) openaiBody(l *lexer) *sluice.Error {
	var c openaiChunk
	t.openaiObject(l, &c)
	return c.failure()
}
