package catalog_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/catalog"
	"sluice/internal/price"
)

var now = time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)

func load(t testing.TB) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLoad(t *testing.T) {
	c := load(t)
	if got, want := c.Version(), "catalog-2026-10-28"; got != want {
		t.Errorf("version: got %q, want %q", got, want)
	}
	if got, want := c.Len(), 1276; got != want {
		t.Errorf("entries: got %d, want %d", got, want)
	}
}

// TestPrices checks rows by hand against the sources.
func TestPrices(t *testing.T) {
	const m = sluice.Price(1_000_000) // a thousandth of a dollar per million
	c := load(t)
	tests := []struct {
		provider, model string
		want            price.Rates
	}{
		{"openai", "gpt-5.6-luna", price.Rates{Input: 200 * m, CacheRead: 20 * m, CacheWrite: 250 * m, Output: 1200 * m}},
		{"openai", "gpt-4o", price.Rates{Input: 2500 * m, CacheRead: 1250 * m, Output: 10_000 * m}},
		{"openai", "gpt-5", price.Rates{Input: 1250 * m, CacheRead: 125 * m, Output: 10_000 * m}},
		{"openai", "gpt-6-sol", price.Rates{Input: 2000 * m, CacheRead: 200 * m, CacheWrite: 2500 * m, Output: 10_000 * m}},
		{"openai", "text-embedding-3-small", price.Rates{Input: 20 * m, Output: price.Free}},
		{"anthropic", "claude-opus-4-6", price.Rates{Input: 5000 * m, CacheRead: 500 * m, CacheWrite: 6250 * m, CacheWrite1h: 10_000 * m, Output: 25_000 * m}},
		{"anthropic", "claude-sonnet-5", price.Rates{Input: 2000 * m, CacheRead: 200 * m, CacheWrite: 2500 * m, CacheWrite1h: 4000 * m, Output: 10_000 * m}},
		{"anthropic", "claude-haiku-4-5-20251001", price.Rates{Input: 1000 * m, CacheRead: 100 * m, CacheWrite: 1250 * m, CacheWrite1h: 2000 * m, Output: 5000 * m}},
		{"gemini", "gemini-2.5-flash", price.Rates{Input: 300 * m, CacheRead: 30 * m, AudioInput: 1000 * m, Output: 2500 * m}},
		{"xai", "grok-4.5", price.Rates{Input: 2000 * m, CacheRead: 300 * m, Output: 6000 * m}},
		{"gemini", "gemini-1.5-flash", price.Rates{Input: 75 * m, CacheRead: 18_750_000, Output: 300 * m}},
		{"openrouter", "google/gemma-4-31b-it:free", price.Rates{Input: price.Free, Output: price.Free}},
	}
	for _, tt := range tests {
		e, ok := c.Lookup(tt.provider, tt.model, now)
		if !ok || e.Price == nil {
			t.Errorf("%s/%s: not found or not priced", tt.provider, tt.model)
			continue
		}
		if diff := cmp.Diff(tt.want, e.Price.Rates); diff != "" {
			t.Errorf("%s/%s (-want +got):\n%s", tt.provider, tt.model, diff)
		}
		if e.Price.Version != c.Version() {
			t.Errorf("%s/%s: price of version %q", tt.provider, tt.model, e.Price.Version)
		}
	}
}

func TestTiersAndVariants(t *testing.T) {
	c := load(t)
	e, _ := c.Lookup("openai", "gpt-5.6-luna", now)
	want := []price.Tier{{AboveInput: 272_000, Rates: price.Rates{Input: 400_000_000, CacheRead: 40_000_000, CacheWrite: 500_000_000, Output: 1_800_000_000}}}
	if diff := cmp.Diff(want, e.Price.Tiers); diff != "" {
		t.Errorf("tiers (-want +got):\n%s", diff)
	}
	if got, want := e.Price.RatesFor("priority", 1).Input, sluice.Price(400_000_000); got != want {
		t.Errorf("priority input: got %v, want %v", got, want)
	}
	if got, want := e.Price.WebSearch, sluice.Price(10_000_000_000_000); got != want { // $10 per thousand
		t.Errorf("web search: got %v, want %v", got, want)
	}
	if e.Context != 1_050_000 || e.MaxOutput != 128_000 || e.Reasoning != catalog.Yes {
		t.Errorf("facts: got %+v", e)
	}
	if e, _ := c.Lookup("anthropic", "claude-opus-4-5", now); e.CacheMinimum != 4096 || e.MaxOutput != 64_000 {
		t.Errorf("corrections: got %+v", e)
	}
	if e, _ := c.Lookup("perplexity", "sonar", now); e.Price.Request != 12_000_000_000_000 {
		t.Errorf("price of a request: got %v", e.Price.Request)
	}
}

func TestNames(t *testing.T) {
	tests := []struct {
		name, provider, model, want string // want is provider/model, empty if not found
	}{
		{"its own name", "openai", "gpt-4o", "openai/gpt-4o"},
		{"case", "OpenAI", "GPT-4o", "openai/gpt-4o"},
		{"an alias", "openai", "gpt-4o-2024-08-06", "openai/gpt-4o"},
		{"a snapshot with a price of its own", "openai", "gpt-4o-2024-05-13", "openai/gpt-4o-2024-05-13"},
		{"a snapshot that is not listed", "openai", "gpt-4o-2025-05-13", ""},
		{"a date where one may follow", "openai", "gpt-6-sol-2026-10-01", "openai/gpt-6-sol"},
		{"a date after a row without rules", "anthropic", "claude-sonnet-5-5-20261101", "anthropic/claude-sonnet-5-5"},
		{"no date", "openai", "gpt-6-sol-turbo", ""},
		{"a prefix", "anthropic", "claude-opus-4-6-thinking", "anthropic/claude-opus-4-6"},
		{"the longer prefix", "openai", "gpt-4o-mini-realtime-preview-2024", "openai/gpt-4o-mini-realtime-preview"},
		{"a prefix and a digit", "gemini", "gemini-3.5-flash-001", "gemini/gemini-3.5-flash"},
		{"a prefix but for one word", "gemini", "gemini-2.5-pro-preview-05-06", "gemini/gemini-2.5-pro"},
		{"that word", "gemini", "gemini-2.5-pro-experimental-tts", ""},
		{"part of an ARN", "bedrock", "us.amazon.nova-lite-v1:0", "bedrock/amazon.nova-lite-v1:0"},
		{"another spelling", "google", "gemini-2.5-flash", "gemini/gemini-2.5-flash"},
		{"unknown model", "openai", "gpt-99", ""},
		{"unknown provider, one answer", "acct-7", "claude-sonnet-5-5", "anthropic/claude-sonnet-5-5"},
		{"unknown provider, no pattern", "acct-7", "claude-opus-4-6-thinking", ""},
		{"unknown provider, prices differ", "acct-7", "gpt-oss-120b", ""},
		{"unknown provider and model", "acct-7", "llama-at-home", ""},
		{"empty", "", "", ""},
	}
	c := load(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, ok := c.Lookup(tt.provider, tt.model, now)
			got := ""
			if ok {
				got = e.Provider + "/" + e.Model
			}
			if got != tt.want {
				t.Errorf("%s/%s: got %q, want %q", tt.provider, tt.model, got, tt.want)
			}
		})
	}
}

func TestUntrustedIsUnpriced(t *testing.T) {
	c := load(t)
	for _, m := range []string{"openrouter moonshotai/kimi-k3", "openrouter z-ai/glm-5.3", "openai gpt-image-1", "openai gpt-4o-audio-preview"} {
		provider, model, _ := strings.Cut(m, " ")
		e, ok := c.Lookup(provider, model, now)
		if !ok || e.Price != nil || e.Unpriced == "" {
			t.Errorf("%s: got %v, price %v, reason %q", m, ok, e.Price, e.Unpriced)
		}
	}
}

func TestWith(t *testing.T) {
	march := time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)
	c := load(t)
	over, err := c.With("contract-7", []price.Row{
		{Provider: "openai", Model: "gpt-4o", Rates: price.Rates{Input: 1, Output: 2}, From: march},
		{Provider: "openai", Model: "gpt-5", Rates: price.Rates{Input: 3, Output: 4}},
		{Provider: "gpus", Model: "llama", Rates: price.Rates{Input: price.Free, Output: price.Free}},
	})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, provider, model string
		at                    time.Time
		want                  sluice.Price
	}{
		{"before its start", "openai", "gpt-4o", now, 2_500_000_000},
		{"at its start", "openai", "gpt-4o", march, 1},
		{"from always", "openai", "gpt-5", now, 3},
		{"no alias goes with it", "openai", "gpt-5-2025-08-07", now, 1_250_000_000},
		{"a model of one's own", "gpus", "llama", now, price.Free},
		{"that account's other models", "gpus", "text-embedding-3-small", now, 20_000_000},
		{"no other account", "acct-7", "llama", now, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got sluice.Price
			if e, ok := over.Lookup(tt.provider, tt.model, tt.at); ok {
				got = e.Price.Rates.Input
			}
			if got != tt.want {
				t.Errorf("input price: got %v, want %v", got, tt.want)
			}
		})
	}
	if e, _ := over.Lookup("openai", "gpt-5", now); e.Context != 400_000 || e.Price.Version != "contract-7" {
		t.Errorf("facts and version: got %+v, %q", e, e.Price.Version)
	}
	if got, want := over.Version(), "catalog-2026-10-28+contract-7"; got != want {
		t.Errorf("version: got %q, want %q", got, want)
	}
	if e, _ := c.Lookup("openai", "gpt-5", now); e.Price.Rates.Input != 1_250_000_000 {
		t.Error("the catalogue beneath has changed")
	}
	if _, err := c.With("x", []price.Row{{Provider: "a", Model: "b"}}); err == nil {
		t.Error("a row without prices was taken")
	}
}

func TestParseRefuses(t *testing.T) {
	const head = `{"version":"v","sources":{}}` + "\n"
	tests := []struct{ name, file, want string }{
		{"nothing", "", "header"},
		{"no version", `{"sources":{}}`, "no version"},
		{"unknown field", head + `{"provider":"p","model":"m","cost":1}`, "line 2"},
		{"twice", head + strings.Repeat(`{"provider":"p","model":"m","unpriced":"x"}`+"\n", 2), "line 3: p/m is there twice"},
		{"too fine a price", head + `{"provider":"p","model":"m","rates":{"in":"0.0000000001","out":"1"}}`, "nine decimals"},
		{"no output", head + `{"provider":"p","model":"m","rates":{"in":"1"}}`, "output price is missing"},
		{"alias of two", head + `{"provider":"p","model":"m","match":["=z"],"unpriced":"x"}` + `{"provider":"p","model":"n","match":["=z"],"unpriced":"x"}`, `alias "z"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := catalog.Parse([]byte(tt.file))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestLicencesAreShipped(t *testing.T) {
	for name, holder := range map[string]string{"catwalk.txt": "Charmbracelet", "genai-prices.txt": "Pydantic"} {
		b, err := os.ReadFile(filepath.Join("licenses", name))
		if err != nil || !strings.Contains(string(b), holder) || !strings.Contains(string(b), "Permission is hereby granted") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		load(b)
	}
}
