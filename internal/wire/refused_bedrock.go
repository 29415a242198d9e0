package wire

import (
	"net/http"
	"strings"

	"sluice"
)

// bedrockExceptions are the exceptions of Converse, by their names without the word
// at their end, and the status that each has where it is an answer of its own. In the
// middle of a stream only the name is told, and means the same.
var bedrockExceptions = []struct {
	name      string
	status    int
	anthropic string // what is like it in that dialect, where models are called in it
}{
	{"throttling", http.StatusTooManyRequests, "rate_limit_error"},
	{"modelnotready", http.StatusTooManyRequests, "overloaded_error"},
	{"servicequotaexceeded", http.StatusBadRequest, "rate_limit_error"},
	{"validation", http.StatusBadRequest, "invalid_request_error"},
	{"modeltimeout", http.StatusRequestTimeout, "timeout_error"},
	{"modelerror", http.StatusFailedDependency, "api_error"},
	{"modelstreamerror", http.StatusFailedDependency, "api_error"},
	{"accessdenied", http.StatusForbidden, "permission_error"},
	{"resourcenotfound", http.StatusNotFound, "not_found_error"},
	{"internalserver", http.StatusInternalServerError, "api_error"},
	{"serviceunavailable", http.StatusServiceUnavailable, "overloaded_error"},
}

// bedrockInAnthropic is an exception as an error of that dialect.
func bedrockInAnthropic(kind string) string {
	for _, x := range bedrockExceptions {
		if x.name == bedrockException(kind) {
			return x.anthropic
		}
	}
	return "api_error"
}

// bedrockException is an exception's name as it stands in the table: it is written
// with a namespace before it, an address after it, or in another case.
func bedrockException(name string) string {
	name, _, _ = strings.Cut(name, ":")
	if i := strings.LastIndexByte(name, '#'); i >= 0 {
		name = name[i+1:]
	}
	return strings.TrimSuffix(strings.ToLower(name), "exception")
}

// bedrockFailure is an exception in the middle of a stream.
func bedrockFailure(kind, message string) *sluice.Error {
	r := Refusal{Status: http.StatusInternalServerError, Type: kind, Message: message}
	for _, x := range bedrockExceptions {
		if x.name == bedrockException(kind) {
			r.Status = x.status
		}
	}
	r.classify()
	r.bedrock()
	e := &sluice.Error{Kind: r.Kind, Reason: r.Reason, Msg: "the upstream failed inside the answer", Err: &upstreamWords{kind, "", message}}
	if message != "" {
		e.Msg += ": " + clip(message, maxWord)
	}
	return e
}

// bedrock corrects what the status alone would mean. The service has statuses of its
// own for failures of the model, and 400 for a quota and for models that are not to
// be had, which are the operator's to mend and not the client's.
func (r *Refusal) bedrock() {
	switch name := bedrockException(r.Type); {
	case name == "throttling":
		r.Overload = false
	case name == "modelnotready":
		r.Overload = true
	case name == "servicequotaexceeded":
		*r = r.as(sluice.UpstreamLimited, sluice.KindOverloaded)
		r.Park = true
	case name == "modeltimeout":
		*r = r.as(sluice.UpstreamTimeout, sluice.KindTimeout)
	case name == "modelerror", name == "modelstreamerror", r.Status == http.StatusFailedDependency:
		*r = r.as(sluice.UpstreamError, sluice.KindUpstream)
	case r.Status == http.StatusForbidden: // keys, signatures, tokens and rights: all of the operator's account
		*r = r.as(sluice.UpstreamRefused, sluice.KindOverloaded)
		r.Park = true
	case r.tells("model identifier is invalid"), r.tells("on-demand throughput"), r.tells("end of its life"), r.Status == http.StatusNotFound:
		*r = r.as(sluice.UpstreamRefused, sluice.KindUpstream)
	case r.tells("input is too long"), r.tells("too many input tokens"), r.tells("too many tokens"):
		r.Context = true
	}
}

// as is a refusal that another attempt may do better, with another meaning.
func (r *Refusal) as(reason sluice.Reason, kind sluice.Kind) Refusal {
	return Refusal{
		Status: r.Status, Reason: reason, Kind: kind, RetryAfter: r.RetryAfter, Retryable: true,
		Type: r.Type, Code: r.Code, Message: r.Message,
	}
}
