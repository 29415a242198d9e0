package wire

import (
	"net/http"
	"slices"
	"strings"
)

// hopByHop are the headers of one connection (RFC 9110 §7.6.1).
var hopByHop = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Proxy-Authenticate", "Proxy-Authorization",
}

// requestDenied are client headers that do not go upstream: what identifies the
// client or the path it came on, what chooses an account of the operator's, what
// the transport sets itself, and the gateway's own.
var requestDenied = []string{
	"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Cookie", "Host", "Accept-Encoding", "Content-Length", "Content-Encoding",
	"Content-Type", "Expect", "Origin", "Referer", "Forwarded", "Via", "X-Real-Ip", "True-Client-Ip", "Traceparent", "Tracestate", "Baggage",
	"Idempotency-Key", "Openai-Organization", "Openai-Project", "Anthropic-Workspace-Id", "From",
}

// requestDeniedPrefix are families of such headers. X-Stainless describes the
// client's library, machine and retries towards the gateway, not the gateway.
var requestDeniedPrefix = []string{"Sluice-", "X-Forwarded-", "X-Stainless-", "Sec-", "Cf-", "Proxy-", "Access-Control-", "X-Amz", "X-Envoy-", "X-Ms-"}

// secretWords mark a header that some proxy or company uses for a credential or an
// identity.
var secretWords = []string{"auth", "token", "secret", "cookie", "session", "jwt", "credential", "password", "assertion", "oidc", "api-key", "apikey", "client-cert", "identity", "-ip", "csrf"}

// providerPrefix are headers that providers define, which pass in spite of the
// words in them.
var providerPrefix = []string{"Anthropic-", "Openai-"}

// answerDenied are upstream headers that do not go back: what the gateway says
// itself, what names the operator's account, and what is of one connection.
var answerDenied = []string{
	"Content-Length", "Content-Encoding", "Date", "Server", "Set-Cookie", "Alt-Svc", "Strict-Transport-Security", "Retry-After", "Retry-After-Ms",
	"X-Should-Retry", "Openai-Organization", "Openai-Project", "Anthropic-Organization-Id", "Via", "Report-To", "Nel", "Location", "Age", "Www-Authenticate",
}

var answerDeniedPrefix = []string{"Sluice-", "X-Ratelimit-", "Anthropic-Ratelimit-", "Anthropic-Priority-", "Access-Control-", "Cf-", "X-Envoy-"}

// RequestHeader returns the headers of a client's request that go upstream. All
// pass but those that identify the client, its credentials or the operator's
// accounts. The transport adds credentials, Content-Type and its own.
func RequestHeader(client http.Header) http.Header {
	h := make(http.Header, len(client))
	for name, values := range client {
		name = http.CanonicalHeaderKey(name)
		if denied(name, requestDenied, requestDeniedPrefix) || listedInConnection(client, name) {
			continue
		}
		if !hasPrefix(name, providerPrefix) && secretive(name) {
			continue
		}
		h[name] = append([]string(nil), values...)
	}
	return h
}

// AnswerHeader sets in dst the headers of an upstream's answer that go back to the
// client.
func AnswerHeader(dst, upstream http.Header) {
	for name, values := range upstream {
		name = http.CanonicalHeaderKey(name)
		if denied(name, answerDenied, answerDeniedPrefix) || listedInConnection(upstream, name) {
			continue
		}
		dst[name] = append([]string(nil), values...)
	}
}

// ProviderRequestID is the provider's own id of a request, empty if it told none.
func ProviderRequestID(upstream http.Header) string {
	for _, name := range [...]string{"X-Request-Id", "Request-Id", "Apim-Request-Id", "X-Generation-Id"} {
		if v := upstream.Get(name); v != "" {
			return clip(v, maxWord)
		}
	}
	return ""
}

func denied(name string, names, prefixes []string) bool {
	for _, list := range [...][]string{hopByHop, names} {
		if slices.Contains(list, name) {
			return true
		}
	}
	return hasPrefix(name, prefixes)
}

func hasPrefix(name string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

func secretive(name string) bool {
	lower := strings.ToLower(name)
	for _, w := range secretWords {
		if strings.Contains(lower, w) {
			return true
		}
	}
	return false
}

// listedInConnection reports a header that the sender declared to be of this
// connection alone.
func listedInConnection(h http.Header, name string) bool {
	for _, v := range h["Connection"] {
		for f := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(f), name) {
				return true
			}
		}
	}
	return false
}
