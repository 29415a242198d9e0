package cache

import (
	"bytes"
	"slices"

	"sluice"
	"sluice/internal/exchange"
)

// unfit is why a request is neither kept nor looked for, in one word; empty if it may be.
func unfit(r *exchange.Request) string {
	h := r.Head
	switch {
	case h.Op.Counts() || h.Op.Form() || h.Op.Stored() || r.Free:
		return "operation"
	case len(h.Refs) > 0 || h.Store || h.Background:
		return "state" // what a provider keeps is not in the body, or changes with the request
	case h.ServerTools > 0:
		return "provider_tools" // what they find or do is not in the body
	case h.Unbounded:
		return "external" // nor is what it refers to
	case len(r.Body) > MaxBody:
		return "too_large"
	}
	return ""
}

// finished are the words of providers for an answer that came to an end of its own, or to
// the bound that its client set.
var finished = []string{
	"stop", "length", "tool_calls", "function_call", "eos", "done", // OpenAI and engines
	"end_turn", "max_tokens", "stop_sequence", "tool_use", // Anthropic, Bedrock
	"STOP", "MAX_TOKENS", // Gemini
	"completed", "max_output_tokens", // Responses
}

// worthless is why the answer of a run is not kept, in one word; empty if it is.
func worthless(res *exchange.Result, body []byte) string {
	h := res.Head
	switch {
	case res.Err != nil:
		return "failed"
	case h == nil || h.Status != 200:
		return "status"
	case h.Lesser:
		return "tier" // less than was asked for, or by a smaller model
	case res.Final.Reason != sluice.ReasonNone || h.Grant.Clamped:
		return "budget" // it was cut, or asked for with a smaller bound than the client's
	case res.Altered:
		return "hook"
	case res.Usage.Anomalous:
		return "anomalous"
	case res.Final.Finish != "" && !slices.Contains(finished, res.Final.Finish):
		return "finish"
	case refuses(body):
		return "refused"
	}
	return ""
}

// refuses reports whether an answer, or any of its choices, says that it was refused or
// filtered, where its dialect says so. What a model writes is inside of JSON strings, in
// which a quote never stands bare, so that it cannot say it; what it writes as a tool's
// arguments in an object can, and is not kept then.
func refuses(body []byte) bool {
	for _, name := range [...]string{`"refusal"`, `"content_filter"`, `"blockReason"`} {
		for rest := body; ; {
			i := bytes.Index(rest, []byte(name))
			if i < 0 {
				break
			}
			rest = rest[i+len(name):]
			if !silent(name, rest) {
				return true
			}
		}
	}
	for _, name := range [...]string{`"finish_reason"`, `"finishReason"`, `"stop_reason"`, `"stopReason"`} {
		for rest := body; ; {
			i := bytes.Index(rest, []byte(name))
			if i < 0 {
				break
			}
			rest = rest[i+len(name):]
			if word, ok := valueOf(rest); ok && word != "" && !slices.Contains(finished, word) {
				return true
			}
		}
	}
	return false
}

// silent reports whether a name that was just read is that of a member which says nothing:
// null, or an empty text. One that stands as a value says what it is.
func silent(name string, rest []byte) bool {
	word, ok := valueOf(rest)
	return ok && word == "" && name != `"blockReason"`
}

// valueOf is the text that a member has whose name was just read: empty for null and for
// an empty text. It is false where no member of that kind follows.
func valueOf(rest []byte) (string, bool) {
	rest = bytes.TrimLeft(rest, " \t\r\n")
	if len(rest) == 0 || rest[0] != ':' {
		return "", false
	}
	rest = bytes.TrimLeft(rest[1:], " \t\r\n")
	switch {
	case bytes.HasPrefix(rest, []byte("null")):
		return "", true
	case len(rest) > 0 && rest[0] == '"':
		if end := bytes.IndexByte(rest[1:], '"'); end >= 0 {
			return string(rest[1 : 1+end]), true
		}
	}
	return "", false
}
