package wire

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sluice"
)

// Refusal is what an upstream's error answer means for the attempt, the backend
// and the client.
type Refusal struct {
	Status     int
	Reason     sluice.Reason // UpstreamRefused, UpstreamLimited, UpstreamError, UpstreamTimeout or UpstreamRedirect
	Kind       sluice.Kind   // what the client is told if there is no further attempt and the answer is not passed on
	RetryAfter time.Duration // what the upstream asked for, 0 to MaxRetryAfter; 0 if nothing
	Retryable  bool          // another attempt, here or elsewhere, may succeed
	Park       bool          // the credential or account is of no use until an operator or a new period mends it: quota spent, key refused
	Overload   bool          // the upstream is out of capacity: shrink, do not hammer
	Pass       bool          // the client's own mistake: pass status and body on in the dialect
	Context    bool          // the input exceeds the context length
	Type, Code string        // the upstream's own words, bounded; an integer code as its digits
	Message    string        // bounded; safe to show to the client only where Pass
}

// MaxRetryAfter bounds what an upstream may ask for.
const MaxRetryAfter = time.Hour

// maxMessage bounds, in bytes, what is kept of an upstream's message.
const maxMessage = 1024

// Refused classifies an upstream's answer whose status is not 2xx. body may be
// cut. A Retry-After that is a date is taken relative to the answer's own Date.
func Refused(d Dialect, status int, h http.Header, body []byte) Refusal {
	if d == Gemini {
		return refusedByGoogle(status, h, body)
	}
	r := Refusal{Status: status, RetryAfter: retryAfter(h, time.Now())}
	l := lexer{b: body, lax: true}
	if l.ws() == '{' {
		r.Type, r.Code, r.Message = l.readError()
	}
	if exception := h.Get("X-Amzn-Errortype"); d == Bedrock || exception != "" { // the service speaks other dialects too
		if exception != "" {
			exception, _, _ = strings.Cut(exception, ":") // what follows is an address of the service's own
			r.Type = clip(exception, maxWord)
		}
		r.classify()
		r.bedrock()
		return r
	}
	r.classify()
	return r
}

// classify decides by status, and where one status has several meanings by the
// upstream's words.
func (r *Refusal) classify() {
	r.Kind, r.Reason = sluice.KindUpstream, sluice.UpstreamError
	switch {
	case r.Status >= 300 && r.Status < 400:
		r.Reason = sluice.UpstreamRedirect
	case r.quota():
		r.Reason, r.Park, r.Retryable = sluice.UpstreamLimited, true, true
		r.Kind = sluice.KindOverloaded
	case r.Status == http.StatusTooManyRequests, r.Status == 498:
		r.Reason, r.Retryable = sluice.UpstreamLimited, true
		r.Kind = sluice.KindOverloaded
		r.Overload = r.says("slow_down") || r.says("overloaded_error") || r.says("resource_unavailable") || r.Status == 498
	case r.Status == http.StatusUnauthorized, r.Status == http.StatusForbidden && (r.auth() || r.Type == "" && r.Code == ""):
		r.Reason, r.Park, r.Retryable = sluice.UpstreamRefused, true, true
		r.Kind = sluice.KindOverloaded // as it is for those that come while it is parked
	case r.Status == http.StatusRequestTimeout, r.Status == http.StatusConflict, r.Status == http.StatusTooEarly:
		r.Reason, r.Retryable = sluice.UpstreamRefused, true
	case r.Status == http.StatusGatewayTimeout:
		r.Reason, r.Kind, r.Retryable = sluice.UpstreamTimeout, sluice.KindTimeout, true
	case r.Status == 529, r.Status == http.StatusServiceUnavailable:
		r.Reason, r.Kind, r.Retryable, r.Overload = sluice.UpstreamLimited, sluice.KindOverloaded, true, true
		if r.Status == http.StatusServiceUnavailable {
			r.Reason = sluice.UpstreamError
		}
	case r.Status >= 500, r.Status == http.StatusFailedDependency: // TGI and Bedrock: the model failed
		r.Retryable = true
	case r.Status >= 400:
		r.Reason, r.Pass = sluice.UpstreamRefused, true
		r.Kind = sluice.KindInvalid
		r.Context = r.says("context_length_exceeded") || r.says("exceed_context_size_error") || r.Status == http.StatusRequestEntityTooLarge ||
			r.tells("context length") || r.tells("prompt is too long") || r.tells("context window") || r.tells("maximum context")
	}
}

func (r *Refusal) says(word string) bool { return r.Type == word || r.Code == word }

// tells looks into the message where providers give no code.
func (r *Refusal) tells(phrase string) bool {
	return (r.Status == http.StatusBadRequest || r.Status == http.StatusUnprocessableEntity) && strings.Contains(strings.ToLower(r.Message), phrase)
}

// quota reports that the account's money or allowance is spent, which waiting a
// moment does not mend.
func (r *Refusal) quota() bool {
	if r.Status == http.StatusPaymentRequired {
		return true
	}
	if r.Status != http.StatusTooManyRequests && r.Status != http.StatusForbidden && r.Status != http.StatusBadRequest {
		return false
	}
	for _, w := range [...]string{
		"insufficient_quota", "billing_error", "billing_hard_limit_reached", "credit_balance_exhausted",
		"organization_spend_limit_exceeded", "project_spend_limit_exceeded", "organization_usage_limit_exceeded",
		"enforced_spend_limit_reached", "quota_exceeded",
	} {
		if r.says(w) {
			return true
		}
	}
	return r.tells("credit balance is too low")
}

func (r *Refusal) auth() bool {
	return r.says("authentication_error") || r.says("invalid_api_key") || r.says("account_deactivated") || r.says("permission_error") ||
		r.says("unsupported_country_region_territory")
}

// Err is the refusal as an error for the client, where it is not passed on. It
// does not repeat the upstream's message, which may tell of the operator's
// account; the log has it.
func (r Refusal) Err() *sluice.Error {
	e := &sluice.Error{Kind: r.Kind, Reason: r.Reason, RetryAfter: r.RetryAfter, Expected: true, Msg: "the upstream answered " + strconv.Itoa(r.Status)}
	if r.Message != "" || r.Code != "" || r.Type != "" {
		e.Err = &upstreamWords{r.Type, r.Code, r.Message}
	}
	return e
}

// upstreamWords is an upstream's own error, for logs.
type upstreamWords struct{ kind, code, message string }

func (w *upstreamWords) Error() string {
	return strings.TrimSpace(strings.TrimSpace(w.kind+" "+w.code) + ": " + w.message)
}

// errorObject reads the value of an error member inside a stream or a body.
func (l *lexer) errorObject() *sluice.Error {
	t, c, m := l.errorMember()
	return upstreamError(t, c, m)
}

// upstreamError is an error that came inside an answer whose status said success.
// Its message is the provider's answer to this request and is told, but where it is of
// the operator's account or credential.
func upstreamError(kind, code, message string) *sluice.Error {
	r := Refusal{Type: kind, Code: code, Message: message}
	e := &sluice.Error{Kind: sluice.KindUpstream, Reason: sluice.UpstreamError, Msg: "the upstream failed inside the answer", Err: &upstreamWords{kind, code, message}}
	switch {
	case r.says("overloaded_error"), r.says("overloaded"), r.says("slow_down"), r.says("503"), r.says("529"),
		r.says("rate_limit_error"), r.says("rate_limit_exceeded"):
		e.Kind, e.Reason = sluice.KindOverloaded, sluice.UpstreamLimited
	case r.says("timeout_error"):
		e.Kind, e.Reason = sluice.KindTimeout, sluice.UpstreamTimeout
	case r.says("invalid_request_error"), r.says("BadRequestError"), r.says("context_length_exceeded"), r.says("validation"), r.says("invalid_prompt"):
		e.Kind, e.Reason = sluice.KindInvalid, sluice.UpstreamRefused
	default:
		if r.Status = statusOf(code); r.Status != 0 {
			r.classify()
			e.Kind, e.Reason = r.Kind, r.Reason
		}
	}
	if message != "" && !r.Park {
		e.Msg += ": " + clip(message, maxWord)
	}
	return e
}

// statusOf is the HTTP status that a code is, 0 if it is none: vLLM, SGLang, llama.cpp
// and OpenRouter write the one that an answer would have had.
func statusOf(code string) int {
	n, err := strconv.Atoi(code)
	if err != nil || n < 400 || n > 599 {
		return 0
	}
	return n
}

// readError reads an error body: {"error":{…}}, {"error":"…"}, or the bare object
// that some servers write.
func (l *lexer) readError() (kind, code, message string) {
	for o := l.object(); l.member(&o); {
		switch string(l.key(&o)) {
		case "error":
			if !l.null() {
				kind, code, message = l.errorMember()
			}
		case "type", "__type", "error_type": // the last is TGI's
			if w := l.scalar(maxWord); kind == "" && w != "error" {
				kind = w
			}
		case "code":
			if w := l.scalar(maxWord); code == "" {
				code = w
			}
		case "message", "Message", "detail":
			if w := l.saying(); message == "" {
				message = w
			}
		default:
			l.skip()
		}
	}
	return kind, code, message
}

// errorMember reads the object or the string under "error".
func (l *lexer) errorMember() (kind, code, message string) {
	if l.ws() != '{' {
		return "", "", l.scalar(maxMessage)
	}
	for o := l.object(); l.member(&o); {
		switch string(l.key(&o)) {
		case "type":
			kind = l.scalar(maxWord)
		case "code", "error_code", "http_status_code": // the last is TGI's
			if w := l.scalar(maxWord); w != "" {
				code = w
			}
		case "message":
			message = l.saying()
		case "details":
			if l.ws() == '{' {
				if _, c, _ := l.errorMember(); c != "" {
					code = c
				}
			} else {
				l.skip()
			}
		default:
			l.skip()
		}
	}
	return kind, code, message
}

// scalar reads a string, or a number as its digits; anything else is empty.
func (l *lexer) scalar(most int) string {
	switch c := l.ws(); {
	case c == '"':
		in, escaped := l.str()
		raw := l.b[in.start:in.end]
		if escaped {
			raw = appendUnquoted(nil, raw[:wholeEscapes(raw, min(len(raw), 8*most))])
		}
		return clip(raw, most)
	case c == '-' || c >= '0' && c <= '9':
		at := l.number()
		return clip(l.b[at.start:at.end], most)
	}
	l.skip()
	return ""
}

// retryAfter reads retry-after-ms, or Retry-After in seconds or as a date. What is
// negative or no number is nothing, and nothing is beyond MaxRetryAfter.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return boundedWait(ms / 1000)
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return boundedWait(s)
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return boundedWait(at.Sub(now).Seconds())
}

func boundedWait(seconds float64) time.Duration {
	if math.IsNaN(seconds) || seconds <= 0 {
		return 0
	}
	return time.Duration(min(seconds, MaxRetryAfter.Seconds()) * float64(time.Second))
}
