package dialect

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// anthropicRequest is the body of a message.
type anthropicRequest struct {
	Model       string                  `json:"model"`
	System      content[anthropicBlock] `json:"system"`
	Messages    []anthropicMessage      `json:"messages"`
	Tools       []anthropicTool         `json:"tools"`
	ToolChoice  *anthropicChoice        `json:"tool_choice"`
	MaxTokens   jsontext.Value          `json:"max_tokens"`
	Temperature jsontext.Value          `json:"temperature"`
	TopP        jsontext.Value          `json:"top_p"`
	TopK        jsontext.Value          `json:"top_k"`
	Stop        []string                `json:"stop_sequences"`
	Stream      bool                    `json:"stream"`
	Thinking    *anthropicThinking      `json:"thinking"`
	Output      *anthropicOutput        `json:"output_config"`
	Format      *anthropicFormat        `json:"output_format"` // the older place of output_config.format
	Metadata    *struct {
		UserID string         `json:"user_id"`
		Rest   jsontext.Value `json:",embed"`
	} `json:"metadata"`
	Tier  *string        `json:"service_tier"`
	Speed *string        `json:"speed"`
	Cache jsontext.Value `json:"cache_control"`
	Rest  jsontext.Value `json:",embed"`
}

type anthropicThinking struct {
	Type    string         `json:"type"`
	Budget  int64          `json:"budget_tokens"`
	Display string         `json:"display"`
	Rest    jsontext.Value `json:",embed"`
}

type anthropicOutput struct {
	Effort string           `json:"effort"`
	Format *anthropicFormat `json:"format"`
	Rest   jsontext.Value   `json:",embed"`
}

type anthropicFormat struct {
	Type   string         `json:"type"`
	Schema jsontext.Value `json:"schema"`
	Rest   jsontext.Value `json:",embed"`
}

type anthropicChoice struct {
	Type   string         `json:"type"`
	Name   string         `json:"name"`
	Serial bool           `json:"disable_parallel_tool_use"`
	Rest   jsontext.Value `json:",embed"`
}

type anthropicTool struct {
	Type        string         `json:"type"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Schema      jsontext.Value `json:"input_schema"`
	Strict      bool           `json:"strict"`
	Cache       jsontext.Value `json:"cache_control"`
	Examples    jsontext.Value `json:"input_examples"`
	Callers     jsontext.Value `json:"allowed_callers"`
	Defer       bool           `json:"defer_loading"`
	Eager       bool           `json:"eager_input_streaming"`
	Rest        jsontext.Value `json:",embed"`
}

// anthropicRest are the members that have no typed place.
var anthropicRest = map[string]Feature{
	"inference_geo":      FeatureGeo,
	"container":          FeatureContainer,
	"mcp_servers":        FeatureContainer,
	"context_management": FeatureContext,
	"diagnostics":        FeatureDiagnostics,
}

func parseAnthropicRequest(body []byte) (*Request, error) {
	var in anthropicRequest
	if err := json.Unmarshal(body, &in, lenient); err != nil {
		return nil, err
	}
	r := &Request{
		Model: in.Model, Stream: in.Stream, Stop: in.Stop,
		Temperature: given(in.Temperature), TopP: given(in.TopP), TopK: given(in.TopK),
	}
	if r.MaxOutput = bound(in.MaxTokens); r.MaxOutput == 0 {
		r.ask(FeatureWarm, "max_tokens", nil)
	}
	r.System = in.system(r)
	in.messages(r)
	in.tools(r)
	in.output(r)
	in.who(r)
	for _, m := range members(in.Rest) {
		feature, ok := anthropicRest[m.name]
		if !ok {
			feature = FeatureUnknown
		}
		if !null(m.value) && !is(m.value, "[]") {
			r.ask(feature, clean(m.name), m.value)
		}
	}
	return r, nil
}

func (in *anthropicRequest) system(r *Request) []Part {
	at := place{-1, -1, -1}
	if in.System.plain {
		if in.System.text == "" {
			return nil
		}
		return []Part{{Kind: TextPart, Text: in.System.text, at: at}}
	}
	return blocks(r, in.System.parts, at)
}

// who reads the labels, the tier and the marks of the request itself.
func (in *anthropicRequest) who(r *Request) {
	if m := in.Metadata; m != nil {
		r.User, r.userAt = m.UserID, "metadata.user_id"
		r.unknown("metadata", m.Rest)
	}
	if in.Tier != nil {
		switch *in.Tier {
		case "auto", "":
		case "standard_only":
			r.Standard = true
		default:
			r.ask(FeatureTier, "service_tier", nil)
		}
	}
	if in.Speed != nil && *in.Speed != "standard" {
		r.ask(FeatureTier, "speed", nil)
	}
	if !null(in.Cache) {
		r.ask(FeatureCache, "cache_control", nil)
	}
}

// output reads what the answer is to be like.
func (in *anthropicRequest) output(r *Request) {
	if o := in.Output; o != nil {
		r.Effort = o.Effort
		o.Format.read(r, "output_config.format")
		r.unknown("output_config", o.Rest)
	}
	if older := in.Format; older != nil {
		if r.Format != nil && older.Type == "json_schema" && string(older.Schema) != string(r.Format.Schema) {
			r.ask(FeatureFormats, "output_format", nil)
		} else {
			older.read(r, "output_format")
		}
	}
	t := in.Thinking
	if t == nil {
		return
	}
	switch t.Type {
	case "disabled":
		r.Thinking.Kind = ThinkingOff
	case "adaptive":
		r.Thinking.Kind = ThinkingAdaptive
	case "enabled":
		r.Thinking = Thinking{ThinkingBudget, t.Budget}
	default:
		r.ask(FeatureUnknown, "thinking.type", nil)
	}
	if t.Display != "" {
		r.ask(FeatureDisplay, "thinking.display", nil)
	}
	r.unknown("thinking", t.Rest)
}

func (f *anthropicFormat) read(r *Request, at string) {
	switch {
	case f == nil:
	case f.Type == "json_schema" && !null(f.Schema):
		r.Format = &Format{Schema: f.Schema, at: at}
		r.unknown(at, f.Rest)
	default:
		r.ask(FeatureUnknown, at, nil)
	}
}

func (in *anthropicRequest) tools(r *Request) {
	for i := range in.Tools {
		t, at := &in.Tools[i], fmt.Sprintf("tools[%d]", i)
		if t.Type != "" && t.Type != "custom" {
			r.ask(FeatureServerTool, at, nil)
			continue
		}
		r.Tools = append(r.Tools, Tool{
			Name: t.Name, Description: t.Description, Schema: given(t.Schema), Strict: t.Strict, Cached: !null(t.Cache), Lasts: lasts(t.Cache), index: i,
		})
		if !null(t.Examples) && !is(t.Examples, "[]") {
			r.ask(FeatureToolExamples, at+".input_examples", nil)
		}
		if !null(t.Callers) && !is(t.Callers, `["direct"]`) {
			r.ask(FeatureToolExamples, at+".allowed_callers", nil)
		}
		if t.Defer {
			r.ask(FeatureDeferred, at+".defer_loading", nil)
		}
		if t.Eager {
			r.ask(FeatureEager, at+".eager_input_streaming", nil)
		}
		r.unknown(at, t.Rest)
	}
	c := in.ToolChoice
	if c == nil {
		return
	}
	switch r.Serial = c.Serial; c.Type {
	case "auto":
		r.Choice.Kind = ChoiceAuto
	case "none":
		r.Choice.Kind = ChoiceNone
	case "any":
		r.Choice.Kind = ChoiceAny
	case "tool":
		r.Choice = Choice{Kind: ChoiceOne, Name: c.Name}
	default:
		r.ask(FeatureUnknown, "tool_choice.type", nil)
	}
	r.unknown("tool_choice", c.Rest)
}

// isCaller reports whether a call is one of the model's own, and not of a tool that
// its provider runs.
func isCaller(v jsontext.Value) bool {
	return null(v) || strings.Contains(string(v), `"direct"`)
}
