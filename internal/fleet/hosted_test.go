package fleet

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

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

func TestHostedProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Service{
			Latency:     time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "latency")),
			PrefillRate: rapid.Int64Range(100, 50_000).Draw(t, "prefill"),
			TokenTime:   time.Duration(rapid.Int64Range(0, int64(20*time.Millisecond)).Draw(t, "token")),
			Concurrency: rapid.IntRange(0, 10).Draw(t, "concurrency"),
		}
		often, seldom := NewHosted(s), NewHosted(s)
		var a []Progress
		var ids []JobID
		now := epoch
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			step := time.Duration(rapid.Int64Range(0, int64(400*time.Millisecond)).Draw(t, "wait"))
			for at, ok := often.NextWake(); ok && !at.After(now.Add(step)); at, ok = often.NextWake() {
				a = append(a, often.Advance(at)...)
			}
			now = now.Add(step)
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				if len(ids) > 0 {
					id := rapid.SampledFrom(ids).Draw(t, "cancel")
					x, _ := often.Cancel(now, id)
					y, _ := seldom.Cancel(now, id)
					if x != y {
						t.Fatalf("cancel of %d: %d against %d", id, x, y)
					}
				}
			case 1:
				if len(ids) > 0 {
					id := rapid.SampledFrom(ids).Draw(t, "expect")
					n := sluice.Tokens(rapid.Int64Range(1, 50).Draw(t, "tokens"))
					often.Expect(now, id, n)
					seldom.Expect(now, id, n)
				}
			default:
				j := Job{
					Input:  sluice.Tokens(rapid.Int64Range(0, 3000).Draw(t, "input")),
					Output: sluice.Tokens(rapid.Int64Range(0, 300).Draw(t, "output")),
				}
				id, err := often.Submit(now, j)
				_, err2 := seldom.Submit(now, j)
				if err != err2 {
					t.Fatalf("submit: %v against %v", err, err2)
				}
				if err == nil {
					ids = append(ids, id)
				}
			}
		}
		for at, ok := often.NextWake(); ok; at, ok = often.NextWake() {
			a = append(a, often.Advance(at)...)
		}
		b := seldom.Advance(now.Add(10 * time.Hour))
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatal(diff)
		}
		if got := often.Totals(); got.Done+got.Cancelled != got.Submitted || got.Submitted != int64(len(ids)) {
			t.Fatalf("%+v after %d jobs", got, len(ids))
		}
	})
}
