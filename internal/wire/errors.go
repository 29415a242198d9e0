package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sluice"
)

// ErrorOptions says how a rejection is written.
type ErrorOptions struct {
	Budget402 bool // a spent budget is 402 in the other dialects than Anthropic's too
}

// pace is the largest Retry-After, in seconds: clients obey it blindly, so that it
// paces them and never sends them away for hours.
const pace = 60

// StatusOverloaded is Anthropic's status for an overloaded fleet.
const StatusOverloaded = 529

// StatusClientGone is in the log for a client that left; nobody reads the answer.
const StatusClientGone = 499

// rejection is one row of the table: how a kind of error is told in each dialect.
type rejection struct {
	openaiStatus    int
	openaiType      string
	openaiCode      string // empty takes the reason's word
	anthropicStatus int
	anthropicType   string
	geminiStatus    int
	geminiWord      string
}

var rejections = [sluice.NumKinds]rejection{
	sluice.KindInternal:        {500, "server_error", "", 500, "api_error", 500, "INTERNAL"},
	sluice.KindInvalid:         {400, "invalid_request_error", "", 400, "invalid_request_error", 400, "INVALID_ARGUMENT"},
	sluice.KindTooLarge:        {413, "invalid_request_error", "", 413, "request_too_large", 413, "INVALID_ARGUMENT"},
	sluice.KindUnauthenticated: {401, "invalid_request_error", "invalid_api_key", 401, "authentication_error", 401, "UNAUTHENTICATED"},
	sluice.KindForbidden:       {403, "invalid_request_error", "", 403, "permission_error", 403, "PERMISSION_DENIED"},
	sluice.KindNotFound:        {404, "invalid_request_error", "", 404, "not_found_error", 404, "NOT_FOUND"},
	sluice.KindConflict:        {409, "invalid_request_error", "", 409, "conflict_error", 409, "ABORTED"},
	sluice.KindRateLimited:     {429, "rate_limit_exceeded", "rate_limit_exceeded", 429, "rate_limit_error", 429, "RESOURCE_EXHAUSTED"},
	sluice.KindBudgetExhausted: {429, "insufficient_quota", "insufficient_quota", 402, "billing_error", 429, "RESOURCE_EXHAUSTED"},
	sluice.KindOverloaded:      {503, "server_error", "", StatusOverloaded, "overloaded_error", 503, "UNAVAILABLE"},
	sluice.KindUpstream:        {502, "server_error", "", 502, "api_error", 502, "UNAVAILABLE"},
	sluice.KindTimeout:         {504, "server_error", "", 504, "timeout_error", 504, "DEADLINE_EXCEEDED"},
	sluice.KindCancelled:       {StatusClientGone, "server_error", "", StatusClientGone, "api_error", StatusClientGone, "CANCELLED"},
}

// rejectionOf finds the row for e, refined by what only its reason tells.
func rejectionOf(e *sluice.Error, o ErrorOptions) rejection {
	kind := e.Kind
	if int(kind) >= len(rejections) {
		kind = sluice.KindInternal
	}
	r := rejections[kind]
	if kind == sluice.KindBudgetExhausted && o.Budget402 {
		r.openaiStatus, r.geminiStatus = http.StatusPaymentRequired, http.StatusPaymentRequired
	}
	switch e.Reason {
	case sluice.MethodNotAllowed:
		r.openaiStatus, r.anthropicStatus, r.geminiStatus = http.StatusMethodNotAllowed, http.StatusMethodNotAllowed, http.StatusMethodNotAllowed
		r.anthropicType = "invalid_request_error"
	case sluice.BodyTimeout:
		r.openaiStatus, r.anthropicStatus, r.geminiStatus = http.StatusRequestTimeout, http.StatusRequestTimeout, http.StatusRequestTimeout
	case sluice.IdempotencyMismatch:
		r.openaiStatus, r.anthropicStatus, r.geminiStatus = http.StatusUnprocessableEntity, http.StatusUnprocessableEntity, http.StatusUnprocessableEntity
		r.anthropicType, r.geminiWord = "invalid_request_error", "INVALID_ARGUMENT"
	case sluice.NeverFits:
		if kind != sluice.KindTooLarge {
			r = rejections[sluice.KindInvalid]
		}
	}
	return r
}

// Status is the status that Error gives.
func Status(d Dialect, e *sluice.Error, o ErrorOptions) int {
	r := rejectionOf(e, o)
	switch d {
	case Anthropic:
		return r.anthropicStatus
	case Gemini:
		return r.geminiStatus
	}
	return r.openaiStatus
}

// Error writes e as an answer of the dialect: its status, headers to set and body.
// The body's error object has a member "sluice" with the reason and, where a limit
// refused, the limit and its figures.
func Error(d Dialect, e *sluice.Error, id sluice.RequestID, o ErrorOptions) (status int, h http.Header, body []byte) {
	h = http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("Sluice-Request-Id", string(id))
	if e.Reason != sluice.ReasonNone {
		h.Set("Sluice-Reason", e.Reason.String())
	}
	if d == Anthropic {
		h.Set("Request-Id", string(id))
	}
	retryHeaders(h, e)
	return Status(d, e, o), h, errorBody(d, e, id, o)
}

// NoTime is the sluice.Error.RetryAfter of a refusal that passes when its caller does
// something: no time is told, and that to try again is of no use.
const NoTime time.Duration = -1

// retryHeaders says when to come back, or that it is of no use. A rate that frees
// only after the longest pace is told as not worth an automatic retry: libraries
// that trust retry-after-ms would sleep for all of it.
func retryHeaders(h http.Header, e *sluice.Error) {
	switch {
	case e.Reason == sluice.NeverFits:
		return
	case e.Reason == sluice.HookRefused, e.Reason == sluice.HookFailed && e.Kind != sluice.KindOverloaded: // an answer would be paid for again
		h.Set("X-Should-Retry", "false")
		return
	case e.Kind == sluice.KindBudgetExhausted:
		h.Set("X-Should-Retry", "false")
		return
	case e.Kind != sluice.KindRateLimited && e.Kind != sluice.KindOverloaded && e.Reason != sluice.IdempotencyInFlight:
		return
	}
	if e.RetryAfter == NoTime { // to name one would be to make it up
		h.Set("X-Should-Retry", "false")
		return
	}
	wait := max(e.RetryAfter, 0)
	seconds := min(max(int64((wait+time.Second-1)/time.Second), 1), pace)
	h.Set("Retry-After", strconv.FormatInt(seconds, 10))
	if wait > 0 {
		h.Set("Retry-After-Ms", strconv.FormatInt(retryMillis(wait), 10))
	}
	if wait > pace*time.Second {
		h.Set("X-Should-Retry", "false")
	}
}

// retryMillis rounds up, so that a client that obeys does not come too early.
func retryMillis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// ErrorEvent writes e as the dialect's error event, for a stream that has begun.
// The connection must be aborted after it, since clients take a clean end for
// success.
func ErrorEvent(d Dialect, e *sluice.Error, id sluice.RequestID) []byte {
	name := ""
	if d == Anthropic {
		name = "error"
	}
	return AppendEvent(nil, name, errorBody(d, e, id, ErrorOptions{}))
}

// ResponsesErrorEvent is ErrorEvent of the Responses operation, whose events have names
// and numbers. It says the same twice: as the event's own members, which is how the
// dialect documents it, and as an object, which is what client libraries look for.
func ResponsesErrorEvent(e *sluice.Error, id sluice.RequestID, sequence int64) []byte {
	body := openaiErrorOf(e, id, ErrorOptions{})
	return AppendEvent(nil, "error", encode(struct {
		Type     string      `json:"type"`
		Code     *string     `json:"code"`
		Message  string      `json:"message"`
		Param    *string     `json:"param"`
		Sequence int64       `json:"sequence_number"`
		Error    openaiError `json:"error"`
	}{"error", body.Code, body.Message, body.Param, sequence, body}))
}

// openaiError has all four keys that clients require; param and code may be null.
type openaiError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
	Sluice  *detail `json:"sluice,omitempty"`
}

type anthropicError struct {
	Type    string  `json:"type"`
	Message string  `json:"message"`
	Sluice  *detail `json:"sluice,omitempty"`
}

// detail is what a program may want to know beyond the dialect's own fields.
type detail struct {
	Reason       sluice.Reason `json:"reason"`
	RequestID    string        `json:"request_id"`
	RetryAfterMS int64         `json:"retry_after_ms,omitempty"`
	Limit        *limitDetail  `json:"limit,omitempty"`
}

// limitDetail is the limit that refused. Amounts are in the dimension's unit:
// requests, tokens, or nano-dollars.
type limitDetail struct {
	Scope     sluice.Scope     `json:"scope"`
	ID        string           `json:"id,omitempty"`
	Dimension sluice.Dimension `json:"dimension"`
	Window    sluice.Window    `json:"window"`
	Amount    int64            `json:"amount"`
	Requested int64            `json:"requested"`
	Used      *int64           `json:"used,omitempty"`  // of a limit of the caller's own
	Held      *int64           `json:"held,omitempty"`  // the same
	Reset     string           `json:"reset,omitempty"` // RFC 3339
}

func errorBody(d Dialect, e *sluice.Error, id sluice.RequestID, o ErrorOptions) []byte {
	r := rejectionOf(e, o)
	switch d {
	case Gemini:
		return geminiErrorBody(r, e, id)
	case Anthropic:
		return encode(struct {
			Type      string           `json:"type"`
			Error     anthropicError   `json:"error"`
			RequestID sluice.RequestID `json:"request_id"`
		}{"error", anthropicError{r.anthropicType, message(e, id), detailOf(e, id)}, id})
	}
	return encode(struct {
		Error openaiError `json:"error"`
	}{openaiErrorOf(e, id, o)})
}

func openaiErrorOf(e *sluice.Error, id sluice.RequestID, o ErrorOptions) openaiError {
	r := rejectionOf(e, o)
	body := openaiError{Message: message(e, id), Type: r.openaiType, Sluice: detailOf(e, id)}
	if code := openaiCode(r, e); code != "" {
		body.Code = &code
	}
	if e.Param != "" {
		body.Param = &e.Param
	}
	return body
}

// openaiCode is the provider's own word where it has one, else the reason's.
func openaiCode(r rejection, e *sluice.Error) string {
	switch {
	case r.openaiCode != "":
		return r.openaiCode
	case e.Reason == sluice.ModelNotFound, e.Reason == sluice.ModelNotAllowed:
		return "model_not_found"
	case e.Reason == sluice.InvalidRequest:
		return "invalid_value"
	case e.Reason == sluice.NeverFits && e.Refusal == nil: // no limit, but the model's context
		return "context_length_exceeded"
	}
	return e.Reason.String()
}

func detailOf(e *sluice.Error, id sluice.RequestID) *detail {
	t := &detail{Reason: e.Reason, RequestID: string(id), RetryAfterMS: retryMillis(max(e.RetryAfter, 0))}
	if r := e.Refusal; r != nil {
		t.Limit = &limitDetail{
			Scope: r.Scope, ID: r.ID, Dimension: r.Limit.Dimension, Window: r.Limit.Window, Amount: r.Limit.Amount,
			Requested: r.Requested,
		}
		if !r.Scope.Shared() {
			t.Limit.Used, t.Limit.Held = &r.Used, &r.Held
		}
		if !r.Reset.IsZero() {
			t.Limit.Reset = r.Reset.UTC().Format(time.RFC3339)
		}
	}
	return t
}

// message is the sentence for people: what is wrong, which limit, spent or held,
// and when. An internal error tells its request alone.
func message(e *sluice.Error, id sluice.RequestID) string {
	if e.Kind == sluice.KindInternal {
		return "internal error, request " + string(id)
	}
	var b strings.Builder
	if e.Param != "" {
		b.WriteString(e.Param + " ")
	}
	b.WriteString(e.Msg)
	if e.Hint != "" {
		b.WriteString(": " + e.Hint)
	}
	if r := e.Refusal; r != nil {
		b.WriteString(" (" + limitText(r) + ")")
	}
	switch {
	case e.RetryAfter <= 0:
	case e.Reason == sluice.IdempotencyInFlight:
	case e.Expected:
		b.WriteString("; room is expected in about " + about(e.RetryAfter).String())
	default:
		fmt.Fprintf(&b, "; this request would fit in %s", e.RetryAfter.Round(time.Millisecond))
	}
	return b.String()
}

// about rounds an estimate to what it is worth.
func about(d time.Duration) time.Duration {
	switch {
	case d < time.Second:
		return max(d.Round(10*time.Millisecond), 10*time.Millisecond)
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// limitText tells the limit that refused, what of it is spent and what is held by
// requests in flight.
func limitText(r *sluice.Refusal) string {
	amount := func(n int64) string {
		switch r.Limit.Dimension {
		case sluice.Spend:
			return sluice.Nano(n).String()
		case sluice.RunTime:
			return time.Duration(n).Round(time.Millisecond).String()
		}
		return strconv.FormatInt(n, 10)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "limit of %s", strings.ReplaceAll(r.Scope.String(), "_", " × "))
	if r.ID != "" {
		fmt.Fprintf(&b, " %s", r.ID)
	}
	what, of := strings.ReplaceAll(r.Limit.Dimension.String(), "_", " "), amount(r.Limit.Amount)
	if r.Limit.Dimension == sluice.Concurrency {
		fmt.Fprintf(&b, ": %s of %s", what, of)
	} else {
		fmt.Fprintf(&b, ": %s %s", of, what)
	}
	if r.Limit.Window != sluice.NoWindow {
		fmt.Fprintf(&b, " per %s", r.Limit.Window)
	}
	if r.Limit.Dimension == sluice.RunTime { // passes by itself: nothing holds or needs it
		fmt.Fprintf(&b, "; spent %s", amount(r.Used))
		return b.String()
	}
	if !r.Scope.Shared() { // what others took is not the caller's to know
		fmt.Fprintf(&b, "; spent %s, held by requests in flight %s", amount(r.Used), amount(r.Held))
	}
	fmt.Fprintf(&b, "; needed %s", amount(r.Requested))
	if !r.Reset.IsZero() {
		fmt.Fprintf(&b, "; resets at %s", r.Reset.UTC().Format(time.RFC3339))
	}
	return b.String()
}

// encode writes v on one line. Values are structs of strings and numbers, which
// always encode; bytes that are no UTF-8 become U+FFFD.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("wire: encode an error body: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
