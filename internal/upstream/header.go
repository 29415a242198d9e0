package upstream

import (
	"maps"
	"net/http"

	"sluice/internal/wire"
)

// Header names in canonical form, so that maps are written without
// canonicalising on each request.
const (
	hAccept           = "Accept"
	hAcceptEncoding   = "Accept-Encoding"
	hAnthropicVersion = "Anthropic-Version"
	hAPIKey           = "Api-Key"
	hAuthorization    = "Authorization"
	hContentType      = "Content-Type"
	hLoadFormat       = "Endpoint-Load-Metrics-Format"
	hUserAgent        = "User-Agent"
	hXAPIKey          = "X-Api-Key"
	hXGoogAPIKey      = "X-Goog-Api-Key"
)

// Values are shared by all requests: net/http does not write to them.
var (
	valueJSON     = []string{"application/json"}
	valueAny      = []string{"*/*"}
	valueStream   = []string{eventType}
	valueFrames   = []string{frameType}
	valueIdentity = []string{"identity"}
	valueAgent    = []string{"sluice"}
	valueVersion  = []string{AnthropicVersion}
	valueText     = []string{"TEXT"}
)

// frames reports whether streams come in binary frames: Bedrock's do, but in the
// dialect of OpenAI.
func (t *Target) frames() bool {
	return t.Dialect == wire.Bedrock || t.Service == Bedrock && t.Dialect != wire.OpenAI
}

// header builds what is sent but for the credential: those of the client's headers
// that may pass, what this package decides, and the target's own, which win.
func (t *Target) header(r *Request) http.Header {
	h := wire.RequestHeader(r.Header)
	if h[hContentType] = valueJSON; r.Type != nil {
		h[hContentType] = r.Type
	}
	switch {
	case r.Stream && t.frames():
		h[hAccept] = valueFrames
	case r.Stream:
		h[hAccept] = valueStream
	case r.Any:
		h[hAccept] = valueAny
	default:
		h[hAccept] = valueJSON
	}
	h[hAcceptEncoding] = valueIdentity
	h[hUserAgent] = valueAgent
	if t.Dialect == wire.Anthropic && t.Service != Vertex && t.Service != Bedrock && len(h[hAnthropicVersion]) == 0 {
		h[hAnthropicVersion] = valueVersion
	}
	if t.MetricsEvery > 0 {
		h[hLoadFormat] = valueText
	}
	maps.Copy(h, t.Header)
	return h
}
