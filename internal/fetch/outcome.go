package fetch

import "time"

// Outcome is what became of one URL.
type Outcome string

// The outcomes.
const (
	Fetched    Outcome = "fetched"
	BadURL     Outcome = "url"        // the gateway goes to no such URL
	Forbidden  Outcome = "forbidden"  // its address is not public
	Unanswered Outcome = "unanswered" // its server is not there, or answers with an error
	Redirected Outcome = "redirected" // too often, or to where the gateway does not go
	TooLarge   Outcome = "too_large"
	Unfit      Outcome = "unfit" // no image or PDF, or in an encoding that was not asked for
	TimedOut   Outcome = "timeout"
	Ended      Outcome = "ended" // its request did, or another piece of it could not be had
)

// Outcomes are all of them.
var Outcomes = [...]Outcome{Fetched, BadURL, Forbidden, Unanswered, Redirected, TooLarge, Unfit, TimedOut, Ended}

// Event is what became of one URL, and what that took.
type Event struct {
	Outcome Outcome
	Bytes   int           // that were fetched; 0 of what was not
	Took    time.Duration // its wait for room included
}
