package wire

import "net/http"

// RequestHeader returns the headers of a client's request that go upstream.
func RequestHeader(client http.Header) http.Header { return http.Header{} }

// AnswerHeader sets in dst the headers of an upstream's answer that go back to the
// client.
func AnswerHeader(dst, upstream http.Header) {}

// ProviderRequestID is the provider's own id of a request, empty if it told none.
func ProviderRequestID(upstream http.Header) string { return "" }
