package wire

import (
	"strings"

	"sluice/internal/route"
)

// An item of a response's input is what it says, or stands for one that the provider has
// stored with an answer: by its id, and without what it would say.

// inputItem is what was seen of one.
type inputItem struct {
	kind     string
	id       span // inside of the literal
	escaped  bool
	odd      bool // the id is no text
	role     bool
	said     bool // something stands there that it may be read by
	sealed   bool // its reasoning
	shown    bool // likewise, as the text itself
	pictured bool // the image that it made
}

// item reads one item of the input.
func (s *scanner) item() {
	var x inputItem
	for o := s.object(); s.member(&o); {
		switch key := string(s.key(&o)); key {
		case "type":
			x.kind, _ = s.word("input.type", 1<<10)
		case "id":
			s.itemID(&x)
		case "role":
			x.role = s.present() || x.role
		case "status", "phase", "call_id":
			s.skip()
		default:
			said := s.says()
			x.said = x.said || said
			switch key {
			case "content":
				x.shown = said
			case "result":
				x.pictured = said
			case "encrypted_content":
				x.sealed = said
			}
			s.itemMember(key, &o)
		}
	}
	s.referItem(&x)
}

// itemID reads an item's own id. Of one that says something itself it counts for nothing.
func (s *scanner) itemID(x *inputItem) {
	switch s.ws() {
	case '"':
		x.id, x.escaped = s.str()
	case 'n':
		s.skip()
	default:
		s.skip()
		x.odd = true
	}
}

// says reports whether a value that comes is more than null and an empty list.
func (s *scanner) says() bool {
	switch s.ws() {
	case 'n':
		return false
	case '[':
		i := s.i + 1
		for i < len(s.b) && strings.IndexByte(" \t\r\n", s.b[i]) >= 0 {
			i++
		}
		return i >= len(s.b) || s.b[i] != ']'
	}
	return true
}

// itemMember reads a member of an item.
func (s *scanner) itemMember(key string, o *object) {
	switch key {
	case "content", "summary", "output":
		s.content()
	case "arguments", "name", "input":
		s.literalText()
	case "action", "code", "outputs", "queries", "results", "operation":
		if !s.null() {
			s.schema()
		}
	case "tools":
		if !s.null() {
			start := s.i
			s.schema()
			s.againTools(start)
		}
	case "environment":
		s.things()
	case "result", "encrypted_content":
		s.skip()
	default:
		s.other(s.key(o))
	}
}

// referItem notes the item that one stands for.
func (s *scanner) referItem(x *inputItem) {
	if !x.odd && !x.id.ok() || s.lexer.err != nil {
		return
	}
	var id string
	if raw := s.b[x.id.start:x.id.end]; len(raw) > 6*maxStateID {
		x.odd = true
	} else if id = string(raw); x.escaped {
		id = string(appendUnquoted(nil, raw))
	}
	switch {
	case !x.stands(id):
	case x.odd || len(id) > maxStateID:
		s.reject("input", "has an item whose id is none: write it as it was given")
	default:
		s.referID(route.StateItem, "input", id)
		s.h.Unbounded = true // nothing here tells how large it is
	}
}

// stands reports whether an item stands for the one that its provider has by the id. What
// is sealed, or is said in full, is read as it is; a summary is not what was thought.
func (x *inputItem) stands(id string) bool {
	switch x.kind {
	case "item_reference":
		return true
	case "": // a message, or a reference that leaves its type out
		return !x.role
	case "reasoning":
		return !x.sealed && !x.shown && (!x.said || openAIReasoning(id))
	case "image_generation_call":
		return !x.pictured
	}
	return !x.said
}

// openAIReasoning reports whether an id is one of OpenAI's own items of reasoning. Those
// of translated answers have the answer's id within, and their summary is all there is.
func openAIReasoning(id string) bool {
	const least = 16 // digits
	id, ok := strings.CutPrefix(id, "rs_")
	return ok && len(id) >= least && strings.Trim(id, "0123456789abcdef") == ""
}
