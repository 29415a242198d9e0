package fakellm

import (
	"encoding/json"
	"net/http"
	"strings"

	"sluice"
)

// gemini speaks generateContent. Calls come whole and without an id, and every event
// tells what the answer has taken so far.
type gemini struct {
	s      *sink
	a      *ask
	id     string
	model  string
	signed bool // the first call has its signature
}

func newGemini(s *sink, a *ask, id string) *gemini {
	v := &gemini{s: s, a: a, id: id, model: a.asked}
	if a.b.Served != "" {
		v.model = a.b.Served
	}
	return v
}

func (v *gemini) open(tally) {}

// event sends what one candidate has to say.
func (v *gemini) event(choice int, parts []obj, reason string, t tally) {
	v.candidate(obj{"content": obj{"parts": parts, "role": "model"}, "index": choice}, reason, t)
}

func (v *gemini) candidate(c obj, reason string, t tally) {
	if reason != "" {
		c["finishReason"] = reason
	}
	v.s.event("", marshal(v.frame([]obj{c}, t)))
}

func (v *gemini) frame(candidates []obj, t tally) obj {
	o := obj{"candidates": candidates, "modelVersion": v.model, "responseId": v.id}
	if v.a.b.Usage != "none" {
		o["usageMetadata"] = v.usage(t)
	}
	return o
}

func (v *gemini) text(choice int, s string, t tally) {
	c := obj{"content": obj{"parts": []obj{{"text": s}}, "role": "model"}, "index": choice}
	v.a.ofCandidate(c, s)
	v.candidate(c, "", t)
}

func (v *gemini) think(s string, t tally) {
	if v.a.thinking {
		v.event(0, []obj{{"text": s, "thought": true}}, "", t)
	}
}

func (v *gemini) call(choice, _ int, c toolCall, t tally) {
	v.event(choice, []obj{v.part(c)}, "", t)
}

func (v *gemini) args(int, int, string, tally) {}

// part is a call. The first of an answer is signed.
func (v *gemini) part(c toolCall) obj {
	o := obj{"functionCall": obj{"name": c.name, "args": rawJSON(c.args)}}
	if !v.signed {
		v.signed = true
		o["thoughtSignature"] = "ZmFrZWxsbS1nZW1pbmk="
	}
	return o
}

func (v *gemini) finish(reason string, t tally) {
	word := v.reason(reason)
	if v.a.b.NoFinish {
		word = ""
	}
	for i := range v.a.choices {
		v.event(i, []obj{{"text": ""}}, word, t)
	}
	switch v.a.b.Usage {
	case "twice":
		v.s.event("", marshal(v.frame([]obj{}, t)))
	case "falling":
		v.s.event("", marshal(v.frame([]obj{}, t.half())))
	}
}

// usage follows the dialect: what was thought stands beside what was said.
func (v *gemini) usage(t tally) obj {
	t = t.told(v.a.b.Usage)
	u := obj{
		"promptTokenCount": t.input, "candidatesTokenCount": t.output - t.reasoning, "totalTokenCount": t.input + t.output,
		"promptTokensDetails": []obj{{"modality": "TEXT", "tokenCount": t.input}},
	}
	if t.cached > 0 {
		u["cachedContentTokenCount"] = t.cached
	}
	if t.reasoning > 0 {
		u["thoughtsTokenCount"] = t.reasoning
	}
	return u
}

func (v *gemini) reason(r string) string {
	if v.a.b.Finish != "" {
		return v.a.b.Finish
	}
	if r == "length" {
		return "MAX_TOKENS"
	}
	return "STOP"
}

func (v *gemini) fail(_, msg string) {
	v.s.event("", marshal(geminiError(http.StatusServiceUnavailable, msg, "")))
}

func (v *gemini) whole(contents []content, reason string, t tally) any {
	var candidates []obj
	for i, c := range contents {
		parts := []obj{}
		if c.thought != "" && v.a.thinking {
			parts = append(parts, obj{"text": c.thought, "thought": true})
		}
		if c.text != "" {
			parts = append(parts, obj{"text": c.text})
		}
		for _, k := range c.calls {
			parts = append(parts, v.part(k))
		}
		candidate := obj{"content": obj{"parts": parts, "role": "model"}, "finishReason": v.reason(reason), "index": i}
		v.a.ofCandidate(candidate, c.text)
		candidates = append(candidates, candidate)
	}
	return v.frame(candidates, t)
}

// geminiError is an error with the word that goes with its status, and when to come
// back, in seconds, if that is said.
func geminiError(status int, msg, retryAfter string) obj {
	words := map[int]string{
		400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED", 413: "INVALID_ARGUMENT",
		429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
	}
	word := words[status]
	if word == "" {
		word = "INTERNAL"
	}
	e := obj{"code": status, "message": msg, "status": word}
	if retryAfter != "" {
		e["details"] = []obj{{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": retryAfter + "s"}}
	}
	return obj{"error": e}
}

// geminiBody is what is read of a request.
type geminiBody struct {
	Contents []struct {
		Role  string `json:"role"`
		Parts []struct {
			Text     string          `json:"text"`
			Inline   json.RawMessage `json:"inlineData"`
			File     json.RawMessage `json:"fileData"`
			Call     json.RawMessage `json:"functionCall"`
			Response json.RawMessage `json:"functionResponse"`
		} `json:"parts"`
	} `json:"contents"`
	System struct {
		Parts []struct {
			Text string `json:"text"`
		} `json:"parts"`
	} `json:"systemInstruction"`
	Tools []struct {
		Functions []struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
			Schema     json.RawMessage `json:"parametersJsonSchema"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	ToolConfig struct {
		Calling struct {
			Mode string `json:"mode"`
		} `json:"functionCallingConfig"`
	} `json:"toolConfig"`
	Config struct {
		Max      *int64          `json:"maxOutputTokens"`
		N        *int            `json:"candidateCount"`
		Likely   bool            `json:"responseLogprobs"`
		Others   int             `json:"logprobs"`
		Schema   json.RawMessage `json:"responseJsonSchema"`
		Older    json.RawMessage `json:"responseSchema"`
		Thinking struct {
			Include bool `json:"includeThoughts"`
		} `json:"thinkingConfig"`
	} `json:"generationConfig"`
	Counted *geminiBody `json:"generateContentRequest"`
}

// geminiAsked is a request of the dialect in the words of the others.
func geminiAsked(model string, stream bool, raw []byte) ([]byte, *refusal) {
	var in geminiBody
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, invalid("the body is not valid JSON: %v", err)
	}
	if in.Counted != nil {
		in = *in.Counted
	}
	if len(in.Contents) == 0 {
		return nil, invalid("contents is not specified")
	}
	out := obj{"model": model, "stream": stream, "messages": in.messages(), "tools": in.tools()}
	if in.ToolConfig.Calling.Mode == "NONE" {
		out["tool_choice"] = "none"
	}
	var system []obj
	for _, p := range in.System.Parts {
		system = append(system, obj{"type": "text", "text": p.Text})
	}
	if len(system) > 0 {
		out["system"] = system
	}
	c := &in.Config
	if c.Max != nil {
		out["max_tokens"] = *c.Max
	}
	if c.N != nil {
		out["n"] = *c.N
	}
	out["logprobs"], out["top_logprobs"] = c.Likely, c.Others
	if c.Thinking.Include {
		out["thinking"] = obj{"type": "enabled"}
	}
	if len(c.Schema) == 0 {
		c.Schema = lowered(c.Older)
	}
	if len(c.Schema) > 0 {
		out["output_config"] = obj{"format": obj{"schema": c.Schema}}
	}
	return marshal(out), nil
}

func (in *geminiBody) messages() (out []obj) {
	for _, c := range in.Contents {
		role, parts := "user", []obj{}
		if c.Role == "model" {
			role = "assistant"
		}
		for _, p := range c.Parts {
			switch {
			case len(p.Response) > 0:
				parts = append(parts, obj{"type": "tool_result", "content": string(p.Response)})
			case len(p.Call) > 0:
				parts = append(parts, obj{"type": "tool_use", "input": p.Call})
			case len(p.Inline) > 0 || len(p.File) > 0:
				parts = append(parts, obj{"type": "image"})
			default:
				parts = append(parts, obj{"type": "text", "text": p.Text})
			}
		}
		out = append(out, obj{"role": role, "content": parts})
	}
	return out
}

func (in *geminiBody) tools() (out []obj) {
	for _, t := range in.Tools {
		for _, f := range t.Functions {
			switch {
			case len(f.Schema) > 0:
			case len(f.Parameters) > 0:
				f.Schema = lowered(f.Parameters)
			default:
				f.Schema = json.RawMessage(`{"type":"object"}`)
			}
			out = append(out, obj{"name": f.Name, "input_schema": f.Schema})
		}
	}
	return out
}

// lowered is a schema whose types are in small letters, as JSON Schema has them.
func lowered(schema json.RawMessage) json.RawMessage {
	s := string(schema)
	for _, kind := range []string{"OBJECT", "STRING", "INTEGER", "NUMBER", "BOOLEAN", "ARRAY"} {
		s = strings.ReplaceAll(s, `"`+kind+`"`, `"`+strings.ToLower(kind)+`"`)
	}
	return json.RawMessage(s)
}

// askGemini takes what is asked of a model in the path.
func (s *Server) askGemini(w http.ResponseWriter, r *http.Request) {
	model, verb, _ := cutLast(r.PathValue("rest"), ":")
	sf, stream := surfaceGenerate, verb == "streamGenerateContent"
	switch verb {
	case "generateContent", "streamGenerateContent":
	case "countTokens":
		sf = surfaceGenerateCount
	default:
		writeJSON(w, http.StatusNotFound, geminiError(http.StatusNotFound, "there is no such method", ""))
		return
	}
	if stream && r.URL.Query().Get("alt") != "sse" {
		writeJSON(w, http.StatusBadRequest, geminiError(http.StatusBadRequest, "the fake streams with alt=sse alone", ""))
		return
	}
	s.take(w, r, sf, func(raw []byte) ([]byte, *refusal) { return geminiAsked(model, stream, raw) })
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// listGemini answers with the models in the dialect's shape.
func (s *Server) listGemini(w http.ResponseWriter, _ *http.Request) {
	models := []obj{}
	for _, m := range s.models {
		models = append(models, obj{
			"name": "models/" + m.Name, "displayName": m.Name, "inputTokenLimit": sluice.Tokens(m.Context),
			"supportedGenerationMethods": []string{"generateContent", "countTokens"},
		})
	}
	writeJSON(w, http.StatusOK, obj{"models": models})
}

var _ voice = (*gemini)(nil)
