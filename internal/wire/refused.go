package wire

import (
	"net/http"
	"time"

	"sluice"
)

// Refusal is what an upstream's error answer means for the attempt, the backend
// and the client.
type Refusal struct {
	Reason     sluice.Reason // UpstreamRefused, UpstreamLimited, UpstreamError, UpstreamTimeout or UpstreamRedirect
	Kind       sluice.Kind   // what the client is told if there is no further attempt and the answer is not passed on
	RetryAfter time.Duration // what the upstream asked for, 0 to MaxRetryAfter; 0 if nothing
	Retryable  bool          // another attempt, here or elsewhere, may succeed
	Park       bool          // the credential or account is of no use until an operator or a new period mends it: quota spent, key refused
	Overload   bool          // the upstream is out of capacity: shrink, do not hammer
	Pass       bool          // the client's own mistake: pass status and body on in the dialect
	Context    bool          // the input exceeds the context length
	Type, Code string        // the upstream's own words, bounded
	Message    string        // bounded; safe to show to the client only where Pass
}

// MaxRetryAfter bounds what an upstream may ask for.
const MaxRetryAfter = time.Hour

// Refused classifies an upstream's answer whose status is not 2xx. body may be cut.
func Refused(d Dialect, status int, h http.Header, body []byte) Refusal { return Refusal{} }

// Err is the refusal as an error for the client, where it is not passed on.
func (r Refusal) Err() *sluice.Error { return &sluice.Error{Kind: r.Kind, Reason: r.Reason} }
