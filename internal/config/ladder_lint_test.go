package config

import (
	"strings"
	"testing"
)

// Bounds that take nothing from any model of the pool are warned of, be it the file that
// knows the model or the catalogue; of those that do, and where nothing is known, nothing is.
func TestLadderBoundsThatTakeNothing(t *testing.T) {
	lookup := func(_, model string) (Known, bool) {
		if model != "known" {
			return Known{}, false
		}
		return Known{Context: 32_000, MaxOutput: 4096}, true
	}
	for _, tt := range []struct {
		name, ladder, backend string
		want                  []string
	}{
		{"both", "{output: 4096, input: 64k}", "model: known", []string{"ladder.output: no backend of the pool answers with more than 4096 tokens", "ladder.input: no backend of the pool takes more than 32k tokens"}},
		{"the file over the catalogue", "{output: 4k, input: 16k}", "model: known, max_output: 2k", []string{"ladder.output: no backend of the pool answers with more than 2k tokens"}},
		{"not as far as that", "{top: clamp, output: 1k, input: 64k}", "model: known", nil},
		{"of use", "{output: 1k, input: 16k}", "model: known", nil},
		{"nothing known", "{output: 100k, input: 10M}", "model: x", nil},
		{"off", "off", "model: known", nil},
	} {
		s := mustCompile(t, `
providers:
  p: {dialect: openai, base_url: http://10.0.0.1/v1, price: free}
pools:
  main: {ladder: `+tt.ladder+`, backends: [{name: a, provider: p, `+tt.backend+`}]}
models:
  fast: {pools: [main]}
`, CompileOptions{Lookup: lookup})
		var got []string
		for _, w := range s.Warnings {
			if strings.Contains(w.Path, "ladder") {
				got = append(got, w.Error())
			}
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s: got %q", tt.name, got)
			continue
		}
		for i, want := range tt.want {
			if !strings.Contains(strings.Join(got, "\n"), want) {
				t.Errorf("%s: warning %d is none of %q", tt.name, i, got)
			}
		}
	}
}
