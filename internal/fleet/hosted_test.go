package fleet

import (
	"errors"
	"testing"
	"time"

	"sluice"
)

func TestHostedJobsDoNotSlowEachOtherDown(t *testing.T) {
	h := NewHosted(Service{Latency: 100 * time.Millisecond, PrefillRate: 10_000, TokenTime: 10 * time.Millisecond})
	for range 100 {
		if _, err := h.Submit(epoch, Job{Input: 1000, Output: 11}); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range h.Advance(after(time.Hour)) {
		want := after(200 * time.Millisecond)
		if e.Done {
			want = after(300 * time.Millisecond)
		}
		if !e.At.Equal(want) {
			t.Fatalf("got %+v, want %s", e, want)
		}
	}
	if got := h.Totals(); got.Done != 100 || got.Generated != 1100 {
		t.Errorf("got %+v", got)
	}
}

func TestHostedRates(t *testing.T) {
	h := NewHosted(Service{RequestsPerMinute: 2, TokensPerMinute: 1000})
	submit := func(at time.Duration, tokens sluice.Tokens) error {
		_, err := h.Submit(after(at), Job{Input: tokens, Output: 0})
		return err
	}
	if err := submit(0, 400); err != nil {
		t.Fatal(err)
	}
	err := submit(0, 700) // 100 tokens are missing: 6 s
	limit, ok := errors.AsType[*LimitError](err)
	if !ok || !limit.Tokens || limit.RetryAfter != 6*time.Second {
		t.Fatalf("got %v, want the token rate in 6 s", err)
	}
	if err := submit(6*time.Second, 700); err != nil {
		t.Fatal(err)
	}
	err = submit(6*time.Second, 1) // 2 requests in 6 s of 30 s each: 24 s
	if limit, ok = errors.AsType[*LimitError](err); !ok || limit.Tokens || limit.RetryAfter != 24*time.Second {
		t.Fatalf("got %v, want the request rate in 24 s", err)
	}
	requests, tokens, _, full := h.Remaining(after(36 * time.Second))
	if requests != 1 || tokens != 500 || full != 30*time.Second {
		t.Errorf("got %d requests, %d tokens, full in %s", requests, tokens, full)
	}
}
