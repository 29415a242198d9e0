package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"sluice"
	"sluice/internal/ledger"
)

func logged(t *testing.T, r *Request) (string, map[string]any) {
	t.Helper()
	var buf bytes.Buffer
	l := NewRequestLog(&buf, LogOptions{})
	l.Log(r)
	l.Close()
	if n := strings.Count(buf.String(), "\n"); n != 1 {
		t.Fatalf("%d lines, want 1: %q", n, buf.String())
	}
	var m map[string]any
	if err := json.Unmarshal(buf.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	return buf.String(), m
}

func TestCanonicalLine(t *testing.T) {
	_, m := logged(t, &Request{
		Final: ledger.Entry{
			Request: "req_1", Tenant: "acme", Project: "default", Key: "k1", Operation: "chat", Model: "fast", Class: sluice.Interactive,
			Backend: "gpu-a", Pool: "chat", Policy: "p1", Task: "summary", Attempt: 2, Outcome: sluice.Completed, Status: 200, Stream: true,
			Queued: 12 * time.Millisecond, FirstToken: 340 * time.Millisecond, Duration: 2 * time.Second,
		},
		Usage: sluice.Usage{Input: 100, CacheRead: 50, Output: 20, Source: sluice.UsageReported},
		Cost:  1234,
	})
	for key, want := range map[string]any{
		"msg": "request", "level": "INFO", "request_id": "req_1", "tenant": "acme", "project": "default", "key": "k1", "model": "fast",
		"class": "interactive", "outcome": "completed", "reason": "", "status": 200.0, "attempts": 2.0, "backend": "gpu-a", "task": "summary",
		"queued_s": .012, "ttft_s": .34, "duration_s": 2.0, "tokens_input": 100.0, "tokens_cache_read": 50.0, "tokens_output": 20.0,
		"usage_source": "reported", "cost_nanodollars": 1234.0,
	} {
		if m[key] != want {
			t.Errorf("%s: got %v, want %v", key, m[key], want)
		}
	}
}

// TestLineCannotBeForged feeds every string of an entry with what terminals and
// log readers act upon.
func TestLineCannotBeForged(t *testing.T) {
	evil := "a\r\n{\"level\":\"INFO\"}\x1b[31m\x00\u009b2J\u202e\u2028\xff" + strings.Repeat("x", 4096)
	text, m := logged(t, &Request{
		Final: ledger.Entry{
			Request: sluice.RequestID(evil), Tenant: sluice.TenantID(evil), Model: sluice.ModelID(evil), Task: evil,
			UpstreamRequestID: evil, Backend: sluice.BackendID(evil), Operation: evil, Policy: evil,
		},
		Err: errors.New(evil),
	})
	if i := strings.IndexFunc(strings.TrimSuffix(text, "\n"), func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }); i >= 0 {
		t.Errorf("a control character survived at byte %d: %q", i, text[max(0, i-20):i+5])
	}
	for k, v := range m {
		s, _ := v.(string)
		if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
			t.Errorf("%s decodes to a control character: %q", k, s)
		}
		if len(s) > 2*maxLogged {
			t.Errorf("%s has %d bytes", k, len(s))
		}
	}
}

// TestNoSecretInLog is the log's part of case cW2.
func TestNoSecretInLog(t *testing.T) {
	const canary = "canary-7f3a9c"
	var buf bytes.Buffer
	for _, format := range []string{"json", "text"} {
		l := NewLogger(&buf, LogOptions{Format: format})
		s := sluice.NewSecret(canary)
		l.Info("plain", "secret", s)
		l.Info("inside", "struct", struct {
			Key sluice.Secret
			P   *sluice.Secret
		}{s, &s})
		l.With("secret", s).WithGroup("g").Info("bound", "s", &s)
		rl := NewRequestLog(&buf, LogOptions{Format: format})
		rl.Log(&Request{Final: ledger.Entry{Detail: []byte(canary), Labels: []sluice.Label{{Key: "k", Value: canary}}, User: canary}})
		rl.Close()
	}
	if strings.Contains(buf.String(), canary) {
		t.Errorf("the canary is in the log: %s", buf.String())
	}
}

func TestCleanKeepsWords(t *testing.T) {
	var buf bytes.Buffer
	l := NewLogger(&buf, LogOptions{Format: "text"})
	l.Warn("sluice.yaml:3:1: modles: unknown field\n    fix: did you mean \"models\"?")
	if want := `msg="sluice.yaml:3:1: modles: unknown field     fix: did you mean`; !strings.Contains(buf.String(), want) {
		t.Errorf("got %s", buf.String())
	}
	buf.Reset()
	l.Error("panic", stackKey, strings.Repeat("frame\n", 1000))
	if n := strings.Count(buf.String(), "frame"); n != 1000 {
		t.Errorf("the stack has %d of its 1000 frames", n)
	}
}

func TestParseLevel(t *testing.T) {
	if _, err := ParseLevel("loud"); err == nil || !strings.Contains(err.Error(), "use debug, info, warn or error") {
		t.Errorf("got %v, want the words to use", err)
	}
	if l, err := ParseLevel("warn"); err != nil || l.String() != "WARN" {
		t.Errorf("got %v, %v", l, err)
	}
}
