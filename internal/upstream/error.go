package upstream

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"sluice"
	"sluice/internal/egress"
)

// ErrUnsent is a request whose caller gave it up before any of it was written:
// the backend cannot have begun to work.
var ErrUnsent = errors.New("not sent")

// Error is an attempt that failed without an answer of the backend's own, or in
// the middle of one.
type Error struct {
	Reason sluice.Reason
	// Sent tells that the backend may have begun to work, and to bill.
	Sent bool
	// Credential tells that the call could not be made with its credential; with another
	// it may.
	Credential bool
	Status     int    // of the answer, 0 before its headers
	What       string // detail for people, such as the deadline that passed; no secret and nothing of the body
	Err        error  // the cause, for logs
}

func (e *Error) Error() string {
	s := e.Reason.String()
	if e.What != "" {
		s += ": " + e.What
	}
	if e.Err != nil {
		s += fmt.Sprintf(" (%v)", e.Err)
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// messages are what a client is told.
var messages = map[sluice.Reason]string{
	sluice.UpstreamConnect:   "the backend could not be reached",
	sluice.UpstreamTLS:       "the backend could not be reached securely",
	sluice.UpstreamTimeout:   "the backend did not answer in time",
	sluice.UpstreamStalled:   "the backend stalled in the middle of its answer",
	sluice.UpstreamTruncated: "the backend ended its answer before it was complete",
	sluice.UpstreamMalformed: "the backend sent what its dialect does not allow",
	sluice.UpstreamTooLarge:  "the backend sent more than the bound",
	sluice.UpstreamRedirect:  "the backend sent a redirect, which is not followed",
	sluice.UpstreamError:     "the backend failed",
	sluice.UpstreamRefused:   "the gateway has no valid credential for the backend now",
}

// Public is the error as a client may see it.
func (e *Error) Public() *sluice.Error {
	kind := sluice.KindUpstream
	if e.Reason == sluice.UpstreamTimeout || e.Reason == sluice.UpstreamStalled {
		kind = sluice.KindTimeout
	}
	return &sluice.Error{Kind: kind, Reason: e.Reason, Msg: messages[e.Reason], Err: e}
}

// classify names a transport's error. status is that of the answer, 0 before
// its headers.
func classify(err error, status int) *Error {
	if status != 0 {
		return &Error{Reason: sluice.UpstreamTruncated, Sent: true, Status: status, Err: err}
	}
	if errors.Is(err, egress.ErrForbidden) {
		return &Error{Reason: sluice.UpstreamConnect, What: "egress forbidden", Err: err}
	}
	if isTLS(err) {
		return &Error{Reason: sluice.UpstreamTLS, Err: err}
	}
	if isDial(err) {
		return &Error{Reason: sluice.UpstreamConnect, Err: err}
	}
	if errors.Is(err, egress.ErrHeaderBound) || isHeaderBound(err) {
		return &Error{Reason: sluice.UpstreamTooLarge, Sent: true, What: "headers", Err: err}
	}
	if errors.Is(err, egress.ErrUnsent) {
		return &Error{Reason: sluice.UpstreamConnect, Err: err}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || isNet(err) {
		return &Error{Reason: sluice.UpstreamConnect, Sent: true, What: "connection lost before an answer", Err: err}
	}
	return &Error{Reason: sluice.UpstreamMalformed, Sent: true, Err: err}
}

func isDial(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return true
	}
	_, dns := errors.AsType[*net.DNSError](err)
	return dns
}

func isNet(err error) bool {
	_, ok := errors.AsType[net.Error](err)
	return ok
}

func isTLS(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return true
	}
	// net/http has an unexported type for this one, which has no other mark.
	return err.Error() == "net/http: TLS handshake timeout"
}

// isHeaderBound knows the error of MaxResponseHeaderBytes, which net/http gives
// no type either.
func isHeaderBound(err error) bool {
	return strings.Contains(err.Error(), "server response headers exceeded")
}
