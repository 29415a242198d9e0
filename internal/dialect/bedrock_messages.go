package dialect

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// messages writes the conversation. Turns of one side that follow each other are one:
// the dialect wants the sides by turns.
func (e *bedrockEmitter) messages() {
	e.b = append(key(e.b, "messages"), '[')
	users := 0
	var turn []Part
	side := User
	flush := func() {
		if len(turn) > 0 {
			e.turn(side, turn)
		}
		turn = nil
	}
	for i := range e.r.Messages {
		m := &e.r.Messages[i]
		if m.Role == System {
			continue
		}
		if m.Role != side {
			flush()
			side = m.Role
		}
		if m.Role == User {
			users++
		}
		e.order(m)
		turn = append(turn, m.Parts...)
	}
	flush()
	e.automatic()
	e.b = append(e.b, ']')
	if n := len(e.r.Messages); n > 0 && e.r.Messages[n-1].Role == Assistant {
		e.rep.at(FeaturePrefill, e.r.Messages[n-1].at.turn())
	}
	if users == 0 {
		e.rep.at(FeatureNoTurn, top())
	}
}

// automatic marks the end of the last turn where the request itself is marked, and not
// a part of it.
func (e *bedrockEmitter) automatic() {
	asked := slices.ContainsFunc(e.r.Asks, func(a Ask) bool { return a.Feature == FeatureCache })
	if turn, ok := bytes.CutSuffix(e.b, []byte("]}")); asked && ok {
		e.b = append(append(turn, `,{"cachePoint":{"type":"default"}}`...), "]}"...)
	}
}

// order tells of results that stand after other parts of their message.
func (e *bedrockEmitter) order(m *Message) {
	other := false
	for i := range m.Parts {
		if m.Parts[i].Kind != ResultPart {
			other = true
		} else if other {
			e.rep.at(FeatureResultOrder, m.Parts[i].at)
			return
		}
	}
}

// visible reports whether a part is more than an empty text, which the dialect does not
// have.
func visible(p Part) bool { return p.Kind != TextPart || p.Text != "" }

// turn writes one turn: results first, else in its order, which what is signed must keep.
func (e *bedrockEmitter) turn(side Role, parts []Part) {
	role := "user"
	if side == Assistant {
		role = "assistant"
	}
	e.b = pair(append(sep(e.b), '{'), "role", role)
	e.b = append(key(e.b, "content"), '[')
	for _, first := range [...]bool{true, false} {
		for i := range parts {
			p := &parts[i]
			leads := p.Kind == ResultPart
			if leads == first && visible(*p) {
				e.part(p)
			}
		}
	}
	e.b = append(e.b, ']', '}')
}

func (e *bedrockEmitter) part(p *Part) {
	switch p.Kind {
	case ReasoningPart, RedactedPart:
		e.block("reasoningContent")
		if p.Kind == RedactedPart {
			e.b = pair(e.b, "redactedContent", p.Signature)
		} else {
			e.open("reasoningText")
			e.b = pair(pair(e.b, "text", p.Text), "signature", p.Signature)
			e.close(1)
		}
		e.close(2)
	case CallPart:
		e.block("toolUse")
		e.b = pair(pair(e.b, "toolUseId", bedrockID(p.Call.ID)), "name", p.Call.Name)
		e.raw("input", []byte(p.Call.Arguments))
		e.close(2)
	case ResultPart:
		e.result(&p.Result)
	case RefusalPart:
		e.rep.at(FeatureRefusalText, p.at)
		fallthrough
	default:
		e.shown(p)
	}
	e.cachePoint(p.Cached, p.Lasts, p.at)
}

// shown writes a text, an image or a document.
func (e *bedrockEmitter) shown(p *Part) {
	switch p.Kind {
	case ImagePart:
		format, ok := imageFormats[p.Media.Type]
		switch {
		case p.Media.URL != "": // it is refused already
		case !ok:
			e.rep.at(FeatureImageKind, p.at)
		default:
			e.block("image")
			e.b = pair(e.b, "format", format)
			e.open("source")
			e.b = pair(e.b, "bytes", p.Media.Data)
			e.close(3)
		}
	case DocumentPart:
		if p.Media.URL != "" { // likewise
			return
		}
		if p.Media.Type != "application/pdf" {
			e.rep.at(FeatureSearchResult, p.at)
			return
		}
		e.document("pdf", "bytes", p.Media.Data, p.Media.Title)
	case CitedTextPart:
		e.document("txt", "text", p.Text, p.Media.Title)
	default:
		e.b = append(pair(append(sep(e.b), '{'), "text", p.Text), '}')
	}
}

func (e *bedrockEmitter) document(format, source, data, title string) {
	e.block("document")
	e.b = pair(pair(e.b, "format", format), "name", e.documentName(title))
	e.open("source")
	e.b = pair(e.b, source, data)
	e.close(3)
}

// imageFormats are the images that the dialect takes.
var imageFormats = map[string]string{"image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp"}

func (e *bedrockEmitter) result(r *Result) {
	e.block("toolResult")
	e.b = pair(e.b, "toolUseId", bedrockID(r.ID))
	e.b = append(key(e.b, "content"), '[')
	cached, lasts := false, ""
	for i := range r.Parts {
		p := &r.Parts[i]
		if visible(*p) {
			e.shown(p)
		}
		if p.Cached {
			cached, lasts = true, p.Lasts
		}
	}
	e.b = append(e.b, ']')
	if r.Error {
		e.b = pair(e.b, "status", "error")
	}
	e.close(2)
	e.cachePoint(cached, lasts, r.at())
}

// at is where the last marked part of a result stands; a mark within a result goes
// behind it.
func (r *Result) at() place {
	for i := len(r.Parts) - 1; i > 0; i-- {
		if r.Parts[i].Cached {
			return r.Parts[i].at
		}
	}
	if len(r.Parts) > 0 {
		return r.Parts[0].at
	}
	return top()
}

// bedrockID is a call's id in the alphabet and the length of the dialect.
func bedrockID(id string) string {
	const most = 64
	if len(id) > most {
		return toolID(id + " ") // hashed
	}
	return toolID(id)
}

// plainText is the text of a JSON string.
func plainText(v jsontext.Value) (s string, ok bool) {
	return s, len(v) > 0 && v[0] == '"' && json.Unmarshal(v, &s, lenient) == nil
}
