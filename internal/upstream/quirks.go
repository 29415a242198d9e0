package upstream

import (
	"bytes"

	"sluice/internal/wire"
)

// quirks is what providers of the OpenAI dialect want of a request in another way, by
// their name in the built-in catalogue. What they say in another way is read whoever
// says it: see wire.
var quirks = map[string]wire.Quirks{
	// It refuses members that it does not know. Usage comes unasked in its last chunk, and
	// it has one service tier.
	"mistral": {
		Rename:    []wire.Rename{bound[0], {From: "seed", To: "random_seed"}},
		Drop:      []wire.Dropped{{Name: "stream_options"}, {Name: "service_tier", Values: []string{`"auto"`, `"default"`}}},
		Labels:    []string{"user", "safety_identifier"},
		Reasoning: wire.ReasoningPart,
		ShortIDs:  true,
	},
	// These refuse reasoning_content, and have the same as reasoning.
	"groq":     {Reasoning: wire.ReasoningMember},
	"cerebras": {Reasoning: wire.ReasoningMember},
	// These document max_tokens alone. DeepSeek ignores the other name without a word, which
	// leaves an output without its bound.
	"deepseek":   {Rename: bound},
	"perplexity": {Rename: bound},
	"together":   {Rename: bound},
}

// bound is the bound on the output where a provider knows its older name alone.
var bound = []wire.Rename{{From: "max_completion_tokens", To: "max_tokens"}}

// QuirksOf is what a provider wants in another way than its dialect says.
func QuirksOf(provider string) wire.Quirks { return quirks[provider] }

// Said is a request's body as the target wants it.
func (t *Target) Said(pieces [][]byte) [][]byte {
	if t.Dialect != wire.OpenAI || t.Quirks.None() {
		return pieces
	}
	return [][]byte{t.Quirks.Apply(bytes.Join(pieces, nil))}
}
