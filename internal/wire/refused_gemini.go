package wire

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"sluice"
)

// geminiError is an error as Google's APIs tell it: {code, message, status, details},
// where details are of kinds of their own.
type geminiError struct {
	status  string // the word of the status, such as RESOURCE_EXHAUSTED
	message string
	reason  string // of an ErrorInfo, such as API_KEY_INVALID
	delay   time.Duration
	quota   bool // a quota of the account is named
	daily   bool // that is one of a day
}

// geminiError reads the value of an error member.
func (l *lexer) geminiError() (e geminiError) {
	if l.ws() != '{' {
		e.message = l.saying()
		return e
	}
	for o := l.object(); l.member(&o); {
		switch string(l.key(&o)) {
		case "status":
			e.status = l.scalar(maxWord)
		case "message":
			e.message = l.scalar(maxMessage)
		case "details":
			for a := l.arrayIfAny(); l.element(&a); {
				l.geminiDetail(&e)
			}
		default:
			l.skip()
		}
	}
	return e
}

// geminiDetail reads one detail. Its members tell its kind as well as its type does.
func (l *lexer) geminiDetail(e *geminiError) {
	for o := l.objectIfAny(); l.member(&o); {
		switch string(l.key(&o)) {
		case "retryDelay":
			if d, err := time.ParseDuration(l.scalar(maxWord)); err == nil {
				e.delay = boundedWait(d.Seconds())
			}
		case "reason":
			e.reason = l.scalar(maxWord)
		case "violations":
			e.quota = true
			at := l.skip()
			e.daily = e.daily || strings.Contains(string(l.b[at.start:min(at.end, at.start+maxMessage)]), "PerDay")
		default:
			l.skip()
		}
	}
}

// inside is the error as one that came inside of an answer.
func (e geminiError) inside() *sluice.Error {
	out := upstreamError(e.reason, e.status, e.message)
	switch e.status {
	case "RESOURCE_EXHAUSTED", "UNAVAILABLE":
		out.Kind, out.Reason = sluice.KindOverloaded, sluice.UpstreamLimited
	case "DEADLINE_EXCEEDED":
		out.Kind, out.Reason = sluice.KindTimeout, sluice.UpstreamTimeout
	case "INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE", "NOT_FOUND":
		out.Kind, out.Reason = sluice.KindInvalid, sluice.UpstreamRefused
	}
	return out
}

// operatorReasons are what an ErrorInfo says of the operator's key or account. A key
// that is no good is a 400 there.
var operatorReasons = []string{
	"API_KEY_INVALID", "API_KEY_EXPIRED", "API_KEY_SERVICE_BLOCKED", "API_KEY_HTTP_REFERRER_BLOCKED", "API_KEY_IP_ADDRESS_BLOCKED",
	"SERVICE_DISABLED", "CONSUMER_INVALID", "CONSUMER_SUSPENDED", "BILLING_DISABLED", "USER_PROJECT_DENIED",
	"ACCESS_TOKEN_SCOPE_INSUFFICIENT", "ACCESS_TOKEN_EXPIRED", "IAM_PERMISSION_DENIED",
}

// refusedByGoogle is Refused for answers of Google's APIs, which some endpoints put
// into an array of one.
func refusedByGoogle(status int, h http.Header, body []byte) Refusal {
	l := lexer{b: body, lax: true}
	var e geminiError
	read := func() {
		for o := l.objectIfAny(); l.member(&o); {
			if string(l.key(&o)) == "error" {
				e = l.geminiError()
			} else {
				l.skip()
			}
		}
	}
	if l.ws() == '[' {
		for a := l.array(); l.element(&a); {
			read()
		}
	} else {
		read()
	}
	r := Refusal{Status: status, Type: e.reason, Code: e.status, Message: e.message, RetryAfter: retryAfter(h, time.Now())}
	if r.RetryAfter == 0 {
		r.RetryAfter = e.delay
	}
	r.classify()
	r.ofOperator(e)
	return r
}

// ofOperator corrects what the status alone does not tell: what is wrong with the
// operator's key or account is not the client's to mend. What a client can bring about
// by itself (the name of another's file is a 403 too) never parks a key.
func (r *Refusal) ofOperator(e geminiError) {
	switch {
	case r.Status >= 500 || r.Status < 400:
	case r.Status == http.StatusTooManyRequests:
		r.Park = r.Park || e.daily
		r.Overload = !e.quota // of an account's own rate it tells which
	case slices.Contains(operatorReasons, e.reason), r.tells("location is not supported"), r.tells("enable billing"):
		r.Reason, r.Kind, r.Park, r.Retryable, r.Pass = sluice.UpstreamRefused, sluice.KindOverloaded, true, true, false
	case r.Pass:
		r.Context = r.Context || r.tells("maximum number of tokens") || r.tells("token count") && r.tells("exceeds")
	}
}
