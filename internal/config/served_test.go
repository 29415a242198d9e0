package config

import (
	"testing"

	"sluice/internal/price"
)

// Who says what a model costs that is served in place of the one that was asked for.
func TestServedPrice(t *testing.T) {
	book := map[string]*price.Row{"openai/a": {Version: "a"}, "openai/b": {Version: "b"}}
	lookup := func(provider, model string) (Known, bool) {
		row := book[provider+"/"+model]
		return Known{Price: row}, row != nil
	}
	for _, tt := range []struct{ name, provider, backend, prices, served, want string }{
		{"the catalogue", "", "", "", "b", "b"},
		{"the catalogue, where it knows it", "", "", "", "c", ""},
		{"the file for the model", "", "", "p/b: {input: $1, output: $1}", "b", "config"},
		{"a price of the backend stands", "", ", price: {input: $2, output: $2}", "", "b", ""},
		{"a price of the provider stands", ", price: {input: $2, output: $2}", "", "", "b", ""},
		{"the file for the model, over that of the backend", "", ", price: {input: $2, output: $2}", "p/b: {input: $1, output: $1}", "b", "config"},
	} {
		s := mustCompile(t, `
providers:
  p: {dialect: openai, base_url: https://api.openai.com/v1`+tt.provider+`}
pools:
  main: {backends: [{name: x, provider: p, model: a`+tt.backend+`}]}
models:
  fast: {pools: [main]}
prices: {`+tt.prices+`}
`, CompileOptions{Lookup: lookup})
		got := ""
		if row := s.Targets["x"].Served(tt.served); row != nil {
			if got = row.Version; got != "b" {
				got = "config"
			}
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
