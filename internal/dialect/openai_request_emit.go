package dialect

import "strings"

// emitOpenAIRequest appends the request as the body of a chat completion.
func emitOpenAIRequest(b []byte, r *Request, rep *reporter) []byte {
	e := openaiEmitter{b: append(b, '{'), r: r, rep: rep}
	e.b = pair(e.b, "model", r.Model)
	e.messages()
	e.tools()
	if r.MaxOutput > 0 {
		e.b = figure(e.b, "max_completion_tokens", r.MaxOutput)
	}
	e.raw("temperature", r.Temperature)
	e.raw("top_p", r.TopP)
	if r.TopK != nil {
		rep.at(FeatureTopK, top())
	}
	if len(r.Stop) > maxStops {
		rep.at(FeatureStops, top())
	}
	if len(r.Stop) > 0 {
		e.b = append(key(e.b, "stop"), '[')
		for _, s := range r.Stop {
			e.b = text(sep(e.b), s)
		}
		e.b = append(e.b, ']')
	}
	e.output()
	if r.User != "" {
		e.b = pair(e.b, "user", userLabel(r.User))
	}
	if r.Standard {
		e.b = pair(e.b, "service_tier", "default")
	}
	if r.Stream {
		e.b = append(key(e.b, "stream"), "true"...)
	}
	e.asked()
	e.b = openaiShared(e.b, r.Asks)
	if top, ok := r.logprobs(); ok {
		e.b = append(key(e.b, "logprobs"), "true"...)
		e.raw("top_logprobs", top)
	}
	rep.rest(r.Asks)
	return append(e.b, '}')
}

// asked writes what has a place in some dialects only, this one among them.
func (e *openaiEmitter) asked() {
	for i := range e.r.Asks {
		switch a := &e.r.Asks[i]; a.Feature {
		case FeatureSeed:
			e.raw("seed", a.Value)
		case FeatureChoices:
			e.raw("n", a.Value)
		case FeaturePenalty:
			if strings.HasSuffix(a.Path, "frequencyPenalty") {
				e.raw("frequency_penalty", a.Value)
			} else {
				e.raw("presence_penalty", a.Value)
			}
		case FeatureObject:
			e.b = append(key(e.b, "response_format"), `{"type":"json_object"}`...)
		case FeatureVerbosity:
			e.raw("verbosity", a.Value)
		}
	}
}

type openaiEmitter struct {
	b    []byte
	r    *Request
	rep  *reporter
	late []*Part // media of tool results, for the user's message that follows
}

func (e *openaiEmitter) raw(name string, v []byte) {
	if v != nil {
		e.b = append(key(e.b, name), v...)
	}
}

// maxStops is how many stop sequences the dialect takes.
const maxStops = 4

func (e *openaiEmitter) messages() {
	e.b = append(key(e.b, "messages"), '[')
	e.system()
	for i := range e.r.Messages {
		m := &e.r.Messages[i]
		switch m.Role {
		case Assistant:
			e.assistant(m)
		case System:
			e.begin("system")
			e.content(m.Parts, m.Plain)
			e.b = append(e.b, '}')
		default:
			e.user(m)
		}
	}
	e.b = append(e.b, ']')
	if n := len(e.r.Messages); n > 0 && e.r.Messages[n-1].Role == Assistant {
		e.rep.at(FeaturePrefill, e.r.Messages[n-1].at.turn())
	}
}

func (e *openaiEmitter) begin(role string) {
	e.b = pair(append(sep(e.b), '{'), "role", role)
}

func (e *openaiEmitter) system() {
	if len(e.r.System) == 0 {
		return
	}
	e.begin("system")
	e.content(e.r.System, len(e.r.System) == 1)
	e.b = append(e.b, '}')
}

// user writes a turn of the user: the results of tools are messages of their own
// and come first.
func (e *openaiEmitter) user(m *Message) {
	var rest []Part
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != ResultPart {
			rest = append(rest, *p)
			continue
		}
		if len(rest) > 0 {
			e.rep.at(FeatureResultOrder, p.at)
		}
		e.cached(p)
		e.result(p)
	}
	for _, p := range e.late {
		rest = append(rest, *p)
	}
	e.late = nil
	if len(rest) == 0 && len(m.Parts) > 0 {
		return
	}
	e.begin("user")
	e.content(rest, m.Plain)
	e.b = append(e.b, '}')
}

func (e *openaiEmitter) result(p *Part) {
	e.begin("tool")
	e.b = pair(e.b, "tool_call_id", p.Result.ID)
	texts := make([]Part, 0, len(p.Result.Parts)+1)
	if p.Result.Error {
		e.rep.at(FeatureResultError, p.at)
		texts = append(texts, Part{Kind: TextPart, Text: "Error: "})
	}
	for i := range p.Result.Parts {
		if q := &p.Result.Parts[i]; q.Kind == ImagePart || q.Kind == DocumentPart {
			e.rep.at(FeatureResultMedia, q.at)
			e.late = append(e.late, q)
		} else {
			texts = append(texts, *q)
		}
	}
	if p.Result.Error && len(texts) == 2 {
		texts = []Part{{Kind: TextPart, Text: texts[0].Text + texts[1].Text, at: texts[1].at}}
	}
	if len(texts) == 0 {
		texts = []Part{{Kind: TextPart}}
	}
	e.content(texts, len(texts) == 1)
	e.b = append(e.b, '}')
}

// assistant writes an earlier answer.
func (e *openaiEmitter) assistant(m *Message) {
	e.begin("assistant")
	var texts []Part
	thought, calls := "", 0
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Kind {
		case ReasoningPart, RedactedPart:
			thought += p.Text
		case CallPart:
			calls++
		default:
			if calls > 0 {
				e.rep.at(FeatureMixedAnswer, p.at)
			}
			texts = append(texts, *p)
		}
	}
	if thought != "" {
		e.b = pair(e.b, "reasoning_content", thought)
	}
	if len(texts) > 0 {
		e.content(texts, m.Plain || len(texts) == 1)
	} else if calls > 0 {
		e.b = append(key(e.b, "content"), "null"...)
	} else { // the dialect has no answer without content that calls nothing
		e.b = pair(e.b, "content", "")
	}
	if calls > 0 {
		e.calls(m)
	}
	e.b = append(e.b, '}')
}

func (e *openaiEmitter) calls(m *Message) {
	e.b = append(key(e.b, "tool_calls"), '[')
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != CallPart {
			continue
		}
		e.cached(p)
		e.b = pair(pair(append(sep(e.b), '{'), "id", p.Call.ID), "type", "function")
		e.b = pair(append(key(e.b, "function"), '{'), "name", p.Call.Name)
		e.b = append(pair(e.b, "arguments", p.Call.Arguments), '}', '}')
	}
	e.b = append(e.b, ']')
}

// content writes parts as the member content: one text as a string where plain.
func (e *openaiEmitter) content(parts []Part, plain bool) {
	e.b = key(e.b, "content")
	if plain && len(parts) == 1 && parts[0].Kind == TextPart {
		e.cached(&parts[0])
		e.b = text(e.b, parts[0].Text)
		return
	}
	e.b = append(e.b, '[')
	for i := range parts {
		e.part(&parts[i])
	}
	e.b = append(e.b, ']')
}

func (e *openaiEmitter) cached(p *Part) {
	if p.Cached {
		e.rep.mark(p.at)
	}
}

func (e *openaiEmitter) part(p *Part) {
	e.cached(p)
	e.b = append(sep(e.b), '{')
	switch m := &p.Media; p.Kind {
	case ImagePart:
		url := m.URL
		if url == "" {
			e.rep.image(p)
			url = "data:" + m.Type + ";base64," + m.Data
		}
		e.b = pair(append(key(pair(e.b, "type", "image_url"), "image_url"), '{'), "url", url)
		if m.Detail != "" {
			e.b = pair(e.b, "detail", m.Detail)
		}
		e.b = append(e.b, '}')
	case DocumentPart:
		name := m.Title
		if name == "" {
			name = "document.pdf"
		}
		e.b = pair(append(key(pair(e.b, "type", "file"), "file"), '{'), "filename", name)
		e.b = append(pair(e.b, "file_data", "data:"+m.Type+";base64,"+m.Data), '}')
	case AudioPart:
		e.b = pair(append(key(pair(e.b, "type", "input_audio"), "input_audio"), '{'), "data", m.Data)
		e.b = append(pair(e.b, "format", audioFormat(m.Type)), '}')
	case RefusalPart:
		e.b = pair(pair(e.b, "type", "refusal"), "refusal", p.Text)
	case CitedTextPart:
		e.rep.at(FeatureDocumentText, p.at)
		t := p.Text
		if m.Title != "" {
			t = m.Title + "\n\n" + t
		}
		e.b = pair(pair(e.b, "type", "text"), "text", t)
	default:
		e.b = pair(pair(e.b, "type", "text"), "text", p.Text)
	}
	e.b = append(e.b, '}')
}

// maxToolName is the longest name of a tool, in bytes.
const maxToolName = 64

func (e *openaiEmitter) tools() {
	r := e.r
	if len(r.Tools) == 0 {
		return
	}
	e.b = append(key(e.b, "tools"), '[')
	for i := range r.Tools {
		t := &r.Tools[i]
		if len(t.Name) > maxToolName {
			e.rep.at(FeatureToolName, toolAt(t.index))
		}
		if t.Cached {
			e.rep.mark(toolAt(t.index))
		}
		e.b = pair(append(sep(e.b), '{'), "type", "function")
		e.b = pair(append(key(e.b, "function"), '{'), "name", t.Name)
		if t.Description != "" {
			e.b = pair(e.b, "description", t.Description)
		}
		schema, strict := t.Schema, t.Strict
		if strict {
			schema, strict = e.rep.held(schema, e.rep.from.path(toolAt(t.index), ""))
		}
		e.raw("parameters", schema)
		if strict {
			e.b = append(key(e.b, "strict"), "true"...)
		}
		e.b = append(e.b, '}', '}')
	}
	e.b = append(e.b, ']')
	switch c := &r.Choice; {
	case c.Only != nil:
		e.b = openaiAmong(e.b, c, false)
	case c.Kind == ChoiceAuto:
		e.b = pair(e.b, "tool_choice", "auto")
	case c.Kind == ChoiceNone:
		e.b = pair(e.b, "tool_choice", "none")
	case c.Kind == ChoiceAny:
		e.b = pair(e.b, "tool_choice", "required")
	case c.Kind == ChoiceOne:
		e.b = pair(append(key(e.b, "tool_choice"), '{'), "type", "function")
		e.b = append(pair(append(key(e.b, "function"), '{'), "name", r.Choice.Name), '}', '}')
	}
	if r.Serial {
		e.b = append(key(e.b, "parallel_tool_calls"), "false"...)
	}
}

// output writes the effort and the format of the answer.
func (e *openaiEmitter) output() {
	r, effort := e.r, e.r.Effort
	switch r.Thinking.Kind {
	case ThinkingOff:
		e.rep.effortOff(r)
		effort = "none"
	case ThinkingBudget:
		e.rep.at(FeatureBudget, top())
		if effort == "" {
			effort = effortOf(r.Thinking.Budget)
		}
	}
	if effort != "" {
		e.b = pair(e.b, "reasoning_effort", effort)
	}
	if f := r.Format; f != nil {
		name := f.Name
		if name == "" {
			name = "response"
		}
		e.b = pair(append(key(e.b, "response_format"), '{'), "type", "json_schema")
		e.b = pair(append(key(e.b, "json_schema"), '{'), "name", name)
		if f.Note != "" {
			e.b = pair(e.b, "description", f.Note)
		}
		schema, strict := f.Schema, !f.Loose
		if strict {
			schema, strict = e.rep.held(schema, f.at)
		}
		if strict {
			e.b = append(key(e.b, "strict"), "true"...)
		}
		e.b = append(append(key(e.b, "schema"), schema...), '}', '}')
	}
}

// effortOf is the effort that a budget of reasoning comes nearest to.
func effortOf(budget int64) string {
	switch {
	case budget < 4096:
		return "low"
	case budget < 16384:
		return "medium"
	}
	return "high"
}
