package dialect

import (
	"encoding/base64"
	"strings"
)

// emitGeminiRequest appends the request as the body of one for content. Its model and
// whether it streams stand in its path.
func emitGeminiRequest(b []byte, r *Request, rep *reporter) []byte {
	e := geminiEmitter{b: append(b, '{'), r: r, rep: rep}
	e.levels = geminiLevels(e.model())
	e.system()
	e.contents()
	e.tools()
	e.config()
	if r.Standard {
		e.b = pair(e.b, "serviceTier", "standard")
	}
	for i := range r.Asks {
		a := &r.Asks[i]
		if a.Feature == FeaturePenalty && penalty(a.Path) == "" {
			rep.tell(FeatureRepetition, a.Path)
			continue
		}
		rep.tell(a.Feature, a.Path)
	}
	if r.User != "" {
		rep.tell(FeatureUser, r.userAt)
	}
	return append(e.b, '}')
}

type geminiEmitter struct {
	b      []byte
	r      *Request
	rep    *reporter
	levels bool // the model has levels of thinking, and not budgets alone; its tool calls must be signed

	role  string            // of the content that is open; empty if none is
	names map[string]string // of the calls, by their ids
}

// model is the backend's name of its model, without where it lies.
func (e *geminiEmitter) model() string {
	return e.rep.model[strings.LastIndexByte(e.rep.model, '/')+1:]
}

// geminiLevels reports whether a model has levels of thinking, as all have since
// Gemini 3. A name that is not known is a new one.
func geminiLevels(name string) bool {
	return !strings.HasPrefix(name, "gemini-1") && !strings.HasPrefix(name, "gemini-2")
}

// system writes the instructions: those of before the conversation, and those of
// within it, which are moved there.
func (e *geminiEmitter) system() {
	var list []*Part
	add := func(parts []Part) {
		for i := range parts {
			if parts[i].Text != "" {
				list = append(list, &parts[i])
			}
		}
	}
	add(e.r.System)
	for i := range e.r.Messages {
		if m := &e.r.Messages[i]; m.Role == System {
			e.rep.at(FeatureWithin, m.at.turn())
			add(m.Parts)
		}
	}
	if len(list) == 0 {
		return
	}
	e.b = append(key(append(key(e.b, "systemInstruction"), '{'), "parts"), '[')
	for _, p := range list {
		e.cached(p)
		e.text(p.Text, "")
	}
	e.b = append(e.b, ']', '}')
}

func (e *geminiEmitter) contents() {
	e.b = append(key(e.b, "contents"), '[')
	e.names = map[string]string{}
	users := 0
	for i := range e.r.Messages {
		switch m := &e.r.Messages[i]; m.Role {
		case User:
			users++
			e.user(m)
		case Assistant:
			e.assistant(m)
		}
	}
	e.close()
	e.b = append(e.b, ']')
	if n := len(e.r.Messages); n > 0 && e.r.Messages[n-1].Role == Assistant {
		e.rep.at(FeaturePrefill, e.r.Messages[n-1].at.turn())
	}
	if users == 0 {
		e.rep.at(FeatureNoTurn, top())
	}
}

// open begins a content of a role, or goes on with it: roles take turns.
func (e *geminiEmitter) open(role string) {
	if e.role == role {
		return
	}
	e.close()
	e.role = role
	e.b = append(key(pair(append(sep(e.b), '{'), "role", role), "parts"), '[')
}

func (e *geminiEmitter) close() {
	if e.role != "" {
		e.b = append(e.b, ']', '}')
		e.role = ""
	}
}

// user writes a turn of the user: the results of tools come first, and behind them what
// of them is no text.
func (e *geminiEmitter) user(m *Message) {
	rest, results := 0, 0
	var late []*Part
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != ResultPart {
			rest++
			continue
		}
		if rest > 0 {
			e.rep.at(FeatureResultOrder, p.at)
		}
		results++
		e.open("user")
		e.cached(p)
		late = append(late, e.result(p)...)
	}
	e.open("user")
	for _, p := range late {
		e.part(p)
	}
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Kind != ResultPart && (p.Kind != TextPart || p.Text != "" || len(m.Parts) == 1) {
			e.part(p)
		}
	}
}

// assistant writes an earlier answer. A signature that stood before a part of it goes
// into that part: of those that follow it a call before a text.
func (e *geminiEmitter) assistant(m *Message) {
	e.open("model")
	signatures, left := e.signatures(m)
	calls := 0
	for i := range m.Parts {
		p := &m.Parts[i]
		e.cached(p)
		switch p.Kind {
		case RedactedPart:
		case ReasoningPart:
			e.thought(p)
		case CallPart:
			if calls++; calls == 1 && signatures[i] == "" && e.levels {
				signatures[i] = unsigned
			}
			e.call(p, signatures[i])
		case RefusalPart:
			e.rep.at(FeatureRefusalText, p.at)
			e.text(p.Text, signatures[i])
		default:
			if p.Text != "" || signatures[i] != "" || len(m.Parts) == 1 {
				e.text(p.Text, signatures[i])
			}
		}
	}
	for _, s := range left {
		e.text("", s)
	}
}

// signatures finds the part that each signature of an answer belongs to: of the parts
// up to the next signature the first call, else the first text; left are those that
// belong to none.
func (e *geminiEmitter) signatures(m *Message) (of, left []string) {
	of = make([]string, len(m.Parts))
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != RedactedPart {
			continue
		}
		s, _ := byGemini(p.Signature)
		at := -1
		for j := i + 1; j < len(m.Parts) && m.Parts[j].Kind != RedactedPart; j++ {
			if k := m.Parts[j].Kind; k == CallPart {
				at = j
				break
			} else if k == TextPart && at < 0 {
				at = j
			}
		}
		if at < 0 {
			left = append(left, s)
		} else {
			of[at] = s
		}
	}
	return of, left
}

func (e *geminiEmitter) thought(p *Part) {
	signature, _ := byGemini(p.Signature)
	e.b = append(key(pair(append(sep(e.b), '{'), "text", p.Text), "thought"), "true"...)
	e.sign(signature)
}

// sign ends a part, with its signature if it has one.
func (e *geminiEmitter) sign(signature string) {
	if signature != "" {
		e.b = pair(e.b, "thoughtSignature", signature)
	}
	e.b = append(e.b, '}')
}

func (e *geminiEmitter) text(s, signature string) {
	e.b = pair(append(sep(e.b), '{'), "text", s)
	e.sign(signature)
}

func (e *geminiEmitter) call(p *Part, signature string) {
	e.names[p.Call.ID] = p.Call.Name
	e.b = append(key(append(sep(e.b), '{'), "functionCall"), '{')
	if p.Call.ID != "" {
		e.b = pair(e.b, "id", p.Call.ID)
	}
	e.b = append(key(pair(e.b, "name", p.Call.Name), "args"), p.Call.Arguments...)
	e.b = append(e.b, '}')
	e.sign(signature)
}

// result writes what a tool answered: an object. What of it is no text stands behind
// it.
func (e *geminiEmitter) result(p *Part) (late []*Part) {
	name, ok := e.names[p.Result.ID]
	if at := p.at; !ok {
		if at.part == -1 { // the message is the result
			at = at.turn()
		}
		e.rep.at(FeatureOrphan, at)
	}
	e.b = append(key(append(sep(e.b), '{'), "functionResponse"), '{')
	if p.Result.ID != "" {
		e.b = pair(e.b, "id", p.Result.ID)
	}
	e.b = append(key(pair(e.b, "name", name), "response"), '{')
	said := "output"
	if p.Result.Error {
		said = "error"
		e.rep.at(FeatureResultError, p.at)
	}
	var texts []string
	for i := range p.Result.Parts {
		switch q := &p.Result.Parts[i]; q.Kind {
		case TextPart:
			e.cached(q)
			texts = append(texts, q.Text)
		default:
			e.rep.at(FeatureResultMedia, q.at)
			late = append(late, q)
		}
	}
	if len(texts) > 1 {
		e.b = append(key(e.b, said), '[')
		for _, s := range texts {
			e.b = text(sep(e.b), s)
		}
		e.b = append(e.b, ']')
	} else {
		e.b = pair(e.b, said, strings.Join(texts, ""))
	}
	e.b = append(e.b, "}}}"...)
	return late
}

// part writes a part of the user's.
func (e *geminiEmitter) part(p *Part) {
	e.cached(p)
	switch m := &p.Media; {
	case m.URL != "": // it is refused already
	case p.Kind == ImagePart, p.Kind == DocumentPart, p.Kind == AudioPart:
		e.inline(m.Type, m.Data, m.Title)
	case p.Kind == CitedTextPart:
		e.inline("text/plain", base64.StdEncoding.EncodeToString([]byte(p.Text)), m.Title)
	default:
		e.text(p.Text, "")
	}
}

func (e *geminiEmitter) inline(kind, data, name string) {
	e.b = pair(append(key(append(sep(e.b), '{'), "inlineData"), '{'), "mimeType", kind)
	e.b = append(append(key(e.b, "data"), '"'), data...)
	e.b = append(e.b, '"')
	if name != "" {
		e.b = pair(e.b, "displayName", name)
	}
	e.b = append(e.b, '}', '}')
}

func (e *geminiEmitter) cached(p *Part) {
	if p.Cached {
		e.rep.mark(p.at)
	}
}
