package dialect

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// emitAnthropicRequest appends the request as the body of a message.
func emitAnthropicRequest(b []byte, r *Request, rep *reporter) []byte {
	e := anthropicEmitter{b: append(b, '{'), r: r, rep: rep}
	e.b = pair(e.b, "model", r.Model)
	e.b = figure(e.b, "max_tokens", max(r.MaxOutput, 1))
	e.system()
	e.messages()
	e.tools()
	e.sampling()
	e.output()
	if r.User != "" {
		e.b = append(pair(append(key(e.b, "metadata"), '{'), "user_id", r.User), '}')
	}
	if r.Standard {
		e.b = pair(e.b, "service_tier", "standard_only")
	}
	if r.Stream {
		e.b = append(key(e.b, "stream"), "true"...)
	}
	rep.rest(r.Asks)
	return append(e.b, '}')
}

type anthropicEmitter struct {
	b   []byte
	r   *Request
	rep *reporter
}

// system writes the instructions: those of before the conversation, and those of
// within it, which are moved there.
func (e *anthropicEmitter) system() {
	var list []Part
	add := func(parts []Part) {
		for _, p := range parts {
			if p.Text != "" {
				list = append(list, p)
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
	switch {
	case len(list) == 0:
	case len(list) == 1 && !list[0].Cached:
		e.b = pair(e.b, "system", list[0].Text)
	default:
		e.b = append(key(e.b, "system"), '[')
		for i := range list {
			e.part(&list[i])
		}
		e.b = append(e.b, ']')
	}
}

func (e *anthropicEmitter) messages() {
	e.b = append(key(e.b, "messages"), '[')
	users := 0
	for i := range e.r.Messages {
		m := &e.r.Messages[i]
		if m.Role == System {
			continue
		}
		role := "user"
		if m.Role == Assistant {
			role = "assistant"
		} else {
			users++
		}
		e.b = pair(append(sep(e.b), '{'), "role", role)
		e.b = key(e.b, "content")
		if m.Plain && len(m.Parts) == 1 && !m.Parts[0].Cached {
			e.b = text(e.b, m.Parts[0].Text)
		} else {
			e.parts(m)
		}
		e.b = append(e.b, '}')
	}
	e.b = append(e.b, ']')
	if n := len(e.r.Messages); n > 0 && e.r.Messages[n-1].Role == Assistant {
		e.rep.at(FeaturePrefill, e.r.Messages[n-1].at.turn())
	}
	if users == 0 {
		e.rep.at(FeatureNoTurn, top())
	}
}

// parts writes a turn: results first, else in its order, which what is signed must keep.
func (e *anthropicEmitter) parts(m *Message) {
	e.b = append(e.b, '[')
	for _, first := range [...]bool{true, false} {
		for i := range m.Parts {
			p := &m.Parts[i]
			leads := p.Kind == ResultPart
			if leads == first && (p.Kind != TextPart || p.Text != "") {
				e.part(p)
			}
		}
	}
	e.b = append(e.b, ']')
}

func (e *anthropicEmitter) part(p *Part) {
	switch p.Kind {
	case ReasoningPart:
		e.open("thinking")
		e.b = pair(pair(e.b, "thinking", p.Text), "signature", p.Signature)
	case RedactedPart:
		e.open("redacted_thinking")
		e.b = pair(e.b, "data", p.Signature)
	case ImagePart:
		e.rep.image(p)
		e.open("image")
		e.source(&p.Media)
	case DocumentPart:
		e.open("document")
		e.source(&p.Media)
		if p.Media.Title != "" {
			e.b = pair(e.b, "title", p.Media.Title)
		}
	case CitedTextPart:
		e.open("document")
		e.b = append(pair(pair(pair(append(key(e.b, "source"), '{'), "type", "text"), "media_type", "text/plain"), "data", p.Text), '}')
		if p.Media.Title != "" {
			e.b = pair(e.b, "title", p.Media.Title)
		}
	case CallPart:
		e.open("tool_use")
		e.b = pair(pair(e.b, "id", toolID(p.Call.ID)), "name", p.Call.Name)
		e.b = append(key(e.b, "input"), p.Call.Arguments...)
	case ResultPart:
		e.result(&p.Result)
	case RefusalPart:
		e.rep.at(FeatureRefusalText, p.at)
		fallthrough
	default:
		e.open("text")
		e.b = pair(e.b, "text", p.Text)
	}
	if p.Cached {
		e.rep.mark(p.at)
		e.b = append(key(e.b, "cache_control"), `{"type":"ephemeral"}`...)
	}
	e.b = append(e.b, '}')
}

func (e *anthropicEmitter) open(kind string) { e.b = pair(append(sep(e.b), '{'), "type", kind) }

func (e *anthropicEmitter) source(m *Media) {
	e.b = append(key(e.b, "source"), '{')
	if m.URL != "" {
		e.b = append(pair(pair(e.b, "type", "url"), "url", m.URL), '}')
		return
	}
	e.b = append(pair(pair(pair(e.b, "type", "base64"), "media_type", m.Type), "data", m.Data), '}')
}

func (e *anthropicEmitter) result(r *Result) {
	e.open("tool_result")
	e.b = pair(e.b, "tool_use_id", toolID(r.ID))
	switch {
	case r.Plain && len(r.Parts) == 1:
		e.b = pair(e.b, "content", r.Parts[0].Text)
	case len(r.Parts) > 0:
		e.b = append(key(e.b, "content"), '[')
		for i := range r.Parts {
			if p := &r.Parts[i]; p.Kind != TextPart || p.Text != "" {
				e.part(p)
			}
		}
		e.b = append(e.b, ']')
	}
	if r.Error {
		e.b = append(key(e.b, "is_error"), "true"...)
	}
}

// toolID is a call's id in the alphabet of the dialect: letters, digits, - and _.
// Another is replaced by its hash, the same for the call and its result.
func toolID(id string) string {
	fits := id != ""
	for i := range len(id) {
		c := id[i]
		fits = fits && (c == '-' || c == '_' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z')
	}
	if fits {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:12])
}

func (e *anthropicEmitter) tools() {
	r := e.r
	if len(r.Tools) == 0 {
		e.called()
		return
	}
	e.b = append(key(e.b, "tools"), '[')
	for i := range r.Tools {
		t := &r.Tools[i]
		e.b = pair(append(sep(e.b), '{'), "name", t.Name)
		if t.Description != "" {
			e.b = pair(e.b, "description", t.Description)
		}
		e.b = key(e.b, "input_schema")
		switch {
		case t.Schema == nil:
			e.b = append(e.b, `{"type":"object","properties":{}}`...)
		case t.Strict:
			e.b = append(e.b, heldAlways(t.Schema)...)
		default:
			e.b = append(e.b, t.Schema...)
		}
		if t.Strict {
			e.b = append(key(e.b, "strict"), "true"...)
		}
		if t.Cached {
			e.rep.mark(toolAt(t.index))
			e.b = append(key(e.b, "cache_control"), `{"type":"ephemeral"}`...)
		}
		e.b = append(e.b, '}')
	}
	e.b = append(e.b, ']')
	e.choice()
}

// called declares the tools that earlier answers called where the request declares
// none: a conversation that goes on without its tools is refused here if they are
// unknown. They are not to be called again.
func (e *anthropicEmitter) called() {
	known := map[string]bool{}
	for i := range e.r.Messages {
		for j := range e.r.Messages[i].Parts {
			p := &e.r.Messages[i].Parts[j]
			if p.Kind != CallPart || known[p.Call.Name] {
				continue
			}
			if len(known) == 0 {
				e.rep.at(FeatureUndeclared, p.at)
				e.b = append(key(e.b, "tools"), '[')
			}
			known[p.Call.Name] = true
			e.b = pair(append(sep(e.b), '{'), "name", p.Call.Name)
			e.b = append(e.b, `,"input_schema":{"type":"object","properties":{}}}`...)
		}
	}
	if len(known) > 0 {
		e.b = append(e.b, `],"tool_choice":{"type":"none"}`...)
	}
}

func (e *anthropicEmitter) choice() {
	kind := e.r.Choice.Kind
	if e.r.Choice.Only != nil {
		e.rep.at(FeatureAllowedTools, top())
	}
	if kind == ChoiceDefault {
		if !e.r.Serial {
			return
		}
		kind = ChoiceAuto
	}
	e.b = append(key(e.b, "tool_choice"), '{')
	switch kind {
	case ChoiceNone:
		e.b = append(pair(e.b, "type", "none"), '}')
		return
	case ChoiceAny:
		e.b = pair(e.b, "type", "any")
	case ChoiceOne:
		e.b = pair(pair(e.b, "type", "tool"), "name", e.r.Choice.Name)
	default:
		e.b = pair(e.b, "type", "auto")
	}
	if e.r.Serial {
		e.b = append(key(e.b, "disable_parallel_tool_use"), "true"...)
	}
	e.b = append(e.b, '}')
}

func (e *anthropicEmitter) sampling() {
	r := e.r
	if number(r.Temperature) > 1 {
		e.rep.at(FeatureHot, top())
	} else {
		e.raw("temperature", r.Temperature)
	}
	e.raw("top_p", r.TopP)
	e.raw("top_k", r.TopK)
	if len(r.Stop) == 0 {
		return
	}
	e.b = append(key(e.b, "stop_sequences"), '[')
	for i, s := range r.Stop {
		if strings.TrimSpace(s) == "" {
			e.rep.at(FeatureBlankStop, place{ofRequest, i, -1})
		}
		e.b = text(sep(e.b), s)
	}
	e.b = append(e.b, ']')
}

func (e *anthropicEmitter) raw(name string, v []byte) {
	if v != nil {
		e.b = append(key(e.b, name), v...)
	}
}

// output writes the effort, the reasoning and the format of the answer.
func (e *anthropicEmitter) output() {
	r, effort := e.r, e.r.Effort
	thinking := r.Thinking
	switch effort {
	case "none":
		effort, thinking.Kind = "", ThinkingOff
	case "minimal":
		e.rep.at(FeatureMinimal, top())
		effort = "low"
	}
	if effort != "" || r.Format != nil {
		e.b = append(key(e.b, "output_config"), '{')
		if effort != "" {
			e.b = pair(e.b, "effort", effort)
		}
		if r.Format != nil {
			e.b = append(pair(append(key(e.b, "format"), '{'), "type", "json_schema"), `,"schema":`...)
			e.b = append(append(e.b, heldAlways(r.Format.Schema)...), '}')
		}
		e.b = append(e.b, '}')
	}
	switch thinking.Kind {
	case ThinkingOff:
		e.b = append(key(e.b, "thinking"), `{"type":"disabled"}`...)
	case ThinkingAdaptive:
		e.b = append(key(e.b, "thinking"), `{"type":"adaptive"}`...)
	case ThinkingBudget:
		e.rep.least(thinking.Budget)
		e.b = append(figure(pair(append(key(e.b, "thinking"), '{'), "type", "enabled"), "budget_tokens", thinking.Budget), '}')
	}
}
