package wire

import (
	"net/http"

	"sluice"
)

// ErrorOptions says how a rejection is written.
type ErrorOptions struct {
	Budget402 bool // a spent budget is 402 in the OpenAI dialect too
}

// Error writes e as an answer of the dialect: its status, headers to set and body.
func Error(d Dialect, e *sluice.Error, id sluice.RequestID, o ErrorOptions) (status int, h http.Header, body []byte) {
	return http.StatusInternalServerError, http.Header{}, nil
}

// Status is the status that Error gives.
func Status(d Dialect, e *sluice.Error, o ErrorOptions) int { return http.StatusInternalServerError }

// ErrorEvent writes e as the dialect's error event, for a stream that has begun.
// The connection must be aborted after it.
func ErrorEvent(d Dialect, e *sluice.Error, id sluice.RequestID) []byte { return nil }
