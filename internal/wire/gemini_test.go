package wire

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
)

// What Google's refusals mean: whose fault it is, and when to come back.
func TestRefusedByGoogle(t *testing.T) {
	type meaning struct {
		Reason                                   sluice.Reason
		Wait                                     time.Duration
		Retryable, Park, Overload, Pass, Context bool
	}
	const retry = `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}`
	quota := func(id string) string {
		return `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"m","quotaId":"` + id + `"}]}`
	}
	info := func(reason string) string {
		return `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"` + reason + `","domain":"googleapis.com"}`
	}
	for _, tt := range []struct {
		name, body string
		status     int
		want       meaning
	}{
		{"a rate", refusalOf("RESOURCE_EXHAUSTED", "Quota.", quota("RequestsPerMinute"), retry), 429, meaning{Reason: sluice.UpstreamLimited, Wait: 34500 * time.Millisecond, Retryable: true}},
		{"in an array", "[" + refusalOf("RESOURCE_EXHAUSTED", "Quota.", quota("RequestsPerMinute"), retry) + "]", 429, meaning{Reason: sluice.UpstreamLimited, Wait: 34500 * time.Millisecond, Retryable: true}},
		{"the day's quota", refusalOf("RESOURCE_EXHAUSTED", "Quota.", quota("GenerateRequestsPerDayPerProject"), retry), 429, meaning{Reason: sluice.UpstreamLimited, Wait: 34500 * time.Millisecond, Retryable: true, Park: true}},
		{"shared capacity", refusalOf("RESOURCE_EXHAUSTED", "Resource exhausted, please try again later."), 429, meaning{Reason: sluice.UpstreamLimited, Retryable: true, Overload: true}},
		{"a key that is no good", refusalOf("INVALID_ARGUMENT", "API key not valid.", info("API_KEY_INVALID")), 400, meaning{Reason: sluice.UpstreamRefused, Retryable: true, Park: true}},
		{"a place that is not served", refusalOf("FAILED_PRECONDITION", "User location is not supported for the API use."), 400, meaning{Reason: sluice.UpstreamRefused, Retryable: true, Park: true}},
		{"the client's own mistake", refusalOf("INVALID_ARGUMENT", "contents is not specified"), 400, meaning{Reason: sluice.UpstreamRefused, Pass: true}},
		{"another's file", refusalOf("PERMISSION_DENIED", "You do not have permission to access the File x or it may not exist."), 403, meaning{Reason: sluice.UpstreamRefused, Pass: true}},
		{"an account without the service", refusalOf("PERMISSION_DENIED", "Disabled.", info("SERVICE_DISABLED")), 403, meaning{Reason: sluice.UpstreamRefused, Retryable: true, Park: true}},
		{"a token that has expired", refusalOf("UNAUTHENTICATED", "Expired."), 401, meaning{Reason: sluice.UpstreamRefused, Retryable: true, Park: true}},
		{"too long", refusalOf("INVALID_ARGUMENT", "The input token count (1500000) exceeds the maximum number of tokens allowed (1048576)."), 400, meaning{Reason: sluice.UpstreamRefused, Pass: true, Context: true}},
		{"overloaded", refusalOf("UNAVAILABLE", "The model is overloaded."), 503, meaning{Reason: sluice.UpstreamError, Retryable: true, Overload: true}},
		{"too slow", refusalOf("DEADLINE_EXCEEDED", "Deadline."), 504, meaning{Reason: sluice.UpstreamTimeout, Retryable: true}},
		{"a page", "<html>", 502, meaning{Reason: sluice.UpstreamError, Retryable: true}},
		{"a client's quota that is not one", refusalOf("RESOURCE_EXHAUSTED", "x", `{"violations":[null,5]}`), 429, meaning{Reason: sluice.UpstreamLimited, Retryable: true}},
	} {
		r := Refused(Gemini, tt.status, http.Header{}, []byte(tt.body))
		got := meaning{r.Reason, r.RetryAfter, r.Retryable, r.Park, r.Overload, r.Pass, r.Context}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
		if passed := r.Body(Gemini, []byte(tt.body)); r.Message != "" && string(passed) != tt.body || !json.Valid(passed) {
			t.Errorf("%s is passed as %s", tt.name, passed)
		}
	}
	r := Refused(Gemini, 429, http.Header{"Retry-After": {"5"}}, []byte(refusalOf("RESOURCE_EXHAUSTED", "Quota.", retry)))
	if r.RetryAfter != 5*time.Second {
		t.Errorf("the header counts before the body: got %s", r.RetryAfter)
	}
}

func refusalOf(status, message string, details ...string) string {
	return `{"error":{"code":400,"message":"` + message + `","status":"` + status + `","details":[` + strings.Join(details, ",") + `]}}`
}

// The rejection table in Gemini's words.
func TestErrorGemini(t *testing.T) {
	for _, tt := range []struct {
		name, word, delay, field string
		err                      *sluice.Error
		o                        ErrorOptions
		status                   int
	}{
		{"rate", "RESOURCE_EXHAUSTED", "5.001s", "", &sluice.Error{Kind: sluice.KindRateLimited, Reason: sluice.RateLimited, RetryAfter: 5*time.Second + 1}, ErrorOptions{}, 429},
		{"rate far away", "RESOURCE_EXHAUSTED", "", "", &sluice.Error{Kind: sluice.KindRateLimited, Reason: sluice.RateLimited, RetryAfter: time.Hour}, ErrorOptions{}, 429},
		{"concurrency", "RESOURCE_EXHAUSTED", "1s", "", &sluice.Error{Kind: sluice.KindRateLimited, Reason: sluice.ConcurrencyLimited}, ErrorOptions{}, 429},
		{"budget", "RESOURCE_EXHAUSTED", "", "", &sluice.Error{Kind: sluice.KindBudgetExhausted, Reason: sluice.BudgetSpent}, ErrorOptions{}, 429},
		{"budget by option", "RESOURCE_EXHAUSTED", "", "", &sluice.Error{Kind: sluice.KindBudgetExhausted, Reason: sluice.BudgetSpent}, ErrorOptions{Budget402: true}, 402},
		{"fleet full", "UNAVAILABLE", "1.5s", "", &sluice.Error{Kind: sluice.KindOverloaded, Reason: sluice.QueueFull, RetryAfter: 1500 * time.Millisecond}, ErrorOptions{}, 503},
		{"never fits", "INVALID_ARGUMENT", "", "", &sluice.Error{Kind: sluice.KindRateLimited, Reason: sluice.NeverFits, Refusal: &sluice.Refusal{}}, ErrorOptions{}, 400},
		{"invalid", "INVALID_ARGUMENT", "", "contents", sluice.Invalid("contents", "must be an array"), ErrorOptions{}, 400},
		{"method", "INVALID_ARGUMENT", "", "", &sluice.Error{Kind: sluice.KindInvalid, Reason: sluice.MethodNotAllowed}, ErrorOptions{}, 405},
		{"unauthenticated", "UNAUTHENTICATED", "", "", &sluice.Error{Kind: sluice.KindUnauthenticated, Reason: sluice.KeyRevoked}, ErrorOptions{}, 401},
		{"no model", "NOT_FOUND", "", "", &sluice.Error{Kind: sluice.KindNotFound, Reason: sluice.ModelNotFound}, ErrorOptions{}, 404},
		{"timeout", "DEADLINE_EXCEEDED", "", "", &sluice.Error{Kind: sluice.KindTimeout, Reason: sluice.UpstreamTimeout}, ErrorOptions{}, 504},
	} {
		status, _, body := Error(Gemini, tt.err, "req_1", tt.o)
		var got struct {
			Error struct {
				Code    int
				Status  string
				Details []struct {
					Type            string `json:"@type"`
					Delay           string `json:"retryDelay"`
					FieldViolations []struct{ Field string }
				}
			}
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		delay, field := "", ""
		for _, d := range got.Error.Details {
			if !strings.HasPrefix(d.Type, "type.googleapis.com/google.rpc.") {
				t.Errorf("%s: a detail of type %q", tt.name, d.Type)
			}
			delay += d.Delay
			for _, v := range d.FieldViolations {
				field += v.Field
			}
		}
		if status != tt.status || got.Error.Code != tt.status || got.Error.Status != tt.word || delay != tt.delay || field != tt.field {
			t.Errorf("%s: got %d %s", tt.name, status, body)
		}
	}
}

func TestModelsGemini(t *testing.T) {
	got := string(ModelsBody(Gemini, []ModelInfo{{ID: "fast", Context: 1000, MaxOutput: 100}, {ID: "slow"}}))
	want := `{"models":[{"name":"models/fast","displayName":"fast","inputTokenLimit":1000,"outputTokenLimit":100,"supportedGenerationMethods":["generateContent","countTokens"]},` +
		`{"name":"models/slow","displayName":"slow","supportedGenerationMethods":["generateContent","countTokens"]}]}`
	if got != want {
		t.Errorf("got %s", got)
	}
	if got := string(ModelBody(Gemini, ModelInfo{ID: "fast"})); !strings.HasPrefix(got, `{"name":"models/fast"`) {
		t.Errorf("got %s", got)
	}
}

// An image costs what its resolution says, and the bound is never less.
func TestMediaGemini(t *testing.T) {
	for _, tt := range []struct {
		name, model, config, data string
		want                      sluice.Tokens
	}{
		{"small tiles", "gemini-2.5-flash", ``, picture(t, "png", 300, 384), 258},
		{"tiles", "gemini-2.5-flash", ``, picture(t, "png", 960, 540), 6 * 258},
		{"low tiles", "gemini-2.5-flash", `MEDIA_RESOLUTION_LOW`, picture(t, "png", 960, 540), 64},
		{"a budget", "gemini-3-flash", ``, picture(t, "png", 960, 540), 1120},
		{"a small budget", "models/gemini-3-flash", `media_resolution_low`, picture(t, "png", 960, 540), 280},
	} {
		body := `{"contents":[{"parts":[{"inlineData":{"data":"` + tt.data + `","mimeType":"image/png"}}]}],"generationConfig":{"mediaResolution":"` + tt.config + `"}}`
		h, err := ScanIn(GenerateContent, []byte(body), InPath{Model: tt.model})
		if err != nil {
			t.Fatal(err)
		}
		if got := h.Estimate - h.Text; got != tt.want || h.Bound < h.Estimate {
			t.Errorf("%s: got %d, want %d, bound %d", tt.name, got, tt.want, h.Bound)
		}
	}
}
