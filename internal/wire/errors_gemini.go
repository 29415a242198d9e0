package wire

import (
	"strconv"
	"time"

	"sluice"
)

// geminiRejection is an error in the form of Google's APIs. RetryInfo is what its
// client libraries wait by, and BadRequest what names a field.
type geminiRejection struct {
	Code    int     `json:"code"`
	Message string  `json:"message"`
	Status  string  `json:"status"`
	Details []any   `json:"details"`
	Sluice  *detail `json:"sluice,omitempty"`
}

type errorInfo struct {
	Type     string            `json:"@type"`
	Reason   string            `json:"reason"`
	Domain   string            `json:"domain"`
	Metadata map[string]string `json:"metadata"`
}

type retryInfo struct {
	Type  string `json:"@type"`
	Delay string `json:"retryDelay"`
}

type badRequest struct {
	Type       string           `json:"@type"`
	Violations []fieldViolation `json:"fieldViolations"`
}

type fieldViolation struct {
	Field       string `json:"field"`
	Description string `json:"description"`
}

const googleType = "type.googleapis.com/google.rpc."

func geminiErrorBody(r rejection, e *sluice.Error, id sluice.RequestID) []byte {
	out := geminiRejection{
		Code: r.geminiStatus, Message: message(e, id), Status: r.geminiWord, Sluice: detailOf(e, id),
		Details: []any{errorInfo{googleType + "ErrorInfo", e.Reason.String(), "sluice", map[string]string{"request_id": string(id)}}},
	}
	if e.Param != "" {
		out.Details = append(out.Details, badRequest{googleType + "BadRequest", []fieldViolation{{e.Param, e.Msg}}})
	}
	if d := retryDelay(e); d > 0 {
		out.Details = append(out.Details, retryInfo{googleType + "RetryInfo", seconds(d)})
	}
	return encode(struct {
		Error geminiRejection `json:"error"`
	}{out})
}

// retryDelay is when to come back, 0 where that is of no use or too far away to be
// waited for by a program: see retryHeaders.
func retryDelay(e *sluice.Error) time.Duration {
	if e.Reason == sluice.NeverFits || e.Kind != sluice.KindRateLimited && e.Kind != sluice.KindOverloaded || e.RetryAfter > pace*time.Second {
		return 0
	}
	return max(e.RetryAfter, time.Second)
}

// seconds is a duration as protocol buffers write it in JSON, in whole milliseconds
// rounded up.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(float64(retryMillis(d))/1000, 'f', -1, 64) + "s"
}
