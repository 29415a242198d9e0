package wire

import (
	"strings"

	"sluice"
)

// Every event of a Gemini stream is a whole answer with what came since the one
// before; nothing marks the end. An answer is whole when each candidate that has
// begun has a finish reason, or when the prompt was blocked.
var geminiReading = reading{
	event: (*Tap).geminiEvent, body: (*Tap).geminiBody, unmarked: true,
	whole: func(t *Tap) bool {
		return t.begun != (choiceSet{}) && t.begun == t.ended || t.begun == (choiceSet{}) && t.blocked
	},
	shorten: (*Tap).shortenGemini,
}

// geminiFacts is what an event, or an answer, was found to hold.
type geminiFacts struct {
	content bool
	usage   bool
	err     *sluice.Error
}

// geminiEvent takes one event that has data.
func (t *Tap) geminiEvent(e Event) Step {
	l := lexer{b: e.Data, lax: true}
	var f geminiFacts
	t.geminiAnswer(&l, &f)
	l.end()
	switch {
	case l.err != nil:
		return Step{Err: malformed(l.err)}
	case f.err != nil:
		return Step{Err: f.err}
	}
	t.final = t.final || f.usage && t.by.whole(t)
	return Step{Out: e.Raw, Content: f.content}
}

// geminiBody reads an answer that was not streamed.
func (t *Tap) geminiBody(l *lexer) *sluice.Error {
	var f geminiFacts
	t.geminiAnswer(l, &f)
	return f.err
}

// geminiAnswer reads an answer, whole or a part of one. Some endpoints put it, or an
// error, into an array of one.
func (t *Tap) geminiAnswer(l *lexer, f *geminiFacts) {
	if l.ws() == '[' {
		for a := l.array(); l.element(&a); {
			t.geminiAnswer(l, f)
		}
		return
	}
	for o := l.object(); l.member(&o); {
		switch string(l.key(&o)) {
		case "candidates":
			t.geminiCandidates(l, f)
		case "usageMetadata":
			t.geminiUsage(l, f)
		case "promptFeedback":
			t.geminiFeedback(l, f)
		case "modelVersion":
			l.keepWord(&t.model)
		case "error":
			if !l.null() {
				f.err = l.geminiError().inside()
			}
		default:
			l.skip()
		}
	}
}

// geminiUsage takes figures: they are cumulative, and later ones overwrite.
func (t *Tap) geminiUsage(l *lexer, f *geminiFacts) {
	var g geminiFigures
	if g.read(l) {
		t.report(g.usage(t.o.Ceiling))
		t.tier = g.tier
		f.usage = true
	}
}

// geminiFeedback notes why a prompt was blocked: the answer is then that.
func (t *Tap) geminiFeedback(l *lexer, f *geminiFacts) {
	for o := l.objectIfAny(); l.member(&o); {
		if string(l.key(&o)) != "blockReason" {
			l.skip()
			continue
		}
		if w := l.wordOr(""); w != "" && w != "BLOCKED_REASON_UNSPECIFIED" {
			t.blocked, t.finish, f.content = true, w, true
		}
	}
}

func (t *Tap) geminiCandidates(l *lexer, f *geminiFacts) {
	for a := l.arrayIfAny(); l.element(&a); {
		if l.ws() != '{' {
			l.skip()
			continue
		}
		t.geminiCandidate(l, f)
	}
}

// geminiCandidate reads one candidate. Its index, which is left out where it is 0,
// comes last: it is looked for first, since it tells apart what is counted.
func (t *Tap) geminiCandidate(l *lexer, f *geminiFacts) {
	ahead := lexer{b: l.b, i: l.i, lax: true}
	index := ahead.geminiIndex()
	ended := false
	for o := l.object(); l.member(&o); {
		switch string(l.key(&o)) {
		case "content":
			t.geminiContent(l, f, index)
		case "finishReason":
			if w := l.wordOr(""); w != "" && w != "FINISH_REASON_UNSPECIFIED" {
				t.finish, ended = w, true
			}
		case "groundingMetadata":
			t.geminiGrounding(l)
		default:
			l.skip()
		}
	}
	t.begun.add(index)
	if ended {
		t.ended.add(index)
		f.content = true
	}
}

// geminiIndex is the index of the candidate that comes next.
func (l *lexer) geminiIndex() (index int64) {
	for o := l.object(); l.member(&o); {
		if string(l.key(&o)) == "index" {
			index, _ = l.figure()
		} else {
			l.skip()
		}
	}
	return index
}

func (t *Tap) geminiContent(l *lexer, f *geminiFacts, index int64) {
	for o := l.objectIfAny(); l.member(&o); {
		if string(l.key(&o)) != "parts" || l.ws() != '[' {
			l.skip()
			continue
		}
		for a := l.array(); l.element(&a); {
			f.content = t.geminiPart(l, index) || f.content
		}
	}
}

// geminiPart reads a part and reports whether it is content: an empty text is none.
// Whether a text is a thought may stand behind it.
func (t *Tap) geminiPart(l *lexer, index int64) (some bool) {
	if l.ws() != '{' {
		l.skip()
		return false
	}
	var text span
	escaped, thought := false, false
	for o := l.object(); l.member(&o); {
		switch string(l.key(&o)) {
		case "text":
			if l.ws() != '"' {
				l.skip()
				continue
			}
			text, escaped = l.str()
		case "thought":
			thought = l.ws() == 't'
			l.skip()
		case "thoughtSignature":
			l.skip()
		case "functionCall":
			t.toolCalls++
			t.geminiCall(l, index)
			some = true
		case "executableCode", "codeExecutionResult":
			at := l.skip()
			some = t.count(argumentOutput, index, l.b[at.start:at.end], false) || some
		default: // an image, a sound, what nobody here knows
			some = t.otherPart(l, &o)
		}
	}
	if l.err != nil || text.len() == 0 {
		return some
	}
	kind := textOutput
	if thought {
		kind = reasoningOutput
	}
	return t.count(kind, index, l.b[text.start:text.end], escaped)
}

func (t *Tap) geminiCall(l *lexer, index int64) {
	for o := l.objectIfAny(); l.member(&o); {
		switch string(l.key(&o)) {
		case "name":
			t.delta(l, argumentOutput, index)
		case "args", "partialArgs":
			if at := l.skip(); at.len() > 2 {
				t.count(argumentOutput, index, l.b[at.start:at.end], false)
			}
		default:
			l.skip()
		}
	}
}

// geminiGrounding counts the searches that the provider ran for the answer. What is
// told again with the next event is the same.
func (t *Tap) geminiGrounding(l *lexer) {
	for o := l.objectIfAny(); l.member(&o); {
		if string(l.key(&o)) != "webSearchQueries" || l.ws() != '[' {
			l.skip()
			continue
		}
		n := int64(0)
		for a := l.array(); l.element(&a); n++ {
			l.skip()
		}
		t.searches = max(t.searches, n)
	}
}

// geminiFigures is a usageMetadata object, as told.
type geminiFigures struct {
	prompt, cached, tools, candidates, thoughts, total int64
	promptAudio, cachedAudio, toolsAudio, audioOut     int64
	tier                                               string
}

// read reads the object; false if it is null or no object.
func (f *geminiFigures) read(l *lexer) bool {
	if l.ws() != '{' {
		l.skip()
		return false
	}
	for o := l.object(); l.member(&o); {
		switch string(l.key(&o)) {
		case "promptTokenCount":
			f.prompt, _ = l.figure()
		case "cachedContentTokenCount":
			f.cached, _ = l.figure()
		case "toolUsePromptTokenCount":
			f.tools, _ = l.figure()
		case "candidatesTokenCount":
			f.candidates, _ = l.figure()
		case "thoughtsTokenCount":
			f.thoughts, _ = l.figure()
		case "totalTokenCount":
			f.total, _ = l.figure()
		case "promptTokensDetails":
			f.promptAudio = l.geminiAudio()
		case "cacheTokensDetails":
			f.cachedAudio = l.geminiAudio()
		case "toolUsePromptTokensDetails":
			f.toolsAudio = l.geminiAudio()
		case "candidatesTokensDetails":
			f.audioOut = l.geminiAudio()
		case "trafficType":
			f.tier = geminiTraffic(l.wordOr(""))
		case "serviceTier":
			f.tier = strings.ToLower(l.wordOr(""))
		default:
			l.skip()
		}
	}
	return l.err == nil
}

// geminiTraffic is the service tier of a type of traffic; what was provisioned is paid
// for by itself.
func geminiTraffic(w string) string {
	switch w {
	case "ON_DEMAND_PRIORITY":
		return "priority"
	case "ON_DEMAND_FLEX":
		return "flex"
	}
	return ""
}

// geminiAudio is how many tokens of sound a list of counts by modality has.
func (l *lexer) geminiAudio() (n int64) {
	if l.ws() != '[' {
		l.skip()
		return 0
	}
	for a := l.array(); l.element(&a); {
		if l.ws() != '{' {
			l.skip()
			continue
		}
		audio, v := false, int64(0)
		for o := l.object(); l.member(&o); {
			switch string(l.key(&o)) {
			case "modality":
				audio = string(l.bytesOf()) == "AUDIO"
			case "tokenCount":
				v, _ = l.figure()
			default:
				l.skip()
			}
		}
		if audio {
			n += v
		}
	}
	return n
}

// usage makes the figures disjoint. The prompt includes what was cached; what tools of
// the provider brought in, and what was thought, stand beside prompt and candidates,
// and the total is their sum. Where the total says that the results of tools are in the
// prompt they are; where it has more than all of them, the rest was thought.
func (f geminiFigures) usage(ceiling sluice.Tokens) sluice.Usage {
	c := clamp{ceiling: int64(ceiling)}
	for _, v := range []*int64{
		&f.prompt, &f.cached, &f.tools, &f.candidates, &f.thoughts, &f.total, &f.promptAudio, &f.cachedAudio, &f.toolsAudio, &f.audioOut,
	} {
		c.figure(v)
	}
	if f.total > 0 && !c.hit {
		switch extra := f.total - f.prompt - f.tools - f.candidates - f.thoughts; {
		case extra > 0:
			f.thoughts += extra
		case extra < 0 && extra == -f.tools:
			f.tools, f.toolsAudio = 0, 0
		case extra < 0:
			c.hit = true
		}
	}
	var u sluice.Usage
	rest := f.prompt
	u.CacheRead = c.part(f.cached, &rest)
	rest += f.tools
	u.AudioInput = c.part(min(max(f.promptAudio-f.cachedAudio, 0)+f.toolsAudio, rest), &rest)
	u.Input = sluice.Tokens(rest)
	rest = f.candidates
	u.AudioOutput = c.part(f.audioOut, &rest)
	u.Output = sluice.Tokens(rest)
	u.Reasoning = sluice.Tokens(f.thoughts)
	u.Anomalous = c.hit
	return u
}

// shortenGemini is the event that ends a stream at the output bound.
func (t *Tap) shortenGemini(_ Event, u sluice.Usage, _ bool) []byte {
	t.finish = "MAX_TOKENS"
	in, out, thoughts := int64(u.InputTotal()), int64(u.Output+u.AudioOutput), int64(u.Reasoning)
	candidates := []map[string]any{}
	for i := range int64(128) {
		if t.begun.has(i) && !t.ended.has(i) {
			candidates = append(candidates, map[string]any{
				"content": map[string]any{"role": "model", "parts": []map[string]string{{"text": ""}}}, "finishReason": "MAX_TOKENS", "index": i,
			})
		}
	}
	return AppendEvent(nil, "", encode(map[string]any{
		"candidates": candidates,
		"usageMetadata": map[string]int64{
			"promptTokenCount": in, "cachedContentTokenCount": int64(u.CacheRead), "candidatesTokenCount": out, "thoughtsTokenCount": thoughts,
			"totalTokenCount": in + out + thoughts,
		},
		"modelVersion": t.model,
	}))
}
