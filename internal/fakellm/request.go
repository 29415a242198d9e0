package fakellm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"sluice"
)

// surface is one of the endpoints that take work.
type surface string

const (
	surfaceChat        surface = "chat"
	surfaceCompletions surface = "completions"
	surfaceEmbeddings  surface = "embeddings"
	surfaceResponses   surface = "responses"
	surfaceMessages    surface = "messages"
	surfaceCount       surface = "count_tokens"
	surfaceTokenize    surface = "tokenize"
	surfaceConverse    surface = "converse"

	surfaceGenerate      surface = "generate_content"
	surfaceGenerateCount surface = "gemini_count_tokens"
)

func (s surface) anthropic() bool { return s == surfaceMessages || s == surfaceCount }
func (s surface) gemini() bool    { return s == surfaceGenerate || s == surfaceGenerateCount }

// ask is one request, understood.
type ask struct {
	surface surface
	asked   string // model as the client wrote it
	model   *model
	b       Behaviour
	faults  string // as text, for the book

	stream, usage, continuous bool
	max                       int64 // output bound; 0 for none
	choices                   int
	calls                     []toolCall // tools that it will call; empty for text
	json                      string     // the answer, where it is to be JSON by a schema
	thinking                  bool
	likely                    bool // log probabilities are asked for
	others                    int  // and those of so many tokens at each place
	dimensions                int
	base64                    bool
	items                     int      // embeddings asked for
	container                 string   // that it runs in; empty for none
	background, unstored      bool     // of a response: it is not waited for, it is not stored
	stored                    []obj    // the items of its request, as they are listed
	shelved                   *shelved // where it is stored; nil if it is not

	raw     int64 // o200k tokens of all text, framing and images
	last    string
	told    string // [[…]] instruction
	input   sluice.Tokens
	cached  sluice.Tokens
	written sluice.Tokens
	seed    uint64
}

// body is the union of what the surfaces read; all else is accepted unseen.
type body struct {
	Model         string            `json:"model"`
	Messages      []message         `json:"messages"`
	System        json.RawMessage   `json:"system"`
	Prompt        json.RawMessage   `json:"prompt"`
	Input         json.RawMessage   `json:"input"`
	Stream        bool              `json:"stream"`
	StreamOptions *streamOptions    `json:"stream_options"`
	MaxTokens     *int64            `json:"max_tokens"`
	MaxCompletion *int64            `json:"max_completion_tokens"`
	MaxOutput     *int64            `json:"max_output_tokens"`
	Instructions  json.RawMessage   `json:"instructions"`
	N             *int              `json:"n"`
	Tools         []json.RawMessage `json:"tools"`
	ToolChoice    json.RawMessage   `json:"tool_choice"`
	Parallel      *bool             `json:"parallel_tool_calls"`
	Container     json.RawMessage   `json:"container"`
	Store         *bool             `json:"store"`
	Background    bool              `json:"background"`
	Thinking      *thinking         `json:"thinking"`
	Temperature   json.RawMessage   `json:"temperature"`
	TopP          json.RawMessage   `json:"top_p"`
	TopK          json.RawMessage   `json:"top_k"`
	Dimensions    int               `json:"dimensions"`
	Encoding      string            `json:"encoding_format"`
	Logprobs      json.RawMessage   `json:"logprobs"`
	TopLogprobs   int               `json:"top_logprobs"`
	Include       []string          `json:"include"`
	format
}

type thinking struct {
	Type   string `json:"type"`
	Budget int64  `json:"budget_tokens"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
	Continuous   bool `json:"continuous_usage_stats"`
}

type message struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls json.RawMessage `json:"tool_calls"`
}

// part is one block of a message's content.
type part struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Content json.RawMessage `json:"content"` // of a tool_result
	Input   json.RawMessage `json:"input"`   // of a tool_use
}

// refusal is an error answer before any work.
type refusal struct {
	status int
	kind   string // the dialect's type
	code   string // OpenAI's code
	msg    string
}

func (r *refusal) Error() string { return r.msg }

func invalid(format string, args ...any) *refusal {
	return &refusal{status: http.StatusBadRequest, kind: "invalid_request_error", msg: fmt.Sprintf(format, args...)}
}

// read understands a request body.
func (s *Server) read(sf surface, r *http.Request, raw []byte) (*ask, *refusal) {
	if sf == surfaceConverse {
		in, refused := readConverse(r, raw)
		if refused != nil {
			return nil, refused
		}
		return s.understand(sf, r.Header, in)
	}
	in := new(body)
	if err := json.Unmarshal(raw, in); err != nil {
		return nil, invalid("the body is not valid JSON: %v", err)
	}
	return s.understand(sf, r.Header, in)
}

// understand makes a request of its body.
func (s *Server) understand(sf surface, h http.Header, in *body) (*ask, *refusal) {
	if in.Model == "" {
		return nil, invalid("you must provide a model parameter")
	}
	a := &ask{surface: sf, asked: in.Model, stream: in.Stream, choices: 1, dimensions: in.Dimensions, base64: in.Encoding == "base64"}
	if sf == surfaceResponses {
		a.background, a.unstored = in.Background, in.Store != nil && !*in.Store
		var refused *refusal
		if in.Input, refused = s.shelf.quote(in.Input, credentialOf(h)); refused != nil {
			return a, refused
		}
		if !a.unstored {
			a.stored = storedInput(in.Input, s.mint())
		}
		in.items()
	}
	if o := in.StreamOptions; o != nil {
		a.usage, a.continuous = o.IncludeUsage, o.IncludeUsage && o.Continuous
	}
	if in.MaxTokens != nil {
		a.max = *in.MaxTokens
	}
	if in.MaxCompletion != nil {
		a.max = *in.MaxCompletion
	}
	if in.N != nil {
		a.choices = min(max(*in.N, 1), 128)
	}
	a.thinking = in.Thinking != nil && in.Thinking.Type != "disabled"
	s.weigh(a, in)
	if r := s.check(a, in, h); r != nil {
		return a, r
	}
	if r := a.likelihoods(in); r != nil {
		return a, r
	}
	if r := s.resolve(a); r != nil {
		return a, r
	}
	if r := s.fits(a); r != nil {
		return a, r
	}
	if sf == surfaceMessages {
		if r := s.contain(a, in, h); r != nil {
			return a, r
		}
	}
	if sf == surfaceMessages && a.max == 0 { // warms the cache, generates nothing
		a.b.Tokens = 0
		return a, nil
	}
	if wantsTools(in) && a.b.Tokens < 0 {
		a.calls = callsFor(sf, in)
	}
	if schema := in.schema(); schema != nil && len(a.calls) == 0 && a.b.Tokens < 0 {
		a.json = arguments(schema, 0)
	}
	return a, nil
}

// instruction is what a prompt may tell the fake: [[tokens=130]] or, as after a
// model's '!', [[die-after=3!gap=1s]].
var instruction = regexp.MustCompile(`\[\[([a-z0-9][a-z0-9=!.,:%_-]*)\]\]`)

// check refuses what the real ones refuse.
func (s *Server) check(a *ask, in *body, h http.Header) *refusal {
	if a.surface.anthropic() {
		version := h.Get("anthropic-version")
		switch {
		case version == "":
			return invalid("anthropic-version: header is required")
		case version != "2023-06-01" && version != "2026-10-21":
			return invalid("anthropic-version: %q is not a valid version", version)
		case version == "2026-10-21" && (len(in.Temperature) > 0 || len(in.TopP) > 0 || len(in.TopK) > 0):
			return invalid("temperature, top_p and top_k are not supported by this API version")
		case a.surface == surfaceMessages && in.MaxTokens == nil:
			return invalid("max_tokens: Field required")
		case len(in.Messages) == 0:
			return invalid("messages: at least one message is required")
		}
		return nil
	}
	switch {
	case a.surface == surfaceChat && len(in.Messages) == 0:
		return invalid("messages must have at least one item")
	case a.surface == surfaceResponses && len(in.Messages) == 0:
		return invalid("input must have at least one item")
	case a.surface == surfaceEmbeddings && a.items == 0:
		return invalid("input must not be empty")
	case a.max < 0:
		return invalid("max_tokens must be at least 1")
	}
	return nil
}

// resolve finds the model and how it behaves: the script's rule, then the
// name's faults, then the prompt's.
func (s *Server) resolve(a *ask) *refusal {
	name, faults := splitModel(a.asked)
	m, ok := s.lookup(name)
	if !ok {
		kind := "invalid_request_error"
		if a.surface.anthropic() {
			kind = "not_found_error"
		}
		return &refusal{http.StatusNotFound, kind, "model_not_found", fmt.Sprintf("the model %q does not exist", a.asked)}
	}
	a.model = m
	a.b = plain()
	a.faults = join(s.scripted(name), faults, a.told)
	if err := a.b.apply(a.faults); err != nil {
		return invalid("%v", err)
	}
	a.input = scale(a.raw, m.Ratio)
	pct := a.b.CachedPct
	if pct < 0 {
		pct = m.CachedPct
	}
	a.cached = a.input * sluice.Tokens(pct) / 100
	a.written = (a.input - a.cached) * sluice.Tokens(a.b.CacheWritePc) / 100
	return nil
}

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "!")
}

// fits refuses a context that is too long.
func (s *Server) fits(a *ask) *refusal {
	n := a.model.Context
	if n <= 0 || int64(a.input)+a.max <= n {
		return nil
	}
	if a.surface.anthropic() {
		return invalid("prompt is too long: %d tokens > %d maximum", int64(a.input)+a.max, n)
	}
	r := invalid("This model's maximum context length is %d tokens. However, you requested %d tokens (%d in the messages, %d in the completion).", n, int64(a.input)+a.max, a.input, a.max)
	r.code = "context_length_exceeded"
	return r
}

// output is how many tokens the answer has and whether the bound cut it.
func (a *ask) output() (n int64, cut bool) {
	n = a.model.Output
	if a.b.Tokens >= 0 {
		n = a.b.Tokens
	} else if n > 1 { // by default answers differ in length: half to one and a half times
		n = n/2 + int64(a.seed%uint64(n))
	}
	if a.max > 0 && n > a.max {
		return a.max, true
	}
	return n, false
}
