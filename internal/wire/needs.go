package wire

import "sluice/internal/route"

// finishNeeds adds what follows from other facts of the request.
func (s *scanner) finishNeeds() {
	h := s.h
	if h.Stream {
		h.Needs |= route.NeedStream
	}
	if h.Op.Counts() {
		h.Needs |= route.NeedCount
	}
	if max(s.n, s.bestOf) > 1 {
		h.Needs |= route.NeedChoices
	}
	if s.parallel && h.Needs.Has(route.NeedTools) {
		h.Needs |= route.NeedParallel
	}
}

// need notes what a member asks for unless it is null.
func (s *scanner) need(n route.Needs) {
	if !s.null() {
		s.skip()
		s.h.Needs |= n
	}
}

// needs reads a member that asks for something by being there.
func needs(n route.Needs) func(*scanner) {
	return func(s *scanner) { s.need(n) }
}

// sampling reads a parameter that asks for nothing by null and by one of the
// numbers that leave the distribution as it is, however they are written.
func sampling(n route.Needs, none ...string) func(*scanner) {
	return func(s *scanner) {
		c := s.ws()
		at := s.skip()
		if c == 'n' || s.lexer.err != nil {
			return
		}
		for _, v := range none {
			if sameNumber(s.b[at.start:at.end], v) {
				return
			}
		}
		s.h.Needs |= n
	}
}

// sameNumber reports whether b is a whole number, perhaps with a fraction of
// zeros.
func sameNumber(b []byte, whole string) bool {
	if len(b) < len(whole) || string(b[:len(whole)]) != whole {
		return false
	}
	for i, c := range b[len(whole):] {
		if i == 0 && c != '.' || i > 0 && c != '0' {
			return false
		}
	}
	return true
}

// readLogitBias asks for something unless it is empty.
func (s *scanner) readLogitBias() { s.unlessEmpty(route.NeedLogitBias) }

// readStop takes a text or a list of them; an empty list asks for nothing.
func (s *scanner) readStop() { s.unlessEmpty(route.NeedStop) }

func (s *scanner) unlessEmpty(n route.Needs) {
	c := s.ws()
	at := s.skip()
	if c == 'n' || s.lexer.err != nil || (c == '[' || c == '{') && bytesTrimmed(s.b[at.start+1:at.end-1]) == 0 {
		return
	}
	s.h.Needs |= n
}

func (s *scanner) readParallel() {
	if !s.null() {
		s.h.ParallelTools = s.boolean("parallel_tool_calls")
		s.parallel = s.h.ParallelTools
	}
}

func (s *scanner) readToolChoice() {
	s.inner("tool_choice", toolChoiceFields)
}

var toolChoiceFields = []field{
	{"disable_parallel_tool_use", func(s *scanner) {
		if s.boolean("tool_choice.disable_parallel_tool_use") {
			s.h.ParallelTools = false
		}
	}},
}

func (s *scanner) readResponseFormat() {
	if s.null() {
		return
	}
	switch s.schema() {
	case "json_object":
		s.h.Needs |= route.NeedJSONObject
	case "json_schema", "structural_tag":
		s.h.Needs |= route.NeedJSONSchema
	}
}

func (s *scanner) readOutputConfig() {
	s.inner("output_config", outputConfigFields)
}

var outputConfigFields = []field{
	{"format", func(s *scanner) {
		if !s.null() {
			s.schema()
			s.h.Needs |= route.NeedJSONSchema
		}
	}},
	{"effort", func(s *scanner) { s.need(route.NeedReasoning) }},
}

func (s *scanner) readEffort() {
	if v, _ := s.word("reasoning_effort", 64); v != "" && v != "none" {
		s.h.Needs |= route.NeedReasoning
	}
}

func (s *scanner) readThinking() {
	s.inner("thinking", thinkingFields)
}

var thinkingFields = []field{
	{"type", func(s *scanner) {
		if v, _ := s.word("thinking.type", 64); v != "" && v != "disabled" {
			s.h.Needs |= route.NeedReasoning
		}
	}},
}

// readLogprobs takes the boolean of chat and the number of completions.
func (s *scanner) readLogprobs() {
	c := s.ws()
	s.skip()
	if c != 'n' && c != 'f' {
		s.h.Needs |= route.NeedLogprobs
	}
}

func (s *scanner) readModalities() {
	if s.null() {
		return
	}
	if s.ws() != '[' {
		s.skip()
		s.reject("modalities", "must be an array of strings")
		return
	}
	for a := s.array(); s.element(&a); {
		if w, _ := s.word("modalities", 64); w == "audio" {
			s.h.Needs |= route.NeedAudioOutput
		}
	}
}
