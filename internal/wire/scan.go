package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"

	"sluice"
	"sluice/internal/estimate"
)

// MaxModelName bounds a model's name in bytes.
const MaxModelName = 256

// Bounds of what a request may ask for. Beyond them no provider goes, and below
// them no product of them overflows.
const (
	maxOutputAsked = 1 << 40 // a larger output bound counts as this
	maxChoices     = 1 << 12
)

const atLeastOne = "must be at least 1"

// Scan reads the head of a request in one pass. It refuses, as a
// sluice.KindInvalid error that names the place, what is not JSON (RFC 8259,
// valid UTF-8, no lone surrogates, at most MaxDepth levels, no number beyond
// float64), an object that has a key twice, a top-level key that differs from a
// known one in case alone, and known members of a wrong type. The body is not
// changed and not kept.
func Scan(op Operation, body []byte) (*Head, error) { return ScanIn(op, body, InPath{}) }

// InPath is what a dialect tells in the request's path and not in its body: nothing,
// for most.
type InPath struct {
	Model  string
	Stream bool
}

// ScanIn is Scan for a request whose path may tell a part of it. Dialects that tell
// all in the body ignore at.
func ScanIn(op Operation, body []byte, at InPath) (*Head, error) {
	h := &Head{Op: op, ParallelTools: true, Store: op == Responses}
	s := scanner{lexer: lexer{b: body, keys: make([]keySpan, 0, 24)}, h: h}
	if op.Dialect() == Gemini {
		s.geminiRequest(at)
	} else {
		s.request()
	}
	s.end()
	if s.lexer.err != nil {
		return nil, &sluice.Error{
			Kind: sluice.KindInvalid, Reason: sluice.InvalidRequest,
			Msg: "the request body is refused: " + s.lexer.err.Error(),
		}
	}
	if s.wrong != nil {
		return nil, s.wrong
	}
	if err := s.finish(); err != nil {
		return nil, err
	}
	return h, nil
}

// scanner is the state of one Scan.
type scanner struct {
	lexer
	h     *Head
	wrong *sluice.Error // the first member of a wrong type or value

	text     estimate.Counter
	sample   sample        // what text has counted of
	exact    sluice.Tokens // input given as token ids
	idBytes  int           // of those in the body
	mediaLen int           // bytes of media in the body: they are not text
	nodes    int           // values within tool schemas, which a template may put on lines of their own

	n, bestOf    int64
	prompts      int64
	uses         int64 // max_uses of the tool that is read; negative if it has none
	marked       bool  // that tool ends what is to be cached
	parallel     bool  // several tool calls in one answer are asked for
	resolution   byte  // of all media, as a detail; 0 if it is not said
	toolCalls    int64 // max_tool_calls, where toolCallsBound
	echo         bool  // the prompt comes back: with a bound of 0 it is scored alone
	mentions     int   // references, the same one again too
	safetyID     string
	user, metaID string

	inTools bool // tools within a tool are read
	anyID   bool // whatever is called an id is a reference

	toolCallsBound bool
	otherTools     bool // of the provider than searches of the web
}

// reject notes the first mistake that is not one of syntax; the scan goes on, so
// that a syntax error is told first.
func (s *scanner) reject(param, msg string) {
	if s.wrong == nil && s.lexer.err == nil {
		s.wrong = sluice.Invalid(param, "%s", msg)
	}
}

// request reads the top-level object.
func (s *scanner) request() {
	o := s.object()
	s.h.inside = s.i
	for last := (*removable)(nil); s.member(&o); {
		s.h.members++
		key := s.key(&o)
		if last != nil {
			last.next, last = o.key.start, nil
		}
		if f := known(key, s.h.Op); f != nil {
			s.ws()
			start := s.i
			part := promptPartOf(key)
			f(s)
			if r := s.h.removable(key); r != nil {
				*r = removable{start: o.key.start, end: s.i, comma: o.comma}
				last = r
			}
			if part != notPrompt {
				s.h.prompt[part] = span{start, s.i}
			}
			continue
		}
		if near := folded(key); near != "" {
			s.reject(near, "is written "+strconv.Quote(string(key))+" here: keys are case-sensitive, and two parsers may read this one differently")
		}
		s.loose(key)
	}
}

// folded returns the known key that differs from key in case alone, empty if there
// is none or key is that key.
func folded(key []byte) string {
	for _, list := range [...][]member{members, asideMembers} {
		for i := range list {
			name := list[i].name
			// Folding may change the length: U+017F and U+212A fold to ASCII.
			if len(key) >= len(name) && len(key) <= 3*len(name) && string(key) != name && bytes.EqualFold(key, []byte(name)) {
				return name
			}
		}
	}
	return ""
}

// finish derives what depends on several members.
func (s *scanner) finish() error {
	h := s.h
	if h.Model == "" {
		return sluice.Invalid("model", "is required")
	}
	if h.Op == Messages && !h.HasMaxOutput {
		return sluice.Invalid("max_tokens", "is required")
	}
	if h.Op == Completions && h.HasMaxOutput && h.MaxOutput == 0 && !s.echo {
		return sluice.Invalid("max_tokens", "%s, or come with echo: true to score the prompt", atLeastOne)
	}
	if h.Op == Responses {
		s.finishResponses()
	}
	if h.Op.Generates() {
		h.Choices = max(s.n, s.bestOf, 1) * max(s.prompts, 1)
	}
	if h.Op.Aside() {
		s.finishAside()
	}
	s.finishNeeds()
	h.User = label(s.safetyID, s.user, s.metaID)
	h.MaxParam = maxParam(h)
	s.framing()
	h.Exact = s.exact > 0 && s.sample.text == 0
	h.Text += s.sample.tokens(s.text.Tokens()) + s.exact
	h.base += sluice.Tokens(len(s.b)-s.mediaLen-s.idBytes) + s.exact + sluice.Tokens(s.nodes)
	if h.Exact {
		h.Text, h.base = s.exact, s.exact
	}
	if s.resolution != 0 {
		for i := range h.media {
			h.media[i].detail = s.resolution
		}
	}
	h.Estimate, h.Bound = h.For(h.Model)
	return nil
}

func maxParam(h *Head) string {
	switch {
	case h.Op.Dialect() == Gemini:
		return geminiBound
	case h.Op == Responses:
		return "max_output_tokens"
	case h.maxCompletionTokens.ok() && h.maxCompletionTokensIs >= 0:
		return "max_completion_tokens"
	case h.maxTokens.ok() && h.maxTokensIs >= 0, h.Op != Chat:
		return "max_tokens"
	default:
		return "max_completion_tokens"
	}
}

// label is the first label that is given. A label that is too long, or that a log
// or a database cannot hold as it is, is replaced by its hash, so that it still
// tells users apart.
func label(candidates ...string) string {
	for _, c := range candidates {
		if c == "" {
			continue
		}
		plain := len(c) <= sluice.MaxLabel
		for i := range len(c) {
			plain = plain && c[i] >= 0x20 && c[i] != 0x7f
		}
		if plain {
			return c
		}
		sum := sha256.Sum256([]byte(c))
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	return ""
}

// boolean reads true, false or null (which is false).
func (s *scanner) boolean(param string) bool {
	switch s.ws() {
	case 't', 'f', 'n':
		return s.literal() == 't'
	}
	s.skip()
	s.reject(param, "must be true or false")
	return false
}

// integer reads a whole number that is not negative, written as such; null is -1.
func (s *scanner) integer(param string, most int64) (int64, span) {
	c := s.ws()
	at := s.skip()
	if c == 'n' {
		return -1, at
	}
	text := s.b[at.start:at.end]
	v, err := strconv.ParseInt(string(text[:min(len(text), 24)]), 10, 64)
	switch {
	case c == '-' && err == nil:
		s.reject(param, "must not be negative")
	case errors.Is(err, strconv.ErrRange) && c != '-' && wholeNumber(text), v > most:
		v = most
	case err != nil:
		s.reject(param, "must be a whole number, written without fraction or exponent")
	}
	return max(v, 0), at
}

func wholeNumber(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}

// word reads a string of at most most bytes; null is empty.
func (s *scanner) word(param string, most int) (string, span) {
	switch s.ws() {
	case 'n':
		return "", s.skip()
	case '"':
	default:
		s.reject(param, "must be a string")
		return "", s.skip()
	}
	in, escaped := s.str()
	at := span{in.start - 1, in.end + 1}
	raw := s.b[in.start:in.end]
	switch {
	case s.lexer.err != nil:
		return "", span{}
	case len(raw) > 6*most:
		s.reject(param, "is longer than "+strconv.Itoa(most)+" bytes")
		return "", at
	case escaped:
		raw = appendUnquoted(nil, raw)
	}
	if len(raw) > most {
		s.reject(param, "is longer than "+strconv.Itoa(most)+" bytes")
		return "", at
	}
	return string(raw), at
}
