package dialect

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// responsesRequest is the body of a response as far as other dialects have anything
// like it.
type responsesRequest struct {
	Model         string                 `json:"model"`
	Instructions  content[responsesItem] `json:"instructions"`
	Input         content[responsesItem] `json:"input"`
	Tools         []responsesTool        `json:"tools"`
	ToolChoice    jsontext.Value         `json:"tool_choice"`
	Parallel      *bool                  `json:"parallel_tool_calls"`
	MaxOutput     jsontext.Value         `json:"max_output_tokens"`
	Temperature   jsontext.Value         `json:"temperature"`
	TopP          jsontext.Value         `json:"top_p"`
	TopLogprobs   jsontext.Value         `json:"top_logprobs"`
	Text          *responsesText         `json:"text"`
	Reasoning     *responsesEffort       `json:"reasoning"`
	Include       []string               `json:"include"`
	SafetyID      string                 `json:"safety_identifier"`
	User          string                 `json:"user"`
	Tier          *string                `json:"service_tier"`
	Truncation    *string                `json:"truncation"`
	Stream        bool                   `json:"stream"`
	StreamOptions *openaiStreamOptions   `json:"stream_options"`
	Rest          jsontext.Value         `json:",embed"`
}

type responsesText struct {
	Format *struct {
		Type        string         `json:"type"`
		Name        string         `json:"name"`
		Description string         `json:"description"`
		Schema      jsontext.Value `json:"schema"`
		Strict      *bool          `json:"strict"`
		Rest        jsontext.Value `json:",embed"`
	} `json:"format"`
	Verbosity jsontext.Value `json:"verbosity"`
	Rest      jsontext.Value `json:",embed"`
}

type responsesEffort struct {
	Effort  *string        `json:"effort"`
	Summary jsontext.Value `json:"summary"`
	Older   jsontext.Value `json:"generate_summary"` // its former name
	Rest    jsontext.Value `json:",embed"`
}

type responsesTool struct {
	Type        string         `json:"type"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Parameters  jsontext.Value `json:"parameters"`
	Strict      *bool          `json:"strict"`
	Rest        jsontext.Value `json:",embed"`
}

var responsesRest = untyped{
	"previous_response_id":   {FeatureKept, nil},
	"conversation":           {FeatureKept, nil},
	"prompt":                 {FeaturePrompt, nil},
	"background":             {FeatureBackground, []string{"false"}},
	"store":                  {FeatureStore, []string{"false"}},
	"max_tool_calls":         {FeatureMaxCalls, nil},
	"metadata":               {FeatureMetadata, []string{"{}"}},
	"prompt_cache_key":       {FeatureCacheKey, []string{`""`}},
	"prompt_cache_retention": {FeatureCacheKey, nil},
	"prompt_cache_options":   {FeatureCacheKey, nil},
	"moderation":             {FeatureModeration, nil},
	"context_management":     {FeatureContext, []string{"[]"}},
}

func parseResponsesRequest(body []byte) (*Request, error) {
	var in responsesRequest
	if err := json.Unmarshal(body, &in, lenient); err != nil {
		return nil, err
	}
	r := &Request{
		Model: in.Model, Stream: in.Stream, Serial: in.Parallel != nil && !*in.Parallel, MaxOutput: bound(in.MaxOutput),
		Temperature: given(in.Temperature), TopP: given(in.TopP),
	}
	if in.Instructions.plain && in.Instructions.text != "" {
		r.System = append(r.System, Part{Kind: TextPart, Text: in.Instructions.text, at: place{inSystem, -1, -1}})
	} else if len(in.Instructions.parts) > 0 {
		r.ask(FeatureKept, "instructions", nil)
	}
	in.items(r)
	in.tools(r)
	in.text(r)
	in.include(r)
	in.who(r)
	r.rest(responsesRest, in.Rest)
	r.Echo = responsesEcho(body)
	return r, nil
}

// who reads the labels of the end user, the tier, the effort, and the options of the
// stream.
func (in *responsesRequest) who(r *Request) {
	o := openaiRequest{SafetyID: in.SafetyID, User: in.User, Tier: in.Tier, StreamOptions: in.StreamOptions}
	if e := in.Reasoning; e != nil {
		o.Effort = e.Effort
		if !null(e.Summary) {
			r.ask(FeatureDisplay, "reasoning.summary", e.Summary)
		}
		if !null(e.Older) {
			r.ask(FeatureDisplay, "reasoning.generate_summary", e.Older)
		}
		r.unknown("reasoning", e.Rest)
	}
	o.who(r)
	if in.Truncation != nil && *in.Truncation != "disabled" {
		r.ask(FeatureTruncation, "truncation", nil)
	}
}

// text reads the structure of the answer and how long it is to be.
func (in *responsesRequest) text(r *Request) {
	t := in.Text
	if t == nil {
		return
	}
	if !null(t.Verbosity) && !is(t.Verbosity, `"medium"`) {
		r.ask(FeatureVerbosity, "text.verbosity", t.Verbosity)
	}
	r.unknown("text", t.Rest)
	f := t.Format
	if f == nil {
		return
	}
	switch f.Type {
	case "text", "":
	case "json_object":
		r.ask(FeatureObject, "text.format", nil)
	case "json_schema":
		if null(f.Schema) {
			r.ask(FeatureObject, "text.format", nil)
			break
		}
		r.Format = &Format{Schema: f.Schema, Name: f.Name, Note: f.Description, Loose: f.Strict == nil || !*f.Strict}
		if f.Description != "" {
			r.ask(FeatureFormatNote, "text.format.description", nil)
		}
	default:
		r.ask(FeatureGrammar, "text.format", nil)
	}
	r.unknown("text.format", f.Rest)
}

// include reads what the answer is to tell beside its text.
func (in *responsesRequest) include(r *Request) {
	wanted := false
	for i, w := range in.Include {
		at := fmt.Sprintf("include[%d]", i)
		switch w {
		case "message.output_text.logprobs":
			wanted = true
		case "reasoning.encrypted_content":
			r.ask(FeatureSealed, at, nil)
		default:
			r.ask(FeatureInclude, at, nil)
		}
	}
	top := in.TopLogprobs
	if null(top) || is(top, "0") {
		top = nil
	}
	switch {
	case top != nil:
		r.ask(FeatureLogprobs, "top_logprobs", top)
	case wanted:
		r.ask(FeatureLogprobs, "include", jsontext.Value("0"))
	}
}

func (in *responsesRequest) tools(r *Request) {
	for i := range in.Tools {
		t, at := &in.Tools[i], fmt.Sprintf("tools[%d]", i)
		switch t.Type {
		case "function":
			r.Tools = append(r.Tools, Tool{Name: t.Name, Description: t.Description, Schema: given(t.Parameters), Strict: t.strict(), index: i})
			r.unknown(at, t.Rest)
		case "custom":
			r.ask(FeatureCustomTool, at, nil)
		default:
			r.ask(FeatureServerTool, at, nil)
		}
	}
	in.choice(r)
}

// strict reports whether calls are held to the schema. Left out they are, where that needs
// no other schema.
func (t *responsesTool) strict() bool {
	if t.Strict != nil || null(t.Parameters) {
		return t.Strict != nil && *t.Strict
	}
	_, traits := closed(t.Parameters)
	return traits.strict()
}

func (in *responsesRequest) choice(r *Request) {
	var named openaiNamed
	switch v := in.ToolChoice; {
	case null(v):
	case is(v, `"auto"`):
		r.Choice.Kind = ChoiceAuto
	case is(v, `"none"`):
		r.Choice.Kind = ChoiceNone
	case is(v, `"required"`):
		r.Choice.Kind = ChoiceAny
	case json.Unmarshal(v, &named, lenient) == nil && named.Type == "function" && named.Name != "":
		r.Choice = Choice{Kind: ChoiceOne, Name: named.Name}
	case named.Type == "custom":
		r.ask(FeatureCustomTool, "tool_choice", nil)
	case named.Type == "allowed_tools":
		named.among(r)
	default:
		r.ask(FeatureServerTool, "tool_choice", nil)
	}
}
