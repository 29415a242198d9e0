package wire

import (
	"strings"

	"sluice"
	"sluice/internal/route"
)

// geminiBound is the member that bounds the output.
const geminiBound = "generationConfig.maxOutputTokens"

// geminiMembers are the members of a request that decide what it costs, where it goes
// or whose it is.
var geminiMembers = []spelling{
	spelt("model", (*scanner).geminiModel),
	spelt("contents", ofPrompt(textSection, (*scanner).geminiContents)),
	spelt("systemInstruction", ofPrompt(systemSection, func(s *scanner) { s.spellings("systemInstruction", geminiSystemFields) })),
	spelt("tools", ofPrompt(toolsSection, (*scanner).geminiTools)),
	spelt("toolConfig", (*scanner).geminiToolConfig),
	spelt("generationConfig", (*scanner).geminiGeneration),
	spelt("cachedContent", reads(route.StateCache, "cachedContent")),
	spelt("continuationToken", (*scanner).readReference),
	spelt("serviceTier", func(s *scanner) { s.h.ServiceTier, _ = s.word("serviceTier", 64) }),
}

// geminiCount is what a count of tokens may stand in beside the request's own members.
var geminiCount = append([]spelling{
	spelt("generateContentRequest", func(s *scanner) { s.spellings("generateContentRequest", geminiMembers) }),
}, geminiMembers...)

// ofPrompt reads a member that an engine's prompt is made of.
func ofPrompt(part promptPart, read func(*scanner)) func(*scanner) {
	return func(s *scanner) {
		s.ws()
		start := s.i
		read(s)
		s.h.prompt[part] = span{start, s.i}
	}
}

// geminiRequest reads the body of a request whose model and manner stand in its path.
func (s *scanner) geminiRequest(at InPath) {
	s.h.Model, s.h.Stream = at.Model, at.Stream && s.h.Op.Streams()
	if s.ws() != '{' {
		s.unexpected("an object")
		return
	}
	fields := geminiMembers
	if s.h.Op == CountContent {
		fields = geminiCount
	}
	s.h.inside = s.i + 1
	all := s.spellings("", fields)
	s.h.empty = s.lexer.err == nil && bytesTrimmed(s.b[all.start+1:all.end-1]) == 0
	if s.h.Needs.Has(route.NeedJSONSchema) { // its type of content comes with it
		s.h.Needs &^= route.NeedJSONObject
	}
}

// geminiModel reads the model of the body, which says what the path says.
func (s *scanner) geminiModel() {
	name, at := s.word("model", MaxModelName+len("models/"))
	if name == "" {
		return
	}
	if strings.TrimPrefix(name, "models/") != strings.TrimPrefix(s.h.Model, "models/") {
		s.reject("model", "is another than that of the path: leave it out")
	}
	if s.h.model.ok() {
		s.reject("model", "stands twice")
	}
	s.h.model = at
}

func (s *scanner) geminiContents() {
	switch s.ws() {
	case '[':
		for a := s.array(); s.element(&a); {
			s.h.Messages++
			s.geminiContent()
		}
	case 'n':
		s.literal()
	default:
		s.skip()
		s.reject("contents", "must be an array")
	}
}

var (
	geminiContentFields = []spelling{spelt("parts", func(s *scanner) { s.geminiParts("contents.parts") })}
	geminiSystemFields  = []spelling{spelt("parts", func(s *scanner) { s.geminiParts("systemInstruction.parts") })}
)

func (s *scanner) geminiContent() { s.spellings("contents", geminiContentFields) }

func (s *scanner) geminiParts(at string) {
	if s.ws() != '[' {
		if !s.null() {
			s.skip()
			s.reject(at, "must be an array")
		}
		return
	}
	for a := s.array(); s.element(&a); {
		s.spellings(at, geminiPartFields)
	}
}

// geminiPartFields are the kinds of parts. geminiMedia is what holds bytes or names
// them.
var (
	geminiPartFields = []spelling{
		spelt("text", (*scanner).literalText),
		spelt("inlineData", (*scanner).geminiInline),
		spelt("fileData", (*scanner).geminiFile),
		spelt("functionCall", func(s *scanner) { s.schema() }),
		spelt("functionResponse", func(s *scanner) { s.spellings("functionResponse", geminiResponse) }),
		spelt("executableCode", func(s *scanner) { s.schema() }),
		spelt("codeExecutionResult", func(s *scanner) { s.schema() }),
		spelt("toolCall", func(s *scanner) { s.schema() }),
		spelt("toolResponse", func(s *scanner) { s.schema() }),
	}
	geminiResponse = []spelling{
		spelt("name", (*scanner).literalText),
		spelt("response", func(s *scanner) { s.schema() }),
		spelt("parts", (*scanner).geminiResponseParts),
	}
	geminiMedia = []spelling{
		spelt("inlineData", (*scanner).geminiInline),
		spelt("fileData", (*scanner).geminiFile),
	}
)

func (s *scanner) geminiResponseParts() {
	if s.ws() != '[' {
		s.skip()
		return
	}
	for a := s.array(); s.element(&a); {
		s.spellings("functionResponse.parts", geminiMedia)
	}
}

func (s *scanner) geminiInline() {
	var p part
	s.spellings("inlineData", []spelling{
		geminiMIME(&p),
		{"data", "data", func(s *scanner) { s.data(&p) }},
	})
	s.endPart(&p)
}

// geminiFile reads a file by its URI. What is behind it, and of what kind, only the
// provider can tell.
func (s *scanner) geminiFile() {
	var p part
	s.spellings("fileData", []spelling{
		geminiMIME(&p),
		{"fileUri", "file_uri", func(s *scanner) { s.readFileURI(&p) }},
	})
	if p.reference && mediaKindOf("", p.mediaType) == noMedia {
		p.kind = "file"
	}
	s.h.Unbounded = s.h.Unbounded || p.reference
	s.endPart(&p)
}

func geminiMIME(p *part) spelling {
	return spelling{"mimeType", "mime_type", func(s *scanner) { p.mediaType, _ = s.word("mimeType", 1<<10) }}
}

// geminiTools reads tools: lists of functions that the client runs, and what the
// provider runs.
func (s *scanner) geminiTools() {
	if s.ws() != '[' {
		if !s.null() {
			s.skip()
			s.reject("tools", "must be an array")
		}
		return
	}
	for a := s.array(); s.element(&a); {
		if s.ws() != '{' {
			s.skip()
			s.reject("tools", "must be an array of objects")
			continue
		}
		s.geminiTool()
	}
}

func (s *scanner) geminiTool() {
	declared := false
	for o := s.object(); s.member(&o); {
		key := string(s.key(&o))
		switch {
		case key == "functionDeclarations" || key == "function_declarations":
			if declared {
				s.reject("tools.functionDeclarations", "stands twice, once in each of its spellings: write it once")
			}
			declared = true
			s.geminiFunctions()
		case sameLetters([]byte(key), "functionDeclarations"):
			s.reject("tools.functionDeclarations", "is written in another way here: write functionDeclarations")
			s.skip()
		case key == "computerUse" || key == "computer_use": // the provider describes it, the client runs it
			s.ws()
			start := s.i
			if s.present() {
				s.again(span{start, s.i})
				s.h.Tools++
				s.h.Unbounded = true
				s.h.Needs |= route.NeedTools
			}
		case s.null():
		default:
			start := s.i
			s.schema()
			s.again(span{start, s.i})
			s.h.Tools++
			s.serverTool(-1, strings.Contains(strings.ToLower(key), "search"))
		}
	}
}

func (s *scanner) geminiFunctions() {
	if s.ws() != '[' {
		s.skip()
		return
	}
	for a := s.array(); s.element(&a); {
		s.h.Tools++
		s.schema()
		s.h.Needs |= route.NeedTools
	}
}

func (s *scanner) geminiToolConfig() {
	if at := s.spellings("toolConfig", nil); at.ok() {
		s.again(at)
	}
}

// geminiGeneration reads generationConfig.
func (s *scanner) geminiGeneration() {
	c := s.ws()
	at := s.spellings("generationConfig", geminiGenerationFields)
	switch {
	case s.lexer.err != nil:
	case c == '{':
		s.h.generation = at
		s.h.generationEmpty = bytesTrimmed(s.b[at.start+1:at.end-1]) == 0
	default:
		s.h.generationNull = at
	}
}

var geminiGenerationFields = []spelling{
	spelt("maxOutputTokens", (*scanner).geminiMaxOutput),
	spelt("candidateCount", func(s *scanner) { s.n = s.count("generationConfig.candidateCount") }),
	spelt("temperature", sampling(route.NeedTemperature, "1")),
	spelt("topP", sampling(route.NeedTopP, "1")),
	spelt("topK", sampling(route.NeedTopK, "0")),
	spelt("presencePenalty", sampling(route.NeedPresence, "0")),
	spelt("frequencyPenalty", sampling(route.NeedFrequency, "0")),
	spelt("seed", needs(route.NeedSeed)),
	spelt("stopSequences", (*scanner).readStop),
	spelt("responseMimeType", (*scanner).geminiMimeType),
	spelt("responseSchema", (*scanner).geminiSchema),
	spelt("responseJsonSchema", (*scanner).geminiSchema),
	{"_responseJsonSchema", "_response_json_schema", (*scanner).geminiSchema},
	spelt("responseLogprobs", (*scanner).readLogprobs),
	spelt("logprobs", (*scanner).readLogprobs),
	spelt("responseModalities", (*scanner).geminiModalities),
	spelt("speechConfig", needs(route.NeedAudioOutput)),
	spelt("thinkingConfig", func(s *scanner) { s.spellings("generationConfig.thinkingConfig", geminiThinkingFields) }),
	spelt("mediaResolution", (*scanner).geminiResolution),
}

var geminiThinkingFields = []spelling{
	spelt("thinkingBudget", func(s *scanner) {
		c := s.ws()
		at := s.skip()
		if c != 'n' && s.lexer.err == nil && !sameNumber(s.b[at.start:at.end], "0") {
			s.h.Needs |= route.NeedReasoning
		}
	}),
	spelt("thinkingLevel", needs(route.NeedReasoning)),
	spelt("includeThoughts", func(s *scanner) { s.skip() }),
}

func (s *scanner) geminiMaxOutput() {
	v, at := s.integer(geminiBound, maxOutputAsked)
	s.h.maxTokens, s.h.maxTokensIs = at, sluice.Tokens(v)
	s.outputBound(geminiBound, v)
	if v == 0 {
		s.reject(geminiBound, atLeastOne)
	}
}

func (s *scanner) geminiMimeType() {
	if w, _ := s.word("generationConfig.responseMimeType", 256); w != "" && w != "text/plain" {
		s.h.Needs |= route.NeedJSONObject
	}
}

func (s *scanner) geminiSchema() {
	if !s.null() {
		s.schema()
		s.h.Needs |= route.NeedJSONSchema
	}
}

func (s *scanner) geminiModalities() {
	if s.ws() != '[' {
		s.skip()
		return
	}
	for a := s.array(); s.element(&a); {
		if w, _ := s.word("generationConfig.responseModalities", 64); strings.EqualFold(w, "audio") {
			s.h.Needs |= route.NeedAudioOutput
		}
	}
}

// geminiResolution notes the resolution of media that the request asks for: the first
// letter of low, medium or high.
func (s *scanner) geminiResolution() {
	w, _ := s.word("generationConfig.mediaResolution", 64)
	if w = strings.TrimPrefix(strings.ToLower(w), "media_resolution_"); w != "" && w != "unspecified" {
		s.resolution = w[0]
	}
}
