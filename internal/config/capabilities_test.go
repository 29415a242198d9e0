package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/route"
)

// What a backend can do is what it says, else its provider, else its engine or the
// catalogue, else all of its dialect.
func TestCapabilities(t *testing.T) {
	lookup := func(_, model string) (Known, bool) {
		if model != "known" {
			return Known{}, false
		}
		return Known{Lacks: route.NeedImage | route.NeedTemperature}, true
	}
	for _, tt := range []struct {
		name, provider, backend string
		lacks                   route.Needs
	}{
		{"hosted and unknown", "", "model: x", 0},
		{"OpenAI has responses", "", "model: x, base_url: https://api.openai.com/v1", route.NeedResponses},
		{"so has Azure", "", "model: x, base_url: https://r.openai.azure.com/openai/v1", route.NeedResponses},
		{"others where it is said", "", "model: x, capabilities: {responses: true}", route.NeedResponses},
		{"and may have them alone", "", "model: x, capabilities: {responses: true, chat: false}", route.NeedResponses | route.NeedChat},
		{"of the catalogue", "", "model: known", route.NeedImage | route.NeedTemperature},
		{"the provider over the catalogue", ", capabilities: {image: true, tools: false}", "model: known", route.NeedTemperature | route.NeedTools | route.NeedParallel},
		{"the backend over the provider", ", capabilities: {image: true, tools: false}", "model: known, capabilities: {tools: true, parallel_tools: true, refuses: []}", 0},
		{"refused parameters replace those that are known", "", "model: known, capabilities: {refuses: [seed, stop]}", route.NeedImage | route.NeedSeed | route.NeedStop},
		{"an engine", ", engine: vllm", "model: known", route.EngineLacks("vllm")},
		{"an engine with a vision model", ", engine: vllm", "model: x, capabilities: {image: true}", route.EngineLacks("vllm") &^ route.NeedImage},
		{"every word", "", "model: x, capabilities: {stream: false, image: false, audio: false, video: false, file: false, media_url: false, audio_output: false, tools: false, parallel_tools: false, server_tools: false, json_object: false, json_schema: false, reasoning: false, logprobs: false, n: false, cache: false, count_tokens: false, chat: false, responses: false, refuses: [temperature, top_p, top_k, min_p, presence_penalty, frequency_penalty, repetition_penalty, seed, logit_bias, stop]}", route.AllNeeds &^ route.NeedResponses},
	} {
		s := mustCompile(t, `
providers:
  p: {dialect: openai, base_url: http://10.0.0.1/v1, price: free`+tt.provider+`}
pools:
  main: {backends: [{name: a, provider: p, `+tt.backend+`}]}
models:
  fast: {pools: [main]}
`, CompileOptions{Lookup: lookup})
		if got, want := s.Table.Pools["main"].Backends[0].Lacks, tt.lacks^route.NeedResponses; got != want { // nobody is taken to have it
			t.Errorf("%s: lacks %v, want %v", tt.name, got, want)
		}
	}
}

// Conditions and shares of a model's pools, as they are compiled.
func TestTermsCompile(t *testing.T) {
	s := mustCompile(t, `
providers:
  p: {dialect: openai, base_url: http://10.0.0.1/v1, price: free}
pools:
  a: {backends: [{name: a, provider: p, model: x}]}
  b: {backends: [{name: b, provider: p, model: x}]}
  c: {backends: [{name: c, provider: p, model: x}]}
models:
  plain: {pools: [a, {pool: b}]}
  fast: {pools: [{pool: a, weight: 3}, {pool: b, weight: 1}, {pool: c, canary: 5%, tenants: [acme], classes: [batch]}], sticky: user, max_spend: $0.05}
`, CompileOptions{})
	if m := s.Table.Models["plain"]; m.Terms != nil || m.Sticky != route.ByRequest || m.MaxSpend != 0 {
		t.Errorf("got %+v", m)
	}
	want := &route.Model{
		ID: "fast", Pools: []sluice.PoolID{"a", "b", "c"}, Sticky: route.ByUser, MaxSpend: sluice.Dollar / 20,
		Terms: map[sluice.PoolID]*route.Terms{"a": {Weight: 3}, "b": {Weight: 1}, "c": {Canary: 500, Tenants: []sluice.TenantID{"acme"}, Classes: []sluice.Class{sluice.Batch}}},
	}
	if diff := cmp.Diff(want, s.Table.Models["fast"]); diff != "" {
		t.Error(diff)
	}
	if err := s.Table.Validate(); err != nil {
		t.Error(err)
	}
}
