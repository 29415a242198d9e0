package dialect

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// emitBedrockRequest appends the request as the body of a Converse, with the model and
// the stream, which leave it for the address.
func emitBedrockRequest(b []byte, r *Request, rep *reporter) []byte {
	e := bedrockEmitter{b: append(b, '{'), r: r, rep: rep}
	e.b = pair(e.b, "model", r.Model)
	if r.Stream {
		e.b = append(key(e.b, "stream"), "true"...)
	}
	e.system()
	e.messages()
	e.inference()
	e.tools()
	e.output()
	e.additional()
	e.who()
	rep.rest(r.Asks)
	return append(e.b, '}')
}

type bedrockEmitter struct {
	b     []byte
	r     *Request
	rep   *reporter
	names map[string]bool // of documents, which must differ
}

// open begins a member that is an object, in an object of its own where what stands
// before it is a list.
func (e *bedrockEmitter) open(name string) { e.b = append(key(e.b, name), '{') }

// block begins a block: an object whose one member says what it is.
func (e *bedrockEmitter) block(kind string) {
	e.b = append(sep(e.b), '{')
	e.open(kind)
}

func (e *bedrockEmitter) close(n int) {
	for range n {
		e.b = append(e.b, '}')
	}
}

func (e *bedrockEmitter) raw(name string, v []byte) {
	if v != nil {
		e.b = append(key(e.b, name), v...)
	}
}

// cachePoint ends what is to be cached.
func (e *bedrockEmitter) cachePoint(marked bool, lasts string, at place) {
	if !marked {
		return
	}
	e.rep.mark(at)
	e.b = append(sep(e.b), `{"cachePoint":{"type":"default"`...)
	if lasts != "" {
		e.b = pair(e.b, "ttl", lasts)
	}
	e.b = append(e.b, '}', '}')
}

// system writes the instructions: those of before the conversation, and those of
// within it, which are moved there.
func (e *bedrockEmitter) system() {
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
	if len(list) == 0 {
		return
	}
	e.b = append(key(e.b, "system"), '[')
	for i := range list {
		e.b = append(pair(append(sep(e.b), '{'), "text", list[i].Text), '}')
		e.cachePoint(list[i].Cached, list[i].Lasts, list[i].at)
	}
	e.b = append(e.b, ']')
}

// inference writes what all models have.
func (e *bedrockEmitter) inference() {
	r := e.r
	e.open("inferenceConfig")
	if r.MaxOutput > 0 {
		e.b = figure(e.b, "maxTokens", r.MaxOutput)
	}
	if number(r.Temperature) > 1 {
		e.rep.at(FeatureHot, top())
	} else {
		e.raw("temperature", r.Temperature)
	}
	e.raw("topP", r.TopP)
	if len(r.Stop) > 0 {
		e.b = append(key(e.b, "stopSequences"), '[')
		for i, s := range r.Stop {
			if strings.TrimSpace(s) == "" {
				e.rep.at(FeatureBlankStop, place{ofRequest, i, -1})
			}
			e.b = text(sep(e.b), s)
		}
		e.b = append(e.b, ']')
	}
	e.close(1)
	if len(r.Stop) > 0 { // which of them it was; models that do not say are not asked again
		e.b = append(key(e.b, "additionalModelResponseFieldPaths"), `["/stop_sequence"]`...)
	}
}

func (e *bedrockEmitter) tools() {
	r := e.r
	switch {
	case len(r.Tools) == 0:
		return
	case r.Choice.Kind == ChoiceNone:
		e.rep.at(FeatureNoCalls, top())
		return
	case r.Serial:
		e.rep.at(FeatureSerial, top())
	}
	if r.Choice.Only != nil {
		e.rep.at(FeatureAllowedTools, top())
	}
	e.open("toolConfig")
	e.b = append(key(e.b, "tools"), '[')
	for i := range r.Tools {
		e.tool(&r.Tools[i])
	}
	e.b = append(e.b, ']')
	switch r.Choice.Kind {
	case ChoiceAuto:
		e.b = append(key(e.b, "toolChoice"), `{"auto":{}}`...)
	case ChoiceAny:
		e.b = append(key(e.b, "toolChoice"), `{"any":{}}`...)
	case ChoiceOne:
		e.open("toolChoice")
		e.open("tool")
		e.b = pair(e.b, "name", r.Choice.Name)
		e.close(2)
	}
	e.close(1)
}

func (e *bedrockEmitter) tool(t *Tool) {
	if len(t.Name) > maxToolName {
		e.rep.at(FeatureToolName, toolAt(t.index))
	}
	e.block("toolSpec")
	e.b = pair(e.b, "name", t.Name)
	if t.Description != "" {
		e.b = pair(e.b, "description", t.Description)
	}
	e.open("inputSchema")
	switch {
	case t.Schema == nil:
		e.raw("json", []byte(`{"type":"object","properties":{}}`))
	case t.Strict:
		e.raw("json", heldAlways(t.Schema))
	default:
		e.raw("json", t.Schema)
	}
	e.close(1)
	if t.Strict {
		e.raw("strict", []byte("true"))
	}
	e.close(2)
	e.cachePoint(t.Cached, t.Lasts, toolAt(t.index))
}

// output writes the effort and the format of the answer.
func (e *bedrockEmitter) output() {
	r, effort := e.r, e.r.Effort
	switch effort {
	case "none":
		effort = ""
	case "minimal":
		e.rep.at(FeatureMinimal, top())
		effort = "low"
	}
	if effort == "" && r.Format == nil {
		return
	}
	e.open("outputConfig")
	if effort != "" {
		e.b = pair(e.b, "effort", effort)
	}
	if r.Format != nil {
		e.open("textFormat")
		e.b = pair(e.b, "type", "json_schema")
		e.open("structure")
		e.open("jsonSchema")
		e.b = pair(e.b, "schema", string(heldAlways(r.Format.Schema)))
		if r.Format.Name != "" {
			e.b = pair(e.b, "name", r.Format.Name)
		}
		e.close(3)
	}
	e.close(1)
}

// additional writes what only some models have, in their own words.
func (e *bedrockEmitter) additional() {
	r := e.r
	kind := r.Thinking.Kind
	if r.Effort == "none" {
		kind = ThinkingOff
	}
	if r.TopK == nil && kind == ThinkingDefault {
		return
	}
	e.open("additionalModelRequestFields")
	e.raw("top_k", r.TopK)
	switch kind {
	case ThinkingOff:
		e.raw("thinking", []byte(`{"type":"disabled"}`))
	case ThinkingAdaptive:
		e.raw("thinking", []byte(`{"type":"adaptive"}`))
	case ThinkingBudget:
		e.rep.least(r.Thinking.Budget)
		e.open("thinking")
		e.b = figure(pair(e.b, "type", "enabled"), "budget_tokens", r.Thinking.Budget)
		e.close(1)
	}
	e.close(1)
}

// Bounds of requestMetadata: entries, and bytes of a key or a value.
const (
	maxMetadata = 16
	maxLabel    = 256
)

// who writes the labels and the service tier.
func (e *bedrockEmitter) who() {
	var labels []member
	for _, a := range e.r.Asks {
		if a.Feature == FeatureMetadata {
			labels = members(a.Value)
		}
	}
	n := 0
	put := func(name, value string) {
		if n == 0 {
			e.open("requestMetadata")
		}
		n++
		e.b = text(append(text(sep(e.b), name), ':'), value)
	}
	if e.r.User != "" {
		put("user", metadataLabel(e.r.User))
	}
	for _, m := range labels {
		if value, ok := plainText(m.value); ok && m.name != "user" && fitsMetadata(m.name) && fitsMetadata(value) && n < maxMetadata {
			put(m.name, value)
		}
	}
	if n > 0 {
		e.close(1)
	}
	if e.r.Standard {
		e.raw("serviceTier", []byte(`{"type":"default"}`))
	}
}

// metadataLabel is a label that fits into requestMetadata: one that does not is
// replaced by its hash, which still tells users apart.
func metadataLabel(s string) string {
	if fitsMetadata(s) {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// fitsMetadata reports whether requestMetadata takes a text.
func fitsMetadata(s string) bool {
	for _, c := range []byte(s) {
		letter := '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
		if !letter && strings.IndexByte(" :_@$#=/+,-.", c) < 0 {
			return false
		}
	}
	return s != "" && len(s) <= maxLabel
}

// documentName is a document's name as far as the dialect allows it, and unlike those
// before it: letters, digits, single spaces, hyphens, parentheses and brackets.
func (e *bedrockEmitter) documentName(title string) string {
	var b strings.Builder
	for _, r := range strings.TrimSuffix(strings.TrimSuffix(title, ".pdf"), ".txt") {
		switch {
		case '0' <= r && r <= '9', 'A' <= r && r <= 'Z', 'a' <= r && r <= 'z', strings.ContainsRune("-()[]", r):
			b.WriteRune(r)
		case r == ' ' && !strings.HasSuffix(b.String(), " "):
			b.WriteRune(r)
		case r != ' ' && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= 150 {
			break
		}
	}
	name := cmp.Or(strings.Trim(b.String(), "- "), "document")
	if e.names == nil {
		e.names = map[string]bool{}
	}
	for unique, n := name, 2; ; n++ {
		if !e.names[unique] {
			e.names[unique] = true
			return unique
		}
		unique = name + " " + index(n)
	}
}
