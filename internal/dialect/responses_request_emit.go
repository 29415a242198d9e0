package dialect

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// emitResponsesRequest appends the request as the body of a response. The provider is
// to keep nothing of it, and seals what it reasons so that the next turn can bring it.
func emitResponsesRequest(b []byte, r *Request, rep *reporter) []byte {
	e := responsesEmitter{b: append(b, '{'), r: r, rep: rep}
	e.b = pair(e.b, "model", r.Model)
	e.input()
	e.tools()
	if r.MaxOutput > 0 {
		e.b = figure(e.b, "max_output_tokens", r.MaxOutput)
	}
	e.raw("temperature", r.Temperature)
	e.raw("top_p", r.TopP)
	if r.TopK != nil {
		rep.at(FeatureTopK, top())
	}
	e.stops()
	e.text()
	e.reasoning()
	if r.User != "" {
		e.b = pair(e.b, "safety_identifier", userLabel(r.User))
	}
	if r.Standard {
		e.b = pair(e.b, "service_tier", "default")
	}
	e.b = append(key(e.b, "store"), "false"...)
	e.include()
	e.b = openaiShared(e.b, r.Asks)
	if top, _ := r.logprobs(); top != nil {
		e.raw("top_logprobs", top)
	}
	if r.Stream {
		e.b = append(key(e.b, "stream"), "true"...)
	}
	rep.rest(r.Asks)
	return append(e.b, '}')
}

type responsesEmitter struct {
	b   []byte
	r   *Request
	rep *reporter
}

func (e *responsesEmitter) raw(name string, v jsontext.Value) {
	if v != nil {
		e.b = append(key(e.b, name), v...)
	}
}

// stops refuses texts at which the answer is to end.
func (e *responsesEmitter) stops() {
	list := e.r.Stop
	member := e.rep.from.names[FeatureBlankStop]
	blank := slices.IndexFunc(list, func(s string) bool { return strings.TrimSpace(s) == "" })
	switch {
	case blank >= 0:
		e.rep.at(FeatureBlankStop, place{ofRequest, blank, -1})
	case len(list) > 5:
		e.rep.at(FeatureStops, top())
	case len(list) > 0:
		e.rep.tell(FeatureStop, e.rep.from.path(top(), member))
	}
}

// include asks for what is told where it is asked for alone: sealed reasoning, of a model
// that reasons (others refuse to be asked for it), and log probabilities.
func (e *responsesEmitter) include() {
	sealed := !e.rep.thoughtless
	_, likely := e.r.logprobs()
	if !sealed && !likely {
		return
	}
	e.b = append(key(e.b, "include"), '[')
	if sealed {
		e.b = text(e.b, "reasoning.encrypted_content")
	}
	if likely {
		e.b = text(sep(e.b), "message.output_text.logprobs")
	}
	e.b = append(e.b, ']')
}

// asked is the value of the first ask of a feature, nil if there is none.
func (r *Request) asked(f Feature) jsontext.Value {
	for i := range r.Asks {
		if r.Asks[i].Feature == f {
			return r.Asks[i].Value
		}
	}
	return nil
}

// asks reports whether the request asks for a feature that has no typed place.
func (r *Request) asks(f Feature) bool {
	return slices.ContainsFunc(r.Asks, func(a Ask) bool { return a.Feature == f })
}

// logprobs reports whether log probabilities are asked for, and of how many further
// tokens at each place; nil for none.
func (r *Request) logprobs() (top jsontext.Value, ok bool) {
	for i := range r.Asks {
		a := &r.Asks[i]
		if a.Feature != FeatureLogprobs {
			continue
		}
		ok = true
		if len(a.Value) > 0 && a.Value[0] >= '1' && a.Value[0] <= '9' {
			top = a.Value
		}
	}
	return top, ok
}

// openaiShared appends what chat and Responses have under the same names.
func openaiShared(b []byte, asks []Ask) []byte {
	for i := range asks {
		switch a := &asks[i]; {
		case a.Value == nil:
		case a.Feature == FeatureMetadata:
			b = append(key(b, "metadata"), a.Value...)
		case a.Feature == FeatureCacheKey && openaiCacheKeys[a.Path]:
			b = append(key(b, a.Path), a.Value...)
		}
	}
	return b
}

var openaiCacheKeys = map[string]bool{"prompt_cache_key": true, "prompt_cache_retention": true, "prompt_cache_options": true}

func (e *responsesEmitter) input() {
	r := e.r
	if len(r.System) == 1 && !r.System[0].Cached {
		e.b = pair(e.b, "instructions", r.System[0].Text)
	}
	e.b = append(key(e.b, "input"), '[')
	if len(r.System) > 1 || len(r.System) == 1 && r.System[0].Cached {
		e.message("system", r.System, false)
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		switch m.Role {
		case System:
			e.message("system", m.Parts, m.Plain)
		case Assistant:
			e.turn(m, "assistant")
		default:
			e.turn(m, "user")
		}
	}
	e.b = append(e.b, ']')
	if n := len(r.Messages); n > 0 && r.Messages[n-1].Role == Assistant {
		e.rep.at(FeaturePrefill, r.Messages[n-1].at.turn())
	}
}

// turn writes a turn as items, in its order: what is said between calls, results and
// reasoning is a message each.
func (e *responsesEmitter) turn(m *Message, role string) {
	from, wrote := 0, false
	flush := func(to int) {
		if to > from {
			e.message(role, m.Parts[from:to], m.Plain || role == "assistant" && to-from == 1 && m.Parts[from].Kind == TextPart)
			wrote = true
		}
		from = to + 1
	}
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Kind {
		case CallPart:
			flush(i)
			e.cached(p)
			e.b = pair(pair(pair(append(sep(e.b), '{'), "type", "function_call"), "call_id", p.Call.ID), "name", p.Call.Name)
			e.b = append(pair(e.b, "arguments", p.Call.Arguments), '}')
		case ResultPart:
			flush(i)
			e.result(p)
		case ReasoningPart, RedactedPart:
			flush(i)
			e.reasoned(p)
		default:
			continue
		}
		wrote = true
	}
	flush(len(m.Parts))
	if !wrote && len(m.Parts) == 0 {
		e.message(role, nil, false)
	}
}

// reasoned writes reasoning that its backend sealed. Its id, which the item must have
// again, came before the seal.
func (e *responsesEmitter) reasoned(p *Part) {
	id, seal := unlabelled(p.Signature)
	e.b = append(sep(e.b), '{')
	e.b = pair(e.b, "type", "reasoning")
	if id != "" {
		e.b = pair(e.b, "id", id)
	}
	e.b = append(key(e.b, "summary"), '[')
	if p.Kind == ReasoningPart {
		e.b = append(pair(pair(append(sep(e.b), '{'), "type", "summary_text"), "text", p.Text), '}')
	}
	e.b = append(pair(append(e.b, ']'), "encrypted_content", seal), '}')
}

func (e *responsesEmitter) message(role string, parts []Part, plain bool) {
	e.b = pair(append(sep(e.b), '{'), "type", "message")
	e.b = pair(e.b, "role", role)
	e.content("content", role, parts, plain)
	e.b = append(e.b, '}')
}

func (e *responsesEmitter) content(name, role string, parts []Part, plain bool) {
	e.b = key(e.b, name)
	if plain && len(parts) == 1 && parts[0].Kind == TextPart {
		e.cached(&parts[0])
		e.b = text(e.b, parts[0].Text)
		return
	}
	e.b = append(e.b, '[')
	for i := range parts {
		e.part(&parts[i], role)
	}
	e.b = append(e.b, ']')
}

func (e *responsesEmitter) cached(p *Part) {
	if p.Cached {
		e.rep.mark(p.at)
	}
}

func (e *responsesEmitter) part(p *Part, role string) {
	e.cached(p)
	e.b = append(sep(e.b), '{')
	kind := "input_text"
	if role == "assistant" {
		kind = "output_text"
	}
	switch m := &p.Media; p.Kind {
	case ImagePart:
		url, detail := m.URL, m.Detail
		if url == "" {
			e.rep.image(p)
			url = "data:" + m.Type + ";base64," + m.Data
		}
		if detail == "" {
			detail = "auto"
		}
		e.b = pair(pair(pair(e.b, "type", "input_image"), "image_url", url), "detail", detail)
	case DocumentPart:
		name := m.Title
		if name == "" {
			name = "document.pdf"
		}
		e.b = pair(pair(e.b, "type", "input_file"), "filename", name)
		if m.URL != "" {
			e.b = pair(e.b, "file_url", m.URL)
		} else {
			e.b = pair(e.b, "file_data", "data:"+m.Type+";base64,"+m.Data)
		}
	case CitedTextPart:
		e.rep.at(FeatureDocumentText, p.at)
		t := p.Text
		if m.Title != "" {
			t = m.Title + "\n\n" + t
		}
		e.b = pair(pair(e.b, "type", kind), "text", t)
	case RefusalPart:
		if role != "assistant" {
			e.b = pair(pair(e.b, "type", kind), "text", p.Text)
			break
		}
		e.b = pair(pair(e.b, "type", "refusal"), "refusal", p.Text)
	default:
		e.b = pair(pair(e.b, "type", kind), "text", p.Text)
		if role == "assistant" {
			e.b = append(key(e.b, "annotations"), "[]"...)
		}
	}
	e.b = append(e.b, '}')
}

func (e *responsesEmitter) result(p *Part) {
	e.cached(p)
	e.b = pair(pair(append(sep(e.b), '{'), "type", "function_call_output"), "call_id", p.Result.ID)
	parts := p.Result.Parts
	if p.Result.Error {
		e.rep.at(FeatureResultError, p.at)
		parts = append([]Part{{Kind: TextPart, Text: "Error: "}}, parts...)
		if len(parts) == 2 && parts[1].Kind == TextPart {
			parts = []Part{{Kind: TextPart, Text: parts[0].Text + parts[1].Text, Cached: parts[1].Cached, at: parts[1].at}}
		}
	}
	if len(parts) == 0 {
		parts = []Part{{Kind: TextPart}}
	}
	e.content("output", "tool", parts, len(parts) == 1)
	e.b = append(e.b, '}')
}

func (e *responsesEmitter) tools() {
	r := e.r
	if len(r.Tools) > 0 {
		e.b = append(key(e.b, "tools"), '[')
		for i := range r.Tools {
			e.tool(&r.Tools[i])
		}
		e.b = append(e.b, ']')
	}
	switch c := &r.Choice; {
	case c.Only != nil:
		e.b = openaiAmong(e.b, c, true)
	case c.Kind == ChoiceAuto:
		e.b = pair(e.b, "tool_choice", "auto")
	case c.Kind == ChoiceNone:
		e.b = pair(e.b, "tool_choice", "none")
	case c.Kind == ChoiceAny:
		e.b = pair(e.b, "tool_choice", "required")
	case c.Kind == ChoiceOne:
		e.b = append(pair(pair(append(key(e.b, "tool_choice"), '{'), "type", "function"), "name", r.Choice.Name), '}')
	}
	if r.Serial && len(r.Tools) > 0 {
		e.b = append(key(e.b, "parallel_tool_calls"), "false"...)
	}
}

func (e *responsesEmitter) tool(t *Tool) {
	if len(t.Name) > maxToolName {
		e.rep.at(FeatureToolName, toolAt(t.index))
	}
	if t.Cached {
		e.rep.mark(toolAt(t.index))
	}
	e.b = pair(pair(append(sep(e.b), '{'), "type", "function"), "name", t.Name)
	if t.Description != "" {
		e.b = pair(e.b, "description", t.Description)
	}
	schema, strict := t.Schema, t.Strict
	if strict {
		schema, strict = e.rep.held(schema, e.rep.from.path(toolAt(t.index), ""))
	}
	if schema == nil {
		schema = jsontext.Value("null")
	}
	e.raw("parameters", schema)
	e.b = append(key(e.b, "strict"), boolean(strict)...)
	e.b = append(e.b, '}')
}

func boolean(v bool) string {
	if v {
		return "true"
	}
	return "false"
}
