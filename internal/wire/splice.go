package wire

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"sluice"
)

// Edit is what changes in a request on its way to a backend. Zero fields change
// nothing.
type Edit struct {
	Model           string        // the backend's name of the model
	IncludeUsage    bool          // ask for usage in the stream; only where Head.Stream and the dialect is OpenAI
	ContinuousUsage bool          // ask for usage in every event as well (vLLM, SGLang)
	MaxOutput       sluice.Tokens // bound on one choice's output: lowers or inserts the client's, and replaces a 0, which some servers take for no bound
	CacheSalt       string        // what the engine is to set the prompt apart by in its prefix cache
	LegacyMaxTokens bool          // the backend knows max_tokens only (Ollama, older llama.cpp): a bound is also named so

	// What clouds want in another place than the provider whose dialect they speak:
	NoModel  bool     // the address names the model: the body does not
	NoStream bool     // the address says that it is a stream: the body does not
	Version  string   // of Anthropic's dialect, which the body names: vertex-2023-10-16
	Betas    []string // of Anthropic's dialect, which the body names too
}

// patch replaces the bytes of at by with.
type patch struct {
	at   span
	with []byte
}

// Pieces returns, in pieces, a body in which only the edited values differ from
// the one that was scanned. They are slices of the body where nothing differs; it
// is not changed, so that it can be edited again for another backend.
func (h *Head) Pieces(body []byte, e Edit) [][]byte {
	return patched(body, h.patches(make([]patch, 0, 8), e))
}

// patched is a body with patches in it, in pieces. It sorts them.
func patched(body []byte, p []patch) [][]byte {
	slices.SortStableFunc(p, func(a, b patch) int { return cmp.Compare(a.at.start, b.at.start) })
	out := make([][]byte, 0, 2*len(p)+1)
	from := 0
	for _, q := range p {
		if q.at.start > from {
			out = append(out, body[from:q.at.start])
		}
		out = append(out, q.with)
		from = q.at.end
	}
	return append(out, body[from:])
}

// Splice returns the body of Pieces in one.
func (h *Head) Splice(body []byte, e Edit) []byte { return bytes.Join(h.Pieces(body, e), nil) }

// patches lists what differs, in any order and without overlaps. New members
// follow the model, which every body has but those whose address names it: see
// elsewhere.
func (h *Head) patches(p []patch, e Edit) []patch {
	if h.form { // a model that the address names may stand in it
		if e.Model != "" && e.Model != h.Model {
			p = append(p, patch{h.model, []byte(e.Model)})
		}
		return p
	}
	if h.Op.Dialect() == Gemini {
		return h.geminiPatches(p, e)
	}
	if !h.model.ok() || e.NoModel || e.NoStream {
		return h.elsewhere(p, e)
	}
	if e.Model != "" && e.Model != h.Model {
		p = append(p, patch{h.model, quoted(e.Model)})
	}
	return h.others(p, span{h.model.end, h.model.end}, e)
}

// others lists what differs beside the model. New members go to insert, each with a
// comma before it.
func (h *Head) others(p []patch, insert span, e Edit) []patch {
	p = h.clouded(p, insert, e)
	if e.CacheSalt != "" {
		if h.cacheSalt.ok() {
			p = append(p, patch{h.cacheSalt, quoted(e.CacheSalt)})
		} else {
			p = append(p, patch{insert, append([]byte(`,"cache_salt":`), quoted(e.CacheSalt)...)})
		}
	}
	if h.Stream && h.Op.TellsUsage() {
		p = h.usagePatches(p, insert, e)
	}
	e.LegacyMaxTokens = e.LegacyMaxTokens && h.Op != Responses // which has one name for it
	if e.LegacyMaxTokens && e.MaxOutput == 0 {
		e.MaxOutput = h.MaxOutput
	}
	if e.MaxOutput > 0 && h.Op.Generates() {
		p = h.boundPatches(p, insert, e)
	}
	return p
}

// usagePatches asks for usage in the stream.
func (h *Head) usagePatches(p []patch, insert span, e Edit) []patch {
	usage := e.IncludeUsage && !h.IncludeUsage
	continuous := e.ContinuousUsage && !h.ContinuousUsage
	if !usage && !continuous {
		return p
	}
	var members []string
	if usage {
		if h.includeUsage.ok() {
			p = append(p, patch{h.includeUsage, []byte("true")})
		} else {
			members = append(members, `"include_usage":true`)
		}
	}
	if continuous {
		if h.continuousUsage.ok() {
			p = append(p, patch{h.continuousUsage, []byte("true")})
		} else {
			members = append(members, `"continuous_usage_stats":true`)
		}
	}
	if len(members) == 0 {
		return p
	}
	added := strings.Join(members, ",")
	switch at := h.streamOptions; {
	case !at.ok():
		return append(p, patch{insert, []byte(`,"stream_options":{` + added + `}`)})
	case h.streamOptionsNull:
		return append(p, patch{at, []byte("{" + added + "}")})
	case !h.streamOptionsEmpty:
		added += ","
		fallthrough
	default:
		return append(p, patch{span{at.start + 1, at.start + 1}, []byte(added)})
	}
}

// boundPatches lowers the client's output bound, or names one.
func (h *Head) boundPatches(p []patch, insert span, e Edit) []patch {
	bound := strconv.AppendInt(nil, int64(e.MaxOutput), 10)
	named := false
	for _, f := range [...]struct {
		at span
		is sluice.Tokens
	}{{h.maxTokens, h.maxTokensIs}, {h.maxCompletionTokens, h.maxCompletionTokensIs}} {
		if !f.at.ok() || f.is < 0 { // a null names nothing; what is inserted would be a second one
			continue
		}
		named = true
		if replaces(e.MaxOutput, f.is) {
			p = append(p, patch{f.at, bound})
		}
	}
	lowered := e.MaxOutput
	if !replaces(lowered, h.MaxOutput) {
		lowered = h.MaxOutput
	}
	switch {
	case !named && h.Op == Converse:
		return h.converseBound(p, insert, bound)
	case !named:
		field, at := h.MaxParam, h.maxCompletionTokens
		if e.LegacyMaxTokens || field == "max_tokens" {
			field, at = "max_tokens", h.maxTokens
		}
		return h.name(p, insert, field, at, e.MaxOutput)
	case e.LegacyMaxTokens && h.maxTokensIs < 0, e.LegacyMaxTokens && !h.maxTokens.ok():
		return h.name(p, insert, "max_tokens", h.maxTokens, lowered)
	}
	return p
}

// replaces reports whether a bound goes in the place of the client's.
func replaces(bound, is sluice.Tokens) bool { return is > bound || is == 0 && bound > 0 }

// Changed names the output bounds of the client's request that an edit changes, as
// "max_tokens=4000", for the sluice-dropped header; the one that it inserts where
// the client names none. Empty if the client's stand.
func (h *Head) Changed(e Edit) string {
	if e.MaxOutput <= 0 || !h.Op.Generates() {
		return ""
	}
	if !h.HasMaxOutput {
		if e.LegacyMaxTokens && h.Op.Dialect() == OpenAI && h.Op != Responses {
			return "max_tokens=" + strconv.FormatInt(int64(e.MaxOutput), 10)
		}
		return h.MaxParam + "=" + strconv.FormatInt(int64(e.MaxOutput), 10)
	}
	var out []string
	for _, f := range [...]struct {
		name string
		at   span
		is   sluice.Tokens
	}{{h.maxTokensName(), h.maxTokens, h.maxTokensIs}, {h.maxCompletionName(), h.maxCompletionTokens, h.maxCompletionTokensIs}} {
		if f.at.ok() && f.is >= 0 && replaces(e.MaxOutput, f.is) {
			out = append(out, f.name+"="+strconv.FormatInt(int64(e.MaxOutput), 10))
		}
	}
	return strings.Join(out, ", ")
}

// maxTokensName is the member that maxTokens is.
func (h *Head) maxTokensName() string {
	if h.Op.Dialect() == Gemini {
		return geminiBound
	}
	return "max_tokens"
}

// maxCompletionName is the member that maxCompletionTokens is.
func (h *Head) maxCompletionName() string {
	if h.Op == Responses {
		return "max_output_tokens"
	}
	return "max_completion_tokens"
}

// name gives a field that the client left out, or wrote null, a value.
func (h *Head) name(p []patch, insert span, field string, null span, v sluice.Tokens) []patch {
	value := strconv.FormatInt(int64(v), 10)
	if null.ok() {
		return append(p, patch{null, []byte(value)})
	}
	return append(p, patch{insert, []byte(`,"` + field + `":` + value)})
}
