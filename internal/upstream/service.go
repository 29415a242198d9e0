package upstream

import (
	"net/url"
	"strings"

	"sluice/internal/wire"
)

// Service is the cloud that a backend is reached through, where an address or a
// credential is not what its dialect says.
type Service string

// The services. Azure is its path /openai/v1, Deployments the older one with a dated
// version.
const (
	Direct      Service = ""
	Azure       Service = "azure"
	Deployments Service = "azure_deployments"
	Vertex      Service = "vertex"
	Bedrock     Service = "bedrock"
)

// Call is what is asked of a backend.
type Call struct {
	Op     wire.Operation
	Model  string // the backend's name of it
	Stream bool
}

// Address is how a call is made: the path and query below the base URL, escaped as
// they are sent, and what then stands in another place than the dialect has it.
type Address struct {
	Path string
	Form
	NoModel bool // the path names the model: the body does not
}

// Form is what a service wants of a body.
type Form struct {
	NoStream bool   // the path says that it is a stream: the body does not
	Version  string // the body's anthropic_version, in place of the header
	Betas    bool   // the body's anthropic_beta, likewise
}

// endpoint is one row of the table of addresses. In its paths {model}, {project},
// {location} and {version} are filled in.
type endpoint struct {
	path   string
	stream string // of a stream, where that differs
	Form
}

// place is what an endpoint is looked up by.
type place struct {
	service Service
	op      wire.Operation
}

// vertexVersion and bedrockVersion are the versions of Anthropic's dialect that the
// clouds know.
const (
	vertexVersion  = "vertex-2023-10-16"
	bedrockVersion = "bedrock-2023-05-31"
)

// onVertex is where Vertex has what belongs to a project.
const onVertex = "/projects/{project}/locations/{location}"

// endpoints is every address that is not the operation's own path below the base URL.
var endpoints = map[place]endpoint{
	{Deployments, wire.Chat}:        {path: "/deployments/{model}/chat/completions?api-version={version}"},
	{Deployments, wire.Completions}: {path: "/deployments/{model}/completions?api-version={version}"},
	{Deployments, wire.Embeddings}:  {path: "/deployments/{model}/embeddings?api-version={version}"},
	{Deployments, wire.Responses}:   {path: "/responses?api-version={version}"},

	{Vertex, wire.Chat}: {path: onVertex + "/endpoints/openapi/chat/completions"},
	{Vertex, wire.Messages}: {
		path:   onVertex + "/publishers/anthropic/models/{model}:rawPredict",
		stream: onVertex + "/publishers/anthropic/models/{model}:streamRawPredict",
		Form:   Form{Version: vertexVersion},
	},
	{Vertex, wire.CountTokens}: {path: onVertex + "/publishers/anthropic/models/count-tokens:rawPredict", Form: Form{Version: vertexVersion}},

	{Direct, wire.GenerateContent}: {path: "/models/{model}:generateContent", stream: "/models/{model}:streamGenerateContent?alt=sse"},
	{Direct, wire.CountContent}:    {path: "/models/{model}:countTokens"},
	{Vertex, wire.GenerateContent}: {
		path:   onVertex + "/publishers/google/models/{model}:generateContent",
		stream: onVertex + "/publishers/google/models/{model}:streamGenerateContent?alt=sse",
	},
	{Vertex, wire.CountContent}: {path: onVertex + "/publishers/google/models/{model}:countTokens"},

	{Direct, wire.Converse}: {path: "/model/{model}/converse", stream: "/model/{model}/converse-stream", Form: Form{NoStream: true}},
	{Bedrock, wire.Messages}: {
		path:   "/model/{model}/invoke",
		stream: "/model/{model}/invoke-with-response-stream",
		Form:   Form{NoStream: true, Version: bedrockVersion, Betas: true},
	},
}

// At is how a call is made.
func (t *Target) At(c Call) Address {
	row, ok := endpoints[place{t.Service, c.Op}]
	if !ok {
		row, ok = endpoints[place{Direct, c.Op}]
	}
	if !ok {
		return Address{Path: c.Op.Path()}
	}
	path := row.path
	if c.Stream && row.stream != "" {
		path = row.stream
	}
	return Address{Path: t.filled(path, c.Model), Form: row.Form, NoModel: strings.Contains(row.path, "{model}")}
}

// filled is a path with its names filled in, each of them one segment.
func (t *Target) filled(path, model string) string {
	escape := url.PathEscape
	if t.Service == Bedrock || t.Dialect == wire.Bedrock {
		escape = unreserved
	}
	return strings.NewReplacer("{model}", escape(model), "{project}", url.PathEscape(t.Project), "{location}", url.PathEscape(t.Location),
		"{version}", url.QueryEscape(t.APIVersion)).Replace(path)
}

// unreserved escapes everything but what RFC 3986 leaves unreserved, as the vendor's
// SDKs do: what is signed must be what is sent, byte for byte.
func unreserved(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(s) {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

// BaseOf is the address of a service in one of its places, empty where it has none of
// its own, such as Azure's, which are named for their resource.
func BaseOf(s Service, d wire.Dialect, location string) string {
	switch s {
	case Vertex:
		return "https://" + vertexHost(location) + "/v1"
	case Bedrock:
		base := "https://bedrock-runtime." + location + ".amazonaws.com"
		if d == wire.OpenAI {
			base += "/openai/v1"
		}
		return base
	}
	return ""
}

// vertexHost is the host of a location: global, of a multi-region, or a region's own.
func vertexHost(location string) string {
	switch location {
	case "global":
		return "aiplatform.googleapis.com"
	case "us", "eu":
		return "aiplatform." + location + ".rep.googleapis.com"
	}
	return location + "-aiplatform.googleapis.com"
}
