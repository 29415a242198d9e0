package wire

import "sluice"

// bedrockReading is how answers of Converse are read. A stream ends with its figures,
// and is whole without them.
var bedrockReading = reading{
	event: (*Tap).bedrockEvent, body: (*Tap).bedrockBody,
	whole: func(t *Tap) bool { return t.finish != "" },
	shorten: func(t *Tap, _ Event, _ sluice.Usage, _ bool) []byte {
		t.finish = "max_tokens"
		return AppendEvent(nil, "messageStop", []byte(`{"stopReason":"max_tokens"}`))
	},
}

// bedrockFacts is what one event of a Converse stream, or a whole answer, was found
// to hold.
type bedrockFacts struct {
	index   int64
	content bool
	stopped bool // it has a stop reason
	usage   bool
	err     *sluice.Error
}

// bedrockEvent takes one event that has data. The order of the stream is messageStart,
// blocks, messageStop, metadata: usage comes last, so that the stop does not end the
// stream. Where they come the other way round, the stop does.
func (t *Tap) bedrockEvent(e Event) Step {
	l := lexer{b: e.Data, lax: true}
	var f bedrockFacts
	t.bedrockObject(&l, &f)
	l.end()
	switch {
	case l.err != nil:
		return Step{Err: malformed(l.err)}
	case f.err != nil:
		return Step{Err: f.err}
	case string(e.Name) == "error":
		return Step{Err: bedrockFailure("", "")}
	}
	s := Step{Out: e.Raw, Content: f.content || f.stopped}
	if t.finish != "" && t.final {
		s.Content, s.Terminal = true, true
	}
	return s
}

// bedrockObject reads an event's payload, or a whole answer. The member names of the
// events differ, so that one reader serves them all.
func (t *Tap) bedrockObject(l *lexer, f *bedrockFacts) {
	for o := l.object(); l.member(&o); {
		switch string(l.key(&o)) {
		case "contentBlockIndex":
			f.index, _ = l.figure()
		case "start", "delta":
			t.bedrockBlock(l, f)
		case "output":
			t.bedrockOutput(l, f)
		case "stopReason":
			if w := l.wordOr(""); w != "" {
				t.finish, f.stopped = w, true
			}
		case "usage":
			var u bedrockFigures
			if u.read(l) {
				t.report(u.usage(t.o.Ceiling))
				t.final, f.usage = true, true
			}
		case "serviceTier":
			t.bedrockTier(l)
		case "error":
			if l.ws() == '{' {
				kind, _, message := l.errorMember()
				f.err = bedrockFailure(kind, message)
			} else {
				l.skip()
			}
		default:
			l.skip()
		}
	}
}

func (t *Tap) bedrockTier(l *lexer) {
	for o := l.objectIfAny(); l.member(&o); {
		if string(l.key(&o)) == "type" {
			l.keepWord(&t.tier)
		} else {
			l.skip()
		}
	}
}

// bedrockOutput reads output.message.content.
func (t *Tap) bedrockOutput(l *lexer, f *bedrockFacts) {
	for o := l.objectIfAny(); l.member(&o); {
		switch key := string(l.key(&o)); {
		case key == "message":
			t.bedrockOutput(l, f)
		case key == "content" && l.ws() == '[':
			for a := l.array(); l.element(&a); f.index++ {
				t.bedrockBlock(l, f)
			}
		default:
			l.skip()
		}
	}
}

// bedrockBlock reads a block, its beginning or a delta of one.
func (t *Tap) bedrockBlock(l *lexer, f *bedrockFacts) {
	for o := l.objectIfAny(); l.member(&o); {
		switch string(l.key(&o)) {
		case "text":
			f.content = t.delta(l, textOutput, f.index) || f.content
		case "toolUse":
			t.bedrockCall(l, f)
		case "reasoningContent":
			t.bedrockReasoning(l, f)
		default:
			l.skip()
			f.content = true
		}
	}
}

// bedrockCall reads a tool call: its beginning, which has its name, a fragment of its
// arguments as text, or all of it, with its arguments as a value.
func (t *Tap) bedrockCall(l *lexer, f *bedrockFacts) {
	f.content = true
	for o := l.objectIfAny(); l.member(&o); {
		switch string(l.key(&o)) {
		case "name":
			t.toolCalls++
			t.delta(l, argumentOutput, f.index)
		case "input":
			if l.ws() == '"' {
				t.delta(l, argumentOutput, f.index)
			} else if at := l.skip(); at.len() > 2 {
				t.count(argumentOutput, f.index, l.b[at.start:at.end], false)
			}
		default:
			l.skip()
		}
	}
}

// bedrockReasoning reads reasoning: a fragment of it, its signature, or all of it. What
// is redacted is content too.
func (t *Tap) bedrockReasoning(l *lexer, f *bedrockFacts) {
	for o := l.objectIfAny(); l.member(&o); {
		switch string(l.key(&o)) {
		case "text":
			f.content = t.delta(l, reasoningOutput, f.index) || f.content
		case "reasoningText":
			t.bedrockReasoning(l, f)
		default:
			l.skip()
			f.content = true
		}
	}
}

// bedrockBody reads an answer that was not streamed.
func (t *Tap) bedrockBody(l *lexer) *sluice.Error {
	var f bedrockFacts
	t.bedrockObject(l, &f)
	return f.err
}

// bedrockFigures is a Converse usage object, as told.
type bedrockFigures struct {
	input, output      int64
	fromCache, toCache int64
	split, oneHour     int64 // of toCache, as the details of it tell
}

// read reads a usage object; false if it is null or no object.
func (f *bedrockFigures) read(l *lexer) bool {
	if l.ws() != '{' {
		l.skip()
		return false
	}
	for o := l.object(); l.member(&o); {
		switch string(l.key(&o)) {
		case "inputTokens":
			l.figureOr(&f.input)
		case "outputTokens":
			l.figureOr(&f.output)
		case "cacheReadInputTokens":
			l.figureOr(&f.fromCache)
		case "cacheWriteInputTokens":
			l.figureOr(&f.toCache)
		case "cacheDetails":
			f.details(l)
		default:
			l.skip()
		}
	}
	return l.err == nil
}

// details reads what was written to the cache by its time to live.
func (f *bedrockFigures) details(l *lexer) {
	for a := l.arrayIfAny(); l.element(&a); {
		if l.ws() != '{' {
			l.skip()
			continue
		}
		var n int64
		ttl := ""
		for o := l.object(); l.member(&o); {
			switch string(l.key(&o)) {
			case "inputTokens":
				l.figureOr(&n)
			case "ttl":
				ttl = l.wordOr("")
			default:
				l.skip()
			}
		}
		f.split += min(max(n, 0), 1<<40)
		if ttl == "1h" {
			f.oneHour += min(max(n, 0), 1<<40)
		}
	}
}

// usage makes the figures disjoint: inputTokens excludes what was read from and
// written to the cache, outputTokens includes the reasoning, of which no figure is
// told.
func (f bedrockFigures) usage(ceiling sluice.Tokens) sluice.Usage {
	c := clamp{ceiling: int64(ceiling)}
	for _, v := range []*int64{&f.input, &f.output, &f.fromCache, &f.toCache, &f.split, &f.oneHour} {
		c.figure(v)
	}
	if f.split > f.toCache { // the details tell more than the sum
		c.hit = c.hit || f.toCache > 0
		f.toCache = f.split
	}
	rest := f.toCache
	u := sluice.Usage{Input: sluice.Tokens(f.input), CacheRead: sluice.Tokens(f.fromCache), Output: sluice.Tokens(f.output)}
	u.CacheWrite1h = c.part(f.oneHour, &rest)
	u.CacheWrite = sluice.Tokens(rest)
	u.Anomalous = c.hit
	return u
}
