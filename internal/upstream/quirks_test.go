package upstream

import (
	"bytes"
	"strings"
	"testing"

	"sluice/internal/wire"
)

// The bound on the output reaches each provider by a name that it knows, whoever wrote it:
// the client, in either name, or the gateway.
func TestBoundsReachProviders(t *testing.T) {
	for provider, want := range map[string]string{
		"deepseek": "max_tokens", "mistral": "max_tokens", "together": "max_tokens", "perplexity": "max_tokens",
		"openai": "max_completion_tokens", "groq": "max_completion_tokens", "xai": "max_completion_tokens", "cohere": "max_completion_tokens",
		"fireworks": "max_completion_tokens", "openrouter": "max_completion_tokens", "cerebras": "max_completion_tokens",
	} {
		target := Target{Dialect: wire.OpenAI, Quirks: QuirksOf(provider)}
		for _, body := range []string{
			`{"model":"m","max_completion_tokens":7,"messages":[]}`, `{"model":"m","messages":[]}`, `{"model":"m","max_completion_tokens":900,"messages":[]}`,
		} {
			h, err := wire.Scan(wire.Chat, []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			got := string(bytes.Join(target.Said(h.Pieces([]byte(body), wire.Edit{MaxOutput: 7})), nil))
			if !strings.Contains(got, `"`+want+`":7`) || strings.Count(got, "max_") != 1 {
				t.Errorf("%s: %s becomes %s, want %s", provider, body, got, want)
			}
		}
	}
}

// What translated bodies have that a provider refuses is said in its way.
func TestProvidersThatRefuseUnknownMembers(t *testing.T) {
	const body = `{"model":"m","messages":[{"role":"assistant","reasoning_content":"t","content":"a"}],"user":"u","service_tier":"default"}`
	for provider, want := range map[string]string{
		"mistral":  `{"model":"m","messages":[{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}],"closed":true},{"type":"text","text":"a"}]}],"metadata":{"user":"u"}}`,
		"groq":     strings.Replace(body, "reasoning_content", "reasoning", 1),
		"cerebras": strings.Replace(body, "reasoning_content", "reasoning", 1),
		"deepseek": body,
	} {
		target := Target{Dialect: wire.OpenAI, Quirks: QuirksOf(provider)}
		if got := string(bytes.Join(target.Said([][]byte{[]byte(body)}), nil)); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", provider, got, want)
		}
	}
}
