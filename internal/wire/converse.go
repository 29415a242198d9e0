package wire

import (
	"sluice"
	"sluice/internal/route"
)

// What stands in the body of a Converse request. It is always one that was put into
// the dialect here, from a client's that was scanned before: what counts is what the
// backend must be able to do, and where its output bound stands. The model and the
// stream are named in it as in the other dialects; they leave it with the address.

// converseOp is the operation of Bedrock.
const converseOp = ops(1) << Converse

// converseMembers are its members that are not read as those of other dialects are.
var converseMembers = []member{
	{"messages", converseOp, (*scanner).converseTurns},
	{"system", converseOp, (*scanner).blocks},
	{"inferenceConfig", converseOp, (*scanner).readInferenceConfig},
	{"toolConfig", converseOp, (*scanner).readToolConfig},
	{"outputConfig", converseOp, func(s *scanner) { s.inner("outputConfig", converseOutput) }},
	{"additionalModelRequestFields", converseOp, func(s *scanner) { s.inner("additionalModelRequestFields", converseFields) }},
}

var converseOutput = []field{
	{"textFormat", needs(route.NeedJSONSchema)},
	{"effort", needs(route.NeedReasoning)},
}

var converseFields = []field{
	{"top_k", needs(route.NeedTopK)},
	{"thinking", (*scanner).readThinking},
}

var inferenceFields = []field{
	{"maxTokens", func(s *scanner) {
		v, at := s.integer("inferenceConfig.maxTokens", maxOutputAsked)
		s.h.maxTokens, s.h.maxTokensIs = at, sluice.Tokens(v)
		s.outputBound("inferenceConfig.maxTokens", v)
	}},
	{"temperature", sampling(route.NeedTemperature, "1")},
	{"topP", sampling(route.NeedTopP, "1")},
	{"stopSequences", (*scanner).readStop},
}

func (s *scanner) readInferenceConfig() {
	s.h.inference = s.inner("inferenceConfig", inferenceFields)
	s.h.inferenceEmpty = s.lexer.err == nil && bytesTrimmed(s.b[s.h.inference.start+1:s.h.inference.end-1]) == 0
}

// readToolConfig counts the tools.
func (s *scanner) readToolConfig() {
	s.inner("toolConfig", []field{{"tools", func(s *scanner) {
		if s.ws() != '[' {
			s.skip()
			return
		}
		for a := s.array(); s.element(&a); {
			if s.blockOf("toolSpec") {
				s.h.Tools++
				s.h.Needs |= route.NeedTools
			} else {
				s.h.Needs |= route.NeedCache
			}
		}
	}}})
}

// blockOf reads an object and reports whether it has a member of the name.
func (s *scanner) blockOf(name string) (has bool) {
	if s.ws() != '{' {
		s.skip()
		return false
	}
	for o := s.object(); s.member(&o); {
		has = has || string(s.key(&o)) == name
		s.skip()
	}
	return has
}

// blocks reads a list of blocks, those of a tool's result too.
func (s *scanner) blocks() {
	if s.ws() != '[' {
		s.skip()
		return
	}
	for a := s.array(); s.element(&a); {
		s.block()
	}
}

func (s *scanner) block() {
	if s.ws() != '{' {
		s.skip()
		return
	}
	for o := s.object(); s.member(&o); {
		switch string(s.key(&o)) {
		case "toolResult", "content":
			if s.ws() == '[' {
				s.blocks()
			} else {
				s.block()
			}
		case "image":
			s.h.Media++
			s.need(route.NeedImage)
		case "document":
			s.h.Media++
			s.need(route.NeedFile)
		case "cachePoint":
			s.need(route.NeedCache)
		default:
			s.skip()
		}
	}
}

// converseTurns reads the messages of a Converse request.
func (s *scanner) converseTurns() {
	if s.ws() != '[' {
		s.skip()
		return
	}
	for a := s.array(); s.element(&a); {
		s.h.Messages++
		s.block()
	}
}

// converseBound names an output bound where the request names none.
func (h *Head) converseBound(p []patch, insert span, bound []byte) []patch {
	named := append([]byte(`"maxTokens":`), bound...)
	if !h.inference.ok() {
		return append(p, patch{insert, append(append([]byte(`,"inferenceConfig":{`), named...), '}')})
	}
	if !h.inferenceEmpty {
		named = append(named, ',')
	}
	at := h.inference.start + 1
	return append(p, patch{span{at, at}, named})
}
