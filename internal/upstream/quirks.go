package upstream

import (
	"bytes"

	"sluice/internal/wire"
)

// quirks is what providers of the OpenAI dialect want of a request in another way, by
// their name in the built-in catalogue. What they say in another way is read whoever
// says it: see wire.
var quirks = map[string]wire.Quirks{
	// It refuses members that it does not know. Usage comes unasked in its last chunk.
	"mistral": {
		Rename:   []wire.Rename{{From: "max_completion_tokens", To: "max_tokens"}, {From: "seed", To: "random_seed"}},
		Drop:     []string{"stream_options"},
		ShortIDs: true,
	},
}

// QuirksOf is what a provider wants in another way than its dialect says.
func QuirksOf(provider string) wire.Quirks { return quirks[provider] }

// Said is a request's body as the target wants it.
func (t *Target) Said(pieces [][]byte) [][]byte {
	if t.Dialect != wire.OpenAI || t.Quirks.None() {
		return pieces
	}
	return [][]byte{t.Quirks.Apply(bytes.Join(pieces, nil))}
}
