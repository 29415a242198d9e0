package dialect

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// geminiRequest is the body of a request for content.
type geminiRequest struct {
	Contents []geminiContent `json:"contents"`
	System   *geminiContent  `json:"systemInstruction"`
	Tools    []geminiTool    `json:"tools"`
	Choice   *geminiChoice   `json:"toolConfig"`
	Config   *geminiConfig   `json:"generationConfig"`
	Safety   []geminiSafety  `json:"safetySettings"`
	Tier     string          `json:"serviceTier"`
	Model    jsontext.Value  `json:"model"` // the path's
	Rest     jsontext.Value  `json:",embed"`
}

type geminiSafety struct {
	Threshold string         `json:"threshold"`
	Rest      jsontext.Value `json:",embed"`
}

type geminiTool struct {
	Functions []geminiFunction `json:"functionDeclarations"`
	Rest      jsontext.Value   `json:",embed"`
}

type geminiFunction struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Parameters  jsontext.Value `json:"parameters"`
	JSONSchema  jsontext.Value `json:"parametersJsonSchema"`
	Answer      jsontext.Value `json:"response"`
	AnswerJSON  jsontext.Value `json:"responseJsonSchema"`
	Behavior    string         `json:"behavior"`
	Rest        jsontext.Value `json:",embed"`
}

type geminiChoice struct {
	Calling *struct {
		Mode  string         `json:"mode"`
		Names []string       `json:"allowedFunctionNames"`
		Rest  jsontext.Value `json:",embed"`
	} `json:"functionCallingConfig"`
	Rest jsontext.Value `json:",embed"`
}

type geminiConfig struct {
	Temperature jsontext.Value `json:"temperature"`
	TopP        jsontext.Value `json:"topP"`
	TopK        jsontext.Value `json:"topK"`
	MaxOutput   jsontext.Value `json:"maxOutputTokens"`
	Stop        []string       `json:"stopSequences"`
	MIME        string         `json:"responseMimeType"`
	Schema      jsontext.Value `json:"responseSchema"`
	JSONSchema  jsontext.Value `json:"responseJsonSchema"`
	OlderSchema jsontext.Value `json:"_responseJsonSchema"`
	Thinking    *struct {
		Budget  *int64         `json:"thinkingBudget"`
		Level   string         `json:"thinkingLevel"`
		Include bool           `json:"includeThoughts"`
		Rest    jsontext.Value `json:",embed"`
	} `json:"thinkingConfig"`
	Rest jsontext.Value `json:",embed"`
}

// geminiAsks are the members that have no typed place, of the request and of its
// configuration. A value that asks for nothing, as leaving it out does, is none of
// them.
var geminiAsks = map[string]struct {
	feature Feature
	nothing []string // literals, beside null
}{
	"cachedContent":              {FeatureCachedContent, []string{`""`}},
	"labels":                     {FeatureMetadata, []string{"{}"}},
	"store":                      {FeatureStore, []string{"false"}},
	"continuationToken":          {FeatureContext, nil},
	"candidateCount":             {FeatureChoices, []string{"1"}},
	"seed":                       {FeatureSeed, nil},
	"presencePenalty":            {FeaturePenalty, []string{"0", "0.0"}},
	"frequencyPenalty":           {FeaturePenalty, []string{"0", "0.0"}},
	"responseLogprobs":           {FeatureLogprobs, []string{"false"}},
	"logprobs":                   {FeatureLogprobs, []string{"0"}},
	"responseModalities":         {FeatureAudio, []string{`["TEXT"]`, "[]"}},
	"speechConfig":               {FeatureAudio, nil},
	"imageConfig":                {FeatureAudio, nil},
	"audioTimestamp":             {FeatureAudioOther, []string{"false"}},
	"audioTranscriptionConfig":   {FeatureAudioOther, nil},
	"mediaResolution":            {FeatureImageDetail, []string{`"MEDIA_RESOLUTION_UNSPECIFIED"`}},
	"enableEnhancedCivicAnswers": {FeatureModeration, []string{"false"}},
	"routingConfig":              {FeatureGeo, nil},
	"modelSelectionConfig":       {FeatureGeo, nil},
	"modelArmorConfig":           {FeatureModeration, nil},
}

// parseGeminiRequest reads a body. Its names may be in either of their spellings: one
// that is not known in this reading is looked for in the other.
func parseGeminiRequest(body []byte) (*Request, error) {
	r, err := readGemini(body)
	if err != nil || !r.snaked() {
		return r, err
	}
	return readGemini(spelt(body))
}

// snaked reports whether something unknown has a name in snake case.
func (r *Request) snaked() bool {
	for _, a := range r.Asks {
		if strings.Contains(a.Path, "_") {
			return true
		}
	}
	return false
}

func readGemini(body []byte) (*Request, error) {
	var in geminiRequest
	if err := json.Unmarshal(body, &in, lenient); err != nil {
		return nil, err
	}
	r := &Request{}
	t := geminiTurns{r: r}
	if in.System != nil {
		for j := range in.System.Parts {
			at := place{inSystem, j, -1}
			p := &in.System.Parts[j]
			if p.Text == nil || p.Thought {
				r.ask(FeatureSearchResult, geminiPath(at, ""), nil)
				continue
			}
			r.System = append(r.System, Part{Kind: TextPart, Text: *p.Text, at: at})
		}
		r.unknown("systemInstruction", in.System.Rest)
	}
	t.read(in.Contents)
	in.tools(r)
	in.choice(r)
	in.config(r)
	for i, s := range in.Safety { // what blocks nothing asks for nothing
		if s.Threshold != "OFF" && s.Threshold != "BLOCK_NONE" && s.Threshold != "HARM_BLOCK_THRESHOLD_UNSPECIFIED" {
			r.ask(FeatureSafety, "safetySettings"+index(i), nil)
		}
	}
	switch strings.ToLower(in.Tier) {
	case "", "unspecified":
	case "standard":
		r.Standard = true
	default:
		r.ask(FeatureTier, "serviceTier", nil)
	}
	r.geminiRestOf("", in.Rest)
	return r, nil
}

// geminiRestOf asks for the members of the request or of its configuration that have
// no typed place.
func (r *Request) geminiRestOf(at string, rest jsontext.Value) {
	for _, m := range members(rest) {
		path := at + clean(m.name)
		known, ok := geminiAsks[m.name]
		switch {
		case null(m.value) || ok && is(m.value, known.nothing...):
		case ok:
			r.ask(known.feature, path, m.value)
		default:
			r.ask(FeatureUnknown, path, m.value)
		}
	}
}

func (in *geminiRequest) tools(r *Request) {
	for i := range in.Tools {
		t := &in.Tools[i]
		for _, m := range members(t.Rest) {
			if !null(m.value) {
				r.ask(FeatureServerTool, fmt.Sprintf("tools[%d].%s", i, clean(m.name)), nil)
			}
		}
		for j := range t.Functions {
			t.Functions[j].read(r, i, j)
		}
	}
}

func (f *geminiFunction) read(r *Request, i, j int) {
	tool := Tool{Name: f.Name, Description: f.Description, Schema: given(f.JSONSchema), index: i<<toolBits | j}
	if tool.Schema == nil && !null(f.Parameters) {
		tool.Schema = openAPISchema(f.Parameters)
	}
	at := geminiPath(toolAt(tool.index), "")
	if !plainName(f.Name) {
		r.ask(FeatureToolSigns, at+".name", nil)
	}
	if !null(f.Answer) || !null(f.AnswerJSON) {
		r.ask(FeatureToolAnswer, at+".response", nil)
	}
	if f.Behavior != "" && f.Behavior != "UNSPECIFIED" && f.Behavior != "BLOCKING" {
		r.ask(FeatureServerTool, at+".behavior", nil)
	}
	r.unknown(at, f.Rest)
	r.Tools = append(r.Tools, tool)
}

// plainName reports a name of letters, digits, - and _, which every dialect takes.
func plainName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return true
}

func (in *geminiRequest) choice(r *Request) {
	if in.Choice == nil {
		return
	}
	r.geminiTools("toolConfig", in.Choice.Rest)
	c := in.Choice.Calling
	if c == nil {
		return
	}
	const at = "toolConfig.functionCallingConfig"
	r.unknown(at, c.Rest)
	switch strings.ToUpper(c.Mode) {
	case "", "MODE_UNSPECIFIED":
	case "AUTO":
		r.Choice.Kind = ChoiceAuto
	case "NONE":
		r.Choice.Kind = ChoiceNone
	case "ANY":
		r.Choice.Kind = ChoiceAny
	case "VALIDATED": // calls are held to their schemas, as strict tools are
		r.Choice.Kind = ChoiceAuto
		for i := range r.Tools {
			r.Tools[i].Strict = true
		}
	default:
		r.ask(FeatureUnknown, at+".mode", nil)
	}
	switch {
	case len(c.Names) == 0:
	case r.Choice.Kind == ChoiceAny || strings.EqualFold(c.Mode, "VALIDATED"):
		r.Choice.among(c.Names)
	default: // the dialect has them with those modes alone
		r.ask(FeatureUnknown, at+".allowedFunctionNames", nil)
	}
}

// geminiTools asks for what a choice of tools says of those that the provider runs.
func (r *Request) geminiTools(at string, rest jsontext.Value) {
	for _, m := range members(rest) {
		if !null(m.value) && !is(m.value, "{}", "false") {
			feature := FeatureUnknown
			if m.name == "retrievalConfig" || m.name == "includeServerSideToolInvocations" {
				feature = FeatureServerTool
			}
			r.ask(feature, at+"."+clean(m.name), nil)
		}
	}
}

// config reads how the answer is made.
func (in *geminiRequest) config(r *Request) {
	c := in.Config
	if c == nil {
		return
	}
	const at = "generationConfig."
	r.Temperature, r.TopP, r.TopK = given(c.Temperature), given(c.TopP), given(c.TopK)
	r.MaxOutput = bound(c.MaxOutput)
	r.Stop = c.Stop
	c.format(r)
	r.geminiRestOf(at, c.Rest)
	t := c.Thinking
	if t == nil {
		return
	}
	r.unknown(at+"thinkingConfig", t.Rest)
	switch {
	case t.Budget == nil:
	case *t.Budget == 0:
		r.Thinking.Kind = ThinkingOff
	case *t.Budget < 0:
		r.Thinking.Kind = ThinkingAdaptive
	default:
		r.Thinking = Thinking{Kind: ThinkingBudget, Budget: *t.Budget}
	}
	switch level := strings.ToLower(t.Level); level {
	case "", "thinking_level_unspecified":
	case "minimal", "low", "medium", "high":
		r.Effort = level
	default:
		r.ask(FeatureUnknown, at+"thinkingConfig.thinkingLevel", nil)
	}
	if t.Include {
		r.ask(FeatureDisplay, at+"thinkingConfig.includeThoughts", nil)
	}
}

// format reads the form of the answer.
func (c *geminiConfig) format(r *Request) {
	schema, at := given(c.JSONSchema), "generationConfig.responseJsonSchema"
	switch {
	case schema != nil:
	case !null(c.OlderSchema):
		schema, at = c.OlderSchema, "generationConfig._responseJsonSchema"
	case !null(c.Schema):
		schema, at = openAPISchema(c.Schema), "generationConfig.responseSchema"
	}
	switch {
	case c.MIME == "application/json" && schema == nil:
		r.ask(FeatureObject, "generationConfig.responseMimeType", nil)
	case c.MIME == "application/json", c.MIME == "" && schema != nil:
		r.Format = &Format{Schema: schema, at: at}
	case c.MIME == "" || c.MIME == "text/plain":
	default: // text/x.enum
		r.ask(FeatureGrammar, "generationConfig.responseMimeType", nil)
	}
}
