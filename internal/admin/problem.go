package admin

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"sluice"
)

// Problem is an error of the API: RFC 9457 with the words of the gateway.
type Problem struct {
	Title  string          `json:"title" doc:"The status in words"`
	Status int             `json:"status" doc:"The HTTP status"`
	Detail string          `json:"detail" doc:"What is wrong, in one sentence"`
	Kind   string          `json:"kind" doc:"What can be done about it: invalid, not_found, conflict, …"`
	Reason string          `json:"reason,omitempty" doc:"The gateway's word for why"`
	Hint   string          `json:"hint,omitempty" doc:"How to mend it"`
	Param  string          `json:"param,omitempty" doc:"The field, parameter or header at fault"`
	Errors []ProblemDetail `json:"errors,omitempty" doc:"The single mistakes, where there are several"`

	retryAfter int // seconds
}

// ProblemDetail is one of several mistakes.
type ProblemDetail struct {
	Message  string `json:"message" doc:"What is wrong"`
	Location string `json:"location,omitempty" doc:"Where: a path in the request, or file:line:column and path"`
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	return h
}

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return problemType }

const problemType = "application/problem+json"

// statusOf maps a kind to the status of this API. 422 is what the schema
// validation answers too, so that every refused value looks alike.
func statusOf(k sluice.Kind) int {
	switch k {
	case sluice.KindInvalid:
		return http.StatusUnprocessableEntity
	case sluice.KindTooLarge:
		return http.StatusRequestEntityTooLarge
	case sluice.KindUnauthenticated:
		return http.StatusUnauthorized
	case sluice.KindForbidden:
		return http.StatusForbidden
	case sluice.KindNotFound:
		return http.StatusNotFound
	case sluice.KindConflict:
		return http.StatusConflict
	case sluice.KindOverloaded:
		return http.StatusServiceUnavailable
	case sluice.KindTimeout:
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}

// problemOf makes a Problem of any error. The text of one that is not a
// *sluice.Error stays in the log.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	e := sluice.AsError(err)
	status := statusOf(e.Kind)
	return &Problem{
		Title: http.StatusText(status), Status: status, Detail: e.Msg, Kind: e.Kind.String(), Reason: e.Reason.String(),
		Hint: e.Hint, Param: e.Param, retryAfter: int((e.RetryAfter + 999_999_999) / 1_000_000_000),
	}
}

// plainProblem rewrites the library's own error (a failed validation, a body
// that is no JSON) in the shape of this API. Values that were sent are dropped:
// one of them might be a credential.
func plainProblem(_ huma.Context, _ string, v any) (any, error) {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	p := &Problem{Title: m.Title, Status: m.Status, Detail: m.Detail, Kind: kindOf(m.Status), Reason: sluice.InvalidRequest.String()}
	if m.Status >= 500 {
		p.Reason = sluice.InternalError.String()
	}
	if m.Status == http.StatusUnsupportedMediaType { // curl -d calls every body a form
		p.Param, p.Detail, p.Hint = "content-type", "the header does not say that the body is JSON, which it must be here", "send Content-Type: application/json; with curl, -H 'Content-Type: application/json' beside -d"
		return p, nil
	}
	for _, d := range m.Errors {
		p.Errors = append(p.Errors, ProblemDetail{Message: d.Message, Location: d.Location})
	}
	if len(p.Errors) > 0 {
		p.Param = p.Errors[0].Location
		p.Detail = p.Errors[0].Message
	}
	return p, nil
}

func kindOf(status int) string {
	switch {
	case status == http.StatusRequestEntityTooLarge:
		return sluice.KindTooLarge.String()
	case status == http.StatusRequestTimeout:
		return sluice.KindTimeout.String()
	case status >= 500:
		return sluice.KindInternal.String()
	}
	return sluice.KindInvalid.String()
}

// write sends the problem where no huma operation is reached.
func (p *Problem) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), p.GetHeaders())
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may have left; there is nobody else to tell
}
