package wire

import (
	"strconv"
	"strings"

	"sluice/internal/route"
)

func (s *scanner) readTools() {
	if s.null() {
		return
	}
	if s.ws() != '[' {
		s.skip()
		s.reject("tools", "must be an array")
		return
	}
	for a := s.array(); s.element(&a); {
		s.h.Tools++
		s.uses, s.marked = -1, false
		s.ws()
		start := s.i
		kind := s.schema()
		if !clientWritten(kind) {
			s.again(span{start, s.i})
		}
		switch {
		case clientWritten(kind):
			s.h.Needs |= route.NeedTools
		case hasAnyPrefix(kind, clientTools):
			s.h.Unbounded = true // the provider describes it to the model
			s.h.Needs |= route.NeedTools
		case s.h.Op == Responses:
			s.hostedTool(kind)
		default:
			s.serverTool(s.uses, strings.HasPrefix(kind, "web_search"))
		}
		if s.marked && s.h.Op.Dialect() == Anthropic {
			s.h.Needs |= route.NeedCache
		}
	}
}

func hasAnyPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// serverTool notes a tool that the provider runs, at most so many times; negative
// if nothing bounds it.
func (s *scanner) serverTool(uses int64, search bool) {
	h := s.h
	h.ServerTools++
	h.Needs |= route.NeedServerTools
	h.Unbounded = true
	if uses < 0 || h.ServerUses < 0 {
		h.ServerUses = -1
		return
	}
	h.ServerUses = min(h.ServerUses+uses, maxUses)
	if search {
		h.Searches = min(h.Searches+uses, maxUses)
	}
}

// readMaxUses reads a tool's bound; one that is no whole number bounds nothing.
func (s *scanner) readMaxUses() {
	at := s.skip()
	text := s.b[at.start:at.end]
	v, err := strconv.ParseInt(string(text[:min(len(text), 24)]), 10, 64)
	switch {
	case err == nil && v >= 0:
		s.uses = min(v, maxUses)
	case wholeNumber(text):
		s.uses = maxUses
	}
}
