package dialect

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"sluice/internal/wire"
)

func geminiRig() *rig {
	return &rig{
		codec: &gemini, sent: geminiSent, examples: geminiTells, nothing: geminiNothing, keeps: geminiKeeps, likely: true,
		whole:    func(t fataler, b []byte) any { return assembledContent(t, b) },
		assemble: func(t fataler, b []byte) any { return assembleContent(t, b) },
		stops:    []StopReason{StopEnd, StopLength, StopRefusal},
	}
}

// geminiKeeps takes out of a request what the dialect does not keep.
func geminiKeeps(r *Request) {
	r.User, r.Serial = "", false
	if r.Effort == "xhigh" || r.Effort == "max" {
		r.Effort = "high"
	}
	for i := range r.Tools {
		r.Tools[i].Strict = r.Tools[i].Strict && r.Choice.Kind == ChoiceAuto
	}
	for i := range r.Messages {
		for j := range r.Messages[i].Parts {
			r.Messages[i].Parts[j].fetched()
		}
	}
	if r.Format != nil {
		r.Format.Schema = jsontext.Value(`{"type":"object","additionalProperties":false}`)
	}
}

// geminiSent is an answer as a Gemini backend streams it: texts in pieces, calls
// whole, several parts to an event at times.
func geminiSent(t *rapid.T, a *Answer) []byte {
	var b []byte
	var parts []obj
	var likely []Logprob
	a.Usage.Input, a.Usage.CacheWrite = a.Usage.Input+a.Usage.CacheWrite, 0 // it tells of no writes
	every := rapid.Bool().Draw(t, "usage in every event")
	event := func(o obj, last bool) {
		if every || last {
			var u obj
			decode(t, append(geminiEnd([]byte("{"), &a.Usage, a.Model, a.ID), '}'), &u)
			o["usageMetadata"] = u["usageMetadata"]
		}
		o["modelVersion"], o["responseId"] = a.Model, a.ID
		b = wire.AppendEvent(b, "", compact(o))
	}
	send := func() {
		if len(parts) > 0 {
			c := asJSON[obj](t, append(geminiLikely([]byte("{"), likely), '}'))
			c["content"], c["index"] = obj{"parts": parts, "role": "model"}, 0
			event(obj{"candidates": []obj{c}}, false)
		}
		parts, likely = nil, nil
	}
	add := func(o obj) {
		parts = append(parts, o)
		if rapid.Bool().Draw(t, "event ends") {
			send()
		}
	}
	for _, p := range a.Parts {
		switch p.Kind {
		case ReasoningPart:
			for _, s := range cuts(t, p.Text) {
				add(obj{"text": s, "thought": true})
			}
		case TextPart:
			for _, s := range pieces(t, &p) {
				likely = append(likely, s.list...)
				add(obj{"text": s.text})
			}
		case CallPart:
			add(obj{"functionCall": obj{"id": p.Call.ID, "name": p.Call.Name, "args": json.RawMessage(p.Call.Arguments)}})
		}
	}
	send()
	event(obj{"candidates": []obj{{"content": obj{"parts": []obj{{"text": ""}}, "role": "model"}, "finishReason": geminiFinish(a.Stop.Reason), "index": 0}}}, true)
	return b
}

// generated is an answer as its clients see it when it is whole.
type generated struct {
	ID, Model, Finish string
	Parts             []obj
	Usage             obj
	Chosen, Top       []obj // of logprobsResult
	Mean              json.Number
}

// likely notes the log probabilities of a candidate.
func (g *generated) likely(c *geminiSeenCandidate) {
	g.Chosen, g.Top = append(g.Chosen, c.LogprobsResult.Chosen...), append(g.Top, c.LogprobsResult.Top...)
	g.Mean = c.Mean
}

type geminiSeen struct {
	Candidates    []geminiSeenCandidate
	UsageMetadata obj
	ModelVersion  string
	ResponseID    string `json:"responseId"`
}

type geminiSeenCandidate struct {
	Content        struct{ Parts []obj }
	FinishReason   string
	Index          json.Number
	Mean           json.Number `json:"avgLogprobs"`
	LogprobsResult struct {
		Chosen []obj `json:"chosenCandidates"`
		Top    []obj `json:"topCandidates"`
	}
}

func assembledContent(t fataler, whole []byte) generated {
	var in geminiSeen
	decode(t, whole, &in)
	g := generated{ID: in.ResponseID, Model: in.ModelVersion, Usage: in.UsageMetadata}
	for _, c := range in.Candidates {
		g.Finish = c.FinishReason
		g.Parts = joined(c.Content.Parts)
		g.likely(&c)
	}
	return g
}

// assembleContent puts a stream together as its clients do: parts one behind the other.
func assembleContent(t fataler, stream []byte) (g generated) {
	var parts []obj
	for _, data := range eventsOf(t, stream) {
		var e geminiSeen
		decode(t, data, &e)
		for _, c := range e.Candidates {
			if c.Index != "0" || g.Finish != "" {
				t.Fatalf("candidate %s after %q", c.Index, g.Finish)
			}
			parts, g.Finish = append(parts, c.Content.Parts...), c.FinishReason
			g.likely(&c)
		}
		if e.UsageMetadata != nil {
			g.Usage = e.UsageMetadata
		}
		if g.ID, g.Model = e.ResponseID, e.ModelVersion; g.ID == "" {
			t.Fatalf("event %s has no id", data)
		}
	}
	g.Parts = joined(parts)
	return g
}

// joined is parts whose neighbouring texts are one: of thoughts those up to one that is
// signed, as they are read when they come back.
func joined(parts []obj) (out []obj) {
	for _, p := range parts {
		text, ok := p["text"].(string)
		n := len(out)
		if ok && text == "" && p["thoughtSignature"] == nil {
			continue
		}
		if ok && n > 0 && out[n-1]["text"] != nil && out[n-1]["thought"] == p["thought"] && out[n-1]["thoughtSignature"] == nil && !sealed(p) {
			out[n-1]["text"] = out[n-1]["text"].(string) + text
			if s, signed := p["thoughtSignature"]; signed {
				out[n-1]["thoughtSignature"] = s
			}
			continue
		}
		if c, ok := p["functionCall"].(obj); ok {
			c["args"] = string(compact(c["args"]))
		}
		out = append(out, p)
	}
	return out
}

func sealed(p obj) bool {
	s, _ := p["thoughtSignature"].(string)
	return strings.HasPrefix(s, base64.StdEncoding.EncodeToString([]byte(sealedMark)))
}

const (
	said     = `{"contents":[{"role":"user","parts":[{"text":"x"}]}]`
	answered = `{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[`
	thenUser = `]},{"role":"user","parts":[{"text":"y"}]}]}`
)

func asks(parts string) string {
	return `{"contents":[{"role":"user","parts":[` + parts + `]}]}`
}

// ran is a conversation with a call and what it brought.
func ran(call, then string) string {
	return answered + call + `]},{"role":"user","parts":[` + then + `]}]}`
}

func configured(c string) string { return said + `,"generationConfig":{` + c + `}}` }

const (
	callF   = `{"functionCall":{"name":"f","args":{"a":1}}}`
	resultF = `{"functionResponse":{"name":"f","response":{"output":"r"}}}`
)

// geminiTells has a request for each field that clients of the dialect have.
var geminiTells = map[Feature]tells{
	FeatureText:          {"", said + `}`, nil},
	FeatureInstructions:  {"", said + `,"systemInstruction":{"parts":[{"text":"s"},{"text":"d"}]}}`, nil},
	FeaturePrefill:       {"contents[1]", answered + `{"text":"a"}]}]}`, nil},
	FeatureNoTurn:        {"contents", `{"contents":[],"systemInstruction":{"parts":[{"text":"s"}]}}`, nil},
	FeatureImage:         {"", asks(`{"inlineData":{"mimeType":"image/png","data":"AAAA"}}`), nil},
	FeatureImageKind:     {"contents[0].parts[0].inlineData", asks(`{"inlineData":{"mimeType":"image/heic","data":"AAAA"}}`), nil},
	FeatureImageURL:      {"contents[0].parts[0].fileData.fileUri", asks(`{"fileData":{"mimeType":"image/png","fileUri":"https://a/b.png"}}`), nil},
	FeatureImageDetail:   {"generationConfig.mediaResolution", configured(`"mediaResolution":"MEDIA_RESOLUTION_LOW"`), nil},
	FeatureDocument:      {"", asks(`{"inlineData":{"mimeType":"application/pdf","data":"AAAA","displayName":"a.pdf"}}`), nil},
	FeatureDocumentText:  {"contents[0].parts[0]", asks(`{"inlineData":{"mimeType":"text/plain","data":"AAAA"}}`), nil},
	FeatureDocumentURL:   {"contents[0].parts[0].fileData.fileUri", asks(`{"fileData":{"mimeType":"application/pdf","fileUri":"https://a/b.pdf"}}`), nil},
	FeatureFile:          {"contents[0].parts[0].fileData.fileUri", asks(`{"fileData":{"mimeType":"image/png","fileUri":"https://generativelanguage.googleapis.com/v1beta/files/x"}}`), nil},
	FeatureAudioInput:    {"contents[0].parts[0].inlineData", asks(`{"inlineData":{"mimeType":"audio/wav","data":"AAAA"}}`), nil},
	FeatureAudioOther:    {"contents[0].parts[0].inlineData", asks(`{"inlineData":{"mimeType":"audio/flac","data":"AAAA"}}`), nil},
	FeatureVideo:         {"contents[0].parts[0].fileData", asks(`{"fileData":{"fileUri":"https://www.youtube.com/watch?v=x"}}`), nil},
	FeatureSearchResult:  {"contents[1].parts[0].executableCode", answered + `{"executableCode":{"language":"PYTHON","code":"1"}}` + thenUser, nil},
	FeatureCall:          {"", ran(callF, resultF), nil},
	FeatureResult:        {"", ran(callF+`,`+callF, resultF+`,{"functionResponse":{"name":"f","response":{"b":{"c":1}}}},{"text":"and?"}`), nil},
	FeatureOrphan:        {"contents[0].parts[0].functionResponse", asks(resultF), nil},
	FeatureResultMedia:   {"contents[2].parts[0].functionResponse.parts[0]", ran(callF, `{"functionResponse":{"name":"f","response":{"output":"r"},"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}}`), nil},
	FeatureResultError:   {"contents[2].parts[0].functionResponse.response.error", ran(callF, `{"functionResponse":{"name":"f","response":{"error":"r"}}}`), nil},
	FeatureResultOrder:   {"contents[2].parts[1]", ran(callF, `{"text":"first"},`+resultF), nil},
	FeatureReasoning:     {"contents[1].parts[0]", answered + `{"text":"t","thought":true},{"text":"a"}` + thenUser, nil},
	FeatureSigned:        {"contents[1].parts[0].thoughtSignature", answered + `{"text":"t","thought":true,"thoughtSignature":"` + marked(signedMark, "s") + `"},{"text":"a"}` + thenUser, nil},
	FeatureOpenAISealed:  {"contents[1].parts[0].thoughtSignature", answered + `{"text":"t","thought":true,"thoughtSignature":"` + marked(signedMark, "rs_1:gAAAAABo") + `"},{"text":"a"}` + thenUser, nil},
	FeatureForeign:       {"contents[1].parts[0].thoughtSignature", ran(`{"functionCall":{"name":"f","args":{}},"thoughtSignature":"c2ln"}`, resultF), nil},
	FeatureMixedAnswer:   {"contents[1].parts[1]", ran(callF+`,{"text":"a"}`, resultF), nil},
	FeatureTools:         {"", said + `,"tools":[{"functionDeclarations":[{"name":"f","description":"d","parameters":{"type":"OBJECT","properties":{"a":{"type":"STRING","nullable":true}}}},{"name":"g"}]}]}`, nil},
	FeatureToolName:      {"tools[1].functionDeclarations[0].name", said + `,"tools":[{},{"functionDeclarations":[{"name":"` + strings.Repeat("f", 65) + `"}]}]}`, nil},
	FeatureToolSigns:     {"tools[0].functionDeclarations[0].name", said + `,"tools":[{"functionDeclarations":[{"name":"a.b:c"}]}]}`, nil},
	FeatureToolAnswer:    {"tools[0].functionDeclarations[0].response", said + `,"tools":[{"functionDeclarations":[{"name":"f","response":{"type":"STRING"}}]}]}`, nil},
	FeatureServerTool:    {"tools[0].googleSearch", said + `,"tools":[{"googleSearch":{}}]}`, nil},
	FeatureChoice:        {"", said + `,"tools":[{"functionDeclarations":[{"name":"f"}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}}}`, nil},
	FeatureUndeclared:    {"", ran(callF+`,`+callF, resultF+`,`+resultF), nil},
	FeatureChoiceless:    {"toolConfig.functionCallingConfig.mode", said + `,"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}}`, nil},
	FeatureNoCalls:       {"toolConfig.functionCallingConfig.mode", said + `,"tools":[{"functionDeclarations":[{"name":"f"}]}],"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}}`, nil},
	FeatureAllowedTools:  {"toolConfig.functionCallingConfig.allowedFunctionNames", said + `,"tools":[{"functionDeclarations":[{"name":"f"},{"name":"g"}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f","g"]}}}`, nil},
	FeatureMaxOutput:     {"", configured(`"maxOutputTokens":9`), nil},
	FeatureTemperature:   {"", configured(`"temperature":0.5`), nil},
	FeatureHot:           {"generationConfig.temperature", configured(`"temperature":1.5`), nil},
	FeatureTopP:          {"", configured(`"topP":0.5`), nil},
	FeatureTopK:          {"generationConfig.topK", configured(`"topK":5`), nil},
	FeatureSeed:          {"generationConfig.seed", configured(`"seed":5`), nil},
	FeaturePenalty:       {"generationConfig.presencePenalty", configured(`"presencePenalty":0.5,"frequencyPenalty":0`), nil},
	FeatureStop:          {"", configured(`"stopSequences":["a","b"]`), nil},
	FeatureStops:         {"generationConfig.stopSequences", configured(`"stopSequences":["a","b","c","d","e"]`), nil},
	FeatureBlankStop:     {"generationConfig.stopSequences[1]", configured(`"stopSequences":["a","\n"]`), nil},
	FeatureChoices:       {"generationConfig.candidateCount", configured(`"candidateCount":2`), nil},
	FeatureLogprobs:      {"generationConfig.responseLogprobs", configured(`"responseLogprobs":true`), nil},
	FeatureSchema:        {"", configured(`"responseMimeType":"application/json","responseSchema":{"type":"OBJECT","properties":{"a":{"type":"INTEGER"}},"required":["a"]}`), nil},
	FeatureNotStrict:     {"generationConfig.responseSchema", configured(`"responseMimeType":"application/json","responseSchema":{"type":"OBJECT","properties":{"a":{"type":"INTEGER"}}}`), nil},
	FeatureObject:        {"generationConfig.responseMimeType", configured(`"responseMimeType":"application/json"`), nil},
	FeatureGrammar:       {"generationConfig.responseMimeType", configured(`"responseMimeType":"text/x.enum","responseSchema":{"type":"STRING","enum":["a"]}`), nil},
	FeatureEffort:        {"", configured(`"thinkingConfig":{"thinkingLevel":"HIGH"}`), nil},
	FeatureMinimal:       {"generationConfig.thinkingConfig.thinkingLevel", configured(`"thinkingConfig":{"thinkingLevel":"MINIMAL"}`), nil},
	FeatureNoThinking:    {"", configured(`"thinkingConfig":{"thinkingBudget":0}`), nil},
	FeatureEffortOff:     {"generationConfig.thinkingConfig.thinkingLevel", configured(`"thinkingConfig":{"thinkingBudget":0,"thinkingLevel":"LOW"}`), nil},
	FeatureLeast:         {"generationConfig.thinkingConfig.thinkingBudget", configured(`"thinkingConfig":{"thinkingBudget":100}`), nil},
	FeatureAdaptive:      {"", configured(`"thinkingConfig":{"thinkingBudget":-1}`), nil},
	FeatureBudget:        {"generationConfig.thinkingConfig.thinkingBudget", configured(`"thinkingConfig":{"thinkingBudget":5000}`), nil},
	FeatureDisplay:       {"generationConfig.thinkingConfig.includeThoughts", configured(`"thinkingConfig":{"includeThoughts":true}`), nil},
	FeatureAudio:         {"generationConfig.responseModalities", configured(`"responseModalities":["AUDIO"]`), nil},
	FeatureSafety:        {"safetySettings[1]", said + `,"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"OFF"},{"category":"HARM_CATEGORY_HATE_SPEECH","threshold":"BLOCK_LOW_AND_ABOVE"}]}`, nil},
	FeatureModeration:    {"modelArmorConfig", said + `,"modelArmorConfig":{"promptTemplateName":"p"}}`, nil},
	FeatureMetadata:      {"labels", said + `,"labels":{"a":"b"}}`, nil},
	FeatureCachedContent: {"cachedContent", said + `,"cachedContent":"cachedContents/x"}`, nil},
	FeatureStandard:      {"", said + `,"serviceTier":"standard"}`, nil},
	FeatureTier:          {"serviceTier", said + `,"serviceTier":"flex"}`, nil},
	FeatureGeo:           {"generationConfig.routingConfig", configured(`"routingConfig":{"autoMode":{}}`), nil},
	FeatureStore:         {"store", said + `,"store":true}`, nil},
	FeatureContext:       {"continuationToken", said + `,"continuationToken":"AAAA"}`, nil},
	FeatureUnknown:       {"contents[0].parts[0].newThing", asks(`{"text":"x","newThing":1}`), nil},
}

var geminiNothing = []string{
	said + `,"generationConfig":{"candidateCount":1,"seed":null,"responseLogprobs":false,"presencePenalty":0,"responseModalities":["TEXT"],"responseMimeType":"text/plain","thinkingConfig":null,"mediaResolution":"MEDIA_RESOLUTION_UNSPECIFIED"},"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_NONE"}],"tools":[],"toolConfig":{},"labels":{},"newThing":null,"serviceTier":"unspecified","store":false}`,
	`{"contents":[{"role":"user","parts":[{"text":"x"}]}],"system_instruction":{"parts":[]},"generation_config":{"candidate_count":1,"response_modalities":["TEXT"]}}`,
}

// Names in snake case ask for the same.
func TestGeminiIsReadInBothSpellings(t *testing.T) {
	for f, eg := range geminiTells {
		h, err := scan(wire.GenerateContent, []byte(eg.body))
		if err != nil {
			t.Fatal(err)
		}
		snaked := snakeCase(eg.body)
		k, err := scan(wire.GenerateContent, []byte(snaked))
		if err != nil {
			t.Errorf("%s: %v in %s", f, err, snaked)
			continue
		}
		a := Translate(h, []byte(eg.body), nil, wire.Chat, Options{Warn: true})
		b := Translate(k, []byte(snaked), nil, wire.Chat, Options{Warn: true})
		if f == FeatureUnknown {
			continue // nobody knows its other spelling
		}
		if string(a.Body) != string(b.Body) || a.Report.Paths() != b.Report.Paths() || h.Needs != k.Needs {
			t.Errorf("%s:\n%s %s\n%s %s", f, a.Body, a.Report.Paths(), b.Body, b.Report.Paths())
		}
	}
}

// snakeCase writes every name of a body in snake case.
func snakeCase(body string) string {
	var b strings.Builder
	for i := 0; i < len(body); i++ {
		b.WriteByte(body[i])
		if body[i] != '"' {
			continue
		}
		end := i + 1 + strings.IndexByte(body[i+1:], '"')
		name := strings.HasPrefix(body[end+1:], ":")
		for _, c := range []byte(body[i+1 : end]) {
			if name && 'A' <= c && c <= 'Z' {
				b.WriteByte('_')
				c += 'a' - 'A'
			}
			b.WriteByte(c)
		}
		b.WriteByte('"')
		i = end
	}
	return b.String()
}
