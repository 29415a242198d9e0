package hook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Cause is why no verdict came, one word for the ledger and the metrics.
type Cause string

// The causes.
const (
	CauseTimeout   Cause = "timeout"
	CauseBusy      Cause = "busy"      // it had no turn within its deadline
	CauseOpen      Cause = "open"      // it failed several times in a row and is left alone
	CauseConnect   Cause = "connect"   // the call could not be made, or broke
	CauseStatus    Cause = "status"    // it did not answer 200
	CauseMalformed Cause = "malformed" // its answer is not of the protocol
	CauseTooLarge  Cause = "too_large" // the call, or its answer, is beyond max_body
	CauseUnknown   Cause = "unknown"   // no hook of this name is configured
	CauseUnread    Cause = "unread"    // the texts cannot be found
)

// callError is a call that brought no verdict.
type callError struct {
	cause Cause
	err   error
}

func (e *callError) Error() string { return string(e.cause) + ": " + e.err.Error() }
func (e *callError) Unwrap() error { return e.err }

// caller calls one hook's service. It is safe for concurrent use.
type caller struct {
	spec  Spec
	rt    http.RoundTripper
	turns chan struct{} // as many as calls may run

	mu      sync.Mutex
	breaker breaker // guarded by mu
}

func newCaller(spec Spec, rt http.RoundTripper) *caller {
	return &caller{spec: spec, rt: rt, turns: make(chan struct{}, spec.Concurrency)}
}

// ask calls the hook. The error is a *callError, or the cause of ctx where that ended.
func (c *caller) ask(ctx context.Context, q *Question) (ruling, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return ruling{}, &callError{CauseMalformed, err}
	}
	if int64(len(body)) > c.spec.MaxBody {
		return ruling{}, &callError{CauseTooLarge, fmt.Errorf("the call has %d bytes, max_body is %d", len(body), c.spec.MaxBody)}
	}
	if left, ok := c.enter(); !ok {
		return ruling{}, &callError{CauseOpen, fmt.Errorf("it failed several times in a row and is left alone for %s more", left)}
	}
	within, cancel := context.WithTimeout(ctx, c.spec.Deadline)
	defer cancel()
	r, err := c.turn(within, body, q)
	how := answered
	switch {
	case err != nil && ctx.Err() != nil:
		how, err = abandoned, context.Cause(ctx)
	case err != nil:
		how = failed
		if e, ok := errors.AsType[*callError](err); !ok {
			err = &callError{CauseConnect, err}
		} else if e.cause == CauseBusy { // we are: it says nothing of the hook
			how = abandoned
		}
		if within.Err() != nil && !isBusy(err) {
			err = &callError{CauseTimeout, fmt.Errorf("no verdict within %s", c.spec.Deadline)}
		}
	}
	c.mu.Lock()
	c.breaker.done(time.Now(), how)
	c.mu.Unlock()
	return r, err
}

func isBusy(err error) bool {
	e, ok := errors.AsType[*callError](err)
	return ok && e.cause == CauseBusy
}

func (c *caller) enter() (left time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	return c.breaker.left(now), c.breaker.allow(now)
}

// turn waits for a turn and makes the call.
func (c *caller) turn(ctx context.Context, body []byte, q *Question) (ruling, error) {
	busy := &callError{CauseBusy, fmt.Errorf("%d calls run, and none ended within %s", c.spec.Concurrency, c.spec.Deadline)}
	select {
	case c.turns <- struct{}{}:
	case <-ctx.Done():
		return ruling{}, busy
	}
	defer func() { <-c.turns }()
	if until, ok := ctx.Deadline(); ctx.Err() != nil || ok && !time.Now().Before(until) { // its turn came with the end of its time
		return ruling{}, busy
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.spec.URL, bytes.NewReader(body))
	if err != nil {
		return ruling{}, &callError{CauseConnect, err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "sluice-hook/1")
	req.Header.Set(SignatureHeader, Sign(c.spec.Secret.Reveal(), time.Now(), body))
	resp, err := c.rt.RoundTrip(req)
	if err != nil {
		return ruling{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return ruling{}, &callError{CauseStatus, fmt.Errorf("status %d", resp.StatusCode)}
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, c.spec.MaxBody+1))
	switch {
	case err != nil:
		return ruling{}, err
	case int64(len(answer)) > c.spec.MaxBody:
		return ruling{}, &callError{CauseTooLarge, errors.New("the answer is beyond max_body")}
	}
	r, err := parseAnswer(answer, q)
	if err != nil {
		return ruling{}, &callError{CauseMalformed, err}
	}
	return r, nil
}

// SignatureHeader carries the signature of a call.
const SignatureHeader = "Sluice-Signature"

// Sign is the signature of a call's body: "t=SECONDS,v1=HEX", where HEX is
// HMAC-SHA256(secret, SECONDS + "." + body).
func Sign(secret string, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(t + "."))
	mac.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}
