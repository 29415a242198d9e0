package wire

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
)

const (
	converseText = `{"contentBlockIndex":0,"delta":{"text":"Hello there, you"},"p":"abc"}`
	converseStop = `{"stopReason":"end_turn"}`
	converseMeta = `{"metrics":{"latencyMs":12},"serviceTier":{"type":"flex"},"usage":{"cacheDetails":[{"inputTokens":40,"ttl":"1h"},{"inputTokens":2,"ttl":"5m"}],` +
		`"cacheReadInputTokens":30,"cacheWriteInputTokens":42,"inputTokens":5,"outputTokens":9,"totalTokens":86}}`
)

// tapFrames moves frames through a tap and returns its last step.
func tapFrames(t *testing.T, tap *Tap, frames ...[]byte) (s Step) {
	t.Helper()
	src := NewFrames(Converse, bytes.NewReader(bytes.Join(frames, nil)), 0)
	for {
		ev, err := src.Next()
		if err != nil {
			return tap.End(err)
		}
		if s = tap.Event(ev); s.Terminal || s.Err != nil {
			return s
		}
	}
}

// The usage that comes after the stop is read, in disjoint classes.
func TestTapConverse(t *testing.T) {
	tap := NewTap(Converse, TapOptions{})
	s := tapFrames(t, tap, told("messageStart", `{"role":"assistant"}`),
		told("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"hm"}}}`),
		told("contentBlockStart", `{"contentBlockIndex":1,"start":{"toolUse":{"name":"f","toolUseId":"t1"}}}`),
		told("contentBlockDelta", `{"contentBlockIndex":1,"delta":{"toolUse":{"input":"{\"a\""}}}`),
		told("contentBlockDelta", converseText), told("contentBlockStop", `{"contentBlockIndex":0}`),
		told("messageStop", converseStop), told("metadata", converseMeta))
	u, ok := tap.Usage()
	want := sluice.Usage{Input: 5, CacheRead: 30, CacheWrite: 2, CacheWrite1h: 40, Output: 9, ToolCalls: 1, ServiceTier: "flex", Source: sluice.UsageReported}
	if d := cmp.Diff(want, u); d != "" || !ok || !s.Terminal || s.Err != nil {
		t.Errorf("%+v: %s", s, d)
	}
	if tap.FinishReason() != "end_turn" || tap.Reasoned() == 0 || tap.Delivered() <= tap.Reasoned() {
		t.Errorf("%s, %d of %d", tap.FinishReason(), tap.Reasoned(), tap.Delivered())
	}
}

// Where the stream ends decides: without a stop it is cut, without figures it is whole
// and they are not known; in the other order nothing is lost.
func TestTapConverseEnds(t *testing.T) {
	text, stop, meta := told("contentBlockDelta", converseText), told("messageStop", converseStop), told("metadata", converseMeta)
	corrupt := bytes.Clone(text)
	corrupt[len(corrupt)-7] ^= 1
	exception := func(kind string) []byte {
		return AppendFrame(nil, []FrameHeader{{":message-type", "exception"}, {":exception-type", kind}}, []byte(`{"message":"why"}`))
	}
	for _, tt := range []struct {
		name   string
		frames [][]byte
		want   sluice.Reason
		kind   sluice.Kind
		usage  bool
	}{
		{"whole", [][]byte{text, stop, meta}, sluice.ReasonNone, 0, true},
		{"the other way round", [][]byte{text, meta, stop}, sluice.ReasonNone, 0, true},
		{"no figures", [][]byte{text, stop}, sluice.ReasonNone, 0, false},
		{"no stop", [][]byte{text}, sluice.UpstreamTruncated, sluice.KindUpstream, false},
		{"figures and no stop", [][]byte{text, meta}, sluice.UpstreamTruncated, sluice.KindUpstream, true},
		{"inside of a frame", [][]byte{text, text[:20]}, sluice.UpstreamTruncated, sluice.KindUpstream, false},
		{"corrupt", [][]byte{text, corrupt, stop, meta}, sluice.UpstreamMalformed, sluice.KindUpstream, false},
		{"no JSON", [][]byte{told("contentBlockDelta", `{"delta":`)}, sluice.UpstreamMalformed, sluice.KindUpstream, false},
		{"throttled", [][]byte{text, exception("throttlingException")}, sluice.UpstreamLimited, sluice.KindOverloaded, false},
		{"of the model", [][]byte{text, exception("modelStreamErrorException")}, sluice.UpstreamError, sluice.KindUpstream, false},
		{"of the service", [][]byte{text, exception("internalServerException")}, sluice.UpstreamError, sluice.KindUpstream, false},
		{"unavailable", [][]byte{text, exception("serviceUnavailableException")}, sluice.UpstreamError, sluice.KindOverloaded, false},
		{"the client's", [][]byte{text, exception("validationException")}, sluice.UpstreamRefused, sluice.KindInvalid, false},
		{"too slow", [][]byte{text, exception("modelTimeoutException")}, sluice.UpstreamTimeout, sluice.KindTimeout, false},
		{"unheard of", [][]byte{text, exception("otherException")}, sluice.UpstreamError, sluice.KindUpstream, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tap := NewTap(Converse, TapOptions{})
			s := tapFrames(t, tap, tt.frames...)
			if _, ok := tap.Usage(); ok != tt.usage {
				t.Errorf("usage is %v", ok)
			}
			if tt.want == sluice.ReasonNone {
				if s.Err != nil || !s.Terminal {
					t.Errorf("got %+v", s)
				}
				return
			}
			if s.Err == nil || s.Err.Reason != tt.want || s.Err.Kind != tt.kind || s.Out != nil {
				t.Errorf("got %+v", s.Err)
			}
		})
	}
}

func TestTapConverseBody(t *testing.T) {
	tap := NewTap(Converse, TapOptions{})
	body := `{"metrics":{"latencyMs":1},"output":{"message":{"content":[{"reasoningContent":{"reasoningText":{"signature":"s","text":"hm"}}},{"text":"Hello"},` +
		`{"toolUse":{"input":{"a":1},"name":"f","toolUseId":"t"}}],"role":"assistant"}},"stopReason":"tool_use","usage":{"inputTokens":3,"outputTokens":7,"totalTokens":10}}`
	out, err := tap.Body([]byte(body))
	if err != nil || string(out) != body {
		t.Fatalf("got %s, %v", out, err)
	}
	u, ok := tap.Usage()
	if d := cmp.Diff(sluice.Usage{Input: 3, Output: 7, ToolCalls: 1, Source: sluice.UsageReported}, u); d != "" || !ok {
		t.Error(d)
	}
	if tap.Delivered() < 5 || tap.Reasoned() == 0 || tap.FinishReason() != "tool_use" {
		t.Errorf("delivered %d, reasoned %d, %s", tap.Delivered(), tap.Reasoned(), tap.FinishReason())
	}
}

// Each answer of an error has its effect: on the pace, the credential, the breaker
// and the next attempt.
func TestRefusedConverse(t *testing.T) {
	type effect struct {
		Reason                    sluice.Reason
		Retry, Park, Over, Passed bool
		Context                   bool
	}
	for _, tt := range []struct {
		name   string
		status int
		kind   string
		msg    string
		want   effect
	}{
		{"throttled", 429, "ThrottlingException", "Too many requests", effect{Reason: sluice.UpstreamLimited, Retry: true}},
		{"not ready", 429, "ModelNotReadyException", "Model is not ready", effect{Reason: sluice.UpstreamLimited, Retry: true, Over: true}},
		{"quota", 400, "ServiceQuotaExceededException", "quota", effect{Reason: sluice.UpstreamLimited, Retry: true, Park: true}},
		{"invalid", 400, "ValidationException", "messages.0 is wrong", effect{Reason: sluice.UpstreamRefused, Passed: true}},
		{"too long", 400, "ValidationException", "Input is too long for requested model.", effect{Reason: sluice.UpstreamRefused, Passed: true, Context: true}},
		{"no such model", 400, "ValidationException", "The provided model identifier is invalid.", effect{Reason: sluice.UpstreamRefused, Retry: true}},
		{"no such profile", 404, "ResourceNotFoundException", "not found", effect{Reason: sluice.UpstreamRefused, Retry: true}},
		{"slow", 408, "ModelTimeoutException", "", effect{Reason: sluice.UpstreamTimeout, Retry: true}},
		{"the model's", 424, "ModelErrorException", "", effect{Reason: sluice.UpstreamError, Retry: true}},
		{"denied", 403, "AccessDeniedException", "no access", effect{Reason: sluice.UpstreamRefused, Retry: true, Park: true}},
		{"signature", 403, "InvalidSignatureException", "expired", effect{Reason: sluice.UpstreamRefused, Retry: true, Park: true}},
		{"internal", 500, "InternalServerException", "", effect{Reason: sluice.UpstreamError, Retry: true}},
		{"unavailable", 503, "ServiceUnavailableException", "", effect{Reason: sluice.UpstreamError, Retry: true, Over: true}},
	} {
		for how, h := range map[string]http.Header{"header": {"X-Amzn-Errortype": {tt.kind + ":http://internal.amazon.com/coral/x/"}}, "body": {}} {
			body := `{"message":"` + tt.msg + `"}`
			if how == "body" {
				body = `{"__type":"com.amazon.coral.availability#` + tt.kind + `","Message":"` + tt.msg + `"}`
			}
			r := Refused(Bedrock, tt.status, h, []byte(body))
			if got := (effect{r.Reason, r.Retryable, r.Park, r.Overload, r.Pass, r.Context}); got != tt.want || r.Message != tt.msg {
				t.Errorf("%s by the %s: got %+v %q, want %+v", tt.name, how, got, r.Message, tt.want)
			}
		}
	}
	r := Refused(Bedrock, 429, http.Header{"Retry-After": {"7"}}, nil)
	if r.RetryAfter != 7*time.Second || !r.Retryable {
		t.Errorf("got %+v", r)
	}
}

// A request for Converse is put together here: what it needs and where its bound
// stands is found, and the bound can be lowered or named.
func TestScanConverse(t *testing.T) {
	body := `{"model":"anthropic.claude-3-5-sonnet-20241022-v2:0","stream":true,"system":[{"text":"s"},{"cachePoint":{"type":"default"}}],` +
		`"messages":[{"role":"user","content":[{"text":"a"},{"image":{"format":"png","source":{"bytes":"AA=="}}},{"toolResult":{"toolUseId":"t","content":[{"document":{"name":"d"}}]}}]}],` +
		`"inferenceConfig":{"maxTokens":50,"temperature":0.5},"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{}}}}]},"outputConfig":{"effort":"low"},` +
		`"additionalModelRequestFields":{"top_k":5}}`
	h, err := Scan(Converse, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, need := range []string{"image", "file", "tools", "cache", "reasoning", "temperature", "top_k", "stream"} {
		if !strings.Contains(h.Needs.String(), need) {
			t.Errorf("needs %v, without %s", h.Needs, need)
		}
	}
	if h.MaxOutput != 50 || !h.HasMaxOutput || h.Tools != 1 || h.Media != 2 {
		t.Errorf("got %+v", h)
	}
	if got := string(h.Splice([]byte(body), Edit{Model: "m", MaxOutput: 9})); !strings.Contains(got, `"maxTokens":9,`) || !strings.Contains(got, `"model":"m"`) {
		t.Errorf("got %s", got)
	}
	for in, want := range map[string]string{
		`{"model":"m","messages":[],"inferenceConfig":{}}`:           `{"model":"m","messages":[],"inferenceConfig":{"maxTokens":9}}`,
		`{"model":"m","messages":[],"inferenceConfig":{"topP":0.5}}`: `{"model":"m","messages":[],"inferenceConfig":{"maxTokens":9,"topP":0.5}}`,
		`{"model":"m","messages":[]}`:                                `{"model":"m","inferenceConfig":{"maxTokens":9},"messages":[]}`,
	} {
		h, err := Scan(Converse, []byte(in))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(h.Splice([]byte(in), Edit{MaxOutput: 9})); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
