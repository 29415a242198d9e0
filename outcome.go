package sluice

// Outcome is how a request or an attempt ended. Every one ends exactly once.
type Outcome uint8

// The outcomes.
const (
	Completed   Outcome = iota
	Failed              // a backend or the gateway failed it
	Cancelled           // the client left
	Rejected            // refused before a backend was touched
	Expired             // its hold ran out, or the process died with it
	NumOutcomes = iota
)

var outcomeNames = []string{"completed", "failed", "cancelled", "rejected", "expired"}

func (o Outcome) String() string                { return enumText(outcomeNames, o) }
func (o Outcome) MarshalText() ([]byte, error)  { return []byte(o.String()), nil }
func (o *Outcome) UnmarshalText(b []byte) error { return enumParse("outcome", outcomeNames, b, o) }

// Reason says why a request ended as it did: the same word in the error body, the sluice-reason header, metrics,
// the log line and the ledger.
type Reason uint8

// The reasons. They are appended to, never renamed.
const (
	ReasonNone Reason = iota // completed
	// Refused: the request itself.
	InvalidRequest
	BodyTooLarge
	BodyTimeout // the client sent its body too slowly
	NeverFits   // larger than a limit, context or budget can ever admit
	ModelNotFound
	ModelNotAllowed
	NotFound // no such path or thing
	MethodNotAllowed
	CapabilityMissing // no backend of the model can do what is asked
	Unpriced          // the model has no price and the policy is to refuse
	// Refused: the caller.
	Unauthenticated
	KeyExpired
	KeyRevoked
	PermissionDenied
	// Refused: limits of the caller.
	RateLimited        // requests or tokens per time
	ConcurrencyLimited // calls or KV tokens in flight
	BudgetSpent
	BudgetHeld // the budget is held by requests in flight
	// Refused or expired: scarce capacity.
	QueueFull
	QueueTimeout  // waited as long as it may
	DeadlineUnmet // predicted to wait too long
	NoBackend     // no healthy backend
	ShuttingDown
	LedgerBusy // hard spend cannot be recorded now
	// The client left.
	ClientGone
	ClientStalled // reads too slowly
	// The upstream failed.
	UpstreamConnect
	UpstreamTLS
	UpstreamRefused   // it answered 4xx
	UpstreamLimited   // it answered 429 or 529
	UpstreamError     // it answered 5xx, or an error inside a stream
	UpstreamTimeout   // no headers, or no first token, in time
	UpstreamStalled   // silence, or too slow, in mid-stream
	UpstreamTruncated // ended without its terminal marker
	UpstreamMalformed // not what its dialect allows
	UpstreamTooLarge  // an event or body beyond the bound
	UpstreamRedirect
	// The gateway failed.
	HoldExpired // no activity until the reservation ran out
	Lost        // the process died while the attempt ran
	InternalError
	NotReady            // what the answer depends on has not been loaded yet
	BudgetStop          // the answer was cut short with "length": the budget had no room for more of it
	LostRace            // the other attempt at the request had content first
	Displaced           // a copy that nobody sees gave its place to a request
	Untranslatable      // it asks for what the dialect of the model's backends cannot say
	HookRefused         // a safety hook refused it, or its answer
	HookFailed          // a safety hook that refuses where it cannot be asked could not be
	Degraded            // a pool's degradation ladder refused it, or served less than was asked for
	IdempotencyInFlight // the request of its Idempotency-Key is still running
	IdempotencyMismatch // its Idempotency-Key is that of a request with another body
	NumReasons          = iota
)

var reasonNames = []string{
	"", "invalid_request", "body_too_large", "body_timeout", "never_fits", "model_not_found", "model_not_allowed", "not_found",
	"method_not_allowed", "capability_missing", "unpriced", "unauthenticated", "key_expired", "key_revoked", "permission_denied",
	"rate_limited", "concurrency_limited", "budget_spent", "budget_held", "queue_full", "queue_timeout", "deadline_unmet", "no_backend",
	"shutting_down", "ledger_busy", "client_gone", "client_stalled", "upstream_connect", "upstream_tls", "upstream_refused",
	"upstream_limited", "upstream_error", "upstream_timeout", "upstream_stalled", "upstream_truncated", "upstream_malformed",
	"upstream_too_large", "upstream_redirect", "hold_expired", "lost", "internal_error", "not_ready", "budget", "lost_race", "displaced",
	"untranslatable", "hook_refused", "hook_failed", "degraded",
	"idempotency_in_flight", "idempotency_mismatch",
}

func (r Reason) String() string                { return enumText(reasonNames, r) }
func (r Reason) MarshalText() ([]byte, error)  { return []byte(r.String()), nil }
func (r *Reason) UnmarshalText(b []byte) error { return enumParse("reason", reasonNames, b, r) }
