package dialect

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// openaiRequest is the body of a chat completion as far as other dialects have
// anything like it.
type openaiRequest struct {
	Model         string               `json:"model"`
	Messages      []openaiMessage      `json:"messages"`
	Tools         []openaiTool         `json:"tools"`
	ToolChoice    jsontext.Value       `json:"tool_choice"`
	Parallel      *bool                `json:"parallel_tool_calls"`
	MaxTokens     jsontext.Value       `json:"max_tokens"`
	MaxCompletion jsontext.Value       `json:"max_completion_tokens"`
	Temperature   jsontext.Value       `json:"temperature"`
	TopP          jsontext.Value       `json:"top_p"`
	TopK          jsontext.Value       `json:"top_k"`
	Stop          content[string]      `json:"stop"`
	Format        *openaiFormat        `json:"response_format"`
	Effort        *string              `json:"reasoning_effort"`
	SafetyID      string               `json:"safety_identifier"`
	User          string               `json:"user"`
	Tier          *string              `json:"service_tier"`
	Stream        bool                 `json:"stream"`
	StreamOptions *openaiStreamOptions `json:"stream_options"`
	Rest          jsontext.Value       `json:",embed"`
}

type openaiStreamOptions struct {
	IncludeUsage bool           `json:"include_usage"` // the gateway's to see to
	Continuous   bool           `json:"continuous_usage_stats"`
	Obfuscation  bool           `json:"include_obfuscation"`
	Rest         jsontext.Value `json:",embed"`
}

type openaiFormat struct {
	Type   string `json:"type"`
	Schema *struct {
		Name        string         `json:"name"`
		Description string         `json:"description"`
		Schema      jsontext.Value `json:"schema"`
		Strict      *bool          `json:"strict"`
		Rest        jsontext.Value `json:",embed"`
	} `json:"json_schema"`
	Rest jsontext.Value `json:",embed"`
}

type openaiTool struct {
	Type     string `json:"type"`
	Function *struct {
		Name        string         `json:"name"`
		Description string         `json:"description"`
		Parameters  jsontext.Value `json:"parameters"`
		Strict      *bool          `json:"strict"`
		Rest        jsontext.Value `json:",embed"`
	} `json:"function"`
	Rest jsontext.Value `json:",embed"`
}

// untyped are top-level members that have no typed place, by name: what each asks for,
// and the literals that, as null and leaving it out do, ask for nothing.
type untyped map[string]struct {
	feature Feature
	nothing []string
}

var openaiRest = untyped{
	"n":                      {FeatureChoices, []string{"1"}},
	"seed":                   {FeatureSeed, nil},
	"frequency_penalty":      {FeaturePenalty, []string{"0", "0.0"}},
	"presence_penalty":       {FeaturePenalty, []string{"0", "0.0"}},
	"repetition_penalty":     {FeaturePenalty, []string{"1", "1.0"}},
	"logit_bias":             {FeatureLogitBias, []string{"{}"}},
	"logprobs":               {FeatureLogprobs, []string{"false"}},
	"top_logprobs":           {FeatureLogprobs, []string{"0"}},
	"min_p":                  {FeatureSampling, []string{"0", "0.0"}},
	"min_tokens":             {FeatureSampling, []string{"0"}},
	"ignore_eos":             {FeatureSampling, []string{"false"}},
	"stop_token_ids":         {FeatureSampling, []string{"[]"}},
	"allowed_token_ids":      {FeatureSampling, nil},
	"bad_words":              {FeatureSampling, []string{"[]"}},
	"functions":              {FeatureFunctions, []string{"[]"}},
	"function_call":          {FeatureFunctions, nil},
	"structured_outputs":     {FeatureGrammar, nil},
	"guided_json":            {FeatureGrammar, nil},
	"guided_regex":           {FeatureGrammar, nil},
	"guided_choice":          {FeatureGrammar, nil},
	"guided_grammar":         {FeatureGrammar, nil},
	"verbosity":              {FeatureVerbosity, []string{`"medium"`}},
	"prediction":             {FeaturePrediction, nil},
	"modalities":             {FeatureAudio, []string{`["text"]`}},
	"audio":                  {FeatureAudio, nil},
	"metadata":               {FeatureMetadata, []string{"{}"}},
	"prompt_cache_key":       {FeatureCacheKey, []string{`""`}},
	"prompt_cache_retention": {FeatureCacheKey, nil},
	"prompt_cache_options":   {FeatureCacheKey, nil},
	"web_search_options":     {FeatureWebSearch, nil},
	"moderation":             {FeatureModeration, nil},
	"store":                  {FeatureStore, []string{"false"}},
}

func parseOpenAIRequest(body []byte) (*Request, error) {
	var in openaiRequest
	if err := json.Unmarshal(body, &in, lenient); err != nil {
		return nil, err
	}
	r := &Request{
		Model: in.Model, Stream: in.Stream, Serial: in.Parallel != nil && !*in.Parallel,
		Temperature: given(in.Temperature), TopP: given(in.TopP), TopK: given(in.TopK),
	}
	r.MaxOutput = max(bound(in.MaxTokens), bound(in.MaxCompletion))
	r.Stop = in.Stop.parts
	if in.Stop.plain {
		r.Stop = []string{in.Stop.text}
	}
	in.messages(r)
	in.tools(r)
	in.format(r)
	in.who(r)
	r.rest(openaiRest, in.Rest)
	return r, nil
}

// given is a value that is neither left out nor null.
func given(v jsontext.Value) jsontext.Value {
	if null(v) {
		return nil
	}
	return v
}

// rest asks for top-level members that have no typed place.
func (r *Request) rest(known untyped, rest jsontext.Value) {
	for _, m := range members(rest) {
		k, ok := known[m.name]
		switch {
		case null(m.value) || ok && is(m.value, k.nothing...):
		case ok:
			r.ask(k.feature, m.name, m.value)
		default:
			r.ask(FeatureUnknown, clean(m.name), m.value)
		}
	}
}

// unknown asks for the members of an object that nobody knows.
func (r *Request) unknown(at string, rest jsontext.Value) {
	for _, m := range members(rest) {
		if !null(m.value) {
			r.ask(FeatureUnknown, at+"."+clean(m.name), m.value)
		}
	}
}

// who reads the labels of the end user, the tier, and the options of the stream.
func (in *openaiRequest) who(r *Request) {
	r.User, r.userAt = in.SafetyID, "safety_identifier"
	switch {
	case r.User == "":
		r.User, r.userAt = in.User, "user"
	case in.User != "" && in.User != r.User:
		r.ask(FeatureSecondUser, "user", nil)
	}
	if in.Effort != nil {
		r.Effort = *in.Effort
	}
	if in.Tier != nil {
		switch *in.Tier {
		case "", "auto":
		case "default":
			r.Standard = true
		default:
			r.ask(FeatureTier, "service_tier", nil)
		}
	}
	if o := in.StreamOptions; o != nil {
		if o.Obfuscation {
			r.ask(FeatureObfuscation, "stream_options.include_obfuscation", nil)
		}
		r.unknown("stream_options", o.Rest)
	}
}

func (in *openaiRequest) format(r *Request) {
	f := in.Format
	if f == nil {
		return
	}
	switch f.Type {
	case "text", "":
	case "json_object":
		r.ask(FeatureObject, "response_format", nil)
	case "json_schema":
		if f.Schema == nil || null(f.Schema.Schema) {
			r.ask(FeatureObject, "response_format", nil)
			break
		}
		s := f.Schema
		r.Format = &Format{Schema: s.Schema, Name: s.Name, Note: s.Description, Loose: s.Strict == nil || !*s.Strict}
		if s.Description != "" {
			r.ask(FeatureFormatNote, "response_format.json_schema.description", nil)
		}
		r.unknown("response_format.json_schema", s.Rest)
	default:
		r.ask(FeatureGrammar, "response_format", nil)
	}
	r.unknown("response_format", f.Rest)
}

func (in *openaiRequest) tools(r *Request) {
	for i := range in.Tools {
		t, at := &in.Tools[i], fmt.Sprintf("tools[%d]", i)
		switch {
		case t.Type == "custom":
			r.ask(FeatureCustomTool, at, nil)
			continue
		case t.Type != "function" && t.Type != "" || t.Function == nil:
			r.ask(FeatureServerTool, at, nil)
			continue
		}
		f := t.Function
		r.Tools = append(r.Tools, Tool{
			Name: f.Name, Description: f.Description, Schema: given(f.Parameters), Strict: f.Strict != nil && *f.Strict, index: i,
		})
		r.unknown(at+".function", f.Rest)
		r.unknown(at, t.Rest)
	}
	in.choice(r)
}

func (in *openaiRequest) choice(r *Request) {
	var named openaiNamed
	switch v := in.ToolChoice; {
	case null(v):
	case is(v, `"auto"`):
		r.Choice.Kind = ChoiceAuto
	case is(v, `"none"`):
		r.Choice.Kind = ChoiceNone
	case is(v, `"required"`):
		r.Choice.Kind = ChoiceAny
	case json.Unmarshal(v, &named, lenient) == nil && named.Type == "function" && named.Function.Name != "":
		r.Choice = Choice{Kind: ChoiceOne, Name: named.Function.Name}
	case named.Type == "custom":
		r.ask(FeatureCustomTool, "tool_choice", nil)
	case named.Type == "allowed_tools":
		named.among(r)
	default:
		r.ask(FeatureUnknown, "tool_choice", nil)
	}
}

// dataURL splits a data: URL of base64; false if it is none.
func dataURL(u string) (kind, data string, ok bool) {
	head, data, ok := strings.Cut(u, ",")
	if !ok || len(head) < len("data:") || !strings.EqualFold(head[:len("data:")], "data:") {
		return "", "", false
	}
	kind, ok = strings.CutSuffix(head[len("data:"):], ";base64")
	return mediaType(kind), plain64(data), ok
}
