package sluice

import (
	"errors"
	"fmt"
	"time"
)

// Kind sorts errors by what a client can do about them. One table in wire maps kinds to status codes and dialect
// types.
type Kind uint8

// The kinds.
const (
	KindInternal Kind = iota
	KindInvalid
	KindTooLarge
	KindUnauthenticated
	KindForbidden
	KindNotFound
	KindConflict
	KindRateLimited     // the caller's rate or concurrency: 429
	KindBudgetExhausted // the caller's money: 429 or 402
	KindOverloaded      // shared capacity: 503 or 529
	KindUpstream        // a backend failed: 502
	KindTimeout         // a backend was too slow: 504
	KindCancelled       // the client left: 499 in the log, nothing on the wire
	NumKinds            = iota
)

var kindNames = []string{
	"internal", "invalid", "too_large", "unauthenticated", "forbidden", "not_found", "conflict",
	"rate_limited", "budget_exhausted", "overloaded", "upstream", "timeout", "cancelled",
}

func (k Kind) String() string { return enumText(kindNames, k) }

// Error is an error with a kind. Msg and Hint are safe to show to a client; Err is for logs alone.
type Error struct {
	Kind   Kind
	Reason Reason
	Msg    string // what is wrong: one sentence, no final stop
	Hint   string // how to mend it, empty if there is nothing to say
	Param  string // the offending field, header or parameter, empty if none
	Err    error  // the cause, never shown to a client

	// Refusal tells which limit did not fit, on rejections by a limit.
	Refusal *Refusal
	// RetryAfter is when this request would fit, from now; 0 if unknown or never, -1 if it depends on what its caller does.
	RetryAfter time.Duration
	// Expected says that RetryAfter is an estimate: it depends on requests in flight, or on a backend.
	Expected bool
}

// Refusal is the limit that did not fit and its figures at that moment.
type Refusal struct {
	Scope     Scope
	ID        string // whose limit: the key, project, tenant or model
	Limit     Limit
	Requested int64     // what this request would have taken
	Used      int64     // spent, in the limit's unit
	Held      int64     // held by requests in flight
	Reset     time.Time // when the window ends or the bucket is full; zero for gauges
}

func (e *Error) Error() string {
	s := e.Msg
	if e.Param != "" {
		s = e.Param + " " + s
	}
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	if e.Err != nil {
		s += " (" + e.Err.Error() + ")"
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Invalid makes a KindInvalid error about one field of a request.
func Invalid(param, format string, args ...any) *Error {
	return &Error{Kind: KindInvalid, Reason: InvalidRequest, Param: param, Msg: fmt.Sprintf(format, args...)}
}

// AsError returns err as an *Error. One that is not, is an internal error whose text stays in the log.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Kind: KindInternal, Reason: InternalError, Msg: "internal error", Err: err}
}
