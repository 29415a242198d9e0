package config

import (
	"cmp"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"sluice/internal/route"
)

// Capabilities is what a provider's models, or a backend's, can do, where that is
// not what they are taken for. The words are those of route.Needs.
type Capabilities struct {
	Stream        *bool      `json:"stream,omitempty" jsonschema:"answers in events"`
	Image         *bool      `json:"image,omitempty" jsonschema:"images in the input"`
	Audio         *bool      `json:"audio,omitempty" jsonschema:"audio in the input"`
	Video         *bool      `json:"video,omitempty" jsonschema:"video in the input"`
	File          *bool      `json:"file,omitempty" jsonschema:"documents in the input"`
	MediaURL      *bool      `json:"media_url,omitempty" jsonschema:"images, audio, video and documents by URL, which the backend fetches itself, from its own network; false for an engine"`
	AudioOutput   *bool      `json:"audio_output,omitempty" jsonschema:"audio in the answer"`
	Tools         *bool      `json:"tools,omitempty" jsonschema:"tools that the client runs"`
	ParallelTools *bool      `json:"parallel_tools,omitempty" jsonschema:"several tool calls in one answer; asked for by parallel_tool_calls: true"`
	ServerTools   *bool      `json:"server_tools,omitempty" jsonschema:"tools that the provider runs, such as a web search"`
	JSONObject    *bool      `json:"json_object,omitempty" jsonschema:"some JSON object as the answer"`
	JSONSchema    *bool      `json:"json_schema,omitempty" jsonschema:"JSON by a schema, or by another grammar, as the answer"`
	Reasoning     *bool      `json:"reasoning,omitempty" jsonschema:"a reasoning effort, or a budget to think with"`
	Logprobs      *bool      `json:"logprobs,omitempty" jsonschema:"log probabilities"`
	N             *bool      `json:"n,omitempty" jsonschema:"several answers to one request"`
	Cache         *bool      `json:"cache,omitempty" jsonschema:"marks of what to cache; an engine that caches by itself has it"`
	CountTokens   *bool      `json:"count_tokens,omitempty" jsonschema:"tokens counted without an answer"`
	Chat          *bool      `json:"chat,omitempty" jsonschema:"chat completions, of the OpenAI dialect"`
	Responses     *bool      `json:"responses,omitempty" jsonschema:"responses, of the OpenAI dialect: without it such requests are put into chat completions. OpenAI and Azure are taken to have it, others not"`
	Refuses       []Sampling `json:"refuses,omitempty" jsonschema:"sampling parameters that it does not take, and an empty list if it takes all: temperature, top_p, top_k, min_p, presence_penalty, frequency_penalty, repetition_penalty, seed, logit_bias, stop"`
}

// Sampling is the name of a sampling parameter.
type Sampling string

func (Sampling) words() []string { return route.Sampling.Names() }

// apply is what is lacking once c has been said.
func (c *Capabilities) apply(lacks route.Needs) route.Needs {
	if c == nil {
		return lacks
	}
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		can, ok := v.Field(i).Interface().(*bool)
		if !ok || can == nil {
			continue
		}
		need, _ := route.NeedNamed(fieldName(v.Type().Field(i)))
		if lacks |= need; *can {
			lacks &^= need
		}
	}
	if c.Refuses != nil {
		lacks &^= route.Sampling
		for _, p := range c.Refuses {
			need, _ := route.NeedNamed(string(p))
			lacks |= need
		}
	}
	if lacks.Has(route.NeedTools) {
		lacks |= route.NeedParallel
	}
	return lacks
}

// lacks is what a backend cannot do: what it says itself, what its provider says,
// what the catalogue knows of the model, what its engine is taken for.
func (b *builder) lacks(x *Backend, p *Provider, known Known) route.Needs {
	lacks := known.Lacks
	if p.Engine != "" {
		lacks = route.EngineLacks(string(p.Engine))
	}
	if p.Service == ServiceBedrock { // it counts in a way of its own
		lacks |= route.NeedCount
	}
	if p.Dialect == "openai" && !hasResponses(x, p) {
		lacks |= route.NeedResponses
	}
	return x.Capabilities.apply(p.Capabilities.apply(lacks))
}

// hasResponses reports whether a backend of the OpenAI dialect is known to serve
// responses natively. Of engines the newer versions do, by way of chat or in part, and
// nothing tells which version runs.
func hasResponses(x *Backend, p *Provider) bool {
	u, err := url.Parse(cmp.Or(x.BaseURL, p.BaseURL))
	if err != nil || p.Engine != "" {
		return false
	}
	host := u.Hostname()
	return p.Simulated || host == "api.openai.com" || strings.HasSuffix(host, ".openai.azure.com") || strings.HasSuffix(host, ".services.ai.azure.com")
}

// capabilities reports what contradicts itself.
func (v *validator) capabilities(path string, c *Capabilities) {
	if c == nil {
		return
	}
	if c.Tools != nil && !*c.Tools && c.ParallelTools != nil && *c.ParallelTools {
		v.fail(join(path, "parallel_tools"), "remove it, or write tools: true", "what has no tools cannot call several at a time")
	}
	for i, name := range c.Refuses {
		if slices.Index(c.Refuses, name) < i {
			v.fail(index(join(path, "refuses"), i), "remove it", "%q stands twice", name)
		}
	}
}

// Residency is where requests may go: by where and whose a backend is, and by the label
// that they carry.
type Residency struct {
	Regions   []string `json:"regions,omitempty" jsonschema:"regions that requests may go to, retries and fallbacks too: a backend that names no region is in none. It narrows what stands above; all if left out"`
	Providers []string `json:"providers,omitempty" jsonschema:"providers that requests may go to, likewise"`
	Risk      Risk     `json:"risk,omitempty" jsonschema:"least risk label of each request, low, normal or high: it goes to no backend and to no pool of a model whose max_risk is lower. It raises what stands above; none if left out"`
}

// residency reports regions that no backend is in and providers that there are not.
func (v *validator) residency(path string, r Residency) {
	for i, name := range r.Regions {
		if regions := v.c.regions(); !slices.Contains(regions, name) {
			fix := suggest(name, regions)
			if len(regions) == 0 {
				fix = "name the region of each backend: region: " + strings.ToLower(name)
			}
			v.fail(index(join(path, "regions"), i), fix, "no backend is in region %q", name)
		}
	}
	for i, name := range r.Providers {
		if v.c.Providers[name] == nil {
			v.fail(index(join(path, "providers"), i), suggest(name, sorted(v.c.Providers)), "provider %q is not declared", name)
		}
	}
}

// regions are those that backends are in, sorted.
func (c *Config) regions() []string {
	seen := make(map[string]bool)
	for _, p := range c.Pools {
		for i := range p.Backends {
			if r := p.Backends[i].Region; r != "" {
				seen[r] = true
			}
		}
	}
	return sorted(seen)
}
