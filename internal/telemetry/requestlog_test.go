package telemetry

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
	"sluice/internal/ledger"
	"sluice/test/bubble"
)

func someRequest() *Request {
	return &Request{
		Final: ledger.Entry{
			Request: "req_1", Tenant: "acme", Project: "default", Key: "k1", Operation: "chat", Model: "fast", Class: sluice.Interactive,
			Backend: "gpu-a", Pool: "chat", Policy: "p1", Attempt: 2, Outcome: sluice.Completed, Status: 200, Stream: true,
			Queued: 12 * time.Millisecond, FirstToken: 340 * time.Millisecond, Duration: 2*time.Second + 50*time.Microsecond,
		},
		Usage: sluice.Usage{Input: 100, Output: 20, Source: sluice.UsageReported},
		Cost:  1234,
	}
}

// A request's line is what the other lines' logger would have made of it.
func TestLineIsAsOthers(t *testing.T) {
	moment := regexp.MustCompile(`time"?[=:]"?[^", ]+`)
	for _, format := range []string{"json", "text"} {
		r := someRequest()
		r.Denied = "retry_budget_tenant"
		r.Final.Task, r.Err = `two words "quoted" a=b`, errors.New("ä\nb")
		var got, want bytes.Buffer
		l := NewRequestLog(&got, LogOptions{Format: format})
		l.Log(r)
		l.Close()
		NewLogger(&want, LogOptions{Format: format}).LogAttrs(t.Context(), slog.LevelInfo, "request",
			slog.String("request_id", "req_1"), slog.String("tenant", "acme"), slog.String("project", "default"), slog.String("key", "k1"),
			slog.String("operation", "chat"), slog.String("model", "fast"), slog.String("class", "interactive"),
			slog.String("outcome", "completed"), slog.String("reason", ""), slog.Int("status", 200), slog.Int("attempts", 2), slog.Bool("stream", true),
			slog.Float64("queued_s", .012), slog.Float64("ttft_s", .34), slog.Float64("duration_s", 2.00005),
			slog.String("backend", "gpu-a"), slog.String("pool", "chat"), slog.String("policy", "p1"), slog.String("task", r.Final.Task),
			slog.Int("tokens_input", 100), slog.Int("tokens_output", 20), slog.String("usage_source", "reported"),
			slog.Int("cost_nanodollars", 1234), slog.String("retry_denied", r.Denied), slog.Any("error", r.Err))
		if g, w := moment.ReplaceAllString(got.String(), ""), moment.ReplaceAllString(want.String(), ""); g != w {
			t.Errorf("got  %swant %s", g, w)
		}
		if !moment.Match(got.Bytes()) {
			t.Errorf("no time in %s", got.String())
		}
	}
}

// Lines wait for others, but not for long, and not behind a warning.
func TestLinesAreGrouped(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var buf lockedBuffer
		lines := func() int { return strings.Count(buf.String(), "\n") }
		l := NewRequestLog(&buf, LogOptions{Format: "text", Level: slog.LevelInfo})
		failed := someRequest()
		failed.Final.Outcome = sluice.Failed
		for i := range lineBurst {
			l.Log(someRequest())
			if got := lines(); got != i+1 {
				t.Fatalf("got %d lines of the first %d", got, i+1)
			}
		}
		buf.Reset()
		for i, step := range []struct {
			after time.Duration
			log   *Request
			want  int
		}{
			{0, someRequest(), 0},
			{lineWait / 2, someRequest(), 0},
			{0, failed, 3},
			{0, someRequest(), 3},
			{lineWait, nil, 4},
			{time.Hour, someRequest(), 5},
		} {
			time.Sleep(step.after)
			synctest.Wait()
			if step.log != nil {
				l.Log(step.log)
			}
			if got := lines(); got != step.want {
				t.Errorf("step %d: got %d lines, want %d", i, got, step.want)
			}
		}
		for range 200 {
			l.Log(someRequest())
		}
		if lines() < 100 {
			t.Errorf("got %d lines: they wait without a bound", lines())
		}
		l.Close()
		l.Log(someRequest())
		if got := lines(); got != 206 {
			t.Errorf("after the end: got %d lines, want 206", got)
		}
	})
}

func TestLogLevel(t *testing.T) {
	var buf bytes.Buffer
	l := NewRequestLog(&buf, LogOptions{Level: slog.LevelWarn})
	l.Log(someRequest())
	l.Close()
	if buf.Len() > 0 {
		t.Errorf("got %s", buf.String())
	}
}

// What each request costs: a line, and a dozen series.
func TestRequestAllocatesNothing(t *testing.T) {
	l := NewRequestLog(io.Discard, LogOptions{})
	defer l.Close()
	m := New(Options{})
	r := someRequest()
	e := r.Final
	e.Usage = r.Usage
	if n := testing.AllocsPerRun(1000, func() {
		l.Log(r)
		m.Request(r)
		m.Attempt(&e)
		m.Granted("chat", sluice.Batch, time.Second)
	}); n > 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

func BenchmarkRequest(b *testing.B) {
	l := NewRequestLog(io.Discard, LogOptions{})
	defer l.Close()
	m := New(Options{})
	r := someRequest()
	b.ReportAllocs()
	for b.Loop() {
		l.Log(r)
		m.Request(r)
		m.Attempt(&r.Final)
	}
}

// lockedBuffer is written to by a timer too.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (b *lockedBuffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.b.Reset()
}
