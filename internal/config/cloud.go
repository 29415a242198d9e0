package config

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"sluice/internal/upstream"
	"sluice/internal/wire"
)

// Service is the cloud that a provider's models are reached through.
type Service string

// The services.
const (
	ServiceAzure   Service = "azure"
	ServiceVertex  Service = "vertex"
	ServiceBedrock Service = "bedrock"
)

func (Service) words() []string {
	return []string{string(ServiceAzure), string(ServiceVertex), string(ServiceBedrock)}
}

// placed reports whether the service has an address of its own in each location.
func (s Service) placed() bool { return s == ServiceVertex || s == ServiceBedrock }

// speaks is the dialects in which each service is called.
var speaks = map[Service][]Dialect{
	ServiceAzure:   {"openai", "anthropic"},
	ServiceVertex:  {"openai", "anthropic", "gemini"},
	ServiceBedrock: {"openai", "anthropic", "bedrock"},
}

// service is how a provider is addressed.
func (p *Provider) service() upstream.Service {
	if p.Service == ServiceAzure && p.APIVersion != "" {
		return upstream.Deployments
	}
	return upstream.Service(p.Service)
}

// base is the address that a service has of its own in the backend's location.
func (x *Backend) base(p *Provider) string {
	if x.location(p) == "" {
		return ""
	}
	return upstream.BaseOf(p.service(), wire.Dialect(p.Dialect), x.location(p))
}

// location is where its service has it.
func (x *Backend) location(p *Provider) string { return cmp.Or(x.Location, p.Location) }

// hosts are the catalogue's names of providers by the host of their API.
var hosts = map[string]string{
	"api.openai.com": "openai", "api.anthropic.com": "anthropic", "openrouter.ai": "openrouter", "api.mistral.ai": "mistral",
	"api.groq.com": "groq", "api.deepseek.com": "deepseek", "api.together.xyz": "together", "api.together.ai": "together", "api.fireworks.ai": "fireworks",
	"api.x.ai": "xai", "api.cohere.ai": "cohere", "api.cohere.com": "cohere", "generativelanguage.googleapis.com": "gemini", "api.perplexity.ai": "perplexity", "api.cerebras.ai": "cerebras",
}

// known is the catalogue's name of the backend's provider: what it is declared to be
// there, else what its host or its service is; empty if none says.
func (x *Backend) known(p *Provider) string {
	if p.Catalog != "" {
		return p.Catalog
	}
	host := ""
	if u, err := url.Parse(cmp.Or(x.BaseURL, p.BaseURL)); err == nil {
		host = u.Hostname()
	}
	return cmp.Or(hosts[host], string(p.Service))
}

// service reports what is wrong with how a provider is reached through a cloud.
func (v *validator) service(path string, p *Provider) {
	if p.Dialect == "bedrock" && p.Engine != "" {
		v.fail(join(path, "engine"), "write the dialect that the engine speaks, or remove engine", "no engine of your own speaks Bedrock's dialect")
	}
	if p.Service == "" {
		v.noService(path, p)
		return
	}
	if p.Dialect != "" && !slices.Contains(speaks[p.Service], p.Dialect) {
		v.fail(join(path, "dialect"), "write one of "+dialects(speaks[p.Service]), "%s is not called in the dialect %s", p.Service, p.Dialect)
	}
	if p.Simulated || p.Engine != "" {
		v.fail(join(path, "service"), "remove service, or the other", "is for a cloud: the provider is simulated or an engine of your own")
	}
	if p.Service != ServiceAzure && p.APIVersion != "" {
		v.fail(join(path, "api_version"), "remove it", "is for azure alone")
	}
	if p.Service != ServiceVertex && p.Project != "" {
		v.fail(join(path, "project"), "remove it", "is for vertex alone")
	}
	switch p.Service {
	case ServiceAzure:
		v.azure(path, p)
	case ServiceVertex:
		if p.Project == "" {
			v.fail(path, "add project: the id of the project that is billed", "vertex needs a project")
		}
	case ServiceBedrock:
	}
	if p.Service == ServiceAzure && p.Location != "" {
		v.fail(join(path, "location"), "remove it: the address names the resource", "is for vertex and bedrock")
	} else if p.Location != "" {
		v.location(join(path, "location"), p.Location)
	}
	v.login(path, p.Service, p.Login, p.APIKey, p.APIKeys)
}

func (v *validator) noService(path string, p *Provider) {
	for _, f := range []struct {
		name  string
		given bool
		of    string
	}{
		{"project", p.Project != "", "vertex"},
		{"location", p.Location != "", "vertex, or bedrock"},
		{"api_version", p.APIVersion != "", "azure"},
		{"login", p.Login != nil, "azure, vertex or bedrock"},
	} {
		if f.given {
			v.fail(join(path, f.name), "add service: "+f.of+", or remove it", "means something at a service alone")
		}
	}
	for i := range p.APIKeys {
		if p.APIKeys[i].Login != nil {
			v.fail(join(index(join(path, "api_keys"), i), "login"), "add service: azure, vertex or bedrock, or write a key", "means something at a service alone")
		}
	}
}

// azure reports an address that does not fit the paths that are put below it.
func (v *validator) azure(path string, p *Provider) {
	if p.BaseURL == "" || p.Dialect != "openai" {
		return
	}
	at, base := join(path, "base_url"), strings.TrimSuffix(p.BaseURL, "/")
	switch v1 := strings.HasSuffix(base, "/v1"); {
	case p.APIVersion != "" && v1:
		v.fail(at, "end it at /openai, or leave api_version out", "with api_version each deployment has a path of its own, which does not begin with /openai/v1")
	case p.APIVersion == "" && !v1:
		v.fail(at, "end it at /openai/v1, or add the api_version that the resource is called with", "without api_version the path /openai/v1 is called")
	}
}

// location reports a location that would change the host of an address.
func (v *validator) location(path, s string) {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		v.fail(path, "write one such as us-east-1, europe-west4 or global", "%q is not a location", s)
	}
}

// serviced reports a backend of a service whose place is unknown.
func (v *validator) serviced(path string, b *Backend, p *Provider) {
	if p.Service == "" {
		if b.Location != "" {
			v.fail(join(path, "location"), "add service: vertex, or bedrock, at the provider, or remove it", "means something at a service alone")
		}
		if b.Login != nil {
			v.fail(join(path, "login"), "add service: at the provider, or write api_key", "means something at a service alone")
		}
		return
	}
	if b.Location != "" {
		v.location(join(path, "location"), b.Location)
	}
	if p.Service != ServiceAzure && b.location(p) == "" {
		v.fail(path, "add location: here or at the provider, such as us-east-1 or global", "%s needs a location", p.Service)
	}
	v.login(path, p.Service, b.Login, b.APIKey, b.APIKeys)
}

func dialects(list []Dialect) string {
	words := make([]string, len(list))
	for i, d := range list {
		words[i] = string(d)
	}
	return strings.Join(words, ", ")
}
