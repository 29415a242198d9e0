package wire

import (
	"bytes"

	"sluice"
)

// What providers of the OpenAI dialect say otherwise than OpenAI does. All of it is
// told apart by the members themselves, so that a provider that nobody has a row for
// is read as well.

// oddChunk is what such a chunk was found to hold.
type oddChunk struct {
	failed bool // it says that it is an error, without an error object
	words  struct{ kind, code, message string }
	timed  bool // llama.cpp's timings
	timings
}

// timings are llama.cpp's: what was read from the cache, what was prefilled and what
// was generated.
type timings struct{ cache, prompt, predicted int64 }

// oddMember reads a member of a chunk or of an answer that OpenAI does not have there.
func (t *Tap) oddMember(l *lexer, c *openaiChunk, key []byte) {
	switch string(key) {
	case "x_groq":
		t.groq(l, c)
	case "timings":
		c.odd.read(l)
	case "object": // Mistral, vLLM before 0.10 and SGLang: an error that stands bare
		if l.ws() == '"' {
			in, _ := l.str()
			c.odd.failed = c.odd.failed || string(l.b[in.start:in.end]) == "error"
		} else {
			l.skip()
		}
	case "message":
		c.odd.words.message = l.saying()
	case "type":
		c.odd.words.kind = l.scalar(maxWord)
	case "code":
		c.odd.words.code = l.scalar(maxWord)
	default:
		l.skip()
	}
}

// ended takes a finish reason: of some providers it says that the answer broke off.
func (o *oddChunk) ended(word string) {
	switch word {
	case "error": // Mistral, OpenRouter
		o.failed = true
	case "insufficient_system_resource": // DeepSeek
		o.failed, o.words.kind, o.words.code = true, "overloaded", word
	}
}

// failure is why a chunk or an answer is an error, nil if it is none.
func (c *openaiChunk) failure() *sluice.Error {
	if c.err == nil && c.odd.failed {
		return upstreamError(c.odd.words.kind, c.odd.words.code, c.odd.words.message)
	}
	return c.err
}

// groq reads Groq's own member: usage stands there, or why the stream stopped.
func (t *Tap) groq(l *lexer, c *openaiChunk) {
	for o := l.objectIfAny(); l.member(&o); {
		switch string(l.key(&o)) {
		case "usage":
			var f openaiFigures
			if f.read(l) {
				t.figures(&f)
				t.final = true
			}
		case "error":
			if !l.null() {
				c.err = l.errorObject()
			}
		default:
			l.skip()
		}
	}
}

// figures takes a usage object.
func (t *Tap) figures(f *openaiFigures) {
	t.report(f.usage(t.o.Ceiling))
	if f.cost.told {
		t.cost = f.cost
	}
}

func (o *oddChunk) read(l *lexer) {
	if l.ws() != '{' {
		l.skip()
		return
	}
	o.timed = true
	for m := l.object(); l.member(&m); {
		switch string(l.key(&m)) {
		case "cache_n":
			o.cache, _ = l.figure()
		case "prompt_n":
			o.prompt, _ = l.figure()
		case "predicted_n":
			o.predicted, _ = l.figure()
		default:
			l.skip()
		}
	}
}

// timed takes llama.cpp's timings where no usage stands beside them: what was read
// from the cache and what was prefilled are the prompt.
func (t *Tap) timed(c *openaiChunk) {
	if !c.odd.timed || c.usage {
		return
	}
	n := c.odd.timings
	t.figures(&openaiFigures{prompt: n.cache + n.prompt, cached: n.cache, completion: n.predicted})
}

// odd reads a member of a usage object that OpenAI does not have there.
func (f *openaiFigures) odd(l *lexer, key []byte) {
	least := func(v *int64) { // where the same is not told in its own place
		if n, ok := l.figure(); ok && *v == 0 {
			*v = n
		}
	}
	switch string(key) {
	case "prompt_cache_hit_tokens", "cached_tokens": // DeepSeek; Together, Moonshot
		least(&f.cached)
	case "reasoning_tokens": // SGLang
		least(&f.reasoning)
	case "billed_units": // Cohere: what is billed, which is not what was read
		f.bill(l)
	case "num_sources_used": // xAI: each is billed as a search
		f.searches, _ = l.figure()
	case "service_tier": // Mistral
		f.tier = l.wordOr("")
	default:
		if !f.cost.read(l, string(key)) {
			l.skip()
		}
	}
}

// bill reads Cohere's billed units.
func (f *openaiFigures) bill(l *lexer) {
	for o := l.objectIfAny(); l.member(&o); {
		switch string(l.key(&o)) {
		case "input_tokens":
			f.prompt, _ = l.figure()
			f.billed = true
		case "output_tokens":
			f.completion, _ = l.figure()
			f.billed = true
		default:
			l.skip()
		}
	}
}

// bareError reads the error that a server writes into a stream of events without
// making it one: a line of JSON, as Ollama does, or a field of its own, as llama.cpp
// did.
func (t *Tap) bareError(e Event) *sluice.Error {
	raw, field := bytes.CutPrefix(bytes.TrimSpace(e.Raw), []byte("error: "))
	if len(raw) == 0 || raw[0] != '{' || t.op.Dialect() != OpenAI {
		return nil
	}
	l := lexer{b: raw, lax: true}
	var c openaiChunk
	t.openaiObject(&l, &c)
	l.end()
	if l.err != nil {
		return nil
	}
	c.odd.failed = c.odd.failed || field
	return c.failure()
}
