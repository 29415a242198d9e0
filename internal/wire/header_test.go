package wire

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/engine"
)

func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func TestRequestHeader(t *testing.T) {
	got := RequestHeader(headers("Authorization", "Bearer x", "x-api-key", "x", "Cookie", "c", "Accept-Encoding", "gzip", "Content-Length", "5", "sluice-task", "t",
		"Connection", "X-Hop, close", "X-Hop", "1", "Te", "trailers", "X-Stainless-Lang", "js", "OpenAI-Organization", "org", "X-Auth-Token", "s", "Cf-Access-Jwt-Assertion", "j",
		"X-Forwarded-For", "1.2.3.4", "Idempotency-Key", "k",
		"anthropic-version", "2023-06-01", "anthropic-beta", "a", "Anthropic-Beta", "b", "OpenAI-Beta", "assistants=v2", "User-Agent", "me", "X-Title", "app", "Accept", "*/*"))
	want := headers("Anthropic-Version", "2023-06-01", "Anthropic-Beta", "a", "Anthropic-Beta", "b", "Openai-Beta", "assistants=v2", "User-Agent", "me", "X-Title", "app", "Accept", "*/*")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnswerHeader(t *testing.T) {
	dst := headers("Sluice-Request-Id", "r")
	AnswerHeader(dst, headers("X-Request-Id", "req", "Content-Type", "text/event-stream", "Content-Length", "5", "Set-Cookie", "c", "X-Ratelimit-Remaining-Tokens", "5",
		"Retry-After", "5", "Openai-Organization", "org", "Openai-Processing-Ms", "12", "Sluice-Request-Id", "theirs", "Transfer-Encoding", "chunked"))
	want := headers("Sluice-Request-Id", "r", "X-Request-Id", "req", "Content-Type", "text/event-stream", "Openai-Processing-Ms", "12")
	if diff := cmp.Diff(want, dst); diff != "" {
		t.Error(diff)
	}
	if got := ProviderRequestID(headers("request-id", "req_a")); got != "req_a" {
		t.Errorf("got %q", got)
	}
}

func state(d sluice.Dimension, w sluice.Window, amount, remaining int64, reset time.Duration) engine.LimitState {
	return engine.LimitState{Limit: sluice.Limit{Dimension: d, Window: w, Amount: amount}, Remaining: remaining, Reset: reset}
}

func TestRateHeaders(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 1, time.UTC)
	s := []engine.LimitState{
		state(sluice.Requests, sluice.PerMinute, 600, 599, 100*time.Millisecond),
		state(sluice.Requests, sluice.PerHour, 1000, 10, 6*time.Minute),
		state(sluice.InputTokens, sluice.PerMinute, 1e12, 9e11, 6*time.Second),
		state(sluice.OutputTokens, sluice.PerMinute, 1000, 400, 36*time.Second),
		state(sluice.Concurrency, sluice.NoWindow, 3, 0, 0),
		state(sluice.Spend, sluice.PerMonth, 100, 0, time.Hour),
	}
	h := http.Header{}
	RateHeaders(h, OpenAI, s, now)
	want := headers("x-ratelimit-limit-requests", "1000", "x-ratelimit-remaining-requests", "10", "x-ratelimit-reset-requests", "6m0s",
		"x-ratelimit-limit-tokens", "1000", "x-ratelimit-remaining-tokens", "400", "x-ratelimit-reset-tokens", "36s")
	if diff := cmp.Diff(want, h); diff != "" {
		t.Error(diff)
	}
	h = http.Header{}
	RateHeaders(h, Anthropic, s, now)
	want = headers("anthropic-ratelimit-requests-limit", "1000", "anthropic-ratelimit-requests-remaining", "10", "anthropic-ratelimit-requests-reset", "2026-11-29T12:06:01Z",
		"anthropic-ratelimit-tokens-limit", "1000", "anthropic-ratelimit-tokens-remaining", "400", "anthropic-ratelimit-tokens-reset", "2026-11-29T12:00:37Z",
		"anthropic-ratelimit-input-tokens-limit", "1000000000000", "anthropic-ratelimit-input-tokens-remaining", "900000000000", "anthropic-ratelimit-input-tokens-reset", "2026-11-29T12:00:07Z",
		"anthropic-ratelimit-output-tokens-limit", "1000", "anthropic-ratelimit-output-tokens-remaining", "400", "anthropic-ratelimit-output-tokens-reset", "2026-11-29T12:00:37Z")
	if diff := cmp.Diff(want, h); diff != "" {
		t.Error(diff)
	}
	h = http.Header{}
	if RateHeaders(h, OpenAI, nil, now); len(h) != 0 {
		t.Errorf("got %v without limits", h)
	}
}

func TestModelsBody(t *testing.T) {
	models := []ModelInfo{{ID: "a", Created: time.Unix(5, 0)}, {ID: "b", OwnedBy: "x", Context: 100, MaxOutput: 10}}
	for _, tt := range []struct {
		got  []byte
		want string
	}{
		{ModelsBody(OpenAI, models), `{"object":"list","data":[{"id":"a","object":"model","created":5,"owned_by":"sluice"},{"id":"b","object":"model","created":0,"owned_by":"x"}]}`},
		{ModelsBody(Anthropic, models), `{"data":[{"type":"model","id":"a","display_name":"a","created_at":"1970-01-01T00:00:05Z"},{"type":"model","id":"b","display_name":"b","created_at":"1970-01-01T00:00:00Z","max_input_tokens":100,"max_tokens":10}],"has_more":false,"first_id":"a","last_id":"b"}`},
		{ModelsBody(OpenAI, nil), `{"object":"list","data":[]}`},
		{ModelsBody(Anthropic, nil), `{"data":[],"has_more":false,"first_id":null,"last_id":null}`},
		{ModelBody(OpenAI, models[0]), `{"id":"a","object":"model","created":5,"owned_by":"sluice"}`},
	} {
		if string(tt.got) != tt.want {
			t.Errorf("got  %s\nwant %s", tt.got, tt.want)
		}
	}
}

func TestOperations(t *testing.T) {
	for op := range Operation(NumOperations) {
		if op.String() == "" || !strings.HasPrefix(op.Path(), "/") {
			t.Errorf("operation %d: got %q %q", op, op, op.Path())
		}
	}
	if Messages.Dialect() != Anthropic || CountTokens.Dialect() != Anthropic || Chat.Dialect() != OpenAI {
		t.Error("wrong dialects")
	}
}

// A bound of a run never fills again, so that no time is told at which it would; of
// several that are spent it is the tightest.
func TestRateHeadersOfRun(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	run := engine.LimitState{Scope: sluice.ScopeRun, Limit: sluice.Limit{Dimension: sluice.Requests, Window: sluice.PerRun, Amount: 3}}
	rate := engine.LimitState{Limit: sluice.Limit{Dimension: sluice.Requests, Window: sluice.PerMinute, Amount: 60}, Reset: time.Minute}
	for _, s := range [][]engine.LimitState{{run}, {run, rate}, {rate, run}} {
		for d, want := range map[Dialect]string{
			OpenAI:    "map[X-Ratelimit-Limit-Requests:[3] X-Ratelimit-Remaining-Requests:[0]]",
			Anthropic: "map[Anthropic-Ratelimit-Requests-Limit:[3] Anthropic-Ratelimit-Requests-Remaining:[0]]",
		} {
			h := http.Header{}
			if RateHeaders(h, d, s, now); fmt.Sprint(map[string][]string(h)) != want {
				t.Errorf("%v of %v: got %v, want %s", d, s, h, want)
			}
		}
	}
}
