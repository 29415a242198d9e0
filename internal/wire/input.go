package wire

import (
	"bytes"
	"strconv"
	"strings"

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
			s.skip()
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

// part is what was seen of one content part; its type may come after the rest.
type part struct {
	kind      string
	source    string // type of its source
	mediaType string // MIME type, or the name of an audio format
	detail    byte
	data      span // inside of the literal that holds the media or the text
	escaped   bool
	url       bool // it refers to media by a URL
	fetched   bool // which the backend fetches
	reference bool // it refers to something by an id
	inline    bool // data is there
	file      string
}

func (s *scanner) part() {
	var p part
	for o := s.object(); s.member(&o); {
		switch string(s.key(&o)) {
		case "type":
			p.kind, _ = s.word("type", 1<<10)
		case "text", "thinking", "refusal", "name", "title", "context":
			s.literalText()
		case "input":
			s.schema()
		case "content":
			s.content()
		case "source": // a text of it names where a search result is from
			s.source(&p, (*scanner).reference)
		case "image_url", "input_audio", "file", "video_url", "audio_url", "input_image":
			s.source(&p, (*scanner).address)
		case "file_data":
			s.reference(&p)
		case "file_url":
			s.ws()
			s.address(&p)
		case "detail":
			s.detail(&p)
		case "file_id":
			s.readFileID(&p)
		case "cache_control":
			s.need(route.NeedCache)
		default:
			s.skip()
		}
	}
	s.endPart(&p)
}

// present skips a value and reports whether it is not null.
func (s *scanner) present() bool {
	c := s.ws()
	s.skip()
	return c != 'n'
}

// source reads where a part's media come from: a text, which bare reads, an object of
// it, or data.
func (s *scanner) source(p *part, bare func(*scanner, *part)) {
	switch s.ws() {
	case '"':
		bare(s, p)
		return
	case '{':
	default:
		s.skip()
		return
	}
	for o := s.object(); s.member(&o); {
		switch string(s.key(&o)) {
		case "type":
			p.source, _ = s.word("source.type", 1<<10)
		case "url":
			s.address(p)
		case "file_data":
			s.reference(p)
		case "data":
			s.data(p)
		case "media_type", "format":
			p.mediaType, _ = s.word("media_type", 1<<10)
		case "detail":
			s.detail(p)
		case "content":
			s.content()
		case "file_id":
			s.readSourceFile(p)
		default:
			s.skip()
		}
	}
}

// detail reads how closely an image is to be looked at.
func (s *scanner) detail(p *part) {
	if s.ws() != '"' {
		s.skip()
	} else if d, _ := s.word("detail", 64); d != "" {
		p.detail = d[0]
	}
}

func (s *scanner) data(p *part) {
	if s.ws() != '"' {
		s.skip()
		return
	}
	p.data, p.escaped = s.str()
	p.inline = true
}

// schemes are those that media may be fetched by. A path, or file:, would be read from
// the backend's own disk.
var schemes = []string{"http:", "https:", "data:", "gs:", "s3:"}

// address reads where a backend is to fetch from, or data.
func (s *scanner) address(p *part) {
	start := s.i
	s.reference(p)
	if !p.url || s.lexer.err != nil || s.b[start] != '"' {
		return
	}
	p.fetched = true
	raw := s.b[start+1 : s.i-1]
	head := string(appendUnquoted(nil, raw[:wholeEscapes(raw, min(len(raw), 64))]))
	for _, scheme := range schemes {
		if len(head) >= len(scheme) && equalFold([]byte(head[:len(scheme)]), scheme) {
			return
		}
	}
	s.reject("messages", "has media at an address that is none of http:, https: and data:, which a backend may take for a file of its own")
}

// reference reads a URL, which may be a data URL.
func (s *scanner) reference(p *part) {
	if s.ws() != '"' {
		s.skip()
		return
	}
	in, escaped := s.str()
	if in.len() < 5 || !equalFold(s.b[in.start:in.start+5], "data:") {
		p.url = true
		return
	}
	head := s.b[in.start+5 : min(in.end, in.start+5+256)]
	comma := bytes.IndexByte(head, ',')
	if comma < 0 || !bytes.Contains(head[:comma], []byte("base64")) {
		p.url = true // in no form that media take: bounded as a URL is
		return
	}
	kind, _, _ := bytes.Cut(head[:comma], []byte(";"))
	p.mediaType = string(appendUnquoted(nil, kind))
	p.data, p.escaped, p.inline = span{in.start + 5 + comma + 1, in.end}, escaped, true
}

// endPart sorts what a part brings: text, or media.
func (s *scanner) endPart(p *part) {
	if s.lexer.err != nil {
		return
	}
	s.referPart(p)
	if p.source == "text" && p.inline {
		s.addText(p.data, p.escaped)
		s.h.Needs |= route.NeedFile
		return
	}
	kind := mediaKindOf(p.kind, p.mediaType)
	if kind == noMedia || !p.inline && !p.url && !p.reference {
		return
	}
	s.h.Media++
	s.h.Needs |= kind.needs()
	if p.fetched {
		s.h.Needs |= route.NeedMediaURL
	}
	m := media{kind: kind, detail: p.detail}
	if p.inline {
		s.mediaLen += p.data.len()
		m.bytes = int32(min(base64Len(p.data.len()), 1<<31-1))
		if kind == imageMedia && s.h.Media <= maxHeaders {
			m.width, m.height = imageSize(s.b[p.data.start:p.data.end], p.escaped)
		}
	} else if kind != imageMedia {
		s.h.Unbounded = true
	}
	s.addMedia(m)
}

// addMedia remembers one piece of media; beyond maxMedia the rest are merged into
// the last, at their kind's maximum.
func (s *scanner) addMedia(m media) {
	if len(s.h.media) < maxMedia {
		s.h.media = append(s.h.media, m)
		return
	}
	s.h.moreMedia++
	s.h.Unbounded = s.h.Unbounded || m.kind != imageMedia
}

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
		switch kind := s.schema(); {
		case kind == "" || kind == "function" || kind == "custom":
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

// clientTools are tools that a provider defines and the client runs.
var clientTools = []string{"bash_", "text_editor_", "computer_", "memory_", "local_shell", "apply_patch"}

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

// maxUses bounds what is believed of the bounds of tools, so that no product
// overflows.
const maxUses = 1 << 16

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

// bytesTrimmed is the length of b without surrounding white space.
func bytesTrimmed(b []byte) int { return len(bytes.TrimSpace(b)) }

func equalFold(b []byte, s string) bool {
	return len(b) >= len(s) && len(b) <= 3*len(s) && bytes.EqualFold(b, []byte(s))
}
