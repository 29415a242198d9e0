package wire

import (
	"strings"

	"sluice"
	"sluice/internal/route"
)

// What the Responses operation has of its own. Its items are counted as the messages,
// calls and results that they are.

func (s *scanner) readMaxOutputTokens() {
	v, at := s.integer("max_output_tokens", maxOutputAsked)
	s.h.maxCompletionTokens, s.h.maxCompletionTokensIs = at, sluice.Tokens(v)
	s.outputBound("max_output_tokens", v)
}

func (s *scanner) readStore() {
	if !s.null() { // the default, which is true here and false of chat
		s.h.Store = s.boolean("store")
	}
}

// readInputItems reads input: a text, or a list of items.
func (s *scanner) readInputItems() {
	switch s.ws() {
	case '"':
		s.h.Messages++
		s.literalText()
	case '[':
		for a := s.array(); s.element(&a); {
			s.h.Messages++
			if s.ws() != '{' {
				s.skip()
				s.reject("input", "must be text or an array of objects")
				continue
			}
			s.item()
		}
	case 'n':
		s.literal()
	default:
		s.skip()
		s.reject("input", "must be text or an array of objects")
	}
}

// readText reads text.format: the structure of the answer.
func (s *scanner) readText() { s.inner("text", textFields) }

var textFields = []field{{"format", (*scanner).readResponseFormat}}

func (s *scanner) readReasoning() { s.inner("reasoning", reasoningFields) }

var reasoningFields = []field{{"effort", (*scanner).readEffort}}

// readInclude takes what the answer is to tell beside its text.
func (s *scanner) readInclude() {
	if s.null() {
		return
	}
	if s.ws() != '[' {
		s.skip()
		s.reject("include", "must be an array of strings")
		return
	}
	for a := s.array(); s.element(&a); {
		if w, _ := s.word("include", 256); w == "message.output_text.logprobs" {
			s.h.Needs |= route.NeedLogprobs
		}
	}
}

func (s *scanner) readTopLogprobs() {
	if v, _ := s.integer("top_logprobs", maxOutputAsked); v > 0 {
		s.h.Needs |= route.NeedLogprobs
	}
}

func (s *scanner) readMaxToolCalls() {
	if v, _ := s.integer("max_tool_calls", maxUses); v >= 0 {
		s.toolCalls, s.toolCallsBound = v, true
	}
}

// finishResponses bounds the tools of the provider by max_tool_calls. Only searches of
// the web have a fee that is known for each.
func (s *scanner) finishResponses() {
	h := s.h
	if h.ServerTools == 0 || !s.toolCallsBound || s.otherTools {
		return
	}
	h.ServerUses, h.Searches = s.toolCalls, s.toolCalls
}

// hostedTool notes a tool of the Responses operation that the provider runs.
func (s *scanner) hostedTool(kind string) {
	search := strings.HasPrefix(kind, "web_search")
	s.otherTools = s.otherTools || !search
	s.serverTool(-1, search)
}
