package wire

import (
	"bytes"

	"sluice"
	"sluice/internal/route"
)

// Framing, in tokens: what a chat template puts around the text. The estimates are
// those of the hosted models; the bounds leave room for the wordiest open ones.
const (
	framePerMessage  = 4
	frameReply       = 3
	framePerTool     = 8
	frameTools       = 12
	frameToolsClaude = 346 // the system prompt that tools bring along
	frameServerTool  = 300 // a built-in tool's own description

	boundPerMessage = 24
	boundReply      = 64
	boundTools      = 1024
	boundPerTool    = 1024 // also that of a built-in tool
)

// framing adds what the template puts around messages and tools.
func (s *scanner) framing() {
	h := s.h
	if h.Op == Completions || h.Op == Embeddings || h.Op.Aside() {
		h.base = sluice.Tokens(2 * max(h.Messages, 1)) // a begin and an end token each
		return
	}
	h.Text = sluice.Tokens(framePerMessage*h.Messages + frameReply)
	h.base = sluice.Tokens(boundPerMessage*h.Messages + boundReply)
	if h.Tools == 0 {
		return
	}
	h.Text += sluice.Tokens(framePerTool*h.Tools + frameServerTool*h.ServerTools)
	h.base += sluice.Tokens(boundTools + boundPerTool*h.Tools)
	switch h.Op.Dialect() {
	case Anthropic:
		h.Text += frameToolsClaude
	default:
		h.Text += frameTools
	}
}

// literalText counts a string as text that the model reads; another kind is skipped.
func (s *scanner) literalText() {
	if s.ws() != '"' {
		s.skip()
		return
	}
	in, escaped := s.str()
	s.addText(in, escaped)
}

// schema reads a value that the model sees as JSON, counts it as such and returns
// its "type" if it is an object that has one.
func (s *scanner) schema() (kind string) {
	c := s.ws()
	start, nodes := s.i, s.values
	if c == '{' {
		for o := s.object(); s.member(&o); {
			switch key := s.key(&o); {
			case string(key) == "type" && s.ws() == '"':
				kind, _ = s.word("type", 1<<10)
			case string(key) == "max_uses":
				s.readMaxUses()
			case string(key) == "cache_control":
				s.marked = s.present() || s.marked
			default:
				s.skip()
			}
		}
	} else {
		s.skip()
	}
	s.nodes += 2 * (s.values - nodes)
	if s.lexer.err == nil {
		s.addText(span{start, s.i}, false)
	}
	return kind
}

func (s *scanner) readMessages() {
	if s.ws() != '[' {
		s.skip()
		s.reject("messages", "must be an array")
		return
	}
	for a := s.array(); s.element(&a); {
		s.h.Messages++
		if s.ws() != '{' {
			s.skip()
			s.reject("messages", "must be an array of objects")
			continue
		}
		s.message()
	}
}

func (s *scanner) message() {
	for o := s.object(); s.member(&o); {
		switch string(s.key(&o)) {
		case "content":
			s.content()
		case "name", "refusal", "reasoning_content", "reasoning":
			s.literalText()
		case "tool_calls", "function_call":
			if !s.null() {
				s.schema()
			}
		case "audio": // an earlier answer's audio, by its id
			s.readState(route.StateAudio, "messages.audio")
		default:
			s.loose(s.key(&o))
		}
	}
}

// content reads text or an array of parts, at any depth of tool results.
func (s *scanner) content() {
	switch s.ws() {
	case '"':
		s.literalText()
	case '[':
		for a := s.array(); s.element(&a); {
			switch s.ws() {
			case '{':
				s.part()
			default:
				s.literalText()
			}
		}
	case '{':
		s.part()
	default:
		s.skip()
	}
}

// schemes are those that media may be fetched by. A path, or file:, would be read from
// the backend's own disk.
var schemes = []string{"http:", "https:", "data:", "gs:", "s3:"}

// readInput reads completions' prompt and embeddings' input: text, texts, token ids,
// or arrays of token ids, which are counted exactly.
func (s *scanner) readInput(param string) {
	s.prompts = 0
	switch s.ws() {
	case '"', '{':
		s.h.Messages, s.prompts = 1, 1
		s.content()
	case '[':
		s.inputs(param)
	case 'n':
		s.literal()
	default:
		s.skip()
		s.reject(param, "must be text, an array of texts, token ids, or an array of token id arrays")
	}
}

func (s *scanner) inputs(param string) {
	start := s.i
	var ids sluice.Tokens
	bare := false
	for a := s.array(); s.element(&a); {
		switch c := s.ws(); {
		case c >= '0' && c <= '9':
			s.number()
			ids++
			bare = true
		case c == '[':
			s.prompts++
			ids += s.tokenIDs(param)
		case c == '"', c == '{':
			s.prompts++
			s.content()
		default:
			s.skip()
			s.reject(param, "must be text, an array of texts, token ids, or an array of token id arrays")
		}
	}
	if bare {
		s.prompts++
	}
	if s.prompts > maxChoices {
		s.reject(param, "has more than 4096 entries")
	}
	s.h.Messages = int(s.prompts)
	if s.sample.text == 0 {
		s.idBytes += s.i - start
	}
	s.exact += ids
}

// tokenIDs counts an array of whole numbers.
func (s *scanner) tokenIDs(param string) (n sluice.Tokens) {
	for a := s.array(); s.element(&a); {
		if c := s.ws(); c >= '0' && c <= '9' {
			s.number()
			n++
			continue
		}
		s.skip()
		s.reject(param, "has something other than token ids in an array of token ids")
	}
	return n
}

// clientTools are tools that a provider defines and the client runs.
var clientTools = []string{"bash_", "text_editor_", "computer_", "memory_", "local_shell", "apply_patch"}

// maxUses bounds what is believed of the bounds of tools, so that no product
// overflows.
const maxUses = 1 << 16

// bytesTrimmed is the length of b without surrounding white space.
func bytesTrimmed(b []byte) int { return len(bytes.TrimSpace(b)) }

func equalFold(b []byte, s string) bool {
	return len(b) >= len(s) && len(b) <= 3*len(s) && bytes.EqualFold(b, []byte(s))
}
