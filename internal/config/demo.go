package config

import (
	"fmt"
	"strings"

	"sluice"
)

// DemoTenant is the tenant of the configuration that a gateway without a file
// has.
const DemoTenant sluice.TenantID = "dev"

// DemoOptions is what the configuration of a gateway without a file depends on.
type DemoOptions struct {
	Key  sluice.Secret // credential of the development tenant, from auth.Mint
	Data string        // empty is ./sluice-data
	Env  Env           // where the usual key variables of providers are looked up; nil has none
}

// hosted is a provider that is offered when its usual key variable is set.
type hosted struct {
	name, dialect, baseURL, variable string
	models                           []string
}

var hostedProviders = []hosted{
	{"openai", "openai", "https://api.openai.com/v1", "OPENAI_API_KEY", []string{"gpt-6-luna", "gpt-5.6-luna"}},
	{"anthropic", "anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", []string{"claude-sonnet-5-5", "claude-haiku-4-5"}},
	{"gemini", "gemini", "https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY", []string{"gemini-3.5-flash", "gemini-3.5-flash-lite"}},
	{"mistral", "openai", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", []string{"mistral-small-2603"}},
	{"groq", "openai", "https://api.groq.com/openai/v1", "GROQ_API_KEY", []string{"llama-3.1-8b-instant"}},
	{"deepseek", "openai", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", []string{"deepseek-v4-flash"}},
	{"openrouter", "openai", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", []string{"openai/gpt-6-luna"}},
}

// demoKey is the variable under which the generated file finds the key.
const demoKey = "SLUICE_DEV_KEY"

// DemoFile writes the configuration of a gateway that was started without one:
// models sim-small and sim-large on the simulated fleet in both dialects, every
// hosted provider whose usual key variable is set, and the tenant dev. It is an
// ordinary file, to be read and built upon.
func DemoFile(o DemoOptions) []byte {
	data := o.Data
	if data == "" {
		data = "./sluice-data"
	}
	var providers, pools, models strings.Builder
	for _, h := range hostedProviders {
		if o.Env == nil {
			break
		}
		if key, ok := o.Env(h.variable); !ok || key == "" {
			continue
		}
		fmt.Fprintf(&providers, "  %s: {dialect: %s, base_url: %s, api_key: ${%s}}\n", h.name, h.dialect, h.baseURL, h.variable)
		for i, m := range h.models {
			pool := fmt.Sprintf("%s-%d", h.name, i+1)
			fmt.Fprintf(&pools, "  %s: {backends: [{name: %s, provider: %s, model: %q, capacity: {concurrency: 64}}]}\n", pool, pool, h.name, m)
			fmt.Fprintf(&models, "  %q: {pools: [%s]}\n", m, pool)
		}
	}
	return fmt.Appendf(nil, demoText, data, providers.String(), pools.String(), models.String())
}

// DemoName stands for the file that there is not.
const DemoName = "(no configuration file)"

// Demo is the configuration of DemoFile, parsed. Compile it with the address of
// the simulated fleet.
func Demo(o DemoOptions) (*Config, error) {
	return Parse(DemoName, DemoFile(o), o.Variables)
}

// Variables looks a variable up for DemoFile, in which the development key is one.
func (o DemoOptions) Variables(name string) (string, bool) {
	if name == demoKey {
		return o.Key.Reveal(), true
	}
	if o.Env == nil {
		return "", false
	}
	return o.Env(name)
}

const demoText = `# The configuration of a gateway that was started without one.
listen: 127.0.0.1:8080
admin: {listen: 127.0.0.1:8081}
data: %q
lame_duck: 0s # nothing stands before it that would have to notice
log: {format: text} # for eyes; json is what a configuration file has by default

providers:
  # A fleet simulated inside of the process; the second entry is the same fleet
  # over its Anthropic surface.
  sim: {dialect: openai, engine: vllm, simulated: true}
  sim-anthropic: {dialect: anthropic, engine: vllm, simulated: true}
%s
pools:
  sim-small:
    backends:
      - {name: sim-small-a, provider: sim, model: sim-small, region: local, domain: sim-a, price: {input: $0.10, output: $0.40, cache_read: $0.01}, capacity: {concurrency: 64}, context: 128k, max_output: 8k}
      - {name: sim-small-m, provider: sim-anthropic, model: sim-small, region: local, domain: sim-a, price: {input: $0.10, output: $0.40, cache_read: $0.01}, capacity: {concurrency: 64}, context: 128k, max_output: 8k}
  sim-large:
    backends:
      - {name: sim-large-a, provider: sim, model: sim-large, region: local, domain: sim-b, price: {input: $2.00, output: $8.00, cache_read: $0.20}, capacity: {concurrency: 16}, context: 128k, max_output: 16k}
      - {name: sim-large-m, provider: sim-anthropic, model: sim-large, region: local, domain: sim-b, price: {input: $2.00, output: $8.00, cache_read: $0.20}, capacity: {concurrency: 16}, context: 128k, max_output: 16k}
%s
models:
  sim-small: {pools: [sim-small]}
  sim-large: {pools: [sim-large]}
%s
plans:
  dev:
    class: interactive
    limits: {requests_per_minute: 600, input_tokens_per_minute: 1M, output_tokens_per_minute: 200k, concurrency: 32, spend_per_day: $20}

tenants:
  dev: {plan: dev, projects: {default: {}}, keys: {dev: {secret: ${SLUICE_DEV_KEY}}}}
`
