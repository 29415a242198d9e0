package wire

import (
	"strconv"

	"sluice"
)

// figure reads a number of tokens; not ok if it is no number. A fraction is cut
// off and what no int64 holds is the nearest one.
func (l *lexer) figure() (v int64, ok bool) {
	if c := l.ws(); c != '-' && (c < '0' || c > '9') {
		l.skip()
		return 0, false
	}
	at := l.number()
	text := string(l.b[at.start:at.end])
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return v, true
	}
	const most = 1 << 62
	f, _ := strconv.ParseFloat(text, 64)
	return int64(min(max(f, -most), most)), true
}

// openaiFigures is an OpenAI usage object, as told.
type openaiFigures struct {
	prompt, completion, total         int64
	cached, cacheWrite, cacheWrite12h int64
	audioIn, reasoning, audioOut      int64
	searches                          int64
	tier                              string
	billed                            bool // prompt and completion are what is billed, whatever the total says
	cost                              reportedCost
}

// read reads a usage object; false if it is null or no object.
func (f *openaiFigures) read(l *lexer) bool {
	if l.ws() != '{' {
		l.skip()
		return false
	}
	for o := l.object(); l.member(&o); {
		switch key := l.key(&o); string(key) {
		case "prompt_tokens", "input_tokens":
			f.take(l, &f.prompt)
		case "completion_tokens", "output_tokens":
			f.take(l, &f.completion)
		case "total_tokens":
			f.total, _ = l.figure()
		case "prompt_tokens_details", "input_tokens_details":
			f.details(l, true)
		case "completion_tokens_details", "output_tokens_details":
			f.details(l, false)
		default:
			f.odd(l, key)
		}
	}
	return l.err == nil
}

// take reads a figure unless what is billed has been told.
func (f *openaiFigures) take(l *lexer, v *int64) {
	if n, _ := l.figure(); !f.billed {
		*v = n
	}
}

func (f *openaiFigures) details(l *lexer, input bool) {
	for o := l.objectIfAny(); l.member(&o); {
		switch key := string(l.key(&o)); {
		case key == "cached_tokens" && input:
			if v, ok := l.figure(); ok {
				f.cached = v
			}
		case key == "cache_write_tokens" && input:
			f.cacheWrite, _ = l.figure()
		case key == "cache_write_tokens_details" && input:
			f.details(l, true)
		case key == "ttl_12h_tokens" && input:
			f.cacheWrite12h, _ = l.figure()
		case key == "audio_tokens" && input:
			f.audioIn, _ = l.figure()
		case key == "audio_tokens":
			f.audioOut, _ = l.figure()
		case key == "reasoning_tokens" && !input:
			f.reasoning, _ = l.figure()
		default:
			l.skip()
		}
	}
}

// usage makes the figures disjoint. By OpenAI's rule cached, cache_write and audio
// are parts of prompt, and reasoning and audio are parts of completion. Others
// speak the dialect with reasoning, or the cache, beside them: a total that is
// larger than prompt and completion gives them away.
func (f openaiFigures) usage(ceiling sluice.Tokens) sluice.Usage {
	c := clamp{ceiling: int64(ceiling)}
	for _, v := range []*int64{&f.prompt, &f.completion, &f.total, &f.cached, &f.cacheWrite, &f.cacheWrite12h, &f.audioIn, &f.reasoning, &f.audioOut, &f.searches} {
		c.figure(v)
	}
	if f.billed {
		f.total = 0
	}
	input, inside, beside := f.prompt, f.reasoning, int64(0)
	if extra := f.total - f.prompt - f.completion; f.total > 0 && !c.hit {
		switch {
		case extra < 0:
			c.hit = true
		case extra == 0:
		case extra == f.cached+f.cacheWrite && extra != f.reasoning:
			input += extra
		default:
			inside, beside = 0, extra
		}
	}
	var u sluice.Usage
	rest := input
	u.CacheRead = c.part(f.cached, &rest)
	write := c.part(f.cacheWrite, &rest)
	long := min(f.cacheWrite12h, int64(write))
	u.CacheWrite, u.CacheWrite1h = write-sluice.Tokens(long), sluice.Tokens(long)
	audio := min(f.audioIn, rest) // audio that was cached counts as cached
	u.AudioInput = c.part(audio, &rest)
	u.Input = sluice.Tokens(rest)

	rest = f.completion
	u.Reasoning = c.part(inside, &rest) + sluice.Tokens(beside)
	u.AudioOutput = c.part(f.audioOut, &rest)
	u.Output = sluice.Tokens(rest)
	u.WebSearches, u.ServiceTier = f.searches, tier(f.tier)
	u.Anomalous = c.hit
	return u
}

// clamp drops impossible figures and remembers that it met some.
type clamp struct {
	ceiling int64
	hit     bool
}

// figure makes a negative figure, or one beyond the ceiling, count as not told: to
// charge the ceiling would be as wrong, and what was counted is at hand.
func (c *clamp) figure(v *int64) {
	if *v < 0 || *v > c.ceiling {
		*v, c.hit = 0, true
	}
}

// part takes a part out of what is left of a whole.
func (c *clamp) part(v int64, left *int64) sluice.Tokens {
	if v > *left {
		v, c.hit = *left, true
	}
	*left -= v
	return sluice.Tokens(v)
}

// anthropicFigures is an Anthropic usage object, as told so far: later objects are
// cumulative and overwrite, and what they leave out or write null stays.
type anthropicFigures struct {
	input, creation, read      int64
	fiveMinutes, oneHour       int64
	output, thinking, searches int64
	tier                       string
	fast                       bool
	beside                     anthropicBeside
}

// anthropicBeside is what steps of a request took that its figures leave out, such as
// compaction of the conversation: only the list of its iterations has them, and they are
// billed.
type anthropicBeside struct{ input, creation, read, output int64 }

// iterations reads the list, of which the answer's own are in the figures.
func (f *anthropicFigures) iterations(l *lexer) {
	var all anthropicBeside
	for a := l.arrayIfAny(); l.element(&a); {
		var one anthropicBeside
		kind := "message"
		for o := l.objectIfAny(); l.member(&o); {
			switch string(l.key(&o)) {
			case "type":
				kind = l.wordOr(kind)
			case "input_tokens":
				l.figureOr(&one.input)
			case "cache_creation_input_tokens":
				l.figureOr(&one.creation)
			case "cache_read_input_tokens":
				l.figureOr(&one.read)
			case "output_tokens":
				l.figureOr(&one.output)
			default:
				l.skip()
			}
		}
		if kind != "message" {
			all = anthropicBeside{all.input + max(one.input, 0), all.creation + max(one.creation, 0), all.read + max(one.read, 0), all.output + max(one.output, 0)}
		}
	}
	f.beside = all
}

// figureOr reads a figure into v unless it is null.
func (l *lexer) figureOr(v *int64) {
	if n, ok := l.figure(); ok {
		*v = n
	}
}

// merge reads a usage object over what is known; false if it is null.
func (f *anthropicFigures) merge(l *lexer) bool {
	if l.ws() != '{' {
		l.skip()
		return false
	}
	for o := l.object(); l.member(&o); {
		switch string(l.key(&o)) {
		case "input_tokens":
			l.figureOr(&f.input)
		case "cache_creation_input_tokens":
			l.figureOr(&f.creation)
		case "cache_read_input_tokens":
			l.figureOr(&f.read)
		case "output_tokens":
			l.figureOr(&f.output)
		case "cache_creation", "output_tokens_details", "server_tool_use":
			f.mergeDetails(l)
		case "iterations":
			f.iterations(l)
		case "service_tier":
			f.tier = l.wordOr(f.tier)
		case "speed":
			f.fast = l.wordOr("") == "fast"
		default:
			l.skip()
		}
	}
	return l.err == nil
}

func (f *anthropicFigures) mergeDetails(l *lexer) {
	for o := l.objectIfAny(); l.member(&o); {
		switch string(l.key(&o)) {
		case "ephemeral_5m_input_tokens":
			l.figureOr(&f.fiveMinutes)
		case "ephemeral_1h_input_tokens":
			l.figureOr(&f.oneHour)
		case "thinking_tokens":
			l.figureOr(&f.thinking)
		case "web_search_requests":
			l.figureOr(&f.searches)
		default:
			l.skip()
		}
	}
}

// usage makes the figures disjoint: input excludes the cache, output includes
// thinking.
func (f anthropicFigures) usage(ceiling sluice.Tokens) sluice.Usage {
	c := clamp{ceiling: int64(ceiling)}
	f.input, f.creation, f.read, f.output = f.input+f.beside.input, f.creation+f.beside.creation, f.read+f.beside.read, f.output+f.beside.output
	for _, v := range []*int64{&f.input, &f.creation, &f.read, &f.fiveMinutes, &f.oneHour, &f.output, &f.thinking, &f.searches} {
		c.figure(v)
	}
	u := sluice.Usage{
		Input:        sluice.Tokens(f.input),
		CacheRead:    sluice.Tokens(f.read),
		CacheWrite1h: sluice.Tokens(f.oneHour),
		WebSearches:  f.searches,
		ServiceTier:  tier(f.tier),
	}
	// What the split does not name was written at the default time to live.
	if split := f.fiveMinutes + f.oneHour; split > f.creation {
		c.hit = c.hit || f.creation > 0
		u.CacheWrite = sluice.Tokens(f.fiveMinutes)
	} else {
		u.CacheWrite = sluice.Tokens(f.creation - f.oneHour)
	}
	rest := f.output
	u.Reasoning = c.part(f.thinking, &rest)
	u.Output = sluice.Tokens(rest)
	if f.fast {
		u.ServiceTier = "fast"
	}
	u.Anomalous = c.hit
	return u
}

// tier is the provider's word for the service tier, empty for its default.
func tier(s string) string {
	switch s {
	case "default", "standard", "auto", "on_demand":
		return ""
	}
	return s
}

// wordOr reads a short string, or returns def for anything else.
func (l *lexer) wordOr(def string) string {
	if l.ws() != '"' {
		l.skip()
		return def
	}
	return l.scalar(maxWord)
}

// bytesOf reads a string without copying it unless it has escapes; nil for anything
// else.
func (l *lexer) bytesOf() []byte {
	if l.ws() != '"' {
		l.skip()
		return nil
	}
	in, escaped := l.str()
	if raw := l.b[in.start:in.end]; !escaped {
		return raw
	}
	return appendUnquoted(nil, l.b[in.start:in.end])
}

// keepWord reads a string into v, without garbage where v says the same already.
func (l *lexer) keepWord(v *string) {
	if b := l.bytesOf(); len(b) > 0 && string(b) != *v {
		*v = clip(b, maxWord)
	}
}

// maxWord bounds, in bytes, what is kept of an upstream's words.
const maxWord = 256
