package wire

import (
	"bytes"
	"net/http"
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
	"Idempotency-Key", "Openai-Organization", "Openai-Project", "Anthropic-Workspace-Id", "From", "X-Http-Method-Override",
}

// requestDeniedPrefix are families of such headers. X-Stainless describes the
// client's library, machine and retries towards the gateway, not the gateway. X-Goog
// and X-Vertex choose keys, accounts and prices of the operator's, and X-Goog-FieldMask
// what an answer tells: it could leave the usage out.
var requestDeniedPrefix = []string{
	"Sluice-", "X-Forwarded-", "X-Stainless-", "Sec-", "Cf-", "Proxy-", "Access-Control-", "X-Amz", "X-Envoy-", "X-Ms-",
	"X-Goog-", "X-Vertex-",
}

// secretWords mark a header that some proxy or company uses for a credential or an
// identity.
var secretWords = bytes.Fields([]byte("auth token secret cookie session jwt credential password assertion oidc api-key apikey client-cert identity -ip csrf"))

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

// plainHeaders are those that clients and providers send most. Nothing above is
// said of them, so that they need not be compared with all of it.
var plainHeaders = set([]string{
	"Accept", "Accept-Language", "User-Agent", "Anthropic-Version", "Anthropic-Beta", "Openai-Beta", "X-Title",
	"Cache-Control", "X-Request-Id", "Request-Id", "Openai-Processing-Ms", "Openai-Version", "Openai-Model",
})

// filter is which headers stay behind.
type filter struct {
	names    map[string]bool
	prefixes []string
}

var (
	requestFilter = filter{set(hopByHop, requestDenied), requestDeniedPrefix}
	answerFilter  = filter{set(hopByHop, answerDenied), answerDeniedPrefix}
)

func set(lists ...[]string) map[string]bool {
	m := map[string]bool{}
	for _, list := range lists {
		for _, name := range list {
			m[name] = true
		}
	}
	return m
}

// drops reports a header that stays behind.
func (f *filter) drops(name string) bool { return f.names[name] || hasPrefix(name, f.prefixes) }

// RequestHeader returns the headers of a client's request that go upstream. All
// pass but those that identify the client, its credentials or the operator's
// accounts. The transport adds credentials, Content-Type and its own. Values are
// the client's own slices.
func RequestHeader(client http.Header) http.Header {
	h := make(http.Header, min(len(client), 8)) // few of them pass; a map of up to eight is one allocation
	connection := client["Connection"]
	for name, values := range client {
		name = http.CanonicalHeaderKey(name)
		if !plainHeaders[name] && (requestFilter.drops(name) || !hasPrefix(name, providerPrefix) && secretive(name)) {
			continue
		}
		if !listed(connection, name) {
			h[name] = values
		}
	}
	return h
}

// AnswerHeader sets in dst the headers of an upstream's answer that go back to the
// client. Values are the answer's own slices.
func AnswerHeader(dst, upstream http.Header) {
	connection := upstream["Connection"]
	for name, values := range upstream {
		name = http.CanonicalHeaderKey(name)
		if (plainHeaders[name] || !answerFilter.drops(name)) && !listed(connection, name) {
			dst[name] = values
		}
	}
}

// ProviderRequestID is the provider's own id of a request, empty if it told none.
func ProviderRequestID(upstream http.Header) string {
	for _, name := range [...]string{"X-Request-Id", "Request-Id", "Apim-Request-Id", "X-Amzn-Requestid", "X-Generation-Id"} {
		if v := upstream.Get(name); v != "" {
			return clip(v, maxWord)
		}
	}
	return ""
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
	var buf [64]byte
	lower := append(buf[:0], name...)
	for i, c := range lower {
		if 'A' <= c && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	for _, w := range secretWords {
		if bytes.Contains(lower, w) {
			return true
		}
	}
	return false
}

// listed reports a header that the sender declared to be of this connection alone.
func listed(connection []string, name string) bool {
	for _, v := range connection {
		for f := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(f), name) {
				return true
			}
		}
	}
	return false
}
