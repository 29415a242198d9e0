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
	hAuthorization    = "Authorization"
	hContentType      = "Content-Type"
	hLoadFormat       = "Endpoint-Load-Metrics-Format"
	hUserAgent        = "User-Agent"
	hXAPIKey          = "X-Api-Key"
)

// Values are shared by all requests: net/http does not write to them.
var (
	valueJSON     = []string{"application/json"}
	valueStream   = []string{"text/event-stream"}
	valueIdentity = []string{"identity"}
	valueAgent    = []string{"sluice"}
	valueVersion  = []string{AnthropicVersion}
	valueText     = []string{"TEXT"}
)

// header builds what is sent: those of the client's headers that may pass, what
// this package decides, and the target's own, which win.
func (t *Target) header(client http.Header, key string, stream bool) http.Header {
	h := wire.RequestHeader(client)
	h[hContentType] = valueJSON
	h[hAccept] = valueJSON
	if stream {
		h[hAccept] = valueStream
	}
	h[hAcceptEncoding] = valueIdentity
	h[hUserAgent] = valueAgent
	secret := t.secret(key)
	switch t.Dialect {
	case wire.Anthropic:
		if len(h[hAnthropicVersion]) == 0 {
			h[hAnthropicVersion] = valueVersion
		}
		if !secret.Empty() {
			h[hXAPIKey] = []string{secret.Reveal()}
		}
	default:
		if !secret.Empty() {
			h[hAuthorization] = []string{"Bearer " + secret.Reveal()}
		}
	}
	if t.MetricsEvery > 0 {
		h[hLoadFormat] = valueText
	}
	maps.Copy(h, t.Header)
	return h
}
