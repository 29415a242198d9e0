package wire

import (
	"net/http"
	"time"

	"sluice/internal/engine"
)

// RateHeaders sets the dialect's rate-limit headers from the caller's counters.
// now is for resets that are told as a time.
func RateHeaders(h http.Header, d Dialect, s []engine.LimitState, now time.Time) {}
