package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice"
)

// The rejection table, row by row.
func TestError(t *testing.T) {
	at := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	rate := &sluice.Error{Kind: sluice.KindRateLimited, Reason: sluice.RateLimited, Msg: "too many tokens", RetryAfter: 5 * time.Second, Refusal: &sluice.Refusal{
		Scope: sluice.ScopeTenant, ID: "acme", Limit: sluice.Limit{Dimension: sluice.OutputTokens, Window: sluice.PerMinute, Amount: 600}, Requested: 100, Used: 500, Held: 50,
	}}
	long := &sluice.Error{Kind: sluice.KindRateLimited, Reason: sluice.RateLimited, Msg: "too many requests", RetryAfter: 90*time.Second + 1}
	budget := &sluice.Error{Kind: sluice.KindBudgetExhausted, Reason: sluice.BudgetHeld, Msg: "the budget is held", Refusal: &sluice.Refusal{
		Scope: sluice.ScopeProject, ID: "p", Limit: sluice.Limit{Dimension: sluice.Spend, Window: sluice.PerMonth, Amount: int64(sluice.Dollar)}, Used: 1, Held: int64(sluice.Dollar), Reset: at,
	}}
	const none = "<none>"
	for _, tt := range []struct {
		name                                  string
		err                                   *sluice.Error
		o                                     ErrorOptions
		openai                                int
		openaiType, code                      string
		anthropic                             int
		anthropicType                         string
		retryAfter, retryAfterMS, shouldRetry string
	}{
		{"rate", rate, ErrorOptions{}, 429, "rate_limit_exceeded", "rate_limit_exceeded", 429, "rate_limit_error", "5", "5000", none},
		{"rate far away", long, ErrorOptions{}, 429, "rate_limit_exceeded", "rate_limit_exceeded", 429, "rate_limit_error", "60", "90001", "false"},
		{"concurrency", &sluice.Error{Kind: sluice.KindRateLimited, Reason: sluice.ConcurrencyLimited}, ErrorOptions{}, 429, "rate_limit_exceeded", "rate_limit_exceeded", 429, "rate_limit_error", "1", none, none},
		{"budget", budget, ErrorOptions{}, 429, "insufficient_quota", "insufficient_quota", 402, "billing_error", none, none, "false"},
		{"budget by option", budget, ErrorOptions{Budget402: true}, 402, "insufficient_quota", "insufficient_quota", 402, "billing_error", none, none, "false"},
		{"fleet full", &sluice.Error{Kind: sluice.KindOverloaded, Reason: sluice.QueueFull, RetryAfter: 1500 * time.Millisecond}, ErrorOptions{}, 503, "server_error", "queue_full", 529, "overloaded_error", "2", "1500", none},
		{"too long", &sluice.Error{Kind: sluice.KindInvalid, Reason: sluice.NeverFits}, ErrorOptions{}, 400, "invalid_request_error", "context_length_exceeded", 400, "invalid_request_error", none, none, none},
		{"never fits", &sluice.Error{Kind: sluice.KindRateLimited, Reason: sluice.NeverFits, Refusal: &sluice.Refusal{}}, ErrorOptions{}, 400, "invalid_request_error", "never_fits", 400, "invalid_request_error", none, none, none},
		{"too large", &sluice.Error{Kind: sluice.KindTooLarge, Reason: sluice.BodyTooLarge}, ErrorOptions{}, 413, "invalid_request_error", "body_too_large", 413, "request_too_large", none, none, none},
		{"invalid", sluice.Invalid("n", "must be positive"), ErrorOptions{}, 400, "invalid_request_error", "invalid_value", 400, "invalid_request_error", none, none, none},
		{"unauthenticated", &sluice.Error{Kind: sluice.KindUnauthenticated, Reason: sluice.KeyRevoked}, ErrorOptions{}, 401, "invalid_request_error", "invalid_api_key", 401, "authentication_error", none, none, none},
		{"forbidden", &sluice.Error{Kind: sluice.KindForbidden, Reason: sluice.ModelNotAllowed}, ErrorOptions{}, 403, "invalid_request_error", "model_not_found", 403, "permission_error", none, none, none},
		{"no model", &sluice.Error{Kind: sluice.KindNotFound, Reason: sluice.ModelNotFound}, ErrorOptions{}, 404, "invalid_request_error", "model_not_found", 404, "not_found_error", none, none, none},
		{"method", &sluice.Error{Kind: sluice.KindInvalid, Reason: sluice.MethodNotAllowed}, ErrorOptions{}, 405, "invalid_request_error", "method_not_allowed", 405, "invalid_request_error", none, none, none},
		{"slow body", &sluice.Error{Kind: sluice.KindInvalid, Reason: sluice.BodyTimeout}, ErrorOptions{}, 408, "invalid_request_error", "body_timeout", 408, "invalid_request_error", none, none, none},
		{"upstream", &sluice.Error{Kind: sluice.KindUpstream, Reason: sluice.UpstreamConnect}, ErrorOptions{}, 502, "server_error", "upstream_connect", 502, "api_error", none, none, none},
		{"timeout", &sluice.Error{Kind: sluice.KindTimeout, Reason: sluice.UpstreamTimeout}, ErrorOptions{}, 504, "server_error", "upstream_timeout", 504, "timeout_error", none, none, none},
		{"internal", sluice.AsError(io.ErrNoProgress), ErrorOptions{}, 500, "server_error", "internal_error", 500, "api_error", none, none, none},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, d := range []Dialect{OpenAI, Anthropic} {
				status, h, body := Error(d, tt.err, "req_1", tt.o)
				var got struct {
					Type  string `json:"type"`
					Error map[string]any
					ID    string `json:"request_id"`
				}
				if err := json.Unmarshal(body, &got); err != nil {
					t.Fatalf("%s: %v", body, err)
				}
				if d == OpenAI {
					if status != tt.openai || got.Error["type"] != tt.openaiType || got.Error["code"] != tt.code {
						t.Errorf("got %d %s, want %d %s %s", status, body, tt.openai, tt.openaiType, tt.code)
					}
					for _, key := range []string{"message", "type", "param", "code"} {
						if _, ok := got.Error[key]; !ok {
							t.Errorf("no %s in %s", key, body)
						}
					}
				} else if status != tt.anthropic || got.Type != "error" || got.Error["type"] != tt.anthropicType || got.ID != "req_1" {
					t.Errorf("got %d %s, want %d %s", status, body, tt.anthropic, tt.anthropicType)
				}
				for name, want := range map[string]string{"Retry-After": tt.retryAfter, "Retry-After-Ms": tt.retryAfterMS, "X-Should-Retry": tt.shouldRetry, "Sluice-Request-Id": "req_1", "Sluice-Reason": tt.err.Reason.String()} {
					if got := h.Get(name); got != strings.TrimPrefix(want, none) {
						t.Errorf("%s: got %s %q, want %q", d, name, got, want)
					}
				}
			}
		})
	}
	_, _, body := Error(OpenAI, rate, "req_1", ErrorOptions{})
	for _, want := range []string{"tenant acme", "600 output tokens per minute", "spent 500", "held by requests in flight 50", "fit in 5s", `"retry_after_ms":5000`} {
		if !bytes.Contains(body, []byte(want)) {
			t.Errorf("no %q in %s", want, body)
		}
	}
	_, _, body = Error(Anthropic, budget, "req_1", ErrorOptions{})
	for _, want := range []string{"$1.00 spend per month", "resets at 2026-12-01T00:00:00Z", `"reset":"2026-12-01T00:00:00Z"`} {
		if !bytes.Contains(body, []byte(want)) {
			t.Errorf("no %q in %s", want, body)
		}
	}
	for wait, want := range map[time.Duration]string{3 * time.Microsecond: "10ms", 1426 * time.Millisecond: "1.4s", 61400 * time.Millisecond: "1m1s"} {
		_, h, body := Error(OpenAI, &sluice.Error{Kind: sluice.KindRateLimited, Reason: sluice.ConcurrencyLimited, Msg: "full", RetryAfter: wait, Expected: true}, "req_1", ErrorOptions{})
		if !bytes.Contains(body, []byte("full; room is expected in about "+want+`"`)) || h.Get("Retry-After-Ms") == "" {
			t.Errorf("an estimate reads as a fact: %s %v", body, h)
		}
	}
	full := &sluice.Error{Kind: sluice.KindRateLimited, Reason: sluice.ConcurrencyLimited, Refusal: &sluice.Refusal{Limit: sluice.Limit{Dimension: sluice.Concurrency, Amount: 1}}}
	if _, _, body := Error(OpenAI, full, "req_1", ErrorOptions{}); !bytes.Contains(body, []byte(": concurrency of 1;")) {
		t.Errorf("a gauge reads badly: %s", body)
	}
	if _, _, body := Error(OpenAI, sluice.AsError(io.ErrNoProgress), "req_1", ErrorOptions{}); bytes.Contains(body, []byte("progress")) {
		t.Errorf("an internal cause is shown: %s", body)
	}
}

// cL12: 10 tokens a second with 50 missing.
func TestRetryAfterHeaders(t *testing.T) {
	_, h, _ := Error(OpenAI, &sluice.Error{Kind: sluice.KindRateLimited, Reason: sluice.RateLimited, RetryAfter: 5 * time.Second}, "r", ErrorOptions{})
	if h.Get("Retry-After") != "5" || h.Get("Retry-After-Ms") != "5000" {
		t.Errorf("got %v", h)
	}
}

// FuzzErrorEvent: nothing in an error can forge a field, an event or an end.
func FuzzErrorEvent(f *testing.F) {
	f.Add("a\n\ndata: [DONE]\n\n", "x\r\revent: message_stop", uint8(3))
	f.Add("\xff\u2028\x00", "", uint8(9))
	f.Fuzz(func(t *testing.T, msg, param string, kind uint8) {
		e := &sluice.Error{Kind: sluice.Kind(kind), Reason: sluice.UpstreamError, Msg: msg, Hint: param, Param: param}
		for _, d := range []Dialect{OpenAI, Anthropic, Gemini} {
			out := ErrorEvent(d, e, "req_1")
			events := NewEvents(bytes.NewReader(out), 1<<30)
			ev, err := events.Next()
			if err != nil || !bytes.Equal(ev.Raw, out) || !json.Valid(ev.Data) {
				t.Fatalf("got %q, %v of %q", ev.Raw, err, out)
			}
			if want := map[Dialect]string{Anthropic: "error"}[d]; string(ev.Name) != want {
				t.Fatalf("got name %q, want %q", ev.Name, want)
			}
			if s := NewTap(map[Dialect]Operation{OpenAI: Chat, Anthropic: Messages}[d], TapOptions{}).Event(ev); s.Err == nil {
				t.Fatalf("a client would not see an error in %q", out)
			}
		}
	})
}

func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		header map[string]string
		body   string
		want   Refusal
	}{
		{
			"rate", 429,
			map[string]string{"Retry-After": "7"},
			`{"error":{"message":"slow","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`,
			Refusal{Reason: sluice.UpstreamLimited, Kind: sluice.KindOverloaded, RetryAfter: 7 * time.Second, Retryable: true, Type: "tokens", Code: "rate_limit_exceeded", Message: "slow"},
		},
		{
			"rate in ms", 429,
			map[string]string{"Retry-After-Ms": "1500", "Retry-After": "2"},
			``,
			Refusal{Reason: sluice.UpstreamLimited, Kind: sluice.KindOverloaded, RetryAfter: 1500 * time.Millisecond, Retryable: true},
		},
		{
			"quota", 429, nil, `{"error":{"message":"pay","type":"insufficient_quota","code":"credit_balance_exhausted"}}`,
			Refusal{Reason: sluice.UpstreamLimited, Kind: sluice.KindOverloaded, Retryable: true, Park: true, Type: "insufficient_quota", Code: "credit_balance_exhausted", Message: "pay"},
		},
		{
			"quota in details", 429, nil, `{"type":"error","error":{"type":"rate_limit_error","message":"m","details":{"error_code":"enforced_spend_limit_reached"}},"request_id":"r"}`,
			Refusal{Reason: sluice.UpstreamLimited, Kind: sluice.KindOverloaded, Retryable: true, Park: true, Type: "rate_limit_error", Code: "enforced_spend_limit_reached", Message: "m"},
		},
		{
			"credit as 400", 400, nil, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access"}}`,
			Refusal{Reason: sluice.UpstreamLimited, Kind: sluice.KindOverloaded, Retryable: true, Park: true, Type: "invalid_request_error", Message: "Your credit balance is too low to access"},
		},
		{"payment", 402, nil, `{"error":"pay"}`, Refusal{Reason: sluice.UpstreamLimited, Kind: sluice.KindOverloaded, Retryable: true, Park: true, Message: "pay"}},
		{"ramp", 429, nil, `{"error":{"code":"slow_down"}}`, Refusal{Reason: sluice.UpstreamLimited, Kind: sluice.KindOverloaded, Retryable: true, Overload: true, Code: "slow_down"}},
		{
			"overloaded", 529, nil, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`,
			Refusal{Reason: sluice.UpstreamLimited, Kind: sluice.KindOverloaded, Retryable: true, Overload: true, Type: "overloaded_error", Message: "Overloaded"},
		},
		{"unavailable", 503, nil, `<html>`, Refusal{Reason: sluice.UpstreamError, Kind: sluice.KindOverloaded, Retryable: true, Overload: true}},
		{
			"server error, int code", 500, nil, `{"object":"error","message":"boom","type":"InternalServerError","param":null,"code":500}`,
			Refusal{Reason: sluice.UpstreamError, Kind: sluice.KindUpstream, Retryable: true, Type: "InternalServerError", Code: "500", Message: "boom"},
		},
		{"gateway timeout", 504, nil, ``, Refusal{Reason: sluice.UpstreamTimeout, Kind: sluice.KindTimeout, Retryable: true}},
		{"key", 401, nil, `{"error":{"code":"invalid_api_key"}}`, Refusal{Reason: sluice.UpstreamRefused, Kind: sluice.KindOverloaded, Retryable: true, Park: true, Code: "invalid_api_key"}},
		{"forbidden content", 403, nil, `{"error":{"type":"moderation"}}`, Refusal{Reason: sluice.UpstreamRefused, Kind: sluice.KindInvalid, Pass: true, Type: "moderation"}},
		{
			"context", 400, nil, `{"error":{"message":"This model's maximum context length is 8192","type":"invalid_request_error","code":"context_length_exceeded"}}`,
			Refusal{Reason: sluice.UpstreamRefused, Kind: sluice.KindInvalid, Pass: true, Context: true, Type: "invalid_request_error", Code: "context_length_exceeded", Message: "This model's maximum context length is 8192"},
		},
		{
			"too long", 400, nil, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}`,
			Refusal{Reason: sluice.UpstreamRefused, Kind: sluice.KindInvalid, Pass: true, Context: true, Type: "invalid_request_error", Message: "prompt is too long: 9 > 8"},
		},
		{"validation", 422, nil, `{"detail":"bad field"}`, Refusal{Reason: sluice.UpstreamRefused, Kind: sluice.KindInvalid, Pass: true, Message: "bad field"}},
		{"conflict", 409, nil, ``, Refusal{Reason: sluice.UpstreamRefused, Kind: sluice.KindUpstream, Retryable: true}},
		{"redirect", 307, nil, ``, Refusal{Reason: sluice.UpstreamRedirect, Kind: sluice.KindUpstream}},
		{"cut body", 400, nil, `{"error":{"message":"half`, Refusal{Reason: sluice.UpstreamRefused, Kind: sluice.KindInvalid, Pass: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := http.Header{}
			for k, v := range tt.header {
				h.Set(k, v)
			}
			tt.want.Status = tt.status
			if got := Refused(OpenAI, tt.status, h, []byte(tt.body)); got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// U4: what an upstream may write into Retry-After.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		header, date string
		want         time.Duration
	}{
		{"", "", 0},
		{"0", "", 0},
		{"-5", "", 0},
		{"12", "", 12 * time.Second},
		{"1.5", "", 1500 * time.Millisecond},
		{"1e18", "", MaxRetryAfter},
		{"NaN", "", 0},
		{"Inf", "", MaxRetryAfter},
		{"soon", "", 0},
		{"Sun, 29 Nov 2026 12:00:30 GMT", "", 30 * time.Second},
		{"Sun, 29 Nov 2026 11:00:00 GMT", "", 0},
		{"Fri, 31 Dec 9999 23:59:59 GMT", "", MaxRetryAfter},
		{"Sun, 29 Nov 2026 18:00:30 GMT", "Sun, 29 Nov 2026 18:00:00 GMT", 30 * time.Second},
	} {
		h := http.Header{"Retry-After": {tt.header}}
		if tt.date != "" {
			h.Set("Date", tt.date)
		}
		if got := retryAfter(h, now); got != tt.want {
			t.Errorf("%q: got %v, want %v", tt.header, got, tt.want)
		}
	}
}

// What others took of a limit that tenants share is nobody's to know.
func TestSharedLimitTellsNoFigures(t *testing.T) {
	e := &sluice.Error{
		Kind: sluice.KindOverloaded, Reason: sluice.RateLimited, Msg: "the model is at its limit",
		Refusal: &sluice.Refusal{Scope: sluice.ScopeModel, ID: "fast", Limit: sluice.Limit{Dimension: sluice.Requests, Window: sluice.PerMinute, Amount: 60}, Requested: 1, Used: 41, Held: 17},
	}
	_, _, body := Error(OpenAI, e, "req_1", ErrorOptions{})
	if strings.Contains(string(body), "41") || strings.Contains(string(body), "17") || strings.Contains(string(body), "spent") || strings.Contains(string(body), `"used"`) {
		t.Errorf("the body tells what others took: %s", body)
	}
	e.Refusal.Scope = sluice.ScopeTenant
	if _, _, body := Error(OpenAI, e, "req_1", ErrorOptions{}); !strings.Contains(string(body), `"used":41`) {
		t.Errorf("the body hides the caller's own figures: %s", body)
	}
}

func TestTimeOfARunIsToldAsATime(t *testing.T) {
	e := &sluice.Error{
		Kind: sluice.KindBudgetExhausted, Reason: sluice.BudgetSpent, Msg: "the run may last 5s",
		Refusal: &sluice.Refusal{Scope: sluice.ScopeRun, ID: "r", Limit: sluice.Limit{Dimension: sluice.RunTime, Window: sluice.PerRun, Amount: 5e9}, Used: 22656061832},
	}
	_, _, body := Error(OpenAI, e, "req_1", ErrorOptions{})
	if want := "(limit of run r: 5s time per run; spent 22.656s)"; !strings.Contains(string(body), want) {
		t.Errorf("no %q in %s", want, body)
	}
}
