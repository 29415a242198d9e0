package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"sluice"
)

// result is how one request ended, as its client saw it.
type result struct {
	outcome string // one of the outcomes of Report
	reason  string // sluice-reason, or why the client says it failed
	status  int    // 0 when there was no answer
	latency time.Duration
	ttft    time.Duration // 0 when no content came
	usage   *usage
	stream  bool
}

// The outcomes of a request.
const (
	completed = "completed"
	cancelled = "cancelled" // by the replay itself: an abort that was drawn, or its end
	rejected  = "rejected"  // an error status that the gateway gave a reason for, or a 4xx, 503 or 529
	failed    = "failed"
)

// call sends one request and reads its answer to the end.
func (d *driver) call(ctx context.Context, row *Row, key sluice.Secret, due time.Time, seed uint64) (r result) {
	defer func() { r.latency = time.Since(due) }()
	r.stream = !row.Whole
	call, leave := context.WithTimeoutCause(ctx, d.o.Timeout, errTimeout)
	defer leave()
	req, err := d.request(call, row, key, seed)
	if err != nil {
		r.outcome, r.reason = failed, "request"
		return r
	}
	if row.Whole && row.CancelAfter > 0 { // there are no events to count: leave while it waits
		stop := time.AfterFunc(time.Duration(row.CancelAfter)*20*time.Millisecond, leave)
		defer stop.Stop()
	}
	resp, err := d.o.Transport.RoundTrip(req)
	if err != nil {
		r.outcome, r.reason = d.broken(call, ctx, row, err)
		return r
	}
	defer resp.Body.Close()
	r.status = resp.StatusCode
	if resp.StatusCode != http.StatusOK {
		r.reason = resp.Header.Get("sluice-reason")
		r.outcome = refused(resp.StatusCode, r.reason)
		if r.reason == "" {
			r.reason = errorCode(resp.Body)
		}
		return r
	}
	if row.Whole {
		r.usage, err = readWhole(resp.Body)
		r.ttft = time.Since(due)
	} else {
		n := 0
		r.usage, err = readStream(resp.Body, func() error {
			if n++; n == 1 {
				r.ttft = time.Since(due)
			}
			if n == row.CancelAfter {
				return errLeft
			}
			return nil
		})
	}
	if err == nil {
		r.outcome = completed
		return r
	}
	r.outcome, r.reason = d.broken(call, ctx, row, err)
	return r
}

var errTimeout = errors.New("the replay's own timeout")

// broken sorts an answer that did not come or did not end.
func (d *driver) broken(call, run context.Context, row *Row, err error) (outcome, reason string) {
	switch {
	case errors.Is(err, errLeft), run.Err() != nil:
		return cancelled, ""
	case errors.Is(context.Cause(call), errTimeout):
		return failed, "timeout"
	case call.Err() != nil && row.CancelAfter > 0:
		return cancelled, ""
	case errors.Is(err, errTruncated):
		return failed, "truncated"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return failed, "torn"
	}
	if e, ok := errors.AsType[*streamError](err); ok {
		code, reason := errorWords(strings.NewReader(`{"error":` + e.body + `}`))
		if ours(reason) { // refused after a wait that the gateway had bridged with keep-alives
			return rejected, reason
		}
		return failed, "event:" + code
	}
	return failed, "connection"
}

// refused sorts an error status.
func refused(status int, reason string) string {
	if status < 500 || status == http.StatusServiceUnavailable || status == 529 {
		return rejected
	}
	if ours(reason) {
		return rejected
	}
	return failed
}

// ours reports whether a reason is that of a gateway that refused.
func ours(reason string) bool {
	var known sluice.Reason
	return known.UnmarshalText([]byte(reason)) == nil && known >= sluice.InvalidRequest && known <= sluice.LedgerBusy
}

// errorCode is the code, else the type, of an error body in either dialect.
func errorCode(r io.Reader) string {
	code, _ := errorWords(r)
	return code
}

// errorWords is errorCode, and the gateway's own reason, if the body has one.
func errorWords(r io.Reader) (code, reason string) {
	var e struct {
		Error struct {
			Type   string `json:"type"`
			Code   any    `json:"code"`
			Sluice struct {
				Reason string `json:"reason"`
			} `json:"sluice"`
		} `json:"error"`
	}
	b, err := io.ReadAll(io.LimitReader(r, 64<<10))
	if err != nil || json.Unmarshal(b, &e) != nil {
		return "unreadable", ""
	}
	reason = e.Error.Sluice.Reason
	if code, ok := e.Error.Code.(string); ok && code != "" {
		return code, reason
	}
	if e.Error.Type != "" {
		return e.Error.Type, reason
	}
	return "unknown", reason
}

func (d *driver) request(ctx context.Context, row *Row, key sluice.Secret, seed uint64) (*http.Request, error) {
	b, err := body(row, &d.o, seed)
	if err != nil {
		return nil, err
	}
	path := "/v1/chat/completions"
	if d.o.Dialect == Anthropic {
		path = "/v1/messages"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.o.Target+path, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if d.o.Dialect == Anthropic {
		req.Header.Set("anthropic-version", "2023-06-01")
	}
	if !key.Empty() {
		if d.o.Dialect == Anthropic {
			req.Header.Set("x-api-key", key.Reveal())
		} else {
			req.Header.Set("Authorization", "Bearer "+key.Reveal())
		}
	}
	if row.Task != "" {
		req.Header.Set("sluice-task", row.Task)
	}
	return req, nil
}
